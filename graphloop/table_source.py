"""table_source: where a graph's table was written, for whoever has something to say about it."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

__all__ = ["TableSource", "called_from"]

PACKAGE: Final = __file__.removesuffix("table_source.py")
PASSED: Final = (PACKAGE, str(typing.__file__))
"""Whose lines are nobody's own: `Graph[None](…)` is called by `typing`."""


@final
@dataclass(frozen=True, slots=True)
class TableSource:
    """Where a graph's table was written.

    Attributes:
        file: the file, as it was given.
        line: the line at which the graph, or its table, begins.
        rows: the lines of the rows by node and `""`, and of their cells by node and outcome; None
            where they have to be looked for in the file, which is a program.
        rules: the lines of the temporal rules that stand in the file, by their words.
    """

    file: str
    line: int
    rows: Mapping[tuple[str, str], int] | None = None
    rules: Mapping[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def called_from() -> TableSource | None:
    """Return the line of a program that this package was called from; None if there is none."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - what `inspect` uses, too.
    while frame.f_code.co_filename.startswith(PASSED):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return TableSource(frame.f_code.co_filename, frame.f_lineno)
