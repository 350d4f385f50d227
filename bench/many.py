"""Many agents at once: their time, and their memory, while all of them are alive."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Coroutine

from graphloop import Agent

from .floors import raw_loop, raw_replies
from .measure import Cost, Row, Spread, Work, at_most, interleaved, ratios
from .replies import YieldingModel, add, replies
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "many"
OVER_RAW_MAX = 8.0
KB_MAX = 15.0


def rows(sizes: Sizes) -> list[Row]:
    """Measure agents of a few turns each, all started together."""
    makers: dict[str, Callable[[], Work]] = {
        "engine": lambda: _engine(sizes),
        "raw": lambda: _raw(sizes),
    }
    costs = asyncio.run(interleaved(makers, sizes.rounds))
    engine, raw = (_turns_a_second(costs[name], sizes) for name in ("engine", "raw"))
    over = ratios(costs["engine"], costs["raw"])
    agents = f"{sizes.agents:,} agents of {sizes.agent_turns} turns"
    memory, raw_memory = (Spread.of([_peak_kb(work(), sizes.agents)]) for work in makers.values())
    return [
        at_most(BENCH, f"{agents}: time over the raw loop's", over, OVER_RAW_MAX, "x"),
        Row(BENCH, f"{agents}: turns a second", f"{engine} /s; raw loop {raw.median:,.0f}"),
        at_most(
            BENCH,
            f"{agents}: memory of an agent, at the most",
            memory,
            KB_MAX,
            "KB",
            f"raw loop {raw_memory.median:.1f}",
        ),
    ]


def _peak_kb(work: Work, agents: int) -> float:
    """Return the most memory that work holds at once, for each agent."""
    gc.collect()
    tracemalloc.start()
    try:
        asyncio.run(_awaited(work))
        return tracemalloc.get_traced_memory()[1] / agents / 1024
    finally:
        tracemalloc.stop()


async def _awaited(work: Work) -> None:
    await work()


def _turns_a_second(costs: tuple[Cost, ...], sizes: Sizes) -> Spread:
    return Spread.of([sizes.agents * sizes.agent_turns / cost.cpu_s for cost in costs])


def _engine(sizes: Sizes) -> Work:
    turns = sizes.agent_turns
    agent = Agent(YieldingModel(replies(turns)), tools=[add], max_steps=turns + 1)

    async def one() -> None:
        result = await agent.generate("x")
        assert result.text == "done", result.end_reason

    return lambda: _together(one, sizes.agents)


def _raw(sizes: Sizes) -> Work:
    script = raw_replies(sizes.agent_turns)

    async def model(asked: int) -> dict[str, object]:
        await asyncio.sleep(0)
        return script[asked]

    async def plus(a: int, b: int) -> int:
        return a + b

    async def one() -> None:
        assert await raw_loop(model, plus) == "done", "the raw loop answers as well"

    return lambda: _together(one, sizes.agents)


async def _together(one: Callable[[], Coroutine[object, object, None]], agents: int) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(agents):
            group.create_task(one())
