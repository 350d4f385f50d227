"""Marks: words and tones over a diagram, and tallies that add up before they are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop.views.dot import dot_of
from graphloop.views.marks import Marks, Tally
from graphloop.views.mermaid import mermaid_of
from graphloop.views.pictures import Picture, picture
from graphloop.views.theme import LIGHT
from tests.strategies import loop

GRAPH = loop()
MARKS = Marks(
    title="3 runs",
    nodes={"gate": 'seen "twice"', "END": "3", "nowhere": "?"},
    ways={("gate", "settled"): "2", ("nowhere", "x"): "?"},
    node_tones={"gate": "alarm", "execute": "strong", "compact": "weak"},
    way_tones={("gate", "settled"): "strong", ("compact", "cannot"): "alarm"},
)


@pytest.mark.parametrize("write", [dot_of, mermaid_of])
def test_words_stand_behind_names_in_both_notations(write: Callable[[Picture], str]) -> None:
    """Escaped like every name of the user."""
    text = write(picture(GRAPH, MARKS))

    assert "settled 2" in text
    assert "3 runs" in text.replace("#40;", "(")
    assert '"twice"' not in text
    assert "nowhere" not in text
    assert text.count(LIGHT.tones["alarm"]) >= 2
    assert LIGHT.tones["strong"] in text
    assert LIGHT.tones["weak"] in text


def test_a_line_has_the_strongest_tone_of_its_outcomes_and_is_weak_only_if_all_are() -> None:
    """A line that one run took is not a line that no run took."""
    marks = Marks(way_tones={("a", "x"): "weak", ("a", "y"): "weak", ("a", "z"): "alarm"})

    assert "weak" == marks.tone("a", ("x", "y"))
    assert "alarm" == marks.tone("a", ("x", "z", "y"))
    assert marks.tone("a", ("x", "other")) is None
    assert marks.tone("b", ("x",)) is None
    assert marks.tone("a", ()) is None


def test_tallies_are_added_run_by_run() -> None:
    """Two nodes of one run add up to one number."""
    both = Tally((2, 1), 0.5, 10, 0.25) + Tally((1,), 0.25, 5)

    assert Tally((3, 1), 0.75, 15, 0.25) == both


def test_a_few_runs_are_listed_and_zeros_are_left_out() -> None:
    """A reader sees at once what there was."""
    assert "3x (2+1)" == Tally((2, 1)).count
    assert "5x" == Tally((1,) * 5).count
    assert "5 ms, 1,200 tokens, $0.2500" == Tally((1,), 0.005, 1200, 0.25).spent
    assert "1.5 s" == Tally((1,), 1.5).spent
    assert "3 min" == Tally((1,), 180.0).spent
    assert "" == Tally((1,), 0.0001).spent
