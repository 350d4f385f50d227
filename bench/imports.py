"""Importing: what everybody pays on every start, before anything has been asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .measure import Cost, Row, Spread, at_most, ratios
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "imports"
IMPORT_MAX = 1.6
# Names are loaded when they are asked for, so the bare import alone would flatter.
ENGINE = ("import graphloop", "from graphloop import Agent")
FLOOR = "import asyncio, pydantic; pydantic.BaseModel"
FORBIDDEN = ("httpx", "fpdf", "typer", "rich")

TIMED = """
import time
wall, cpu = time.perf_counter(), time.process_time()
{statement}
print(time.process_time() - cpu, time.perf_counter() - wall)
"""
LOADED = (
    "import sys; from graphloop import Agent; print(*sorted(set(sys.modules) & set({names!r})))"
)


def rows(sizes: Sizes) -> list[Row]:
    """Import in fresh interpreters, in turns."""
    costs: dict[str, list[Cost]] = {statement: [] for statement in (*ENGINE, FLOOR)}
    for statement in costs:
        _timed(statement)  # Writes what bytecode there is to write.
    for number in range(sizes.rounds):
        for statement in reversed(costs) if number % 2 else costs:
            costs[statement].append(_timed(statement))
    loaded = _python(LOADED.format(names=FORBIDDEN)).split()
    return [
        *(_row(statement, costs[statement], costs[FLOOR]) for statement in ENGINE),
        Row(
            BENCH,
            f"of {', '.join(FORBIDDEN)} an agent loads",
            ", ".join(loaded) or "none",
            "none",
            not loaded,
        ),
    ]


def _row(statement: str, engine: Sequence[Cost], floor: Sequence[Cost]) -> Row:
    mine, raw = (Spread.of([one.cpu_s * 1000 for one in costs]) for costs in (engine, floor))
    wall = ratios(engine, floor, "wall_s").median
    note = f"{mine.median:.0f} over {raw.median:.0f} ms, wall {wall:.2f} x"
    what = f"`{statement}` over asyncio and pydantic"
    return at_most(BENCH, what, ratios(engine, floor), IMPORT_MAX, "x", note)


def _timed(statement: str) -> Cost:
    cpu_s, wall_s = map(float, _python(TIMED.format(statement=statement)).split())
    return Cost(cpu_s, wall_s)


def _python(code: str) -> str:
    """Run code in a fresh interpreter that starts beside the package."""
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own code
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},  # As installed: with its bytecode.
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
