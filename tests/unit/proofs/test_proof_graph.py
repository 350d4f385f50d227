"""The ground that all proofs walk."""

from __future__ import annotations

from graphloop.proofs.proof_graph import ProofGraph
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
