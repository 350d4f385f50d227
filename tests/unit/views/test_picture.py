"""Picture: what every notation writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.graph import END, Edges, Graph
from graphloop.outcomes import outcome_name
from graphloop.views.dot import dot
from graphloop.views.marks import Marks
from graphloop.views.mermaid import mermaid
from graphloop.views.picture import Word, picture
from graphloop.views.text import text
from tests.graphs import OUTCOMES, Place, build


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs a graph."""

    child: Graph[Any] | None = None

    @property
    def contract(self) -> Contract:
        return Contract(children=(ChildContract("kid", self.child), ChildContract("unknown")))


def parent(child: Graph[Any]) -> Graph[None]:
    node = Parent("a", frozenset(OUTCOMES[:1]), child=child)
    return Graph("g", node, {node: {OUTCOMES[0]: END}})


INNER = build({"x": ["y"], "y": ["END"]}, {"x": "gate", "y": "model"}, name="inner")


def test_the_kinds_are_those_that_occur_in_the_order_of_the_legend() -> None:
    """A legend of things that are not there is noise."""
    graph = build({"a": ["b"], "b": ["END"]}, {"a": "stop", "b": "model"})

    assert ("model", "stop") == picture(graph).kinds
    assert ("model", "gate", "pure") == picture(parent(INNER), expand=1).kinds


def test_words_stand_beside_the_outcomes_they_are_about() -> None:
    """So that a notation can tell the user's names from ours."""
    drawn = picture(build({"a": ["END"]}), Marks(ways={("a", "calls"): "3"}))

    assert (Word("calls", "3"),) == drawn.strokes[0].words
    assert "calls 3" == str(drawn.strokes[0].words[0])


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
    graph = Graph("g", node, edges)
    way = ("a", outcome_name(first))

    assert ["weak", None, None] == [one.tone for one in picture(graph).strokes]
    marked = picture(graph, Marks(way_tones={way: "alarm"}))
    assert ["alarm", None, None] == [one.tone for one in marked.strokes]


def test_children_are_drawn_only_if_asked_for_and_as_deep_as_asked_for() -> None:
    """Collapsed, a picture is what it always was."""
    graph = parent(parent(INNER))

    assert () == picture(graph).inner
    assert dot(graph) == dot(graph, expand=0)
    (one,) = picture(graph, expand=1).inner
    assert ("n0", "kid (g)", ()) == (one.owner, one.picture.title, one.picture.inner)
    (two,) = picture(graph, expand=2).inner[0].picture.inner
    assert ("c0_n0", "c0_c0_n0") == (two.owner, two.picture.start)
    for notation in (dot, mermaid):
        assert "c0_c0_n1" in notation(graph, expand=2)
        assert "runs" in notation(graph, expand=2)
    assert "run by a:" in text(graph, expand=2)
