"""The building blocks of topologies: one node a file, none knowing another."""

from .append import Append
from .child import Child
from .compact import Compact
from .critique import Critique
from .execute import Execute
from .extend import Extend
from .gate import Gate
from .model_call import ModelCall
from .prepare_step import PrepareStep
from .stop_check import StopCheck
from .verify import AnswerCheck, Verify

__all__ = [
    "AnswerCheck",
    "Append",
    "Child",
    "Compact",
    "Critique",
    "Execute",
    "Extend",
    "Gate",
    "ModelCall",
    "PrepareStep",
    "StopCheck",
    "Verify",
]
