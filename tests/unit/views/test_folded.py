"""Folded pictures: several nodes in one box, and nothing lost."""

from __future__ import annotations

from graphloop.views.dot import dot_of
from graphloop.views.folded import Box, folded_picture, inside
from graphloop.views.marks import Marks
from graphloop.views.mermaid import mermaid_of
from graphloop.views.picture import Shape, Word
from graphloop.views.tally import Tally
from graphloop.views.text import text_of
from tests.graphs import build

GRAPH = build({"a": ["b", "END"], "b": ["a", "c"], "c": ["END", "END"]}, {"a": "gate"})
BOXES = (Box("a loop", "loop", ("a", "b")), Box("c", "pure", ("c",)))
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


def shapes(marks: Marks) -> tuple[Shape, ...]:
    return folded_picture(GRAPH, BOXES, marks, "")[0].shapes


def test_a_box_says_what_it_holds_and_how_many_lines() -> None:
    """What is folded is told, not hidden."""
    box, single, end = shapes(Marks())

    assert (("a loop",), ("a, b", "2 lines inside")) == (box.words, box.details)
    assert (("c",), ()) == (single.words, single.details)
    assert end.kind is None
    assert [2, 0] == [len(one) for one in inside(GRAPH, BOXES)]


def test_what_was_counted_adds_up() -> None:
    """A box is come to from outside; what moves inside it is told apart; time is all of theirs."""
    box, *_ = shapes(MARKS)

    assert ("a loop", "2x", "3.0 s") == box.words
    assert "2 lines inside: 5x" in box.details


def test_what_is_known_of_a_node_or_of_a_line_inside_is_told_in_the_box() -> None:
    """A witness that goes through a box can still be followed."""
    box, single, _ = shapes(MARKS)

    assert ("b: GL2", "a calls [1]") == box.details[-2:]
    assert "alarm" == box.tone
    assert "weak" == single.tone
    assert not box.is_shaded
    assert single.is_shaded


def test_outcomes_of_one_name_between_two_boxes_are_one_word() -> None:
    """With as many nodes as leave by it, and all of their counts."""
    graph = build({"a": ["c", "b"], "b": ["c"], "c": ["END"]})
    marks = Marks(passages={("a", "calls"): Tally((2,)), ("b", "calls"): Tally((1,))})
    drawn, ids = folded_picture(graph, (Box("ab", "pure", ("a", "b")), BOXES[1]), marks, "p_")

    assert {"a": "p_n0", "b": "p_n0", "c": "p_n1", "END": "p_last"} == ids
    assert (Word("calls", "(2 nodes) 3x"),) == drawn.strokes[0].words
    assert "main" == drawn.strokes[0].role


def test_a_node_that_leads_to_itself_is_a_box() -> None:
    """Its line would be nowhere, else."""
    drawn, _ = folded_picture(build({"a": ["a", "END"]}), (Box("a", "pure", ("a",)),), MARKS, "")

    assert "1 line inside: 3x" in drawn.shapes[0].details


def test_boxes_are_drawn_in_every_notation() -> None:
    """Long lists of nodes take several rows."""
    names = [f"step_{number}" for number in range(7)]
    graph = build({one: [other] for one, other in zip(names, [*names[1:], "END"], strict=True)})
    drawn, _ = folded_picture(graph, (Box("all", "loop", tuple(names)),), Marks(), "")

    assert ("step_0, step_1, step_2,", "step_3, step_4, step_5,", "step_6") == (
        drawn.shapes[0].details[:3]
    )
    assert "step_6\\l6 lines inside\\l" in dot_of(drawn)
    assert '["all<br/>step_0#44; step_1' in mermaid_of(drawn)
    assert "┊   6 lines inside" in text_of(drawn)
    assert "◌ all  (loop)" in text_of(drawn)
