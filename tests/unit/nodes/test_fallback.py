"""fallback: the second is entered when the first has failed, and only then."""

from __future__ import annotations

import pytest

from graphloop.contract import contract_of
from graphloop.effects import StartRun
from graphloop.errors import ConfigError
from graphloop.events import ChildEnded
from graphloop.node_protocol import Leave, Node, Reaction, Wait
from graphloop.nodes import Child, Critique, Execute, ModelCall
from graphloop.nodes.fallback import Fallback
from graphloop.outcomes import Answered, Failed, Outcome, Rejected
from graphloop.run import Run, evolve
from tests.runs import changed
from tests.strategies import fresh

PAIR: Fallback[None] = Fallback(Child("expert"), Child("generalist"))
BROKE = ChildEnded(1.0, 1, "broke", "error")


def agent_of(reaction: Reaction[None, Outcome]) -> str:
    """Return the agent that is started."""
    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, StartRun)
    return effect.agent


def told(run: Run[None], event: ChildEnded) -> Reaction[None, Outcome]:
    """Have the pair react to an event."""
    return PAIR.on(evolve(run, pending={}, next_effect=run.next_effect + 1), event, _wish())


def _wish() -> StartRun:
    return StartRun(1, "k", "a", "", ())


def test_the_second_takes_over_from_a_first_that_failed() -> None:
    """And what it says then stands, whatever it is."""
    first = PAIR.enter(fresh())
    assert "expert" == agent_of(first)

    second = told(first.run, BROKE)
    assert "generalist" == agent_of(second)

    for event, outcome in ((BROKE, Failed), (ChildEnded(1.0, 2, "fine"), Answered)):
        last = told(second.run, event)
        assert isinstance(last, Leave)
        assert outcome is type(last.outcome)


def test_a_first_that_answers_needs_no_second() -> None:
    """It is never started."""
    reaction = told(PAIR.enter(fresh()).run, ChildEnded(1.0, 1, "fine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Answered)


def test_a_new_visit_begins_with_the_first() -> None:
    """What failed once may be well again."""
    second = told(PAIR.enter(fresh()).run, BROKE)

    again = PAIR.enter(second.run)

    assert "expert" == agent_of(again)


def test_a_run_that_is_to_stop_enters_no_second() -> None:
    """The first one's failure stands."""
    stopping = changed(PAIR.enter(fresh()).run, stopping="enough")

    assert isinstance(told(stopping, BROKE), Leave)


def test_the_pair_stands_in_a_table_as_one() -> None:
    """With a name of its own, and the outcomes of both."""
    mixed: Fallback[None] = Fallback(Critique("?", "a"), Critique("!", "b"), frozenset({Rejected}))

    assert ("expert_or_generalist", "graph") == (PAIR.name, PAIR.kind)
    assert ("a_or_b", "check") == (mixed.name, mixed.kind)
    assert mixed.first.outcomes | mixed.second.outcomes == mixed.outcomes
    assert "x" == Fallback(Child("a"), Child("b"), name="x").name
    assert hash(PAIR) == hash(Fallback(Child("expert"), Child("generalist")))


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (Child("a"), Execute(), "must not happen twice"),
        (Execute(), Child("a"), "must not happen twice"),
        (Child("a"), ModelCall(), "two nodes of one kind"),
    ],
)
def test_what_must_not_stand_in_is_refused(
    first: Node[None, Outcome], second: Node[None, Outcome], found: str
) -> None:
    """At construction."""
    with pytest.raises(ConfigError, match=found):
        Fallback(first, second)


def test_its_promises_are_those_of_both() -> None:
    """Each may be asked."""
    contract = contract_of(Fallback(Critique("?", "a"), Critique("!", "b")))

    assert contract is not None
    assert 2 == contract.model_calls
