"""Contracts: what a node promises is what it does, at its cap and beyond."""

from __future__ import annotations

import pytest

from graphloop.contract import BROKEN, Cap, Contract, contract_of
from graphloop.nodes import AnswerCheck, Compact, Execute, Extend, PrepareStep, StopCheck, Verify
from graphloop.nodes.extend import RETRIES_MAX
from graphloop.outcomes import (
    Aborted,
    Calls,
    Compacted,
    Failed,
    FollowUp,
    Go,
    Held,
    Overflow,
    Ready,
    Rejected,
    Retry,
)
from tests.graphs import Place


def test_a_node_without_a_contract_promises_nothing() -> None:
    """Also one whose `contract` is something else."""
    assert contract_of(Place("a", frozenset({Go}))) is None


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


@pytest.mark.parametrize(
    ("contract", "outcome", "times"),
    [
        (StopCheck(max_steps=7).contract, Go, 6),
        (Extend().contract, Retry, RETRIES_MAX),
        (Compact().contract, Compacted, 0),
        (PrepareStep().contract, Overflow, 0),
        (Execute().contract, Held, 1),
        (Verify((AnswerCheck("a", 2), AnswerCheck("b", 1))).contract, Rejected, 3),
    ],
)
def test_the_nodes_of_the_standard_loop_say_their_bounds(
    contract: Contract, outcome: type[Go], times: int
) -> None:
    """The numbers are the nodes' own, and are written down nowhere else."""
    assert times == contract.caps[outcome].times


def test_whoever_asks_again_may_be_sent_back_to_as_often() -> None:
    """So the number is that of a question, not of a run."""
    contract = Verify((AnswerCheck("a", 2),)).contract

    assert contract.caps[Rejected].resets & contract.moved(FollowUp)
