"""The node classes, one file each, and the helper modules that several of them share.

Each node is pure: it reads a run, and returns `Wait` with new effects or `Leave` with an outcome.
No node imports another. The helpers are `fan_out`, `attempts`, `dialogue`, `joins`,
`forced_choice` and `frozen_fields`.
Start with `gate.py`, `execute.py` and `append.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .append import Append
from .compact import SUMMARY_TOKENS, Compact
from .dialogue import REQUESTS_MAX, RequestLimits
from .execute import Execute
from .extend import Extend
from .function import Function
from .gate import Gate
from .model_call import ModelCall
from .prepare_step import PrepareStep
from .stop_check import StopCheck
from .verify import AnswerCheck, Verify

if TYPE_CHECKING:
    from .approve import Approve
    from .attempts import NEVER
    from .child import Child, ChildOutcome
    from .critique import Critique
    from .fallback import Fallback
    from .joins import BranchJoin, JoinForm
    from .limit import Limit
    from .map_over import ItemForm, MapOver
    from .parallel import Branch, Parallel
    from .retrying import Retrying
    from .router import Router
    from .screen import Screen, Screened

__all__ = [
    "NEVER",
    "REQUESTS_MAX",
    "SUMMARY_TOKENS",
    "AnswerCheck",
    "Append",
    "Approve",
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
    "JoinForm",
    "Limit",
    "MapOver",
    "ModelCall",
    "Parallel",
    "PrepareStep",
    "RequestLimits",
    "Retrying",
    "Router",
    "Screen",
    "Screened",
    "StopCheck",
    "Verify",
]

# Imported at first use: the standard loop has none of these nodes, and imports take time.
__getattr__ = front_door(
    __name__,
    {
        ".approve": ("Approve",),
        ".attempts": ("NEVER",),
        ".child": (
            "Child",
            "ChildOutcome",
        ),
        ".critique": ("Critique",),
        ".fallback": ("Fallback",),
        ".joins": (
            "BranchJoin",
            "JoinForm",
        ),
        ".limit": ("Limit",),
        ".map_over": (
            "ItemForm",
            "MapOver",
        ),
        ".parallel": (
            "Branch",
            "Parallel",
        ),
        ".retrying": ("Retrying",),
        ".router": ("Router",),
        ".screen": (
            "Screen",
            "Screened",
        ),
    },
)
