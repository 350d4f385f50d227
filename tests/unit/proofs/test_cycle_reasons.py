"""Why a cycle has no bound is told in words that fit its nodes."""

from __future__ import annotations

from typing import Any

from graphloop.graph import END, NodeGraph
from graphloop.proofs.checking import check
from tests.topology_data import graph_of, standard
from tests.unit.proofs.test_cycles import LOG, Logged


def test_the_fix_names_nodes_that_fit_the_cycle() -> None:
    """A StopCheck counts turns: it bounds no cycle that opens none."""
    edges: dict[Any, dict[Any, Any]] = {LOG: {Logged: LOG, ...: END}}
    (own,) = check(NodeGraph("own", LOG, edges)).findings
    topology = standard()
    topology["edges"]["append"]["answered_calls"] = "prepare"
    fixes = [one.fix for one in check(graph_of(topology)).findings if one.code == "GL4"]

    assert "Limit" in own.fix
    assert "cap=" in own.fix
    assert "StopCheck" not in own.fix
    assert all("StopCheck" in fix for fix in fixes)
    assert fixes
