"""GL4: every cycle is bounded."""

from __future__ import annotations

import pytest

from graphloop.proofs.check import check
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = ("bound dropped", "cap reset", "counter not moved", "loop without a bound")


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
