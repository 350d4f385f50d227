"""A stream that nobody drives any more: what it tells is what came of the run.

An event loop that ends closes all generators, also those of a stream that somebody still holds. In
the next loop it told of a run that was parked, and waited for nothing. And whoever aborted a run,
and closed its stream straight away, was told that it was left, though it had ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from graphloop import Agent, EndReason, RunResult, RunStream, Tool
from graphloop.errors import RunFailed
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply

DEADLINE_S = 5.0


def agent(store: MemoryStore, began: asyncio.Event | None = None) -> Agent:
    """Return an agent whose first turn calls a tool, which waits for ever if it tells it began."""

    async def wait(arguments: dict[str, object]) -> str:
        if began is not None:
            began.set()
            await asyncio.Event().wait()
        return "late"

    tool = Tool(name="read", parameters={"type": "object"}, execute=wait, effect="pure")
    return Agent(ScriptedModel([reply(call()), "done"]), tools=[tool], store=store)


async def until(stream: RunStream, kind: str) -> None:
    """Look until there is a part of this kind."""
    async for part in stream.full_stream:
        if part.type == kind:
            return


async def result_of(stream: RunStream) -> RunResult:
    """Return what a stream comes to."""
    async with asyncio.timeout(DEADLINE_S):
        return await stream.result()


async def resumed(store: MemoryStore) -> RunResult:
    """Return what somebody else makes of the run."""
    return await agent(store).resume("r")


@pytest.mark.parametrize("kind", ["run-start", "step-start", "step-finish", "tool-result"])
def test_a_stream_whose_event_loop_has_ended_was_left(kind: str) -> None:
    """As notebooks do, and synchronous programs: one `asyncio.run` for each thing they want."""
    store = MemoryStore()
    stream = agent(store).stream("go", run_id="r")
    asyncio.run(until(stream, kind))

    with pytest.raises(RunFailed, match="can be resumed"):
        asyncio.run(result_of(stream))
    assert "done" == asyncio.run(resumed(store)).text


async def last_part(stream: RunStream) -> str:
    """Return what a looker sees last."""
    return [part.type async for part in stream.full_stream][-1]


async def stopped(*ways: Callable[[RunStream], object]) -> tuple[str, RunResult, str]:
    """Stop a stream in these ways at once, while its tool runs.

    Returns:
        What its looker saw last, its result, and the last event of its journal.
    """
    store, began = MemoryStore(), asyncio.Event()
    stream = agent(store, began).stream("go", run_id="r")
    async with asyncio.timeout(DEADLINE_S):
        looking = asyncio.create_task(last_part(stream))
        await began.wait()
        for way in ways:
            way(stream)
        await stream.aclose()
        seen = await looking
        result = await stream.result()
    return seen, result, names(await store.load("r"))[-1]


def names(events: Sequence[object]) -> list[str]:
    """Return what kinds of events these are."""
    return [type(one).__name__ for one in events]


def test_a_run_that_is_aborted_and_closed_has_ended() -> None:
    """What is said first counts, and whoever looks sees what came of it."""
    seen, result, last = asyncio.run(stopped(lambda stream: stream.abort("enough")))

    assert ("finish", EndReason.ABORTED, "Cancelled") == (seen, result.end_reason, last)
    assert ("enough",) == result.stopped_by


async def test_an_unheard_abort_is_heard_when_the_stream_is_closed() -> None:
    """Nobody looks just now, so closing is the last that is heard of the run."""
    store = MemoryStore()
    stream = agent(store).stream("go", run_id="r")
    await until(stream, "step-finish")
    stream.abort("enough")
    await stream.aclose()
    result, last = await stream.result(), names(await store.load("r"))[-1]

    assert (EndReason.ABORTED, "Cancelled") == (result.end_reason, last)
    assert ["not_run"] == [one.status for one in result.steps[0].tool_results]


async def test_a_stream_closed_after_the_last_step_has_its_result() -> None:
    """The run has ended: nothing was left, and nothing could be resumed."""
    stream = Agent(ScriptedModel(["done"])).stream("go")
    await until(stream, "step-finish")
    await stream.aclose()
    assert ("done", EndReason.COMPLETED) == (
        (result := (await stream.result())).text,
        result.end_reason,
    )


async def test_a_stream_that_is_closed_in_the_middle_was_left() -> None:
    """Its run is neither over nor parked, and says so by its error."""
    stream = agent(MemoryStore()).stream("go")
    await until(stream, "step-finish")
    await stream.aclose()
    with pytest.raises(RunFailed, match="was left"):
        await stream.result()
