"""Violation: a fault that the fuzzer found in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Violation"]


@final
@dataclass(frozen=True, slots=True)
class Violation:
    """A fault that the fuzzer found in a run.

    Args:
        code: the kind of fault, such as `gate`; docs/fuzzing.md lists all codes.
        what: a sentence that describes the fault.
        event: the number of the event at which it happened, from 1; 0 for the run as a whole.
    """

    code: str
    what: str
    event: int = 0

    def __str__(self) -> str:
        place = f" (event {self.event})" if self.event else ""
        return f"{self.code}: {self.what}{place}"
