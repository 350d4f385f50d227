"""The standard loop: the cost of a turn, and of a run, beyond the model and the tool."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from types import FrameType
from typing import Any, TypeVar

from graphloop import Agent
from graphloop.events import Started
from graphloop.step import begin, step
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel

from .floors import raw_loop, raw_replies
from .measure import Cost, Prepare, Row, Spread, Work, at_most, interleaved, ratios
from .replies import add, replies
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "loop"
TURN_MAX = 6.0
KERNEL_MAX = 1.8
PARTS_MAX = 1.25
SINGLE_MAX = 20.0
GROWTH_MAX = 1.1
CALLS_MAX = 110

T = TypeVar("T")


def rows(sizes: Sizes) -> list[Row]:
    """Measure the loop."""
    short, middle, long = sizes.turns
    costs = asyncio.run(_costs(sizes))
    found: list[Row] = []
    for turns in sizes.turns:
        found += _turn_rows(f"N = {turns}", costs[f"{turns}"], costs[f"raw {turns}"], long)
    growth = ratios(costs[f"{long}"], costs[f"{short}"])
    found.append(at_most(BENCH, f"a turn at N = {long} over N = {short}", growth, GROWTH_MAX, "x"))
    raw, runs = f"raw {middle}", sizes.single_runs
    compared = (
        ("the kernel alone over the raw loop", "kernel", raw, KERNEL_MAX, long),
        ("full_stream over generate", "parts", f"{middle}", PARTS_MAX, long),
        ("a run of one reply over the raw loop's", "single", "raw single", SINGLE_MAX, runs),
    )
    for what, mine, floor, limit, times in compared:
        found.append(_ratio_row(what, costs[mine], costs[floor], limit, times))
    return [*found, *_count_rows(sizes)]


def _turn_rows(what: str, engine: tuple[Cost, ...], raw: tuple[Cost, ...], turns: int) -> list[Row]:
    turn_us, raw_us = _us(engine, turns), _us(raw, turns)
    wall_us = Spread.of([cost.wall_s / turns * 1e6 for cost in engine])
    note = f"wall {wall_us.median:.0f}, raw loop {raw_us.median:.1f}"
    return [
        Row(BENCH, f"a turn, {what}", f"{turn_us} µs; {note}"),
        at_most(BENCH, f"a turn over the raw loop's, {what}", ratios(engine, raw), TURN_MAX, "x"),
    ]


def _ratio_row(
    what: str, mine: tuple[Cost, ...], floor: tuple[Cost, ...], limit: float, times: int
) -> Row:
    """Return the row of one cost over another; the note tells both, each divided by `times`."""
    note = f"{_us(mine, times).median:.1f} over {_us(floor, times).median:.1f} µs"
    return at_most(BENCH, what, ratios(mine, floor), limit, "x", note)


def _us(costs: tuple[Cost, ...], turns: int) -> Spread:
    return Spread.of([cost.cpu_s / turns * 1e6 for cost in costs])


async def _costs(sizes: Sizes) -> dict[str, tuple[Cost, ...]]:
    """Measure runs of each length, each repeated until it has as many turns as the longest."""
    _, middle, long = sizes.turns
    contenders: dict[str, Prepare] = {}
    for turns in sizes.turns:
        contenders[f"{turns}"] = _repeated(_engine, turns, long // turns)
        contenders[f"raw {turns}"] = _repeated(_raw, turns, long // turns)
    contenders["parts"] = _repeated(_parts, middle, long // middle)
    contenders["kernel"] = await _folding(middle, long // middle)
    contenders["single"] = lambda: _single(sizes.single_runs)
    contenders["raw single"] = _repeated(_raw, 0, sizes.single_runs)
    return await interleaved(contenders, sizes.rounds)


def _repeated(make: Callable[[int], Work], turns: int, times: int) -> Prepare:
    def prepare() -> Work:
        works = [make(turns) for _ in range(times)]

        async def work() -> None:
            for one in works:
                await one()

        return work

    return prepare


def _agent(turns: int, store: MemoryStore | None = None) -> Agent:
    return Agent(ScriptedModel(replies(turns)), tools=[add], max_steps=turns + 1, store=store)


def _engine(turns: int) -> Work:
    agent = _agent(turns)

    async def work() -> None:
        result = await agent.generate("x")
        assert result.text == "done", result.end_reason
        assert len(result.steps) == turns + 1, "every turn has its record"

    return work


def _parts(turns: int) -> Work:
    agent = _agent(turns)

    async def work() -> None:
        count = 0
        async for _ in agent.stream("x").full_stream:
            count += 1
        assert count > turns * 4, "a turn shows its start, finish, call and result"

    return work


async def _folding(turns: int, times: int) -> Prepare:
    """Return the kernel's part of a run: its events, one after the other, and nothing else."""
    store = MemoryStore()
    agent = _agent(turns, store)
    result = await agent.generate("x")
    events = await store.load(result.run_id)
    started = events[0]
    assert isinstance(started, Started), "every journal begins so"

    def fold() -> None:
        run = begin(agent.graph, started, None).run
        for event in events[1:]:
            run = step(agent.graph, run, event).run
        assert run.ended, "the kernel comes to the run's end"

    async def work() -> None:
        for _ in range(times):
            fold()

    return lambda: work


