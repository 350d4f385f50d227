"""The report: rows as a table for a terminal, and as one for the README."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .measure import Row

__all__ = ["as_markdown", "as_text", "replaced"]

BEGIN: Final = "<!-- bench:begin -->\n"
END: Final = "<!-- bench:end -->"
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


def replaced(page: str, table: str) -> str:
    """Return a page with `table` between its marks.

    Raises:
        ValueError: a mark is missing, so there is no place to write to.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the marks {BEGIN.strip()!r} and {END!r}, in this order")
    return f"{before}{begin}\n{table}\n\n{end}{after}"
