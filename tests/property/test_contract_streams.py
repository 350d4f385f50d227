"""Contract 6: streamed, buffered, synchronous and replayed are four views of one run."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from graphloop import EndReason, RunResult
from graphloop.conversation.repair import open_calls, repaired
from graphloop.parts.kinds import ErrorPart, Finish, Part, Warned
from graphloop.parts.parts import PartView
from graphloop.providers.base import LIVE
from graphloop.replay import replay, replay_steps
from graphloop.stores.memory import MemoryStore
from graphloop.values import FinishReason, Reply
from tests.agents import agent, drain, fold, steps_of
from tests.property.test_contract_pairing import assert_paired
from tests.strategies import call, model_moves, reply

scripts = st.lists(model_moves | st.just(ConnectionError("line")), max_size=4)
CUT = reply("half", call(arguments="{"), finish=FinishReason.LENGTH)

LIVE_ONLY = (*LIVE, Warned, Finish, ErrorPart)
"""Parts that are not in the journal: deltas, warnings, and the end as the front door tells it."""


@given(script=scripts)
@example(script=[CUT, reply("whole", call())])
@example(script=[reply(*(call("read", "x") for _ in range(50)))])
@example(script=[reply(call("client"), call("read"))])
def test_a_buffered_result_is_the_fold_of_its_stream(script: list[Reply | Exception]) -> None:
    """Whoever shows parts to a user and keeps the result for later must not keep two truths."""
    parts, result = asyncio.run(drain(agent(script).stream("go")))

    told = fold(parts)
    if not isinstance(result, RunResult):
        assert isinstance(parts[-1], ErrorPart)
        assert told.error is result
        return
    assert isinstance(parts[-1], Finish)
    if result.end_reason is not EndReason.PARKED:
        assert steps_of(result) == [step.told() for step in told.steps]
        assert (told.steps[-1].text if told.steps else "") == result.text
    assert told.end_reason == result.end_reason
    assert told.stopped_by == result.stopped_by
    assert told.usage == result.total_usage
    assert_sound(result)


def assert_sound(result: RunResult) -> None:
    """Assert that calls and results pair; only a parked run's last turn has calls that wait."""
    if result.end_reason is EndReason.PARKED:
        assert [] == list(repaired(result.messages, keep_open=True).findings)
        waiting = {call.name for _, call in open_calls(result.messages)}
        assert {one.name for one in result.pending} <= waiting
    else:
        assert_paired(result.messages)


@given(script=scripts, concurrency=st.integers(1, 5))
def test_streamed_buffered_and_synchronous_runs_are_equal(
    script: list[Reply | Exception], concurrency: int
) -> None:
    """One engine: no door may lead to another run."""
    _, streamed = asyncio.run(drain(agent(script, concurrency=concurrency).stream("go")))
    _, again = asyncio.run(drain(agent(script, concurrency=concurrency).stream("go")))

    assert outcome(streamed) == outcome(again)
    try:
        synced: RunResult | Exception = agent(script).generate_sync("go")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what came of the run
        synced = error
    assert outcome(streamed) == outcome(synced)


def outcome(result: RunResult | Exception) -> object:
    """Return what a run came to, without ids and times."""
    if isinstance(result, Exception):
        return (type(result), str(result))
    return (
        result.messages,
        result.steps,
        result.end_reason,
        result.stopped_by,
        result.total_usage,
        result.finish_reason,
        [(one.kind, one.key, one.arguments) for one in result.pending],
    )


@given(script=scripts)
def test_the_journal_tells_the_same_parts_as_the_stream(script: list[Reply | Exception]) -> None:
    """A run watched live and a run watched a week later must look alike."""
    store = MemoryStore()
    looped = agent(script, store=store)

    parts, result = asyncio.run(drain(looped.stream("go", run_id="r")))

    journal = asyncio.run(store.load("r"))
    view = PartView(looped.graph)
    replayed = [part for taken in replay_steps(looped.graph, journal) for part in view.see(taken)]
    assert [part for part in parts if not isinstance(part, LIVE_ONLY)] == replayed
    if isinstance(result, RunResult):
        assert result.run == replay(looped.graph, journal)


@given(script=scripts, at=st.integers(0, 40))
@example(script=[reply("some words", call())], at=2)
def test_an_abort_at_any_part_ends_the_run_properly(
    script: list[Reply | Exception], at: int
) -> None:
    """A stop button works between any two words."""

    async def watch() -> tuple[list[Part], RunResult | Exception]:
        stream = agent(script).stream("go")
        seen = 0
        async for _ in stream.full_stream:
            if seen == at:
                stream.abort("enough")
                stream.abort("enough, I said")
            seen += 1
        return await drain(stream)

    parts, result = asyncio.run(watch())

    fold(parts)
    if isinstance(result, RunResult):
        assert_sound(result)
        if len(parts) > at + 1 and result.end_reason is EndReason.ABORTED:
            assert ("enough",) == result.stopped_by


@given(script=scripts)
def test_a_run_resumed_after_every_park_tells_the_whole_story(
    script: list[Reply | Exception],
) -> None:
    """Legs of a run are chapters: their parts, one after the other, are the parts of the run."""

    async def legs() -> None:
        looped = agent(script, store=MemoryStore(), approval=True)
        parts, result = await drain(looped.stream("go", run_id="r"))
        story = [part for part in parts if not isinstance(part, Finish)]
        for _ in range(6 * 50):  # At most as many questions as there can be calls.
            if not isinstance(result, RunResult) or result.end_reason is not EndReason.PARKED:
                break
            assert result.pending
            assert_sound(result)
            first = result.pending[0]
            if first.kind == "approval":
                stream = looped.resume_stream("r", approvals={first.key: True})
            else:
                stream = looped.resume_stream("r", tool_results={first.key: "theirs"})
            parts, result = await drain(stream)
            assert "run-start" == parts[0].type
            story += [part for part in parts if not isinstance(part, Finish)]
        told = fold(story)
        if isinstance(result, RunResult):
            assert EndReason.PARKED is not result.end_reason
            assert steps_of(result) == [step.told() for step in told.steps]
            assert_paired(result.messages)

    asyncio.run(legs())
