"""How a run stands with its driver: whoever has seen the last of it has to know why it was."""

from __future__ import annotations

from enum import Enum, auto

__all__ = ["Stand"]


class Stand(Enum):
    """How a run stands with its driver.

    `LEFT` is none of the others: there is more to do, and nobody does it. Whoever drove it went
    away, was cancelled, or lost the event loop that it was driven in.
    """

    UNDER_WAY = auto()
    PARKED = auto()
    ENDED = auto()
    LEFT = auto()
