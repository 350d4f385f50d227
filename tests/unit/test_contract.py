"""Contracts: what a node promises is what it does, at its cap and beyond."""

from __future__ import annotations

from graphloop.contract import Cap, Contract
from graphloop.outcomes import (
    Calls,
    Ready,
)


def test_a_cap_of_nothing_is_never_taken_unless_it_counts() -> None:
    """A counter may stand at its bound before it has moved."""
    assert Cap(0).never
    assert not Cap(0, counts=frozenset({"turn"})).never
    assert not Cap(1).never


def test_what_is_surely_moved_may_be_moved() -> None:
    """The two can never disagree."""
    contract = Contract(
        moves=frozenset({"step"}),
        moves_by={Calls: frozenset({"close"})},
        surely={Ready: frozenset({"turn"})},
    )

    assert {"step", "turn"} == contract.may_move(Ready)
    assert {"step", "close"} == contract.may_move(Calls)
    assert {"turn"} == contract.moved(Ready)
    assert not contract.moved(Calls)
