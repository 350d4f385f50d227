"""The nodes, one file each, and what several of them share.

Each node is pure: it reads a run, and answers `Wait` with effects or `Leave` by an outcome.
Nodes do not know each other. They share `fan_out`, `attempts`, `dialogue`, `joins`,
`forced_choice` and `frozen_fields`.
Start with `gate.py`, `execute.py` and `append.py`.
"""

from .append import Append, recorded
from .approve import Approve
from .attempts import NEVER
from .child import Child, ChildOutcome
from .compact import SUMMARY_TOKENS, Compact
from .critique import Critique
from .dialogue import ASKS_MAX, Asks
from .execute import Execute
from .extend import Extend
from .fallback import Fallback
from .function import Function
from .gate import Gate
from .joins import BranchJoin, Reducer
from .limit import Limit
from .map_over import ItemForm, MapOver
from .model_call import ModelCall
from .parallel import Branch, Parallel
from .prepare_step import PrepareStep
from .retrying import Retrying
from .router import Router
from .stop_check import StopCheck
from .verify import AnswerCheck, Verify

__all__ = [
    "ASKS_MAX",
    "NEVER",
    "SUMMARY_TOKENS",
    "AnswerCheck",
    "Append",
    "Approve",
    "Asks",
    "Branch",
    "BranchJoin",
    "Child",
    "ChildOutcome",
    "Compact",
    "Critique",
    "Execute",
    "Extend",
    "Fallback",
    "Function",
    "Gate",
    "ItemForm",
    "Limit",
    "MapOver",
    "ModelCall",
    "Parallel",
    "PrepareStep",
    "Reducer",
    "Retrying",
    "Router",
    "StopCheck",
    "Verify",
    "recorded",
]
