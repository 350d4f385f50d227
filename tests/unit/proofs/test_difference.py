"""Difference: changes and verdict together, as text and as JSON, children included."""

from __future__ import annotations

import json
from dataclasses import dataclass

from graphloop.contract import ChildContract, Contract
from graphloop.graph import END, Graph
from graphloop.proofs.difference import difference
from tests.changed_loop import bypassed, changed
from tests.graphs import OUTCOMES, Place


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs a graph."""

    child: Graph[None] | None = None

    @property
    def contract(self) -> Contract:
        return Contract(children=(ChildContract("kid", self.child),))


def parent(child: Graph[None]) -> Graph[None]:
    node = Parent("a", frozenset(OUTCOMES[:1]), child=child)
    return Graph("g", node, {node: {OUTCOMES[0]: END}})


def test_the_meaning_stands_before_the_changes() -> None:
    """Who reads one line has read the one that counts."""
    found = difference(changed(), changed(bypassed))

    assert found.weaker
    assert str(found).splitlines()[:3] == [
        "graph agent: weaker",
        "  weaker: `execute` becomes reachable without `gate`",
        "    witness: prepare_step -ready-> model_call -calls-> execute",
    ]
    assert "  ~ model_call -calls-> execute (was gate)" == str(found).splitlines()[-1]


def test_json_holds_the_same_and_says_whether_anything_is_weaker() -> None:
    """For whoever reviews by machine."""
    data = json.loads(difference(changed(), changed(bypassed)).to_json())

    assert data["weaker"] is True
    assert data["verdict"][0]["pairs"] == [["gate", "execute"]]
    assert data["changes"]["rewired"][0]["before"] == "gate"
    assert json.loads(difference(changed(), changed()).to_json())["weaker"] is False


def test_no_difference_is_said_in_words() -> None:
    """Empty output could be an error."""
    assert "graph agent: no difference" == str(difference(changed(), changed()))


def test_a_child_that_got_weaker_makes_its_parent_weaker() -> None:
    """The parent's own table is the same."""
    found = difference(parent(changed()), parent(changed(bypassed)))

    assert found.changes.none
    assert found.weaker
    assert "in the child 'kid':" in str(found)
    assert "without `gate`" in str(found)
    assert json.loads(found.to_json())["children"]["kid"]["weaker"] is True


def given(name: str = "g", **facts: object) -> Graph[None]:
    """Return a graph of which something is known beside its table."""
    node = Place("a", frozenset(OUTCOMES[:1]))
    graph: Graph[None] = Graph(name, node, {node: {OUTCOMES[0]: END}})
    graph.facts = facts
    return graph


def test_graphs_of_two_names_are_two() -> None:
    """Journals know them by these."""
    found = difference(given("one"), given("two"))

    assert not found.none
    assert not found.weaker
    assert "graph 'one' -> 'two': not weaker" == str(found)


def test_what_runs_are_given_is_part_of_the_difference() -> None:
    """The tables are the same."""
    found = difference(given(instructions="Never."), given(instructions="Always."))

    assert not found.none
    assert "changed: instructions of what runs are given" in str(found)
    assert "~ instructions: - 'Never.', + 'Always.'" in str(found)


def test_an_agent_whose_graph_nobody_knows_any_more_is_weaker() -> None:
    """What was compared cannot be."""
    before, after = given(), given()
    before.agents, after.agents = {"kid": changed()}, {"kid": None}

    assert difference(before, after).weaker
    assert not difference(after, before).weaker
    assert not difference(after, before).none


def test_a_graph_that_is_used_in_many_places_is_compared_once() -> None:
    """Uses of uses are beyond counting."""

    def deep() -> Graph[None]:
        inner = given()
        for _ in range(15):
            outer = given()
            outer.agents = {"left": inner, "right": inner}
            inner = outer
        return inner

    assert difference(deep(), deep()).none
