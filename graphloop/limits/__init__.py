"""Limits: the conditions that stop a run, the calls that it may still start, and fleets' rates.

Owns stop conditions, the budget that remains for the calls of a turn, the caller's own prices, and
the arithmetic of rates that many processes share.
Refuses a limit that bounds nothing. Budgets themselves belong to the kernel's `spending.py`.
Start with `stop`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
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
    CountedLimit,
    LimitsSpending,
    Not,
    StopCondition,
    StopInfo,
    counted_in,
    tools_in,
)

if TYPE_CHECKING:
    from .rate import (
        Rate,
        Rates,
        charged,
        check_rates,
        demands,
        request_costs,
        reserved,
        those_for,
        token_costs,
    )

__all__ = [
    "NO_TOOL",
    "AllOf",
    "CallOverLimit",
    "CountedLimit",
    "LimitsSpending",
    "ModelPrice",
    "Not",
    "Rate",
    "Rates",
    "StopCondition",
    "StopInfo",
    "answer",
    "budget_remaining",
    "charged",
    "check_rates",
    "counted_in",
    "deeper",
    "demands",
    "has_capacity",
    "no_start",
    "note_limits",
    "places_of",
    "queued",
    "refusals",
    "request_costs",
    "reserved",
    "starts",
    "stop",
    "those_for",
    "token_costs",
    "too_deep",
    "tools_in",
    "tools_waiting",
]

# A run without rates needs none of this.
__getattr__ = front_door(
    __name__,
    {
        ".rate": (
            "Rate",
            "Rates",
            "charged",
            "check_rates",
            "demands",
            "request_costs",
            "reserved",
            "those_for",
            "token_costs",
        )
    },
)
