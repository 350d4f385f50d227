"""The ground that all proofs walk."""

from __future__ import annotations

from graphloop.proofs.proof_graph import (
    ProofGraph,
    cyclic_components,
    strong_components,
)
from tests.graphs import agent


def test_a_line_that_is_never_taken_is_left_out() -> None:
    """Without a compaction, nothing overflows."""
    ground = ProofGraph(agent())

    assert {"ready", "calls", "failed", "aborted"} == {
        way.word for way in ground.arcs["prepare_step"]
    }
    assert set(ground.node_graph.nodes) == set(ground.reached)


def test_a_finding_says_where_the_node_is_defined() -> None:
    """That is where it is mended."""
    ground = ProofGraph(agent())

    location = ground.definition_of("gate")
    assert location is not None
    assert "nodes/gate.py:" in location
    assert ground.definition_of("nowhere") is None


LINES = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d")]


def test_groups_come_in_the_order_of_their_places() -> None:
    """Reports must not change from run to run."""
    assert [("d",), ("c",), ("b", "a")] == list(strong_components(["d", "c", "b", "a"], LINES))


def test_circles_are_the_groups_with_a_way_around() -> None:
    """A place alone goes round only by a line to itself."""
    assert [("a", "b"), ("c",)] == list(cyclic_components("abcd", LINES))
