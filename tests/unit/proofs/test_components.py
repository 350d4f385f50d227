"""Strongly connected components, against those of networkx."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from graphloop.proofs.components import cyclic_components, strong_components

LINES = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d")]
places = st.integers(0, 9)


def test_groups_come_in_the_order_of_their_places() -> None:
    """Reports must not change from run to run."""
    assert [("d",), ("c",), ("b", "a")] == list(strong_components(["d", "c", "b", "a"], LINES))


def test_circles_are_the_groups_with_a_way_around() -> None:
    """A place alone goes round only by a line to itself."""
    assert [("a", "b"), ("c",)] == list(cyclic_components("abcd", LINES))


@given(st.lists(places, unique=True), st.lists(st.tuples(places, places), max_size=30))
def test_the_groups_are_those_of_another_search(
    states: list[int], lines: list[tuple[int, int]]
) -> None:
    digraph: nx.DiGraph[int] = nx.DiGraph(lines)
    digraph.add_nodes_from(states)

    found = list(strong_components(states, lines))

    assert {frozenset(group) for group in found} == {
        frozenset(group) for group in nx.strongly_connected_components(digraph)
    }
    assert len({place for group in found for place in group}) == sum(map(len, found))


def test_a_long_way_needs_no_recursion() -> None:
    """Graphs of ten thousand nodes are proven."""
    way = [(place, place + 1) for place in range(20_000)]

    assert len(list(strong_components(range(20_001), way))) == 20_001
    assert len(list(strong_components(range(20_001), [*way, (20_000, 0)]))) == 1
