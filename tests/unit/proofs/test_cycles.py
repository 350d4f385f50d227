"""GL4: every cycle is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from graphloop import END, Graph
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Approve, Child, Function, Limit, Retrying, Router
from graphloop.outcomes import Answered, Failed, Go, Outcome, Rejected, Resend
from graphloop.outcomes import Final as FinalOutcome
from graphloop.proofs.checking import check
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = ("bound dropped", "cap reset", "bound bypassed", "loop without a bound")


@pytest.mark.parametrize("name", NAMES)
def test_a_cycle_without_a_bound_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven


def test_a_cycle_of_a_node_that_promises_nothing_is_unknown() -> None:
    """It may count for itself: nobody has said."""
    topology = standard()
    topology["nodes"]["own"] = {"type": "own", "outcomes": ["ready", "go"], "silent": True}
    topology["edges"]["own"] = {"ready": "prepare", "go": "own"}
    topology["start"] = "own"

    report = check(graph_of(topology))

    assert report.ok
    assert any(one.code == "GL4" and "'own'" in one.reason for one in report.unknown)


def test_a_stop_check_that_may_count_nothing_is_unknown() -> None:
    """Steps may be recorded every round, or not."""
    topology = standard()
    topology["edges"]["stop"]["go"] = "model"

    assert "GL4" in {one.code for one in check(graph_of(topology)).unknown}


@pytest.mark.parametrize("compacting", [False, True])
def test_a_turn_is_opened_once_more_only_where_a_node_may_do_so(compacting: bool) -> None:
    """Behind an ending that is gone nobody knows the turn; but without a Compact it is no other."""
    topology = standard(context_window=1_000 if compacting else None)
    topology["edges"]["append"]["aborted"] = "stop"
    report = check(graph_of(topology))

    assert compacting != ("GL4" in report.proven)
    if compacting:
        (unknown,) = (one for one in report.unknown if one.code == "GL4")
        assert "lead the cycle through a PrepareStep" not in unknown.reason
        assert "opened once more" in unknown.reason


class Logged(Outcome):
    """A function of one's own has looked."""


LOG = Function("log", frozenset({Logged}))


def behind_a_rejection(between: Node[None, Outcome], *back: type[Outcome]) -> set[str]:
    """Return what is found where a rejection goes through a node, and back to the append."""
    plan, append, approve, replan = Child("planner"), Append(), Approve(), Limit(2, name="replan")
    edges: dict[Any, dict[Any, Any]] = {
        plan: {Answered: append, ...: END},
        append: {FinalOutcome: approve, Resend: replan, ...: END},
        approve: {Rejected: between, ...: END},
        replan: {Go: plan, ...: END},
        between: {**dict.fromkeys(back, append), ...: END},
    }
    report = check(Graph("plans", plan, edges))
    told = {one.code for one in report.findings}
    return told | {one.code for one in report.unknown if "the cycle" in one.reason}


@pytest.mark.parametrize(
    ("between", "back"),
    [
        (LOG, (Logged, Failed)),
        (Router({Logged: "any"}, "Which?"), (Logged, Failed)),
    ],
    ids=["function", "router"],
)
def test_what_leaves_feedback_where_it_is_may_stand_before_the_append(
    between: Node[None, Outcome], back: tuple[type[Outcome], ...]
) -> None:
    """The append still sends the run on to the model, and the limit counts that."""
    assert set() == behind_a_rejection(between, *back)


def test_what_may_take_feedback_away_bounds_nothing() -> None:
    """What is tried again has lost what was noted in its name."""
    assert {"GL4"} == behind_a_rejection(Retrying(LOG, times=1), Logged)
