"""append: the history grows here, whole or not at all."""

from __future__ import annotations

import pytest

from graphloop.events import Cancelled
from graphloop.node_protocol import Leave
from graphloop.nodes.append import Append, AppendOutcome
from graphloop.outcomes import Aborted, AnsweredCalls, Final, Resend
from graphloop.run import Ending, EndReason, Measured, Run, evolve
from graphloop.turn import CallVerdict, Turn
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ResultStatus,
    ToolResult,
    ToolSpecs,
    UserMessage,
    call_key,
)
from tests.runs import changed
from tests.strategies import QUESTION, call, fresh, replied, reply, spec

NOTE = UserMessage("better", origin="critique")


def entered(run: Run[None]) -> Leave[None, AppendOutcome]:
    """Enter the node, which never waits."""
    reaction = Append().enter(run)
    assert isinstance(reaction, Leave)
    return reaction


def batch(*statuses: ResultStatus) -> Run[None]:
    """Return a run whose calls to `read` ended so."""
    run = replied(reply(*(call() for _ in statuses)), *(CallVerdict("run") for _ in statuses))
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
    assert added == tuple(left.run.record.added)
    assert added == left.run.record.steps[0].messages
    assert ((), (), ()) == (left.run.turn.calls, left.run.turn.verdicts, left.run.turn.results)


def test_a_closed_turn_has_nothing_of_its_reply() -> None:
    """The next turn would keep its usage, or not make a long history shorter, because of a rest."""
    run = batch("ok")
    turn = evolve(run.turn, asked=True, compacted=True, notes=(NOTE,), again=frozenset({0}))

    for dropped in (False, True):
        closed = entered(evolve(run, turn=evolve(turn, dropped=dropped))).run.turn

        assert closed.reply is None
        assert not any([closed.calls, closed.verdicts, closed.results, closed.notes])
        assert not any([closed.again, closed.asked, closed.dropped, closed.compacted])


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
    assert count == entered(batch(*statuses)).run.counters.tool_errors.get("read", 0)


def test_one_success_forgets_earlier_failures() -> None:
    """The guard looks for a tool that only fails."""
    run = changed(batch("ok"), tool_errors={"read": 2, "write": 1})

    assert {"write": 1} == entered(run).run.counters.tool_errors


def test_a_denial_neither_counts_nor_forgets() -> None:
    """A human's no says nothing about the tool."""
    run = changed(batch("denied"), tool_errors={"read": 2})

    assert {"read": 2} == entered(run).run.counters.tool_errors


