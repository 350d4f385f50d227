"""The seam between a run and what shows it: a terminal, a pipe, or a program that reads JSON."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from ..front.result import RunResult
from ..run import Run
from ..views.parts import Part

__all__ = ["Screen"]


class Screen(Protocol):
    """Shows one run while it goes on."""

    def open(self) -> AbstractContextManager[object]:
        """Set up, and leave everything as it was afterwards, whatever happens."""
        ...

    def aside(self) -> AbstractContextManager[object]:
        """Make room for a question to the user."""
        ...

    def asked(self, prompt: str) -> None:
        """Show a question that the user did not type."""
        ...

    def note(self, message: str) -> None:
        """Show what is not part of the run."""
        ...

    def show(self, part: Part, run: Run[None] | None, /) -> None:
        """Show one part; `run` is the run as it stands, if it has begun."""
        ...

    def finish(self, result: RunResult[None], kept: str) -> None:
        """Show how the run ended, and where its journal is kept, if it is."""
        ...
