"""Names of states."""

from __future__ import annotations

from graphloop.graph import END, Graph
from graphloop.nodes import Append, Limit
from graphloop.views.state_names import state_names


def test_every_node_has_a_plain_name_of_its_own() -> None:
    """Two nodes under one name would be one."""
    first, second, third = Limit(1, name="a.b"), Append("node_1"), Append("é")
    graph: Graph[None] = Graph(
        "g", first, {first: {...: second}, second: {...: third}, third: {...: END}}
    )

    expected = {"a.b": "node_2", "node_1": "node_1", "é": "node_3", "END": "END"}
    assert expected == state_names(graph)
