"""The journal on disk: what a turn costs more when it must survive its process.

A durable turn is a reply of the model and one tool that acts. The statements of its journal are
counted by SQLite's trace of all connections, and its bytes are those of the closed file. Both are
the growth from a middle to a long run, so that what a run costs once is not in them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import aclosing, closing, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, Literal, TypeAlias
from unittest.mock import patch

from graphloop import Agent
from graphloop.events import Event, ToolReturned
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.schema import Durability
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel

from .floors import raw_durable_loop, raw_journal, raw_replies
from .measure import Cost, Row, Spread, Work, at_most, interleaved, ratios
from .replies import add, long_add, replies
from .sizes import Sizes

__all__ = ["EVENT", "rows"]

Synchronous: TypeAlias = Literal["NORMAL", "FULL"]

BENCH = "journal"
APPEND_US_MAX: Final = 250.0
COMMITS_MAX: Final = 2
SELECTS_MAX: Final = 0
BYTES_MAX: Final = 1.6
CPU_MAX: Final[dict[Synchronous, float]] = {"NORMAL": 5.0, "FULL": 2.0}
DURABILITY: Final[dict[Synchronous, Durability]] = {"NORMAL": "process", "FULL": "power"}
EVENT: Final[Event] = ToolReturned(1.0, 1, "x" * 950)
"""About 1 KB as it is written."""

SIDES: Final = ("count", "floor")


def rows(sizes: Sizes) -> list[Row]:
    """Measure single appends, and runs with their journal in memory, in JSON lines, in SQLite."""
    with TemporaryDirectory() as directory:
        folder = Path(directory)
        return [
            *asyncio.run(_runs(sizes, folder)),
            *asyncio.run(_appends(sizes, folder)),
            *asyncio.run(_turns(sizes, folder)),
        ]


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


async def _turns(sizes: Sizes, folder: Path) -> list[Row]:
    """Measure durable turns against a raw journal of two commits a turn."""
    _, middle, long = sizes.turns
    chars, growth = sizes.result_chars, long - middle
    counts, bytes_used = dict[int, Counter[str]](), dict[str, int]()
    for turns in (middle, long):
        with _counted() as counts[turns]:
            store = SqliteStore(folder / f"count{turns}.db", durability="process")
            await _durable(store, turns, chars)()
            await store.aclose()
        with closing(raw_journal(folder / f"floor{turns}.db", "NORMAL")) as journal:
            await _raw(journal, turns, chars)()
        for name in (f"count{turns}", f"floor{turns}"):
            bytes_used[name] = (folder / f"{name}.db").stat().st_size
    counts[long].subtract(counts[middle])
    assert counts[long]["COMMIT"] > 0, "each connection is traced"
    commits, selects = (counts[long][kind] / growth for kind in ("COMMIT", "SELECT"))
    ours, raw = (bytes_used[f"{name}{long}"] - bytes_used[f"{name}{middle}"] for name in SIDES)
    ratio = Spread.of([ours / max(1, raw)])
    what, note = "SQLite: a durable turn", f"{ours / growth:.0f} over {raw / growth:.0f} bytes"
    return [
        at_most(BENCH, f"{what}: commits", Spread.of([commits]), COMMITS_MAX, "a turn"),
        at_most(BENCH, f"{what}: SELECTs", Spread.of([selects]), SELECTS_MAX, "a turn"),
        at_most(BENCH, f"{what}: bytes over a raw journal's", ratio, BYTES_MAX, "x", note),
        *[await _cpu(sizes, folder, synchronous) for synchronous in CPU_MAX],
    ]


async def _cpu(sizes: Sizes, folder: Path, synchronous: Synchronous) -> Row:
    """Measure processor time, the engine and the raw journal in turns."""
    _, turns, _ = sizes.turns
    chars, path = sizes.result_chars, folder / f"cpu-{synchronous}.db"
    async with aclosing(SqliteStore(path, durability=DURABILITY[synchronous])) as store:
        with closing(raw_journal(folder / f"raw-{synchronous}.db", synchronous)) as journal:
            makers: dict[str, Callable[[], Work]] = {
                "engine": lambda: _durable(store, turns, chars),
                "raw": lambda: _raw(journal, turns, chars),
            }
            costs = await interleaved(makers, sizes.rounds)
    engine, raw = (
        Spread.of([cost.cpu_s / turns * 1e6 for cost in costs[name]]).median for name in makers
    )
    return at_most(
        BENCH,
        f"SQLite ({synchronous}): a durable turn's CPU over a raw journal's, N = {turns}",
        ratios(costs["engine"], costs["raw"]),
        CPU_MAX[synchronous],
        "x",
        f"{engine:.0f} over {raw:.0f} µs",
    )


def _durable(store: SqliteStore, turns: int, chars: int) -> Work:
    agent = Agent(
        ScriptedModel(replies(turns)), tools=[long_add(chars)], max_steps=turns + 1, store=store
    )

    async def work() -> None:
        result = await agent.generate("x")
        assert result.text == "done", result.end_reason
        assert result.run.seq == 3 * turns + 2, "all events of each turn are in the journal"

    return work


def _raw(journal: sqlite3.Connection, turns: int, chars: int) -> Work:
    script = raw_replies(turns)

    async def model(asked: int) -> dict[str, object]:
        return script[asked]

    async def tool(a: int, b: int) -> str:
        return f"{a + b}".rjust(chars)

    async def work() -> None:
        assert await raw_durable_loop(model, tool, journal) == "done", "the raw loop answers"

    return work


@contextmanager
def _counted() -> Generator[Counter[str]]:
    """Count the statements of all connections that are opened meanwhile, by their first word."""
    words = Counter[str]()
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def traced(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda statement: words.update([statement.split()[0]]))
        return connection

    with patch.object(sqlite3, "connect", traced):
        yield words


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
