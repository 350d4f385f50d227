"""The three levels of a picture, and the child graphs beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.graph import END, Edges, NodeGraph, Surroundings
from graphloop.node_protocol import Kind
from graphloop.nodes import Gate, Limit
from graphloop.outcomes import Answered, Calls, Outcome
from graphloop.policy.policy import allow
from graphloop.spending import Budget
from graphloop.views.dot import dot_of
from graphloop.views.levels import LEVELS, Level, child_graphs, details, picture
from graphloop.views.marks import Marks, Tally
from graphloop.views.mermaid import mermaid_of
from graphloop.views.phases import Box, phase_picture, phases
from graphloop.views.pictures import Word
from graphloop.views.text import text_of
from tests.graphs import Place, agent, any_graphs, build

INNER = build({"x": ["y"], "y": ["x", "END"]}, {"x": "gate", "y": "model"}, name="inner")


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs one known and one unknown graph."""

    child: NodeGraph[Any] | None = None

    @property
    def contract(self) -> Contract:
        return Contract(children=(ChildContract("kid", self.child), ChildContract("unknown")))


def parent(child: NodeGraph[Any]) -> NodeGraph[None]:
    node = Parent("a", frozenset({Calls}), child=child)
    return NodeGraph("g", node, {node: {Calls: END}})


@dataclass(frozen=True)
class Rejected(Outcome):
    """An outcome with fields."""

    reason: str
    score: int = 0


@dataclass(frozen=True)
class Busy(Place):
    """A node whose contract has every clause."""

    @property
    def contract(self) -> Contract:
        critic = ChildContract(
            "critic",
            writes=frozenset({"note"}),
            gate_rules=allow("*").rules,
            budget=Budget(tokens=5),
            many=True,
            runs=None,
        )
        return Contract(
            caps={
                Answered: Cap(3, resets=frozenset({"turn"})),
                Calls: Cap(0),
                Rejected: Cap(1_000),
            },
            model_calls=2,
            tools=True,
            asks=True,
            reads=frozenset({"b", "a"}),
            writes=None,
            children=(ChildContract("writer"), critic),
        )


def test_details_are_the_contract_and_the_fields_of_outcomes() -> None:
    busy = Busy("busy", frozenset({Answered, Calls, Rejected}), "graph")

    assert list(details(busy)) == [
        "graph: Busy",
        "asks a model 2 times at most",
        "runs tools",
        "may wait for a person",
        "reads a, b",
        "writes anything of the state",
        "answered at most 3x in a turn",
        "calls never",
        "rejected at most 1,000x",
        "runs writer",
        "runs critic any number of times at most,",
        "  side by side, on a budget of its own,",
        "  by rules of its own, writes note",
        "rejected(reason: str, score: int)",
    ]


def test_the_rules_of_a_gate_are_inside_its_box() -> None:
    gate, limit = Gate(rules=allow("read").rules), Limit(2)
    graph: NodeGraph[None] = NodeGraph("g", gate, {gate: {...: limit}, limit: {...: END}})
    drawn = picture(graph, Marks(nodes={"gate": "2x"}), "detail")
    text = dot_of(drawn)

    assert drawn.shapes[0].words == ("gate", "2x")
    assert drawn.shapes[0].notes == ()
    assert any("read" in line for line in drawn.shapes[0].details)
    assert "shape=diamond" not in text.partition("cluster_legend")[0]
    assert "go at most 2x\\l" in text


def test_a_line_that_is_never_taken_is_pale_unless_marked() -> None:
    node, after = Busy("a", frozenset((Calls, Answered))), Place("b", frozenset((Calls,)))
    edges: Edges[None] = {node: {Calls: END, Answered: after}, after: {Calls: END}}
    graph = NodeGraph("g", node, edges)

    assert [line.tone for line in picture(graph).strokes] == ["weak", None, None]
    marked = picture(graph, Marks(way_tones={("a", "calls"): "alarm"}))
    assert [line.tone for line in marked.strokes] == ["alarm", None, None]


@pytest.mark.parametrize("level", LEVELS)
def test_child_graphs_are_drawn_at_the_level_of_their_parent(level: Level) -> None:
    marks = Marks(children={("a", "kid"): Marks(title="2 runs", nodes={"x": "lit here"})})
    drawn = picture(parent(INNER), marks, level, expand=True)
    (inner,) = drawn.inner
    shape = inner.picture.shapes[0]

    assert inner.picture.title == "kid (inner, 2 runs)"
    assert inner.owner == drawn.shapes[0].id
    assert "lit here" in " ".join((*shape.words, *shape.details))
    assert bool(picture(parent(INNER), level=level).inner) is (level == "detail")


def test_child_graphs_are_drawn_at_any_depth() -> None:
    deep = picture(parent(parent(INNER)), expand=True)
    (child,) = deep.inner
    (grandchild,) = child.picture.inner

    assert (child.owner, child.picture.title) == ("n0", "kid (g)")
    assert (grandchild.owner, grandchild.picture.start) == ("c0_n0", "c0_c0_n0")
    for write in (dot_of, mermaid_of):
        assert "c0_c0_n1" in write(deep)
        assert "runs" in write(deep)
    assert "run by a:" in text_of(deep)
    assert deep.kinds == {"pure", "gate", "model"}


def test_an_agent_of_the_graph_wins_over_the_contracts_graph() -> None:
    """The graph knows the tools and options of the agent, too."""
    graph, better = parent(INNER), build({"x": ["END"]})

    assert [*child_graphs(graph)] == [("a", "kid", INNER)]
    graph.surroundings = Surroundings(agents={"kid": better})
    assert [*child_graphs(graph)] == [("a", "kid", better)]


