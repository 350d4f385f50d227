"""Parallel tools: how much later than the slowest of them the run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from graphloop import Agent, tool
from graphloop.testing import ScriptedModel

from .floors import raw_loop, raw_replies
from .measure import Cost, Row, Spread, Work, at_most, interleaved, ratios
from .replies import replies
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "parallel"
CAP = 5
OVER_RAW_MAX = 1.8


def rows(sizes: Sizes) -> list[Row]:
    """Measure one turn of many calls, all at once and a few at a time."""
    return asyncio.run(_rows(sizes))


async def _rows(sizes: Sizes) -> list[Row]:
    makers: dict[str, Callable[[], Work]] = {
        "all": lambda: _engine(sizes, sizes.calls),
        "all raw": lambda: _raw(sizes, sizes.calls),
        "cap": lambda: _engine(sizes, CAP),
        "cap raw": lambda: _raw(sizes, CAP),
    }
    costs = await interleaved(makers, sizes.rounds)
    rounds = -(-sizes.calls // CAP)
    everything = _late_ms(costs["all"], sizes.nap_s)
    capped = _late_ms(costs["cap"], sizes.nap_s * rounds)
    naps = f"{sizes.calls} calls of {sizes.nap_s * 1000:g} ms"
    return [
        at_most(
            BENCH,
            f"{naps} at once: CPU over the raw loop's",
            ratios(costs["all"], costs["all raw"]),
            OVER_RAW_MAX,
            "x",
        ),
        Row(
            BENCH,
            f"{naps} at once: beyond ideal",
            f"{everything} ms; {_note(costs['all'], costs['all raw'], sizes.nap_s)}",
        ),
        Row(
            BENCH,
            f"{naps}, {CAP} at a time: beyond ideal",
            f"{capped} ms; {_note(costs['cap'], costs['cap raw'], sizes.nap_s * rounds)}",
        ),
    ]


def _late_ms(costs: tuple[Cost, ...], ideal_s: float) -> Spread:
    return Spread.of([(cost.wall_s - ideal_s) * 1000 for cost in costs])


def _note(engine: tuple[Cost, ...], raw: tuple[Cost, ...], ideal_s: float) -> str:
    mine, floor = (Spread.of([cost.cpu_s * 1000 for cost in one]) for one in (engine, raw))
    late = _late_ms(raw, ideal_s).median
    return f"raw loop {late:.2f}; CPU {mine.median:.2f} over {floor.median:.2f} ms"


def _engine(sizes: Sizes, concurrency: int) -> Work:
    @tool(name="add")
    async def nap(a: int, b: int) -> int:
        """Add two numbers, slowly."""
        await asyncio.sleep(sizes.nap_s)
        return a + b

    model = ScriptedModel(replies(1, sizes.calls))
    agent = Agent(model, tools=[nap], max_tool_concurrency=concurrency)

    async def work() -> None:
        result = await agent.generate("x")
        answered = [one.status for one in result.steps[0].tool_results]
        assert answered == ["ok"] * sizes.calls, "every call ran"

    return work


def _raw(sizes: Sizes, concurrency: int) -> Work:
    script = raw_replies(1, sizes.calls)

    async def nap(a: int, b: int) -> int:
        await asyncio.sleep(sizes.nap_s)
        return a + b

    async def model(asked: int) -> dict[str, object]:
        return script[asked]

    async def work() -> None:
        assert await raw_loop(model, nap, concurrency) == "done", "the raw loop answers as well"

    return work
