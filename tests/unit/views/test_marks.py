"""Marks: what is laid over a diagram, in both notations."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from graphloop.views.dot import dot
from graphloop.views.marks import TONES, Marks
from graphloop.views.mermaid import mermaid
from graphloop.views.render import render, save
from tests.strategies import loop

GRAPH = loop()
MARKS = Marks(
    title="3 runs",
    nodes={"gate": 'seen "twice"', "END": "3", "nowhere": "?"},
    ways={("gate", "settled"): "2", ("nowhere", "x"): "?"},
    node_tones={"gate": "alarm", "execute": "strong", "compact": "weak"},
    way_tones={("gate", "settled"): "strong", ("compact", "cannot"): "alarm"},
)


def test_a_diagram_without_marks_is_what_it_always_was() -> None:
    """Byte for byte: pictures in repositories must not change by themselves."""
    assert dot(GRAPH) == dot(GRAPH, Marks())
    assert mermaid(GRAPH) == mermaid(GRAPH, Marks())


@pytest.mark.parametrize("draw", [dot, mermaid])
def test_words_stand_behind_names_in_both_notations(draw: object) -> None:
    """Escaped like everything that is not ours."""
    text = dot(GRAPH, MARKS) if draw is dot else mermaid(GRAPH, MARKS)

    assert "settled 2" in text
    assert "3 runs" in text.replace("#40;", "(")
    assert '"twice"' not in text
    assert "nowhere" not in text
    assert text.count(TONES["alarm"]) >= 2
    assert TONES["strong"] in text
    assert TONES["weak"] in text


def test_a_line_has_the_strongest_tone_of_its_outcomes_and_is_weak_only_if_all_are() -> None:
    """A line that was taken once is not one that nobody has taken."""
    marks = Marks(way_tones={("a", "x"): "weak", ("a", "y"): "weak", ("a", "z"): "alarm"})

    assert "weak" == marks.tone("a", ("x", "y"))
    assert "alarm" == marks.tone("a", ("x", "z", "y"))
    assert marks.tone("a", ("x", "other")) is None
    assert marks.tone("b", ("x",)) is None
    assert marks.tone("a", ()) is None


def test_only_the_drawing_changes_and_not_the_graph() -> None:
    """The same nodes and lines, in the same order: marks never hide anything."""
    plain, marked = dot(GRAPH).splitlines(), dot(GRAPH, MARKS).splitlines()

    assert len(plain) == len(marked)
    assert [one.split("[")[0] for one in plain[5:]] == [one.split("[")[0] for one in marked[5:]]


def test_marks_can_be_drawn(tmp_path: Path) -> None:
    """By the program that is installed."""
    file = tmp_path / "marked.mmd"
    save(GRAPH, file, MARKS)

    assert mermaid(GRAPH, MARKS) == file.read_text(encoding="utf-8")
    picture = ElementTree.fromstring(render(dot(GRAPH, MARKS), "svg"))  # noqa: S314 - our own
    assert "settled 2" in " ".join(picture.itertext())
