"""Dominance, against its definition: without the node, there is no way."""

from __future__ import annotations

from hypothesis import given

from graphloop.graph import NodeGraph
from graphloop.proofs.ground import Ground
from graphloop.proofs.guards import Dominance
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
def test_a_node_comes_before_another_if_there_is_no_way_without_it(graph: NodeGraph[None]) -> None:
    """The tree of dominators is fast; this is what it means."""
    passed = Dominance(Ground(graph))
    everywhere = reachable(graph, {graph.start}, "")

    assert everywhere == set(passed.reached)
    for node in everywhere:
        slow = {one for one in everywhere if node not in reachable(graph, {graph.start}, one)}
        assert slow - {node} == passed.before(node)


@given(any_graphs())
def test_a_node_lies_between_two_visits_if_there_is_no_way_back_without_it(
    graph: NodeGraph[None],
) -> None:
    """And a node that is visited once has nothing between its visits."""
    passed = Dominance(Ground(graph))
    for node in set(passed.reached) - {"END"}:
        after = {edge.target for edge in graph.edges if edge.source == node}
        behind = reachable(graph, after, "")
        if node not in behind:
            assert passed.between(node) is None
            continue
        slow = {one for one in behind if node not in reachable(graph, after, one)}
        assert frozenset(slow - {node}) == passed.between(node)


def test_ways_around_and_round_trips_are_shortest_and_pass_what_they_say() -> None:
    """They are the witnesses of verdicts."""
    graph = build({"a": ["b", "c"], "b": ["c", "a"], "c": ["END"]})
    passed = Dominance(Ground(graph))

    assert ["c"] == [way.target for way in passed.around("c", "b")]
    assert () == passed.around("c", "a")
    assert ["b", "a"] == [way.target for way in passed.round_trip("a")]
    assert () == passed.round_trip("c")
    assert () == passed.round_trip("a", "b")
    assert frozenset() == passed.before("nowhere")
    assert passed.between("END") is None
