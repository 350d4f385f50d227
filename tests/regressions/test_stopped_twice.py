"""A stream that is stopped and closed, in any order, and more than once.

The second wish cancelled the task of whoever looked on once more, which the driver then took for
somebody else's cancellation: the looker died of one that nobody had asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from graphloop import Agent, Tool
from graphloop.agent.stream import RunStream
from graphloop.events import Cancelled, Event
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply

DEADLINE_S = 5.0


async def close(stream: RunStream) -> None:
    """Close once."""
    await stream.aclose()


async def close_twice(stream: RunStream) -> None:
    """Close from two tasks."""
    await asyncio.gather(stream.aclose(), stream.aclose())


async def abort_twice(stream: RunStream) -> None:
    """Abort, and again."""
    stream.abort("first")
    stream.abort("second")


async def abort_and_close(stream: RunStream) -> None:
    """Abort, and close without waiting."""
    stream.abort("first")
    await stream.aclose()


async def close_and_abort(stream: RunStream) -> None:
    """Abort what is being closed."""
    closing = asyncio.create_task(stream.aclose())
    await asyncio.sleep(0)
    stream.abort("too late")
    await closing


async def stopped(
    stop: Callable[[RunStream], Awaitable[None]],
) -> tuple[str, int, Sequence[Event]]:
    """Return the last part that is seen of a stopped stream, what is left, and the journal."""
    began = asyncio.Event()

    async def hang(arguments: dict[str, object]) -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    tool = Tool(name="read", parameters={"type": "object"}, execute=hang)
    store = MemoryStore()
    agent = Agent(ScriptedModel([reply(call()), "done"]), tools=[tool], store=store)
    stream = agent.stream("go", run_id="r")

    async def look() -> tuple[str, int]:
        seen = [type(part).__name__ async for part in stream.full_stream]
        task = asyncio.current_task()
        return seen[-1], 0 if task is None else task.cancelling()

    async with asyncio.timeout(DEADLINE_S):
        looking = asyncio.create_task(look())
        await began.wait()
        await stop(stream)
        return *await looking, await store.load("r")


@pytest.mark.parametrize("stop", [close, close_twice, close_and_abort])
def test_who_looks_at_a_stream_that_is_closed_sees_its_end(
    stop: Callable[[RunStream], Awaitable[None]],
) -> None:
    """The run was left: nothing in its journal says that it was stopped."""
    last, cancelling, journal = asyncio.run(stopped(stop))

    assert ("ErrorPart", 0) == (last, cancelling)
    assert not any(isinstance(one, Cancelled) for one in journal)


@pytest.mark.parametrize("stop", [abort_twice, abort_and_close])
def test_an_aborted_run_says_so_if_its_stream_is_closed_then(
    stop: Callable[[RunStream], Awaitable[None]],
) -> None:
    """What was said first counts, also for who looks."""
    last, cancelling, journal = asyncio.run(stopped(stop))

    assert ("Finish", 0) == (last, cancelling)
    assert isinstance(journal[-1], Cancelled)
    assert "first" == journal[-1].reason
