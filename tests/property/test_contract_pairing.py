"""Contract 1: whatever happens, calls and results pair one-to-one, in order, with no orphan."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.drivers.sim import Simulation
from graphloop.run import EndReason
from graphloop.values import AssistantMessage, Message, ToolResult
from tests.strategies import Adversary, adversaries, call, failing, loop, reply

LEAD_UP = 12
"""Events into which an abort or a crash is put; few runs of these adversaries are longer."""

cuts = st.integers(1, LEAD_UP)


def assert_paired(history: Sequence[Message]) -> None:
    """Assert that each call is answered once, at once, in order, and nothing else is answered."""
    keys: list[str] = []
    at = 0
    while at < len(history):
        message = history[at]
        assert not isinstance(message, ToolResult), f"orphan result at {at}: {message}"
        at += 1
        if isinstance(message, AssistantMessage):
            asked = message.calls
            results = history[at : at + len(asked)]
            assert all(isinstance(one, ToolResult) for one in results), f"unanswered before {at}"
            got = [one for one in results if isinstance(one, ToolResult)]
            expected = [(one.id, one.name) for one in asked]
            assert expected == [(one.call_id, one.name) for one in got]
            keys += [one.key for one in got]
            at += len(asked)
    assert len(keys) == len(set(keys))


def assert_whole(simulation: Simulation[None]) -> None:
    """Assert that a run's history, its record and its steps tell the same, properly paired."""
    run = simulation.run
    assert_paired(tuple(run.messages))
    assert tuple(run.record.added) == tuple(run.messages)[1:]
    assert tuple(run.record.added) == tuple(
        one for step in run.record.steps for one in step.messages
    )
    assert list(range(len(run.record.steps))) == [step.index for step in run.record.steps]
    for taken in run.record.steps:
        assert len(taken.tool_calls) == len(taken.tool_results)
        assert [one.name for one in taken.tool_calls] == [one.name for one in taken.tool_results]
    assert run.ended == (run.ending is not None)


@given(adversary=adversaries, seed=st.integers(0, 99))
def test_every_call_of_any_run_is_answered_once_and_in_order(
    adversary: Adversary, seed: int
) -> None:
    """One orphan on either side, and providers refuse the whole conversation for ever."""
    assert_whole(adversary.run(loop(), seed=seed))


@given(adversary=failing, seed=st.integers(0, 99))
def test_a_model_that_fails_leaves_a_paired_history(adversary: Adversary, seed: int) -> None:
    """The history of a failed run is what the user retries with."""
    simulation = adversary.run(loop(), seed=seed)

    assert_whole(simulation)
    ending = simulation.run.ending
    if ending is not None and ending.reason is EndReason.ERROR:
        assert ending.failure is not None


@given(adversary=adversaries, cut=cuts, seed=st.integers(0, 9))
@example(adversary=Adversary((reply(call(), call(), call()),)), cut=4, seed=1)
def test_an_abort_after_any_event_leaves_a_paired_history(
    adversary: Adversary, cut: int, seed: int
) -> None:
    """Users press stop at the worst moment: between a call and its result."""
    simulation = adversary.run(loop(), seed=seed, abort_after=cut)

    assert_whole(simulation)
    if len(simulation.events) > cut:
        assert simulation.run.ending is not None
        assert simulation.run.ending.reason is EndReason.ABORTED
        assert len(simulation.events) == cut + 1


@given(adversary=adversaries, crashes=st.lists(cuts, max_size=3), seed=st.integers(0, 9))
def test_a_crash_after_any_event_leaves_a_paired_history(
    adversary: Adversary, crashes: list[int], seed: int
) -> None:
    """A process dies whenever it likes; its journal goes on."""
    assert_whole(adversary.run(loop(), seed=seed, crash_after=crashes))


@given(adversary=adversaries, seed=st.integers(0, 9))
def test_a_run_that_neither_ended_nor_failed_waits_for_a_human(
    adversary: Adversary, seed: int
) -> None:
    """A run that stands still with nothing to wait for is lost without a trace."""
    run = adversary.run(loop(), seed=seed).run

    assert run.ended or {type(one).__name__ for one in run.pending.values()} == {"AskHuman"}
    assert not (run.ended and run.pending)