def test_an_ended_run_leaves_by_aborted_with_every_call_answered() -> None:
    """What was under way when the run was stopped is answered too."""
    run = evolve(replied(reply(call(), call())), ending=Ending(EndReason.ABORTED))

    left = entered(run)

    assert isinstance(left.outcome, Aborted)
    assert ["not_run", "not_run"] == [one.status for one in left.run.record.steps[0].tool_results]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        (FinishReason.STOP, EndReason.EMPTY_RESPONSE),
        (FinishReason.LENGTH, EndReason.LENGTH),
        (FinishReason.REFUSAL, EndReason.REFUSAL),
        (FinishReason.CONTEXT_WINDOW, EndReason.CONTEXT_WINDOW),
    ],
)
def test_a_blank_reply_is_empty_only_if_nothing_else_explains_it(
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


def test_a_note_follows_the_reply_and_asks_for_another_turn() -> None:
    """A critic's feedback stands after what it is about."""
    run = replied(reply("draft"))

    left = entered(evolve(run, turn=evolve(run.turn, notes=(NOTE,))))

    assert isinstance(left.outcome, Resend)
    assert NOTE == left.run.messages[-1]
    assert () == left.run.turn.notes


def test_nothing_to_add_means_that_the_context_overflowed() -> None:
    """The model was asked and had no room to answer."""
    left = entered(fresh())

    assert isinstance(left.outcome, Final)
    assert left.run.ending is not None
    assert EndReason.CONTEXT_WINDOW is left.run.ending.reason


@pytest.mark.parametrize(
    ("statuses", "before", "after"),
    [
        (("denied",), 1, 2),
        (("denied", "denied"), 1, 2),
        (("denied", "error"), 1, 1),
        (("not_run",), 1, 1),
        (("error",), 1, 1),
        (("denied", "ok"), 1, 0),
        (("ok",), 1, 0),
    ],
)
def test_steps_of_nothing_but_denials_are_counted(
    statuses: tuple[ResultStatus, ...], before: int, after: int
) -> None:
    """Until a tool has run well again (CONTRACT §9 #17)."""
    assert after == entered(changed(batch(*statuses), denials=before)).run.counters.denials


ENDING = ToolSpecs((spec("read"), spec("finish", ends=True), spec("agent", "agent", ends=True)))


def finishing(*results: tuple[str, ResultStatus]) -> Run[None]:
    """Return a run whose calls of these tools ended so."""
    run = replied(reply(*(call(name) for name, _ in results)), *[CallVerdict("run")] * len(results))
    slots = tuple(
        ToolResult(call_key(0, at), "", name, f"from {name}", status)
        for at, (name, status) in enumerate(results)
    )
    return evolve(run, turn=evolve(run.turn, tools=ENDING, results=slots))


@pytest.mark.parametrize(
    ("results", "ends"),
    [
        ([("finish", "ok")], True),
        ([("finish", "ok"), ("finish", "ok")], True),
        ([("finish", "ok"), ("read", "denied")], True),
        ([("finish", "error")], False),
        ([("finish", "denied")], False),
        ([("finish", "ok"), ("read", "ok")], False),
        ([("finish", "ok"), ("read", "error")], False),
        ([("finish", "ok"), ("finish", "not_run")], False),
        ([("read", "ok")], False),
        ([("agent", "ok"), ("read", "ok")], True),
        ([("agent", "ok"), ("read", "error")], True),
        ([("agent", "error"), ("agent", "ok")], True),
        ([("agent", "error"), ("read", "ok")], False),
    ],
)
def test_a_run_ends_with_tools_that_end_it_or_a_handoff(
    results: list[tuple[str, ResultStatus]], ends: bool
) -> None:
    """Tools only if nothing else ran, and all went well (CONTRACT L22, L23)."""
    left = entered(finishing(*results))

    assert isinstance(left.outcome, Final if ends else AnsweredCalls)
    assert left.run.ending == (Ending(EndReason.COMPLETED) if ends else None)


@pytest.mark.parametrize("where", ["steering", "notes"])
def test_what_somebody_has_to_say_keeps_a_run_from_ending(where: str) -> None:
    """Steering outweighs a tool that ends the run, and a final answer (CONTRACT §9 #28)."""
    for run, outcome in (
        (finishing(("finish", "ok")), AnsweredCalls),
        (replied(reply("a")), Resend),
    ):
        steered = (
            changed(run, steering=(NOTE,))
            if where == "steering"
            else evolve(run, turn=evolve(run.turn, notes=(NOTE,)))
        )

        left = entered(steered)

        assert outcome is type(left.outcome)
        assert left.run.ending is None


def test_a_conversation_of_the_caller_replaces_the_reply() -> None:
    """The turn is recorded, for it was paid for; its message is in no history."""
    run = replied(reply("mine", call()))
    dropped = evolve(run, turn=evolve(run.turn, calls=(), dropped=True, notes=(NOTE,)))

    left = entered(dropped)

    assert isinstance(left.outcome, Resend)
    assert (*QUESTION, NOTE) == tuple(left.run.messages)
    (step,) = left.run.record.steps
    assert ("mine", (), (NOTE,)) == (step.text, step.tool_calls, step.messages)


def test_calls_that_ran_stay_on_record_when_their_turn_is_replaced() -> None:
    """They have cost something, and failed or not: guards count them like any others."""
    run = finishing(("read", "error"))

    left = entered(evolve(run, turn=evolve(run.turn, verdicts=(), dropped=True)))

    assert QUESTION == tuple(left.run.messages)
    (step,) = left.run.record.steps
    assert (run.turn.calls, run.turn.results) == (step.tool_calls, step.tool_results)
    assert {"read": 1} == left.run.counters.tool_errors
    assert ((), ()) == (left.run.turn.calls, left.run.turn.results)


@pytest.mark.parametrize("reason", [None, EndReason.ABORTED])
def test_open_calls_of_such_a_conversation_wait_outside_the_history(
    reason: EndReason | None,
) -> None:
    """Wherever the run stops next, its history is paired."""
    asking = AssistantMessage((call(),))
    run = evolve(
        fresh(Turn(number=0, dropped=True, reply=reply("mine")), messages=(*QUESTION, asking)),
        ending=None if reason is None else Ending(reason),
    )

    left = entered(run)

    assert isinstance(left.outcome, Aborted if reason else Resend)
    assert QUESTION == tuple(left.run.messages)
    assert (asking.calls, False) == (left.run.turn.calls, left.run.turn.dropped)


def handed_in(*results: tuple[str, ResultStatus], given: frozenset[int]) -> Run[None]:
    """Return a run whose turn was handed in, with some of its results."""
    run = finishing(*results)
    return evolve(run, turn=evolve(run.turn, number=-1, given=given))


def test_an_agent_that_takes_over_a_turn_that_was_handed_in_is_new() -> None:
    """Its answer is what the caller asked for."""
    left = entered(handed_in(("agent", "ok"), given=frozenset()))

    assert ["tool", "assistant"] == [one.role for one in left.run.record.added]
    assert left.run.messages[-1] == left.run.record.added[-1]


def test_a_dropped_turn_that_was_handed_in_is_no_step() -> None:
    """Steps count from 0, and no model was asked."""
    run = handed_in(("read", "ok"), given=frozenset())

    left = entered(evolve(run, turn=evolve(run.turn, dropped=True)))

    assert 0 == len(left.run.record.steps)


def test_calls_without_a_verdict_leave_the_run_incomplete() -> None:
    """A server that broke off has not answered, and nothing says that it refused."""
    odd = evolve(reply(call(), finish=FinishReason.OTHER), raw_finish_reason="error")

    left = entered(replied(odd))

    assert left.run.ending == Ending(EndReason.INCOMPLETE)
    assert ["not_run"] == [one.status for one in left.run.record.steps[0].tool_results]


def test_what_a_model_counted_is_kept_for_as_many_messages() -> None:
    """Those that were sent, and its reply."""
    left = entered(replied(reply("a")))

    assert Measured(2, 15) == left.run.record.measured


def test_no_event_ever_reaches_this_node() -> None:
    """It asks for nothing, so there is nothing to be told."""
    with pytest.raises(AssertionError, match="waits for nothing"):
        Append().on(fresh(), Cancelled(0.0), None)
