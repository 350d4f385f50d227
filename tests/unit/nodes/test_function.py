"""function: one function of the user's, whose answer is a fact, counted where it is capped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop.contract import Cap
from graphloop.effects import Invoke
from graphloop.errors import ConfigError
from graphloop.events import (
    CallbackReturned,
    Cancelled,
    Changes,
    EffectFailed,
    Event,
    Failure,
    Left,
)
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.function import Function
from graphloop.outcomes import Aborted, Failed, Outcome
from graphloop.run import Run, evolve
from tests.strategies import fresh, wrong


class Good(Outcome):
    """A way to leave."""


@dataclass(frozen=True)
class Bad(Outcome):
    """Another, that says why."""

    reason: str = ""
    lines: tuple[int, ...] = ()


NODE = Function("judge", frozenset({Good, Bad}))
CAPPED = Function("judge", frozenset({Good, Bad}), caps=((Bad, 2),))


def told(left: Left) -> Event:
    """Return the event of a function that answered."""
    return CallbackReturned(1.0, 1, left)


def left(node: Function, event: Event, run: Run[None] | None = None) -> tuple[Run[None], Outcome]:
    """Return how the node is left after an event."""
    reaction = node.on(fresh() if run is None else run, event, Invoke(1, "judge"))
    assert isinstance(reaction, Leave)
    return reaction.run, reaction.outcome


def failure(run: Run[None]) -> str:
    """Return the failure that a run ends in."""
    assert run.ending is not None
    assert run.ending.failure is not None
    return f"{run.ending.failure.error}: {run.ending.failure.message}"


def test_the_function_is_called_once_for_each_visit() -> None:
    """By the node's name, or by another that the run brings."""
    for node, name in ((NODE, "judge"), (Function("a", frozenset({Good}), callback="b"), "b")):
        reaction = node.enter(fresh())

        assert isinstance(reaction, Wait)
        assert (Invoke(1, name),) == reaction.effects


def test_every_function_may_fail_and_be_stopped() -> None:
    """Without saying so; a row needs `...` for them, or their names."""
    assert {Good, Bad, Failed, Aborted} == NODE.outcomes
    assert "Boom: oh" == failure(left(NODE, EffectFailed(1.0, 1, Failure("Boom", "oh")))[0])
    assert isinstance(left(NODE, EffectFailed(1.0, 1, Failure("Boom", "oh")))[1], Failed)
    assert isinstance(left(NODE, Cancelled(1.0))[1], Aborted)


def test_an_outcome_comes_back_with_its_fields() -> None:
    """From the journal as from the function: they are read from the same fact."""
    fields = '{"reason":"long","lines":[1,2]}'

    assert Good() == left(NODE, told(Left("Good")))[1]
    assert Bad("long", (1, 2)) == left(NODE, told(Left("Bad", None, fields)))[1]


def test_a_state_changes_only_where_the_answer_says_so() -> None:
    """No state is a state, too."""
    run: Run[object] = wrong(evolve(fresh(), state=wrong("old")))

    def after(answer: Left) -> object:
        reaction = NODE.on(run, told(answer), Invoke(1, "judge"))
        assert isinstance(reaction, Leave)
        return reaction.run.state

    assert "old" == after(Left("Good", "new"))
    assert "new" == after(Left("Good", "new", changed=True))
    assert after(Left("Good", None, changed=True)) is None


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (told(Left("Ugly")), "'judge' left by 'Ugly'; the outcomes are Bad, Good"),
        (told(Left("Bad", None, '{"reason":3}')), "whose fields do not fit"),
        (told(Left("Bad", None, "{")), "whose fields do not fit"),
        (CallbackReturned(1.0, 1, Changes()), "answers with Left; found Changes"),
    ],
)
def test_an_answer_that_is_none_ends_the_run(event: Event, words: str) -> None:
    """Its journal tells the same, whatever has become of the code."""
    run, outcome = left(NODE, event)

    assert isinstance(outcome, Failed)
    assert words in failure(run)


def test_an_outcome_is_taken_as_often_as_its_cap_says() -> None:
    """Then the run ends in an error that says what to do."""
    run, event = fresh(), told(Left("Bad"))

    for _ in range(2):
        run, outcome = left(CAPPED, event, run)
        assert isinstance(outcome, Bad)
    assert isinstance(left(CAPPED, told(Left("Good")), run)[1], Good)
    run, outcome = left(CAPPED, event, run)

    assert isinstance(outcome, Failed)
    assert "CapReached: node 'judge' may leave by 'bad' 2 times" in failure(run)


def test_another_outcome_may_stand_for_the_capped_one() -> None:
    """For a loop that has its own way out."""
    node = evolve_capped(CAPPED, Good)
    run = left(node, told(Left("Bad")))[0]
    run = left(node, told(Left("Bad")), run)[0]

    assert isinstance(left(node, told(Left("Bad")), run)[1], Good)


def evolve_capped(node: Function, capped: type[Outcome]) -> Function:
    """Return the node with a way out of its cap."""
    return Function(node.name, node.leaves_by, caps=node.caps, capped=capped)


def test_the_contract_tells_what_the_node_keeps() -> None:
    """It asks no model and runs no tool."""
    node = Function(
        "a", frozenset({Good}), caps=((Good, 2),), reads=frozenset({"x"}), writes=frozenset()
    )

    assert {Good: Cap(2)} == node.contract.caps
    assert (frozenset({"x"}), frozenset()) == (node.contract.reads, node.contract.writes)
    assert (None, None) == (NODE.contract.reads, NODE.contract.writes)
    assert (0, False) == (node.contract.model_calls, node.contract.tools)


def test_a_cap_is_a_number() -> None:
    """Anything else would cap nothing."""
    with pytest.raises(ConfigError, match="the cap of 'bad'"):
        Function("judge", frozenset({Bad}), caps=((Bad, -1),))
