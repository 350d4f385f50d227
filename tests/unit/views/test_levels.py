"""Levels: one graph in boxes, as its table and in detail, in every format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.errors import ConfigError
from graphloop.graph import END, NodeGraph
from graphloop.node_protocol import Kind
from graphloop.nodes import Gate, Limit
from graphloop.outcomes import Answered, Calls, Outcome
from graphloop.policy.policy import allow
from graphloop.spending import Budget
from graphloop.views.dot import dot_of
from graphloop.views.family import Family
from graphloop.views.levels import LEVELS, Level, details, draw, level_picture
from graphloop.views.marks import Marks, Tally
from graphloop.views.mermaid import mermaid_of
from graphloop.views.phases import Box, inside, phase_picture, phases
from graphloop.views.pictures import Word
from graphloop.views.text import text_of
from graphloop.views.theme import DARK
from tests.graphs import Place, agent, any_graphs, build
from tests.unit.views.test_picture import parent

INNER = build({"x": ["y"], "y": ["x", "END"]}, {"x": "gate", "y": "model"}, name="inner")


@dataclass(frozen=True)
class Rejected(Outcome):
    """With something to say."""

    reason: str
    score: int = 0


@dataclass(frozen=True)
class Busy(Place):
    """A node with a full contract."""

    @property
    def contract(self) -> Contract:
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
            children=(
                ChildContract("writer"),
                ChildContract(
                    "critic",
                    writes=frozenset({"note"}),
                    gate_rules=allow("*").rules,
                    budget=Budget(tokens=5),
                    many=True,
                    runs=None,
                ),
            ),
        )


BUSY = Busy("busy", frozenset({Answered, Calls, Rejected}), "graph")


@pytest.mark.parametrize("level", LEVELS)
def test_children_are_drawn_at_the_level_of_their_parent(level: Level) -> None:
    """What is laid over them lies there, and only there."""
    marks = Marks(children={("a", "kid"): Marks(title="2 runs", nodes={"x": "lit here"})})
    drawn = level_picture(Family(parent(INNER)), level, marks, expand=True)
    (inner,) = drawn.inner

    assert "kid (inner, 2 runs)" == inner.picture.title
    assert drawn.shapes[0].id == inner.owner
    assert "lit here" in " ".join(
        (*inner.picture.shapes[0].words, *inner.picture.shapes[0].details)
    )
    assert bool(level == "detail") is bool(level_picture(Family(parent(INNER)), level).inner)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "mmd", "dot", "txt"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_drawn_in_every_format(level: Level, suffix: str, tmp_path: Path) -> None:
    """In either theme."""
    draw(agent(), tmp_path / f"a.{suffix}", level=level, theme=DARK)

    assert (tmp_path / f"a.{suffix}").stat().st_size > 100


def test_a_state_machine_has_one_level(tmp_path: Path) -> None:
    """Another tool executes it: it must hold all nodes."""
    draw(agent(), tmp_path / "a.scxml")

    assert (tmp_path / "a.scxml").exists()
    with pytest.raises(ConfigError, match="found 'phase'"):
        draw(agent(), tmp_path / "a.xstate.json", level="phase")
    with pytest.raises(ConfigError, match="with agents"):
        draw(agent(), tmp_path / "a.scxml", expand=True)


def test_everything_that_a_contract_says_is_in_the_details() -> None:
    """Effects, data, bounds, children, and the fields of outcomes."""
    assert [
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
    ] == list(details(BUSY))


def test_the_rules_of_a_gate_are_in_its_box_and_not_beside_it() -> None:
    """A fact stands in one place."""
    gate, limit = Gate(rules=allow("read").rules), Limit(2)
    graph: NodeGraph[None] = NodeGraph("g", gate, {gate: {...: limit}, limit: {...: END}})
    drawn = level_picture(graph, "detail", Marks(nodes={"gate": "2x"}))

    assert ("gate", "2x") == drawn.shapes[0].words
    assert () == drawn.shapes[0].notes
    assert any("read" in line for line in drawn.shapes[0].details)
    assert "go at most 2x" in drawn.shapes[1].details
    text = dot_of(drawn)
    assert "shape=diamond" not in text.partition("cluster_legend")[0]
    assert "go at most 2x\\l" in text


def boxes_of(graph: NodeGraph[None]) -> list[tuple[str, ...]]:
    return [box.nodes for box in phases(graph)]


@given(any_graphs())
def test_every_node_is_in_one_box_and_boxes_stand_in_the_order_of_the_table(
    graph: NodeGraph[None],
) -> None:
    """So a picture keeps its look when a node is added; no two boxes have one name."""
    boxes = phases(graph)
    places = {name: place for place, name in enumerate(graph.nodes)}
    firsts = [places[box.nodes[0]] for box in boxes]

    assert sorted(graph.nodes) == sorted(name for box in boxes for name in box.nodes)
    assert len(boxes) == len({box.name for box in boxes})
    assert sorted(firsts) == firsts


def test_the_standard_loop_is_seen_by_its_phases() -> None:
    """It is one loop: one box would say nothing."""
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
    """Named by the node at which runs enter."""
    graph = build(
        {"x": ["b"], "a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["c", "END"]},
        {"a": "model", "c": "gate"},
    )

    assert (
        Box("x", "pure", ("x",)),
        Box("b loop", "loop", ("a", "b")),
        Box("c loop", "loop", ("c", "d")),
    ) == phases(graph)


def test_an_agent_and_the_append_of_its_answer_are_one_box() -> None:
    """Unless other nodes lead to that append, too."""
    kinds: dict[str, Kind] = {
        "one": "graph",
        "said": "append",
        "two": "graph",
        "all": "append",
        "x": "pure",
    }
    rows = {"one": ["said"], "said": ["two"], "two": ["all"], "x": ["all"], "all": ["END"]}

    assert [("one", "said"), ("two",), ("x",), ("all",)] == boxes_of(build(rows, kinds))


def test_agents_and_people_in_a_loop_stay_apart() -> None:
    """A debate is two speakers, not one phase."""
    graph = build(
        {"for": ["f"], "f": ["against"], "against": ["g"], "g": ["ask"], "ask": ["for", "END"]},
        {"for": "graph", "f": "append", "against": "graph", "g": "append", "ask": "human"},
    )

    assert [("for", "f"), ("against", "g"), ("ask",)] == boxes_of(graph)


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
    """Folded lines are counted, not hidden; two nodes that leave by one outcome are counted."""
    drawn, ids = phase_picture(GRAPH, Marks(), "p_")
    _, box, single, end = drawn.shapes

    assert (("a loop",), ("a, b", "2 lines inside")) == (box.words, box.details)
    assert (("c",), ()) == (single.words, single.details)
    assert end.kind is None
    assert [0, 2, 0] == [len(lines) for lines in inside(GRAPH, phases(GRAPH))]
    assert {"x": "p_n0", "a": "p_n1", "b": "p_n1", "c": "p_n2", "END": "p_last"} == ids
    (both,) = [line for line in drawn.strokes if (line.source, line.target) == ("p_n1", "p_n2")]
    assert (Word("answered", "(2 nodes)"),) == both.words


def test_counts_and_marks_of_nodes_become_those_of_their_box() -> None:
    """A witness through a box can be followed; time adds up, moves inside are no visits."""
    _, box, single, _ = phase_picture(GRAPH, MARKS, "")[0].shapes

    assert ("a loop", "2x", "3.0 s") == box.words
    assert ("2 lines inside: 5x", "b: GL2", "a calls [1]") == box.details[1:]
    assert "alarm" == box.tone
    assert "weak" == single.tone
    assert not box.is_shaded
    assert single.is_shaded


def test_boxes_are_drawn_in_every_notation() -> None:
    """Long lists of nodes take several rows."""
    names = [f"step_{number}" for number in range(7)]
    rows = {name: [after] for name, after in zip(names, [*names[1:], "step_0"], strict=True)}
    graph = build({"first": ["step_0"], **rows, "step_6": ["step_0", "END"]}, {"step_0": "gate"})
    drawn = level_picture(graph, "phase")

    assert ("step_0, step_1, step_2,", "step_3, step_4, step_5,", "step_6") == (
        drawn.shapes[1].details[:3]
    )
    assert "step_6\\l7 lines inside\\l" in dot_of(drawn)
    assert '["step_0 loop<br/>step_0#44; step_1' in mermaid_of(drawn)
    assert "┊   7 lines inside" in text_of(drawn)
    assert '◌ "step_0 loop"  (loop)' in text_of(drawn)
