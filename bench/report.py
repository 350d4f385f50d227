"""The report: rows as a table for a terminal, and as one for the README."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from .measure import Row

__all__ = ["as_markdown", "as_text", "replaced", "where"]

HEADINGS: Final = ("what", "aim", "measured", "verdict")


def as_text(rows: Sequence[Row]) -> str:
    """Return rows in columns, under the name of their benchmark."""
    lines = [(row.what, row.aim, row.verdict, row.measured) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    table = [
        "  ".join(
            (*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3])
        )
        for line in lines
    ]
    return "\n".join((f"== {rows[0].bench}", *table))


def as_markdown(rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table."""
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    lines += [(f"{row.bench}: {row.what}", row.aim, row.measured, row.verdict) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replaced(page: str, table: str, mark: str = "bench") -> str:
    """Return a page with `table` between its marks.

    Raises:
        ValueError: a mark is missing, so there is no place to write to.
    """
    first, last = f"<!-- {mark}:begin -->\n", f"<!-- {mark}:end -->"
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"expected the marks {first.strip()!r} and {last!r}, in this order")
    return f"{before}{begin}\n{table}\n\n{end}{after}"


def where() -> str:
    """Say when and on what was measured, and how busy it was with other things."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{datetime.now(UTC).date()}, {platform.python_implementation()} "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, load {load:.1f} at the start."
    )
