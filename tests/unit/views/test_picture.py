"""Picture: the shapes and lines that every notation writes, and the child graphs beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.graph import END, Edges, NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.outcomes import outcome_name
from graphloop.views.dot import dot_of
from graphloop.views.family import Family, members
from graphloop.views.marks import Marks
from graphloop.views.mermaid import mermaid_of
from graphloop.views.pictures import picture
from graphloop.views.text import text_of
from tests.graphs import OUTCOMES, Place, build


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs a graph."""

    child: NodeGraph[Any] | None = None

    @property
    def contract(self) -> Contract:
        return Contract(children=(ChildContract("kid", self.child), ChildContract("unknown")))


def parent(child: NodeGraph[Any]) -> NodeGraph[None]:
    node = Parent("a", frozenset(OUTCOMES[:1]), child=child)
    return NodeGraph("g", node, {node: {OUTCOMES[0]: END}})


INNER = build({"x": ["y"], "y": ["END"]}, {"x": "gate", "y": "model"}, name="inner")


@dataclass(frozen=True)
class Capped(Place):
    """A node that never leaves by its first outcome."""

    @property
    def contract(self) -> Contract:
        return Contract(caps={OUTCOMES[0]: Cap(0)})


def test_a_line_that_can_never_be_taken_is_pale_unless_it_is_marked() -> None:
    """A reader need not follow it."""
    first, second = OUTCOMES[:2]
    node, after = Capped("a", frozenset((first, second))), Place("b", frozenset((first,)))
    edges: Edges[None] = {node: {first: END, second: after}, after: {first: END}}
    graph = NodeGraph("g", node, edges)
    way = ("a", outcome_name(first))

    assert ["weak", None, None] == [line.tone for line in picture(graph).strokes]
    marked = picture(graph, Marks(way_tones={way: "alarm"}))
    assert ["alarm", None, None] == [line.tone for line in marked.strokes]


def test_children_are_drawn_only_if_asked_for_and_as_deep_as_asked_for() -> None:
    """Without it, a picture stays as small as its table."""
    graph = parent(parent(INNER))

    assert () == picture(graph).inner
    (child,) = picture(graph, expand=1).inner
    assert ("n0", "kid (g)", ()) == (child.owner, child.picture.title, child.picture.inner)
    deep = picture(graph, expand=2)
    (grandchild,) = deep.inner[0].picture.inner
    assert ("c0_n0", "c0_c0_n0") == (grandchild.owner, grandchild.picture.start)
    for write in (dot_of, mermaid_of):
        assert "c0_c0_n1" in write(deep)
        assert "runs" in write(deep)
    assert "run by a:" in text_of(deep)
    assert {"pure", "gate", "model"} == deep.kinds


def test_a_contract_that_holds_a_graph_makes_it_a_member() -> None:
    """A family that knows more of that agent wins."""
    (member,) = members(Family(parent(INNER)))
    better = Family(INNER, tools={"deep": Family(INNER)})
    (other,) = members(Family(parent(INNER), agents={"kid": better}))

    assert ("a", "kid", Family(INNER)) == member
    assert better is other.family


def test_agents_that_are_tools_run_where_tools_run() -> None:
    """At every node that executes, and nowhere else."""
    nodes = Standard()
    loop: NodeGraph[None] = NodeGraph("loop", nodes.prepare, standard_edges(nodes))

    assert [("execute", "helper")] == [
        (member.node, member.name)
        for member in members(Family(loop, tools={"helper": Family(INNER)}))
    ]
