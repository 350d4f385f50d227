"""gate: known, then valid, then approved; everything else is a no."""

from __future__ import annotations

import pytest

from graphloop.effects import AskHuman, CheckCalls, Effect
from graphloop.errors import IllegalEvent
from graphloop.events import (
    CallCheck,
    CallsChecked,
    Cancelled,
    Decided,
    EffectFailed,
    Event,
    Failure,
)
from graphloop.node import Leave, Reaction, Wait
from graphloop.nodes.gate import Gate, GateOutcome
from graphloop.outcomes import Aborted, Settled
from graphloop.run import Verdict, evolve
from tests.strategies import call, replied, reply

ASK = CallCheck(needs_approval=True)
BROKEN = Failure("OSError", "disk")


def checked(*checks: CallCheck) -> Reaction[None, GateOutcome]:
    """Return the reaction to these checks of calls to a tool on offer."""
    run = replied(reply(*(call() for _ in checks)))
    entered = Gate().enter(run)
    assert isinstance(entered, Wait)
    return Gate().on(entered.run, CallsChecked(1.0, 1, checks), entered.effects[0])


def verdicts(reaction: Reaction[None, GateOutcome]) -> list[str]:
    """Return the kinds of the verdicts on leaving."""
    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Settled)
    return [one.kind for one in reaction.run.turn.verdicts if one is not None]


def decided(event: Event, effect: Effect | None = None) -> Verdict | None:
    """Return the verdict after one question and this answer."""
    asked = checked(ASK)
    assert isinstance(asked, Wait)
    reaction = Gate().on(asked.run, event, effect or asked.effects[0])
    assert isinstance(reaction, Leave)
    return reaction.run.turn.verdicts[0]


def test_what_is_not_on_offer_is_never_checked() -> None:
    """A name that does not exist has no validator, and the model learns which names do."""
    reaction = Gate().enter(replied(reply(call("nowhere"), call("__class__"))))

    assert ["unknown", "unknown"] == verdicts(reaction)
    assert isinstance(reaction, Leave)
    verdict = reaction.run.turn.verdicts[0]
    assert verdict is not None
    assert 'No such tool: "nowhere". Available tools: read, write, client.' == verdict.reason


def test_without_tools_the_model_is_told_that_there_are_none() -> None:
    """An empty list of names would be read as a mistake."""
    run = replied(reply(call()))

    reaction = Gate().enter(evolve(run, turn=evolve(run.turn, tools=())))

    assert isinstance(reaction, Leave)
    verdict = reaction.run.turn.verdicts[0]
    assert verdict is not None
    assert "Available tools: none." in verdict.reason


def test_only_known_calls_are_checked_and_each_check_finds_its_call() -> None:
    """An unknown call in the middle must not shift the verdicts after it."""
    entered = Gate().enter(replied(reply(call(), call("nowhere"), call("write"))))
    assert isinstance(entered, Wait)
    (effect,) = entered.effects
    assert isinstance(effect, CheckCalls)
    assert ["read", "write"] == [one.name for one in effect.calls]

    reaction = Gate().on(entered.run, CallsChecked(1.0, 1, (CallCheck(), CallCheck("bad"))), effect)

    assert ["run", "unknown", "invalid"] == verdicts(reaction)


def test_an_invalid_call_never_reaches_a_human() -> None:
    """Nobody wants to be asked about what could not run."""
    reaction = checked(CallCheck("bad", needs_approval=True), ASK)

    assert isinstance(reaction, Wait)
    assert ["c0.1"] == [one.key for one in reaction.effects if isinstance(one, AskHuman)]


@pytest.mark.parametrize("count", [0, 2])
def test_a_missing_or_surplus_check_is_illegal(count: int) -> None:
    """A check that lands on another call would let that one through."""
    entered = Gate().enter(replied(reply(call())))
    assert isinstance(entered, Wait)

    with pytest.raises(IllegalEvent, match="1 call"):
        Gate().on(entered.run, CallsChecked(1.0, 1, (CallCheck(),) * count), entered.effects[0])


def test_checks_that_fail_let_nothing_through() -> None:
    """Unchecked calls do not run, and the model is told why."""
    entered = Gate().enter(replied(reply(call(), call("nowhere"), call())))
    assert isinstance(entered, Wait)

    reaction = Gate().on(entered.run, EffectFailed(1.0, 1, BROKEN), entered.effects[0])

    assert ["invalid", "unknown", "invalid"] == verdicts(reaction)


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (Decided(1.0, 2, True, "ok", "{}"), Verdict("run", "ok", "{}")),
        (Decided(1.0, 2, False), Verdict("deny", "Tool call denied.")),
        (Decided(1.0, 2, False, "no"), Verdict("deny", "Tool call denied. Reason: no")),
        (
            EffectFailed(1.0, 2, BROKEN),
            Verdict("deny", "Tool call denied. The approver failed: disk"),
        ),
    ],
)
def test_a_decision_becomes_the_verdict(event: Event, verdict: Verdict) -> None:
    """An approver that breaks has approved nothing."""
    assert verdict == decided(event)


def test_the_gate_waits_until_every_question_is_answered() -> None:
    """One yes does not open the gate for the others."""
    asked = checked(ASK, ASK)
    assert isinstance(asked, Wait)
    first, second = asked.effects
    waiting = evolve(asked.run, pending={second.id: second})

    reaction = Gate().on(waiting, Decided(1.0, first.id, True), first)

    assert isinstance(reaction, Wait)
    assert [Verdict("run"), None] == list(reaction.run.turn.verdicts)


def test_an_abort_is_passed_on() -> None:
    """The questions are void."""
    reaction = Gate().on(replied(reply(call())), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)
