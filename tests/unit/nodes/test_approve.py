"""approve: a clear yes, in time, about exactly this answer; everything else is a no."""

from __future__ import annotations

import json

import pytest

from graphloop.contract import Contract
from graphloop.effects import AskHuman
from graphloop.errors import ConfigError
from graphloop.events import Cancelled, Decided, EffectFailed, Event, Failure
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.approve import Approve
from graphloop.outcomes import Aborted, Accepted, Outcome, Rejected
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.values import UserMessage
from tests.strategies import QUESTION, SETUP, fresh, said, wrong

PLAN = Approve("plan")
AT = evolve(
    fresh(messages=(*QUESTION, said("1. Go."))), at=100.0, ending=Ending(EndReason.COMPLETED)
)


def asked(node: Approve, run: Run[None]) -> AskHuman:
    """Return the question."""
    reaction = node.enter(run)
    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, AskHuman)
    return effect


def left(event: Event, node: Approve = PLAN) -> tuple[Run[None], type[Outcome]]:
    """Return how the node is left after an answer to its question."""
    reaction = node.on(AT, event, asked(node, AT))
    assert isinstance(reaction, Leave)
    return reaction.run, type(reaction.outcome)


@pytest.mark.parametrize(
    ("own", "of_run", "expires_at"), [(5.0, None, 105.0), (None, 7.0, 107.0), (5.0, 3.0, 103.0)]
)
def test_an_approval_is_good_for_the_shorter_time(
    own: float | None, of_run: float | None, expires_at: float
) -> None:
    """Whoever set it."""
    run = evolve(AT, setup=evolve(SETUP, approval_ttl_s=of_run))

    assert expires_at == asked(Approve("plan", own), run).expires_at


def test_a_yes_lets_the_run_go_on() -> None:
    """With the answer as it is; a model that is asked next is asked by a person."""
    run, outcome = left(Decided(101.0, 1, approved=True))

    told = UserMessage("This was approved.", "plan")
    assert (Accepted, None) == (outcome, run.ending)
    assert ((*AT.messages, told), (told,)) == (tuple(run.messages), tuple(run.record.added))


def test_a_no_goes_back_to_the_model_with_its_reason() -> None:
    """As a note for the next turn."""
    run, outcome = left(Decided(101.0, 1, approved=False, reason="Too dear."))

    assert (Rejected, None) == (outcome, run.ending)
    assert (UserMessage("This was not approved. Too dear.", "plan"),) == run.turn.notes
    silent, _ = left(Decided(101.0, 1, approved=False))
    assert (UserMessage("This was not approved.", "plan"),) == silent.turn.notes


@pytest.mark.parametrize(
    ("at", "given_at", "outcome"),
    [(104.0, None, Accepted), (105.0, None, Rejected), (109.0, 104.0, Accepted)],
)
def test_an_approval_that_comes_too_late_is_none(
    at: float, given_at: float | None, outcome: type[Outcome]
) -> None:
    """What counts is when it was given."""
    decided = Decided(at, 1, approved=True, given_at=given_at)

    assert outcome is left(decided, Approve("plan", 5.0))[1]


def test_an_edited_answer_is_what_the_run_goes_on_with() -> None:
    """The model reads it as what a person said."""
    edit = json.dumps({"answer": "1. Stay."})

    run, outcome = left(Decided(101.0, 1, approved=True, arguments=edit))

    told = UserMessage("Approved, as follows:\n\n1. Stay.", "plan")
    assert Accepted is outcome
    assert (told, told) == (run.messages[-1], run.record.added[-1])
    same = asked(PLAN, AT).call.arguments
    unchanged, _ = left(Decided(101.0, 1, approved=True, arguments=same))
    assert UserMessage("This was approved.", "plan") == unchanged.messages[-1]


@pytest.mark.parametrize(
    "edit",
    ["{", "[]", "{}", '{"answer": 1}', '{"answer": " "}', '{"answer": "a", "b": 1}', "[" * 10**5],
)
def test_an_edit_that_is_no_answer_approves_nothing(edit: str) -> None:
    """Who approves something else has not approved this."""
    assert Rejected is left(Decided(101.0, 1, approved=True, arguments=edit))[1]


def test_an_approver_that_fails_has_not_approved() -> None:
    """An abort is passed on."""
    run, outcome = left(EffectFailed(101.0, 1, Failure("E", "down")))

    assert Rejected is outcome
    (note,) = run.turn.notes
    assert "The approver failed: down" in str(getattr(note, "content", ""))
    assert Aborted is left(Cancelled(101.0))[1]


@pytest.mark.parametrize(("name", "ttl_s"), [("", None), ("plan", 0), ("plan", float("nan"))])
def test_what_nobody_could_approve_is_refused(name: str, ttl_s: float | None) -> None:
    """At construction."""
    with pytest.raises(ConfigError):
        Approve(name, wrong(ttl_s))


def test_it_promises_to_ask_a_person_and_to_note_what_they_refuse() -> None:
    """So the proofs know where a run may park, and that a refusal comes to its bound."""
    assert Contract(notes=frozenset({Rejected}), asks=True) == PLAN.contract
