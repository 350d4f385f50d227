"""How often nodes are visited at most, part by part."""

from __future__ import annotations

from graphloop.graph import END, Edges, NodeGraph
from graphloop.nodes import Append, Limit
from graphloop.outcomes import Go, Resend
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.ranking import Ranking
from graphloop.proofs.visits import Stay, VisitBounds, VisitCount
from graphloop.rules import AtMost
from tests.topology_data import Topology, graph_of, standard


def stay(topology: Topology) -> Stay:
    """Return what a run does at most, where a visit to the model weighs 1."""
    ranking = Ranking(ProofGraph(graph_of(topology)))
    names, ways = ranking.split_graph()
    weights = {name: float(ranking.node(name) == "model") for name in names}
    return VisitCount(ranking, weights).among(names, ways)


def test_phases_multiply_from_the_inside_out() -> None:
    """Three turns, each asked twice at most."""
    found = stay(standard(max_steps=3))

    assert (6.0, 6.0, 3.0) == (found.weight, found.visits["model"], found.visits["extend"] / 2)
    assert 2 == len(found.why)


def test_a_rule_is_kept_that_allows_as_much_as_the_bounds_do() -> None:
    """A limit of two is left by `go` twice, and entered once more."""
    limit, append = Limit(2), Append()
    edges: Edges[None] = {
        limit: {Go: append, ...: END},
        append: {Resend: limit, ...: END},
    }
    most = VisitBounds(ProofGraph(NodeGraph[None]("rounds", limit, edges)))

    assert most.keeps(AtMost("node:limit", 3))
    assert not most.keeps(AtMost("node:limit", 2))
    assert most.keeps(AtMost("outcome:limit.go", 3))
    assert not most.keeps(AtMost("tool:read", 3))
