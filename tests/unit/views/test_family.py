"""Families: what each node runs, from whoever knows it."""

from __future__ import annotations

from graphloop.graph import END, Graph
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import Append, Child
from graphloop.views.family import Family, kin
from tests.graphs import build
from tests.unit.views.test_picture import parent

INNER = build({"x": ["END"]}, name="inner")


def test_a_contract_that_holds_a_graph_is_enough() -> None:
    """And one that is known better is taken from there."""
    (one,) = kin(Family(parent(INNER)))
    better = Family(INNER, tools={"deep": Family(INNER)})
    (other,) = kin(Family(parent(INNER), agents={"kid": better}))

    assert ("a", "kid", Family(INNER)) == one
    assert better is other.family


def test_agents_that_are_tools_run_where_tools_run() -> None:
    """At every node that executes, and nowhere else."""
    nodes = Standard()
    loop: Graph[None] = Graph("loop", nodes.prepare, standard_edges(nodes))

    assert [("execute", "helper")] == [
        (one.node, one.name) for one in kin(Family(loop, tools={"helper": Family(INNER)}))
    ]


def test_agents_that_a_node_names_are_found_by_name() -> None:
    """They are handed to a run, and so are their graphs."""
    node, append = Child("helper"), Append()
    graph: Graph[None] = Graph("g", node, {node: {...: append}, append: {...: END}})

    assert [] == list(kin(Family(graph)))
    (one,) = kin(Family(graph, agents={"helper": Family(INNER), "other": Family(INNER)}))
    assert ("helper", "helper") == (one.node, one.name)
