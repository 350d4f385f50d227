"""Dominance, against its definition: without the node, there is no way."""

from __future__ import annotations

from hypothesis import given

from graphloop.graph import NodeGraph
from graphloop.proofs.dominance import Dominance
from graphloop.proofs.proof_graph import ProofGraph
from tests.graphs import any_graphs, build


def reachable(graph: NodeGraph[None], starts: set[str], without: str) -> set[str]:
    """Return what can be come to from `starts`, by way of anything but `without`."""
    found: set[str] = set()
    todo = starts - {without}
    while todo:
        found |= todo
        ways = {edge.target for edge in graph.edges if edge.source in todo}
        todo = ways - found - {without}
    return found


@given(any_graphs())
def test_dominators_are_the_nodes_that_no_path_avoids(graph: NodeGraph[None]) -> None:
    """The tree of dominators is fast; this is what it means."""
    passed = Dominance(ProofGraph(graph))
    everywhere = reachable(graph, {graph.start}, "")

    assert everywhere == set(passed.reached)
    for node in everywhere:
        slow = {one for one in everywhere if node not in reachable(graph, {graph.start}, one)}
        assert slow - {node} == passed.before(node)


def test_a_way_around_a_node_is_shortest_and_passes_what_it_says() -> None:
    """It is the witness of a guard that is lost."""
    graph = build({"a": ["b", "c"], "b": ["c", "a"], "c": ["END"]})
    passed = Dominance(ProofGraph(graph))

    assert ["c"] == [way.target for way in passed.around("c", "b")]
    assert () == passed.around("c", "a")
    assert frozenset() == passed.before("nowhere")
