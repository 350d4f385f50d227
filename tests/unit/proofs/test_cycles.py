"""GL4: every cycle is bounded."""

from __future__ import annotations

import pytest

from graphloop.proofs.check import check
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
