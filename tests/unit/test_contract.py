"""Contracts: what a node promises is what it does, at its cap and beyond."""

from __future__ import annotations

from graphloop.contract import BROKEN, Cap, Contract
from graphloop.outcomes import (
    Aborted,
    Calls,
    Failed,
    Go,
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
        moves={Ready: frozenset({"turn"}), Calls: frozenset({"close", "perhaps"}), Failed: BROKEN}
    )

    assert {"turn"} == contract.moved(Ready) == contract.may_move(Ready)
    assert {"close"} == contract.may_move(Calls)
    assert not contract.moved(Calls)
    assert {"turn", "close", "broken"} == contract.may_move(Failed)
    assert BROKEN == contract.moved(Failed)
    assert [Go] == [one for one in (Ready, Calls, Failed, Aborted, Go) if contract.keeps(one)]
