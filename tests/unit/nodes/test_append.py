"""append: the history grows here, whole or not at all."""

from __future__ import annotations

import pytest

from graphloop.events import Cancelled
from graphloop.node import Leave
from graphloop.nodes.append import Append, AppendOutcome
from graphloop.outcomes import Aborted, AnsweredCalls, Final, Refused, Resend
from graphloop.run import Ending, EndReason, Run, Turn, Verdict, evolve
from graphloop.values import FinishReason, ResultStatus, ToolResult, UserMessage, call_key
from tests.strategies import call, fresh, replied, reply

NOTE = UserMessage("better", origin="critique")


def entered(run: Run[None]) -> Leave[None, AppendOutcome]:
    """Enter the node, which never waits."""
    reaction = Append().enter(run)
    assert isinstance(reaction, Leave)
    return reaction


def batch(*statuses: ResultStatus) -> Run[None]:
    """Return a run whose calls to `read` ended so."""
    run = replied(reply(*(call() for _ in statuses)), *(Verdict("run") for _ in statuses))
    results = tuple(
        ToolResult(call_key(0, at), "", "read", "text", status)
        for at, status in enumerate(statuses)
    )
    return evolve(run, turn=evolve(run.turn, results=results))


def test_a_reply_and_its_results_are_added_together() -> None:
    """A call in the history without its result makes the history unusable."""
    run = batch("ok", "error")

    left = entered(run)

    assert isinstance(left.outcome, AnsweredCalls)
    added = tuple(left.run.messages)[1:]
    assert run.turn.reply is not None
    assert (run.turn.reply.message, *run.turn.results) == added
    assert added == tuple(left.run.added)
    assert added == left.run.steps[0].messages
    assert () == left.run.turn.calls


@pytest.mark.parametrize(
    ("statuses", "count"),
    [
        (("error",), 1),
        (("invalid",), 1),
        (("unknown_tool",), 1),
        (("timeout",), 1),
        (("error", "error", "error"), 1),
        (("error", "ok"), 0),
        (("denied",), 0),
        (("not_run",), 0),
        (("timeout", "invalid", "unknown_tool"), 1),
    ],
)
def test_a_step_counts_at_most_once_for_a_tool(
    statuses: tuple[ResultStatus, ...], count: int
) -> None:
    """Three failing parallel calls are one bad step, not three."""
    assert count == entered(batch(*statuses)).run.tool_errors.get("read", 0)


def test_one_success_forgets_earlier_failures() -> None:
    """The guard looks for a tool that only fails."""
    run = evolve(batch("ok"), tool_errors={"read": 2, "write": 1})

    assert {"write": 1} == entered(run).run.tool_errors


def test_a_denial_neither_counts_nor_forgets() -> None:
    """A human's no says nothing about the tool."""
    run = evolve(batch("denied"), tool_errors={"read": 2})

    assert {"read": 2} == entered(run).run.tool_errors


def test_an_ended_run_leaves_by_aborted_with_every_call_answered() -> None:
    """What was under way when the run was stopped is answered too."""
    run = evolve(replied(reply(call(), call())), ending=Ending(EndReason.ABORTED))

    left = entered(run)

    assert isinstance(left.outcome, Aborted)
    assert ["not_run", "not_run"] == [one.status for one in left.run.steps[0].tool_results]


@pytest.mark.parametrize("finish", [FinishReason.REFUSAL, FinishReason.CONTENT_FILTER])
def test_a_refusal_is_final_with_its_own_reason(finish: FinishReason) -> None:
    """A refusal that looks completed is shown to users as an answer."""
    left = entered(replied(reply("no", finish=finish)))

    assert isinstance(left.outcome, Refused)
    assert left.run.ending is not None
    assert finish.value == left.run.ending.reason.value


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        (FinishReason.STOP, EndReason.EMPTY_RESPONSE),
        (FinishReason.LENGTH, EndReason.LENGTH),
        (FinishReason.REFUSAL, EndReason.REFUSAL),
        (FinishReason.CONTEXT_WINDOW, EndReason.CONTEXT_WINDOW),
    ],
)
def test_a_reply_that_says_nothing_is_empty_only_if_nothing_else_explains_it(
    finish: FinishReason, reason: EndReason
) -> None:
    """A refusal often comes without a word."""
    left = entered(replied(reply(finish=finish)))

    assert left.run.ending is not None
    assert reason is left.run.ending.reason


def test_a_pause_is_sent_again_unchanged() -> None:
    """The server wants its own turn back."""
    left = entered(replied(reply("…", finish=FinishReason.PAUSE)))

    assert isinstance(left.outcome, Resend)
    assert left.run.ending is None


def test_a_reply_without_parts_is_no_message() -> None:
    """Providers refuse a history with an empty turn."""
    left = entered(replied(reply()))

    assert isinstance(left.outcome, Final)
    assert 1 == len(left.run.messages)
    assert 1 == len(left.run.steps)


def test_a_note_follows_the_reply_and_asks_for_another_turn() -> None:
    """A critic's feedback stands after what it is about."""
    run = replied(reply("draft"))

    left = entered(evolve(run, turn=evolve(run.turn, notes=(NOTE,))))

    assert isinstance(left.outcome, Resend)
    assert NOTE == left.run.messages[-1]
    assert () == left.run.turn.notes


def test_a_note_alone_is_added_and_sent() -> None:
    """After the answer was added already, only the feedback is missing."""
    left = entered(fresh(Turn(notes=(NOTE,))))

    assert isinstance(left.outcome, Resend)
    assert (NOTE,) == tuple(left.run.added)
    assert 0 == len(left.run.steps)


def test_nothing_to_add_means_that_the_context_overflowed() -> None:
    """The model was asked and had no room to answer."""
    left = entered(fresh())

    assert isinstance(left.outcome, Final)
    assert left.run.ending is not None
    assert EndReason.CONTEXT_WINDOW is left.run.ending.reason


def test_no_event_ever_reaches_this_node() -> None:
    """It asks for nothing, so there is nothing to be told."""
    with pytest.raises(AssertionError, match="waits for nothing"):
        Append().on(fresh(), Cancelled(0.0), None)
