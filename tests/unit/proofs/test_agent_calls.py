"""Agent calls: what a run and its agents ask where their number is known."""

from __future__ import annotations

from math import inf

import pytest

from graphloop.proofs.agent_calls import Asked, alone, each_call, shared
from graphloop.proofs.most import Bound

EVERY = Asked(inf, inf, (), "as often as a model likes")
OWN = Asked(4.0, 2.0, ("two turns",), "")


def of(calls: int | None, own: int | None = None, each: int | None = None) -> Bound:
    """Return the bound of an agent."""
    missing = {"model_calls": "nobody says."} if calls is None else {}
    return Bound("a", calls, 0, None, None, {}, (), missing, (), own, each)


@pytest.mark.parametrize(
    ("found", "expected"),
    [(of(7), 7), (of(None), inf), (of(None, 3, 5), 3), (of(9, 3, 5), 3), (of(9, 3), 9)],
)
def test_what_an_agent_asks_alone_is_told_or_all_that_it_asks(
    found: Bound, expected: float
) -> None:
    """A bound that nobody has parted counts both."""
    assert expected == alone(found)


def test_a_call_asks_what_the_dearest_agent_asks_alone() -> None:
    """At any depth: a called one, what it calls, or what the agent of a node calls."""
    assert (0.0, "") == each_call({}, [])
    assert (7, "") == each_call({"a": of(7), "b": of(None, 3, 5)}, [])
    assert (8, "") == each_call({"a": of(7), "b": of(None, 3, 8)}, [])
    assert (9, "") == each_call({"a": of(7)}, [of(99), of(20, 11, 9)])
    assert (inf, "the agent 'b', a tool: nobody says.") == each_call({"b": of(None)}, [])


def test_a_number_of_calls_bounds_what_nothing_else_does() -> None:
    """And says what it follows from."""
    why = ("two turns", "models call agents at most 3 times: 3 x 7 model calls")

    assert EVERY == shared(EVERY, OWN, (7.0, ""), None)
    assert Asked(25.0, 23.0, why, "") == shared(EVERY, OWN, (7.0, ""), 3)
    assert OWN.calls == shared(EVERY, OWN, (inf, "nobody says"), 0).calls


def test_the_lower_of_two_bounds_holds() -> None:
    """One that needs no number of calls stays as it is."""
    less = Asked(20.0, 9.0, ("once a turn",), "")

    assert less == shared(less, OWN, (7.0, ""), 3)
    assert 18.0 == shared(less, OWN, (7.0, ""), 2).calls


def test_what_has_no_bound_says_why_in_spite_of_the_number() -> None:
    """The run's own cycles come first, then the agent that nobody knows."""
    endless = Asked(inf, inf, (), "nothing bounds it")

    assert "nothing bounds it" == shared(EVERY, endless, (7.0, ""), 3).problem
    assert "nobody says" == shared(EVERY, OWN, (inf, "nobody says"), 3).problem
