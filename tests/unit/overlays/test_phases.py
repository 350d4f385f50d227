"""Phases: which nodes are one from far away."""

from __future__ import annotations

from hypothesis import given

from graphloop.graph import Graph
from graphloop.node_protocol import Kind
from graphloop.overlays.phases import phases
from graphloop.views.folded import Box
from tests.graphs import agent, any_graphs, build


def groups(graph: Graph[None]) -> list[tuple[str, ...]]:
    return [box.nodes for box in phases(graph)]


@given(any_graphs())
def test_every_node_is_in_exactly_one_box_of_a_name_of_its_own(graph: Graph[None]) -> None:
    """Whatever the graph."""
    boxes = phases(graph)

    assert sorted(graph.nodes) == sorted(name for box in boxes for name in box.nodes)
    assert len(boxes) == len({box.name for box in boxes})


@given(any_graphs())
def test_the_boxes_stand_in_the_order_of_the_table(graph: Graph[None]) -> None:
    """So a picture keeps its look when something is added."""
    places = {name: place for place, name in enumerate(graph.nodes)}
    firsts = [places[box.nodes[0]] for box in phases(graph)]

    assert sorted(firsts) == firsts


def test_the_standard_loop_is_seen_by_its_phases() -> None:
    """It is one loop: seen as such, there would be nothing to see."""
    assert [
        ("prepare", ("prepare_step", "compact", "extend")),
        ("model_call", ("model_call",)),
        ("gate", ("gate",)),
        ("execute", ("execute",)),
        ("append", ("append",)),
        ("verify", ("verify",)),
        ("stop_check", ("stop_check",)),
    ] == [(box.name, box.nodes) for box in phases(agent())]


def test_loops_beside_each_other_are_a_box_each() -> None:
    """Named by where one comes in."""
    graph = build(
        {"x": ["b"], "a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["c", "END"]},
        {"a": "model", "c": "gate"},
    )

    assert (
        Box("x", "pure", ("x",)),
        Box("b loop", "loop", ("a", "b")),
        Box("c loop", "loop", ("c", "d")),
    ) == phases(graph)


def test_an_agent_and_the_append_of_its_answer_are_one() -> None:
    """Unless others come there, too."""
    kinds: dict[str, Kind] = {
        "one": "graph",
        "said": "append",
        "two": "graph",
        "all": "append",
        "x": "pure",
    }
    rows = {"one": ["said"], "said": ["two"], "two": ["all"], "x": ["all"], "all": ["END"]}
    graph = build(rows, kinds)

    assert [("one", "said"), ("two",), ("x",), ("all",)] == groups(graph)


def test_agents_and_people_in_a_loop_are_told_apart() -> None:
    """A debate is two speakers, not one phase."""
    graph = build(
        {"for": ["f"], "f": ["against"], "against": ["g"], "g": ["ask"], "ask": ["for", "END"]},
        {"for": "graph", "f": "append", "against": "graph", "g": "append", "ask": "human"},
    )

    assert [("for", "f"), ("against", "g"), ("ask",)] == groups(graph)


def test_what_would_be_one_box_alone_is_not_folded() -> None:
    """A picture of one box says nothing."""
    assert [("a",), ("b",)] == groups(build({"a": ["b"], "b": ["a", "END"]}))


def test_a_phase_does_not_take_the_name_of_a_node() -> None:
    """Two boxes of one name could not be told apart in a text."""
    graph = build(
        {"a": ["b"], "b": ["gate"], "gate": ["a", "END"]},
        {"a": "gate", "b": "gate", "gate": "model"},
    )

    assert ["gate 2", "gate"] == [box.name for box in phases(graph)]


def test_people_are_folded_where_there_is_no_room_for_each() -> None:
    """In a graph that is too large to be drawn whole from near; small ones tell each apart."""
    assert ["human"] == people(graph_of_people(300))
    assert ["n1", "n4", "n7"] == people(graph_of_people(9))


def graph_of_people(nodes: int) -> Graph[None]:
    """Return one loop with a person every third node, and a second line from each to anywhere."""
    names = [f"n{number}" for number in range(nodes)]
    rows = {
        one: [names[(at + 1) % nodes], names[at * 7 % nodes], *(["END"] if at == 0 else [])]
        for at, one in enumerate(names)
    }
    kinds: tuple[Kind, ...] = ("pure", "human", "gate")
    return build(rows, {one: kinds[at % 3] for at, one in enumerate(names)})


def people(graph: Graph[None]) -> list[str]:
    return [one.name for one in phases(graph) if one.look == "human"]
