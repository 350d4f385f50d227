"""The journal on disk: what a turn costs more when it must survive its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from graphloop import Agent
from graphloop.events import Event, ToolReturned
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel

from .measure import Cost, Row, Spread, Work, at_most, interleaved, ratios
from .replies import add, replies
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "journal"
APPEND_US_MAX: Final = 250.0
EVENT: Final[Event] = ToolReturned(1.0, 1, "x" * 950)
"""About 1 KB as it is written."""


def rows(sizes: Sizes) -> list[Row]:
    """Measure single appends, and runs with their journal in memory, in JSON lines, in SQLite."""
    with TemporaryDirectory() as directory:
        folder = Path(directory)
        return [*asyncio.run(_runs(sizes, folder)), *asyncio.run(_appends(sizes, folder))]


async def _runs(sizes: Sizes, folder: Path) -> list[Row]:
    short, middle, long = sizes.turns
    lines = folder / "lines"
    on_disk = JsonlStore(lines)
    async with aclosing(SqliteStore(folder / "runs.db")) as database:
        makers: dict[str, Callable[[], Work]] = {
            "memory": lambda: _work(MemoryStore(), middle, 1),
            "jsonl": lambda: _work(on_disk, middle, 1),
            "sqlite": lambda: _work(database, middle, 1),
            "short": lambda: _work(on_disk, short, long // short),
            "long": lambda: _work(on_disk, long, 1),
        }
        costs = await interleaved(makers, sizes.rounds)
    size = sum(path.stat().st_size for path in lines.iterdir())
    runs = sizes.rounds + 1
    turns = runs * (middle + short * (long // short) + long)
    sqlite, jsonl, memory = (_us(costs[name], middle) for name in ("sqlite", "jsonl", "memory"))
    over = {name: ratios(costs[name], costs["memory"], "wall_s") for name in ("jsonl", "sqlite")}
    growth = ratios(costs["long"], costs["short"], "wall_s")
    return [
        Row(
            BENCH,
            f"JSON lines over memory, N = {middle}",
            f"{over['jsonl']} x; {jsonl.median:.0f} over {memory.median:.0f} µs a turn, "
            f"{size / turns:.0f} bytes",
        ),
        Row(BENCH, f"JSON lines: a turn at N = {long} over N = {short}", f"{growth} x"),
        Row(
            BENCH,
            f"SQLite (FULL) over memory, N = {middle}",
            f"{over['sqlite']} x; {sqlite.median:.0f} over {memory.median:.0f} µs a turn",
        ),
    ]


async def _appends(sizes: Sizes, folder: Path) -> list[Row]:
    """Measure one append after the other, round by round, the two stores in turns."""
    _, count, _ = sizes.turns
    medians: dict[str, list[float]] = {"power": [], "process": []}
    async with (
        aclosing(SqliteStore(folder / "full.db", durability="power")) as full,
        aclosing(SqliteStore(folder / "normal.db", durability="process")) as normal,
    ):
        for number in range(sizes.rounds + 1):
            for name, store in (("power", full), ("process", normal)):
                taken = await _append_us(store, f"r{number}", count)
                if number:  # The first round makes the files.
                    medians[name].append(median(taken))
    what = "SQLite: one append of 1 KB, p50"
    return [
        at_most(BENCH, f"{what}, FULL", Spread.of(medians["power"]), APPEND_US_MAX, "µs"),
        Row(BENCH, f"{what}, NORMAL", f"{Spread.of(medians['process'])} µs"),
    ]


async def _append_us(store: SqliteStore, run_id: str, count: int) -> list[float]:
    """Return what each append of a new run takes, in microseconds on the wall."""
    taken: list[float] = []
    await store.claim(run_id)
    for seq in range(1, count + 1):
        began = perf_counter()
        await store.append(run_id, seq, EVENT)
        taken.append((perf_counter() - began) * 1e6)
    await store.release(run_id, "done", ())
    assert len(await store.load(run_id)) == count
    return taken


def _us(costs: tuple[Cost, ...], turns: int) -> Spread:
    return Spread.of([cost.wall_s / turns * 1e6 for cost in costs])


def _work(store: Store, turns: int, times: int) -> Work:
    script = replies(turns)
    agents = [
        Agent(ScriptedModel(script), tools=[add], max_steps=turns + 1, store=store)
        for _ in range(times)
    ]

    async def work() -> None:
        for agent in agents:
            result = await agent.generate("x")
            assert result.text == "done", result.end_reason

    return work
