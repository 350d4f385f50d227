"""What may be done about a call that had begun when its process stopped (DURABLE §6.4).

A call that began and gave no result may have happened, or not: nobody can tell from the journal.
The tool's effect policy says whether it may simply run again, and who knows if it may not:

    pure, idempotent, at_least_once   run it again
    at_most_once                      it stays unknown: the model is told, or a human is asked
    reconcile                         the tool's own `reconcile` looks it up
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias, final

__all__ = [
    "NOT_DONE",
    "REPEATABLE",
    "UNKNOWN",
    "EffectPolicy",
    "Found",
    "NotFound",
    "Reconcile",
    "Reconciliation",
]

EffectPolicy: TypeAlias = Literal[
    "pure", "idempotent", "at_least_once", "at_most_once", "reconcile"
]

REPEATABLE: Final[frozenset[EffectPolicy]] = frozenset({"pure", "idempotent", "at_least_once"})
"""Policies whose calls may run again unasked; the others need their beginning in the journal."""


@final
@dataclass(frozen=True, slots=True)
class Found:
    """The call did take effect: `result` is what it gave, for the model to read."""

    result: object


class NotFound(Enum):
    """What a lookup says that found no result: use `NOT_DONE` and `UNKNOWN`."""

    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


NOT_DONE: Final = NotFound.NOT_DONE
"""The call did not take effect, and never will: it may run now."""

UNKNOWN: Final = NotFound.UNKNOWN
"""Whether the call took effect cannot be told."""

Reconciliation: TypeAlias = Found | NotFound
Reconcile: TypeAlias = Callable[..., Reconciliation | Awaitable[Reconciliation]]
