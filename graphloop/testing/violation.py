"""Violation: a promise that a run has not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Violation"]


@final
@dataclass(frozen=True, slots=True)
class Violation:
    """A thing that a run did and must not do.

    Args:
        code: the broken promise, such as `gate`; docs/fuzzing.md lists all codes.
        what: a sentence that says what the run did.
        event: the number of the event, counted from 1; 0 for the run as a whole.
    """

    code: str
    what: str
    event: int = 0

    def __str__(self) -> str:
        place = f" (event {self.event})" if self.event else ""
        return f"{self.code}: {self.what}{place}"
