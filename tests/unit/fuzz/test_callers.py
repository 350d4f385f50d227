"""Callers: everything that a caller may say is said, and is fit to be said."""

from __future__ import annotations

from graphloop.fuzz.callers import steered_by_a_caller
from graphloop.fuzz.choices import Choices
from graphloop.run import Turn, evolve
from graphloop.values import call_key
from tests.strategies import call, fresh

TURN = Turn(number=2, calls=(call("read"), call("write")))
RUN = evolve(fresh(), turn=TURN)


def test_a_caller_says_everything_that_it_may() -> None:
    """Nothing, messages, results, another conversation, other tools."""
    said = [steered_by_a_caller(RUN, Choices.seeded(seed)) for seed in range(300)]

    assert any(not one.append and one.messages is None and not one.results for one in said)
    assert any(one.append for one in said)
    assert any(one.messages is not None for one in said)
    assert any(one.setup is not None for one in said)
    assert {0, 1, 2} == {len(one.results) for one in said}


def test_results_are_of_calls_of_the_turn() -> None:
    """Others would be refused, and nothing would have been tried."""
    keys = {call_key(2, 0), call_key(2, 1)}
    for seed in range(200):
        assert keys >= {one.key for one in steered_by_a_caller(RUN, Choices.seeded(seed)).results}


def test_the_simplest_caller_says_nothing() -> None:
    """So that shrinking gets rid of it."""
    said = steered_by_a_caller(RUN, Choices.given(()))

    assert ((), None, (), None) == (said.append, said.messages, said.results, said.setup)
