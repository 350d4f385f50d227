"""The nodes, one file each, and what several of them share.

Each node is pure: it reads a run, and answers `Wait` with effects or `Leave` by an outcome.
Nodes do not know each other. They share `fan_out`, `attempts`, `dialogue`, `joins`,
`forced_choice`, `item_list` and `frozen_fields`.
Start with `gate.py`, `execute.py` and `append.py`.
"""

from .append import Append
from .approve import Approve
from .child import Child
from .compact import Compact
from .critique import Critique
from .execute import Execute
from .extend import Extend
from .fallback import Fallback
from .function import Function
from .gate import Gate
from .limit import Limit
from .map_over import MapOver
from .model_call import ModelCall
from .parallel import Branch, Parallel
from .prepare_step import PrepareStep
from .retrying import Retrying
from .router import Router
from .stop_check import StopCheck
from .verify import AnswerCheck, Verify

__all__ = [
    "AnswerCheck",
    "Append",
    "Approve",
    "Branch",
    "Child",
    "Compact",
    "Critique",
    "Execute",
    "Extend",
    "Fallback",
    "Function",
    "Gate",
    "Limit",
    "MapOver",
    "ModelCall",
    "Parallel",
    "PrepareStep",
    "Retrying",
    "Router",
    "StopCheck",
    "Verify",
]