@given(any_graphs())
def test_every_node_is_in_exactly_one_box(graph: NodeGraph[None]) -> None:
    """Boxes have the order of the table, and no two boxes have the same name."""
    boxes = phases(graph)
    places = {name: place for place, name in enumerate(graph.nodes)}
    firsts = [places[box.nodes[0]] for box in boxes]

    assert sorted(graph.nodes) == sorted(name for box in boxes for name in box.nodes)
    assert len(boxes) == len({box.name for box in boxes})
    assert sorted(firsts) == firsts


DEBATE = (
    {"for": ["f"], "f": ["not"], "not": ["g"], "g": ["ask"], "ask": ["for", "END"]},
    {"for": "graph", "f": "append", "not": "graph", "g": "append", "ask": "human"},
)
ANSWERS = {"one": ["said"], "said": ["two"], "two": ["all"], "x": ["all"], "all": ["END"]}
SPEAKERS = {"one": "graph", "said": "append", "two": "graph", "all": "append", "x": "pure"}
LOOPS = {"x": ["b"], "a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["c", "END"]}


@pytest.mark.parametrize(
    ("rows", "kinds", "boxes"),
    [
        # A loop is named by the node at which runs enter it.
        (LOOPS, {"a": "model", "c": "gate"}, {"x": "x", "b loop": "ab", "c loop": "cd"}),
        # An append that several nodes lead to has a box of its own.
        (ANSWERS, SPEAKERS, {"one": ("one", "said"), "two": ("two",), "x": "x", "all": ("all",)}),
        # Agents and people in a loop keep their own boxes.
        (*DEBATE, {"for": ("for", "f"), "not": ("not", "g"), "ask": ("ask",)}),
    ],
)
def test_loops_and_speakers_are_boxes(
    rows: dict[str, list[str]], kinds: dict[str, Kind], boxes: dict[str, tuple[str, ...]]
) -> None:
    graph = build(rows, kinds)

    assert {box.name: box.nodes for box in phases(graph)} == {
        name: tuple(nodes) for name, nodes in boxes.items()
    }


def test_a_single_loop_is_drawn_by_its_kinds() -> None:
    assert phases(agent()) == (
        Box("prepare", "prepare", ("prepare_step", "compact", "extend")),
        Box("model_call", "model", ("model_call",)),
        Box("gate", "gate", ("gate",)),
        Box("execute", "execute", ("execute",)),
        Box("append", "append", ("append",)),
        Box("verify", "check", ("verify",)),
        Box("stop_check", "stop", ("stop_check",)),
    )


GRAPH = build({"x": ["a"], "a": ["b", "c"], "b": ["a", "c"], "c": ["END"]}, {"a": "gate"})
MARKS = Marks(
    nodes={"b": "GL2"},
    ways={("a", "calls"): "[1]", ("b", "answered"): "[2]"},
    node_tones={"a": "strong", "b": "weak", "c": "weak"},
    way_tones={("b", "calls"): "alarm", ("c", "calls"): "weak"},
    shaded=frozenset({"a", "c"}),
    visits={"a": Tally((4,), 1.0), "b": Tally((3,), 2.0), "c": Tally((1,)), "END": Tally((2,))},
    passages={
        ("a", "calls"): Tally((3,)),
        ("a", "answered"): Tally((1,)),
        ("b", "calls"): Tally((2,)),
        ("b", "answered"): Tally((1,)),
    },
)


def test_a_box_lists_its_nodes_and_counts_its_lines() -> None:
    drawn = phase_picture(GRAPH, Marks(), "p_")
    _, box, single, end = drawn.shapes
    (both,) = [line for line in drawn.strokes if (line.source, line.target) == ("p_n1", "p_n2")]

    assert (box.words, box.details) == (("a loop",), ("a, b", "2 lines inside"))
    assert (single.words, single.details) == (("c",), ())
    assert end.kind is None
    assert drawn.ids == {"x": "p_n0", "a": "p_n1", "b": "p_n1", "c": "p_n2", "END": "p_last"}
    assert both.words == (Word("answered", "(2 nodes)"),)


def test_the_marks_of_nodes_become_marks_of_their_box() -> None:
    """Times add up; a move inside a box is no visit of the box."""
    _, box, single, _ = phase_picture(GRAPH, MARKS, "").shapes

    assert box.words == ("a loop", "2x", "3.0 s")
    assert box.details[1:] == ("2 lines inside: 5x", "b: GL2", "a calls [1]")
    assert (box.tone, box.is_shaded) == ("alarm", False)
    assert (single.tone, single.is_shaded) == ("weak", True)


def test_boxes_are_drawn_in_every_notation() -> None:
    names = [f"step_{number}" for number in range(7)]
    rows = {name: [after] for name, after in zip(names, [*names[1:], "step_0"], strict=True)}
    graph = build({"first": ["step_0"], **rows, "step_6": ["step_0", "END"]}, {"step_0": "gate"})
    drawn = picture(graph, level="phase")

    assert drawn.shapes[1].details[:3] == (
        "step_0, step_1, step_2,",
        "step_3, step_4, step_5,",
        "step_6",
    )
    assert "step_6\\l7 lines inside\\l" in dot_of(drawn)
    assert '["step_0 loop<br/>step_0#44; step_1' in mermaid_of(drawn)
    assert "┊   7 lines inside" in text_of(drawn)
    assert '◌ "step_0 loop"  (loop)' in text_of(drawn)
