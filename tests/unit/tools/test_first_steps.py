"""First steps: functions that end before their first await share a task; a waiting one keeps it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest

from graphloop.tools.execution import FirstSteps

DEADLINE_S = 5.0
SEEN = ContextVar("SEEN", default="nothing")


def this_task() -> asyncio.Task[object]:
    """Return the task that runs now."""
    task = asyncio.current_task()
    assert task is not None
    return task


async def ends(tasks: list[asyncio.Task[object]]) -> None:
    """Note the task, and end at once."""
    tasks.append(this_task())


async def waits(tasks: list[asyncio.Task[object]], until: asyncio.Event) -> None:
    """Note the task before and after a wait."""
    tasks.append(this_task())
    await until.wait()
    tasks.append(this_task())


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine function, with a time limit."""

    async def limited() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(limited())


def test_functions_that_end_at_once_share_a_task() -> None:
    """A task of its own would cost each of them rounds of the event loop."""

    async def scenario() -> None:
        first, tasks = FirstSteps(), list[asyncio.Task[object]]()
        for _ in range(3):
            assert first.begin(ends(tasks)) == (tasks[0], False)
            await asyncio.sleep(0)

        assert 1 == len({*tasks})
        assert this_task() not in tasks
        assert {this_task(), *tasks} == asyncio.all_tasks()
        first.end()
        await asyncio.wait(tasks)
        assert {this_task()} == asyncio.all_tasks()

    run(scenario)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_function_that_waits_keeps_its_task(rounds: int) -> None:
    """Time limits and cancel scopes that it entered before its first await belong to that task."""

    async def scenario() -> None:
        first, tasks, until = FirstSteps(), list[asyncio.Task[object]](), asyncio.Event()
        first.begin(ends(tasks))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task, is_waiting = first.begin(waits(tasks, until))
        first.begin(ends(tasks))
        until.set()
        await task

        assert is_waiting
        assert [task, task, tasks[2], task] == tasks
        assert tasks[2] is not task
        first.end()

    run(scenario)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_time_limit_that_begins_in_the_first_step_holds_in_later_ones(rounds: int) -> None:
    """A limit that cancelled another task would end the run in place of the function."""

    async def limited(said: list[str]) -> None:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            said.append("late")

    async def scenario() -> None:
        first, said = FirstSteps(), list[str]()
        first.begin(ends([]))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task, _ = first.begin(limited(said))
        await task

        assert ["late"] == said
        assert 0 == this_task().cancelling()

    run(scenario)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_function_that_lets_others_run_once_goes_on(rounds: int) -> None:
    """A bare yield has no future that the event loop could wait for."""

    async def yields(said: list[str]) -> None:
        await asyncio.sleep(0)
        said.append("again")

    async def scenario() -> None:
        first, said = FirstSteps(), list[str]()
        first.begin(ends([]))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task, _ = first.begin(yields(said))
        assert [] == said
        await task

        assert ["again"] == said

    run(scenario)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_cancelled_function_hears_of_it_at_its_first_await(rounds: int) -> None:
    """Also before the event loop knows what the function waits for."""
    heard: list[str] = []

    async def deaf() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def scenario() -> None:
        first = FirstSteps()
        first.begin(ends([]))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task, _ = first.begin(deaf())
        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled()
        assert ["cancelled"] == heard

    run(scenario)


def test_each_function_has_a_context_of_its_own() -> None:
    """As in a task of its own: no function reads the variables of another one."""
    seen: list[str] = []

    async def notes(name: str) -> None:
        seen.append(SEEN.get())
        SEEN.set(name)
        if name == "last":
            await asyncio.sleep(0)
        seen.append(SEEN.get())

    async def scenario() -> None:
        first = FirstSteps()
        SEEN.set("the caller's")
        first.begin(notes("first"))
        task, _ = first.begin(notes("last"))
        await task

        assert ["the caller's", "first", "the caller's", "last"] == seen
        assert "the caller's" == SEEN.get()

    run(scenario)


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_task_that_was_cancelled_is_not_shared(rounds: int) -> None:
    """Otherwise the next function would get a cancellation that was meant for another one."""

    async def cancels(tasks: list[asyncio.Task[object]]) -> None:
        tasks.append(this_task())
        this_task().cancel()

    async def scenario() -> None:
        first, tasks = FirstSteps(), list[asyncio.Task[object]]()
        first.begin(ends(tasks))
        for _ in range(rounds):
            await asyncio.sleep(0)
        first.begin(cancels(tasks))
        task, _ = first.begin(waits(tasks, asyncio.Event()))
        await asyncio.wait([tasks[1]])

        assert tasks[0] is tasks[1] is not task
        assert not task.done()
        task.cancel()

    run(scenario)


def test_a_spare_task_that_is_not_ended_is_no_concern_of_the_garbage_collector() -> None:
    """A stream that nobody reads to its end must not log that a task was destroyed."""

    async def scenario() -> None:
        first, tasks = FirstSteps(), list[asyncio.Task[object]]()
        first.begin(ends(tasks))
        await asyncio.sleep(0)
        del first
        gc.collect()
        assert not tasks[0].done()

    run(scenario)
