"""The ground that all proofs walk."""

from __future__ import annotations

import pytest

from graphloop.proofs.proof_graph import (
    ProofGraph,
    breadth_first,
    cyclic_components,
    path_to,
    quote_names,
    strong_components,
)
from tests.graphs import agent, build


def test_a_line_that_is_never_taken_is_left_out() -> None:
    """Without a compaction, nothing overflows."""
    ground = ProofGraph(agent())

    assert {"ready", "calls", "failed", "aborted"} == {
        way.word for way in ground.arcs["prepare_step"]
    }
    assert set(ground.node_graph.nodes) == set(ground.reached)


def test_nodes_that_promise_nothing_are_named() -> None:
    """Unknown has a reason."""
    ground = ProofGraph(build({"a": ["b"], "b": ["END"]}))

    assert ["GL2"] == [one.code for one in ground.unknown_without_contracts("GL2")]
    assert () == ProofGraph(agent()).unknown_without_contracts("GL2")


def test_a_finding_says_where_the_node_is_defined() -> None:
    """That is where it is mended."""
    ground = ProofGraph(agent())

    location = ground.definition_of("gate")
    assert location is not None
    assert "nodes/gate.py:" in location
    assert ground.definition_of("nowhere") is None


def test_a_trail_is_a_shortest_one() -> None:
    """The shortest counterexample is the one that is understood."""
    ground = ProofGraph(build({"a": ["b", "c"], "b": ["c"], "c": ["END"]}))
    found = breadth_first(
        ["a"], lambda name: ((way, way.target) for way in ground.arcs.get(name, ()))
    )

    assert ["c"] == [way.target for way in path_to(found, "c")]
    assert path_to(found, "c") == ground.path_to("c")


@pytest.mark.parametrize(
    ("names", "text"),
    [(("a",), "'a'"), (("a", "b", "c", "d", "e"), "'a', 'b', 'c' and 2 more")],
)
def test_long_lists_of_names_are_cut(names: tuple[str, ...], text: str) -> None:
    """A reason is read."""
    assert text == quote_names(names)


LINES = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d")]


def test_groups_come_in_the_order_of_their_places() -> None:
    """Reports must not change from run to run."""
    assert [("d",), ("c",), ("b", "a")] == list(strong_components(["d", "c", "b", "a"], LINES))


def test_circles_are_the_groups_with_a_way_around() -> None:
    """A place alone goes round only by a line to itself."""
    assert [("a", "b"), ("c",)] == list(cyclic_components("abcd", LINES))
