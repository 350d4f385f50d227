"""The journal on disk: what a turn costs more when it must survive its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from graphloop import Agent
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel

from .measure import Cost, Row, Spread, Work, interleaved, ratios
from .replies import add, replies
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "journal"


def rows(sizes: Sizes) -> list[Row]:
    """Measure runs with their journal in memory and in JSON lines."""
    short, middle, long = sizes.turns
    with TemporaryDirectory() as directory:
        on_disk = JsonlStore(Path(directory))
        makers: dict[str, Callable[[], Work]] = {
            "memory": lambda: _work(MemoryStore(), middle, 1),
            "jsonl": lambda: _work(on_disk, middle, 1),
            "short": lambda: _work(on_disk, short, long // short),
            "long": lambda: _work(on_disk, long, 1),
        }
        costs = asyncio.run(interleaved(makers, sizes.rounds))
        size = sum(path.stat().st_size for path in Path(directory).iterdir())
    runs = sizes.rounds + 1
    turns = runs * (middle + short * (long // short) + long)
    jsonl, memory = (_us(costs[name], middle) for name in ("jsonl", "memory"))
    over = ratios(costs["jsonl"], costs["memory"])
    growth = ratios(costs["long"], costs["short"])
    return [
        Row(
            BENCH,
            f"JSON lines over memory, N = {middle}",
            f"{over} x; {jsonl.median:.0f} over {memory.median:.0f} µs a turn, "
            f"{size / turns:.0f} bytes",
        ),
        Row(BENCH, f"JSON lines: a turn at N = {long} over N = {short}", f"{growth} x"),
    ]


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