def _single(times: int) -> Work:
    """Return so many runs of one agent that end with the first reply of the model."""
    agent = Agent(ScriptedModel(replies(0), restart=True))

    async def work() -> None:
        for _ in range(times):
            result = await agent.generate("x")
            assert result.text == "done", result.end_reason

    return work


def _raw(turns: int) -> Work:
    script = raw_replies(turns)

    async def model(asked: int) -> dict[str, object]:
        return script[asked]

    async def work() -> None:
        assert await raw_loop(model, _add) == "done", "the raw loop answers as well"

    return work


async def _add(a: int, b: int) -> int:
    return a + b


def _count_rows(sizes: Sizes) -> list[Row]:
    """Count what no clock is needed for: the same figures on every machine."""
    short, middle, long = sizes.turns
    engine = {turns: _calls(_engine(turns)) for turns in sizes.turns}
    raw = {turns: _calls(_raw(turns)) for turns in (short, middle)}
    calls, all_raw = _slope(engine, short, middle), _slope(raw, short, middle)
    growth = _slope(engine, middle, long) / calls
    tasks = asyncio.run(_tasks(_engine(middle))) / middle
    return [
        Row(
            BENCH,
            "Python calls a turn",
            f"{calls:.1f}; raw loop {all_raw:.1f}",
            f"≤ {CALLS_MAX}",
            calls <= CALLS_MAX,
        ),
        Row(
            BENCH,
            f"Python calls a turn, {middle} to {long} over {short} to {middle}",
            f"{growth:.3f} x",
            "≤ 1.01 x",
            growth <= 1.01,
        ),
        Row(BENCH, "asyncio tasks a turn", f"{tasks:g}", "0", tasks == 0),
    ]


def _slope(counts: dict[int, int], start: int, end: int) -> float:
    return (counts[end] - counts[start]) / (end - start)


def _calls(work: Work) -> int:
    """Count the calls of Python functions; a resumed generator counts as one."""
    calls = 0

    def profile(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    async def counted() -> None:
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            await work()
        finally:
            sys.setprofile(before)

    asyncio.run(counted())
    return calls


async def _tasks(work: Callable[[], Awaitable[object]]) -> int:
    created = 0

    def factory(
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        nonlocal created
        created += 1
        assert asyncio.iscoroutine(coroutine), "tasks are made of coroutines"
        return asyncio.Task(coroutine, loop=loop, context=context)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    await work()
    loop.set_task_factory(None)
    return created
