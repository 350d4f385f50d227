"""The building blocks of topologies: one node a file, none knowing another."""

from .append import Append
from .critique import Critique
from .execute import Execute
from .extend import Extend
from .gate import Gate
from .model_call import ModelCall
from .prepare_step import PrepareStep
from .stop_check import StopCheck

__all__ = [
    "Append",
    "Critique",
    "Execute",
    "Extend",
    "Gate",
    "ModelCall",
    "PrepareStep",
    "StopCheck",
]
