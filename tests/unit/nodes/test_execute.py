"""execute: only what was let through, a few at a time, each answer in its own place."""

from __future__ import annotations

import pytest

from graphloop.effects import CallTool
from graphloop.errors import ConfigError
from graphloop.events import Cancelled, EffectFailed, Failure, ToolReturned
from graphloop.node import Leave, Reaction, Wait
from graphloop.nodes.execute import Execute, ExecuteOutcome
from graphloop.outcomes import Aborted, Done
from graphloop.run import Run, Verdict, evolve
from tests.strategies import call, replied, reply

RUN = Verdict("run")


def wishes(reaction: object) -> list[tuple[int, str]]:
    """Return the id and key of every tool that is asked for."""
    assert isinstance(reaction, Wait)
    effects = [one for one in reaction.effects if isinstance(one, CallTool)]
    assert len(effects) == len(reaction.effects)
    return [(one.id, one.key) for one in effects]


def waiting(reaction: Wait[None]) -> Run[None]:
    """Return the run as the kernel would keep it: with the wishes pending."""
    pending = dict(reaction.run.pending) | {one.id: one for one in reaction.effects}
    count = reaction.run.next_effect + len(reaction.effects)
    return evolve(reaction.run, pending=pending, next_effect=count)


def answered(
    node: Execute, run: Run[None], effect_id: int, text: str
) -> Reaction[None, ExecuteOutcome]:
    """Return the reaction to a tool's answer."""
    pending = dict(run.pending)
    effect = pending.pop(effect_id)
    event = ToolReturned(1.0, effect_id, text)
    return node.on(evolve(run, pending=pending), event, effect)


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5])
def test_a_cap_below_one_is_refused(concurrency: int) -> None:
    """Nothing could ever run."""
    with pytest.raises(ConfigError, match="max_tool_concurrency"):
        Execute(concurrency=concurrency)


def test_each_refused_call_is_answered_by_its_verdict() -> None:
    """The model reads why, in the place of the result."""
    verdicts = (
        Verdict("deny", "no"),
        Verdict("invalid", "bad"),
        Verdict("unknown", "which?"),
        None,
    )
    run = replied(reply(*(call() for _ in verdicts)), *verdicts)

    reaction = Execute().enter(run)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Done)
    results = [one for one in reaction.run.turn.results if one is not None]
    assert ["denied", "invalid", "unknown_tool", "denied"] == [one.status for one in results]
    assert ["c0.0", "c0.1", "c0.2", "c0.3"] == [one.key for one in results]


def test_without_a_gate_nothing_runs() -> None:
    """A topology that forgot its gate fails closed."""
    reaction = Execute().enter(replied(reply(call(), call())))

    assert isinstance(reaction, Leave)
    assert ["denied", "denied"] == [one.status for one in reaction.run.turn.results if one]


def test_no_more_calls_are_asked_for_than_there_is_room() -> None:
    """A place that becomes free is taken by the next call."""
    node = Execute(concurrency=2)
    first = node.enter(replied(reply(*[call()] * 5), *[RUN] * 5))
    assert isinstance(first, Wait)
    assert [(1, "c0.0"), (2, "c0.1")] == wishes(first)

    second = answered(node, waiting(first), 2, "b")

    assert [(3, "c0.2")] == wishes(second)


def test_answers_take_the_place_of_their_call() -> None:
    """Whoever is fastest, the order is the request's."""
    node = Execute()
    first = node.enter(replied(reply(call(), call()), RUN, RUN))
    assert isinstance(first, Wait)
    second = answered(node, waiting(first), 2, "b")
    assert isinstance(second, Wait)

    third = answered(node, waiting(second), 1, "a")

    assert isinstance(third, Leave)
    assert ["a", "b"] == [one.text for one in third.run.turn.results if one]


def test_client_tools_hold_the_batch_until_they_are_answered() -> None:
    """A run that parks has done nothing it could regret."""
    node = Execute()
    first = node.enter(replied(reply(call(), call("client")), RUN, RUN))
    assert isinstance(first, Wait)
    assert [(1, "c0.1")] == wishes(first)

    second = answered(node, waiting(first), 1, "theirs")

    assert [(2, "c0.0")] == wishes(second)


def test_while_one_client_tool_waits_no_other_tool_runs() -> None:
    """Half of the answers from outside are not all of them."""
    node = Execute()
    first = node.enter(replied(reply(call(), call("client"), call("client")), RUN, RUN, RUN))
    assert isinstance(first, Wait)

    second = answered(node, waiting(first), 1, "theirs")

    assert [] == wishes(second)


def test_edited_arguments_are_what_runs() -> None:
    """The human approved these, not the model's."""
    verdict = Verdict("run", "", '{"x": 2}')

    reaction = Execute().enter(replied(reply(call(arguments='{"x": 1}')), verdict))

    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallTool)
    assert '{"x": 2}' == effect.call.arguments


def test_a_tool_that_could_not_be_performed_is_an_error_result() -> None:
    """The model reads what went wrong."""
    node = Execute()
    first = node.enter(replied(reply(call()), RUN))
    assert isinstance(first, Wait)
    failed = EffectFailed(1.0, 1, Failure("OSError", "disk"))

    reaction = node.on(evolve(waiting(first), pending={}), failed, first.effects[0])

    assert isinstance(reaction, Leave)
    (result,) = reaction.run.turn.results
    assert result is not None
    assert ("OSError: disk", "error") == (result.text, result.status)


def test_an_abort_is_passed_on() -> None:
    """Nothing more is asked for."""
    reaction = Execute().on(replied(reply(call()), RUN), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)


def test_client_tools_all_park_at_once_whatever_the_cap() -> None:
    """The cap is for what runs here; whoever answers from outside must see every question."""
    calls = [call("client") for _ in range(7)]

    first = Execute(concurrency=2).enter(replied(reply(*calls), *[RUN] * 7))

    assert [f"c0.{place}" for place in range(7)] == [key for _, key in wishes(first)]
