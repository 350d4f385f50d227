"""Limits: the conditions that stop a run, and the calls that a run may still start.

Owns stop conditions, the budget that remains for the calls of a turn, and the caller's own prices.
Refuses a limit that bounds nothing. Budgets themselves belong to the kernel's `spending.py`.
Start with `stop`.
"""

from . import stop
from .capacity import (
    NO_TOOL,
    CallOverLimit,
    answer,
    budget_remaining,
    deeper,
    has_capacity,
    no_start,
    note_limits,
    places_of,
    queued,
    refusals,
    starts,
    too_deep,
    tools_waiting,
)
from .model_price import ModelPrice
from .stop import (
    AllOf,
    CostExceeds,
    HasToolCall,
    Not,
    StopCondition,
    StopInfo,
    TotalTokensExceed,
    parts_of,
)

__all__ = [
    "NO_TOOL",
    "AllOf",
    "CallOverLimit",
    "CostExceeds",
    "HasToolCall",
    "ModelPrice",
    "Not",
    "StopCondition",
    "StopInfo",
    "TotalTokensExceed",
    "answer",
    "budget_remaining",
    "deeper",
    "has_capacity",
    "no_start",
    "note_limits",
    "parts_of",
    "places_of",
    "queued",
    "refusals",
    "starts",
    "stop",
    "too_deep",
    "tools_waiting",
]
