"""table_source: the file and the line where a graph's table was written."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

__all__ = ["TableSource", "called_from"]

PACKAGE: Final = __file__.removesuffix("table_source.py")
PASSED: Final = (PACKAGE, str(typing.__file__))
"""Files whose lines are not the caller's: `typing` calls what `Graph[None](…)` names."""


@final
@dataclass(frozen=True, slots=True)
class TableSource:
    """Where a graph's table was written.

    Attributes:
        file: the file, as it was given.
        line: the line of the `Graph(…)` call, or at which a file of data begins.
        rows: the lines of a data file's rows by node and `""`, and of its cells by node and
            outcome; None for a program.
        rules: the lines of the temporal rules that stand in the file, by their words.
    """

    file: str
    line: int
    rows: Mapping[tuple[str, str], int] | None = None
    rules: Mapping[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def at(self, node: str = "", outcome: str = "") -> int:
        """Return the line of a cell, else of its row, else of the graph."""
        rows = self.rows or {}
        return rows.get((node, outcome), rows.get((node, ""), self.line))


def called_from() -> TableSource | None:
    """Return the line of a program that called this package; None outside of a file."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - what `inspect` uses, too.
    while frame.f_code.co_filename.startswith(PASSED):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file = frame.f_code.co_filename
    return None if file.startswith("<") else TableSource(file, frame.f_lineno)
