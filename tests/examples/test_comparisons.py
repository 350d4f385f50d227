"""The gallery compared: each topology with itself, and with one row led elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import Any

import pytest

from graphloop.errors import GraphError
from graphloop.graph import END, EndType, NodeGraph
from graphloop.node_protocol import Node
from graphloop.outcomes import Outcome, outcome_name
from graphloop.proofs.comparison import compare
from tests.examples.gallery import NAMES, Exhibit, exhibits


@pytest.fixture(scope="module", name="gallery")
def _gallery() -> Iterator[dict[str, Exhibit]]:
    with exhibits() as gallery:
        yield gallery


@pytest.mark.parametrize("name", NAMES)
def test_a_topology_does_not_differ_from_itself(gallery: dict[str, Exhibit], name: str) -> None:
    """Also where it is made a second time, from its file."""
    written = gallery[name].written

    assert compare(gallery[name].graph, gallery[name].graph).none
    assert compare(written, written.with_document(written.document)).none


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_leads_elsewhere_is_told(gallery: dict[str, Exhibit], name: str) -> None:
    """The first and the last row of the table, as what is gone and what is new."""
    graph = gallery[name].table
    rows = [one for one in graph.edges if one.target != "END"]
    for row in (rows[0], rows[-1]):
        try:
            after = led_to_end(graph, row.source, row.outcome)
        except GraphError:
            continue
        found = compare(graph, after)

        assert found.rows_removed == (row,)
        assert [(one.source, one.outcome) for one in found.rows_added] == [
            (row.source, row.outcome)
        ]
        back = compare(after, graph)
        assert (back.rows_removed, back.rows_added) == (found.rows_added, found.rows_removed)


def led_to_end(graph: NodeGraph[Any], source: str, outcome: str) -> NodeGraph[Any]:
    """Return a graph in which one outcome of a node ends the run."""
    to: dict[str, Node[Any, Outcome] | EndType] = {**graph.nodes, "END": END}
    edges: dict[Node[Any, Outcome], dict[type[Outcome] | EllipsisType, Any]] = {
        graph.nodes[name]: {
            kind: END if (name, outcome_name(kind)) == (source, outcome) else to[target]
            for kind, target in row.items()
        }
        for name, row in graph.table.items()
    }
    return NodeGraph(graph.name, graph.nodes[graph.start], edges)
