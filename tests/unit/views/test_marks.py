"""Marks and tallies: their words and tones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop.views.dot import dot_of
from graphloop.views.levels import picture
from graphloop.views.marks import Marks, Tally
from graphloop.views.mermaid import mermaid_of
from graphloop.views.pictures import Picture
from graphloop.views.theme import LIGHT
from tests.strategies import loop

MARKS = Marks(
    title="3 runs",
    nodes={"gate": 'seen "twice"', "END": "3", "nowhere": "?"},
    ways={("gate", "settled"): "2", ("nowhere", "x"): "?"},
    node_tones={"gate": "alarm", "execute": "strong", "compact": "weak"},
    way_tones={("gate", "settled"): "strong", ("compact", "cannot"): "alarm"},
)


@pytest.mark.parametrize("write", [dot_of, mermaid_of])
def test_marks_are_written_escaped(write: Callable[[Picture], str]) -> None:
    text = write(picture(loop(), MARKS))

    assert "settled 2" in text
    assert "3 runs" in text.replace("#40;", "(")
    assert '"twice"' not in text
    assert "nowhere" not in text
    assert text.count(LIGHT.tones["alarm"]) >= 2
    assert LIGHT.tones["strong"] in text
    assert LIGHT.tones["weak"] in text


def test_a_line_has_the_loudest_tone_of_its_outcomes() -> None:
    x, y, z = ("a", "x"), ("a", "y"), ("a", "z")
    marks = Marks(way_tones={x: "weak", y: "weak", z: "alarm"})

    assert marks.tone((x, y)) == "weak"
    assert marks.tone((x, z, y)) == "alarm"
    assert marks.tone((x, ("a", "other"))) is None
    assert marks.tone(()) is None


def test_tallies_are_added_run_by_run() -> None:
    both = Tally((2, 1), 0.5, 10, 0.25) + Tally((1,), 0.25, 5)

    assert both == Tally((3, 1), 0.75, 15, 0.25)
    assert (both + -both).total == 0


@pytest.mark.parametrize(
    ("tally", "count", "spent"),
    [
        (Tally((2, 1)), "3x (2+1)", ""),
        (Tally((1,) * 5), "5x", ""),
        (Tally((1,), 0.005, 1200, 0.25), "1x", "5 ms, 1,200 tokens, $0.2500"),
        (Tally((1,), 1.5), "1x", "1.5 s"),
        (Tally((1,), 180.0), "1x", "3 min"),
        (Tally((1,), 0.0001), "1x", ""),
    ],
)
def test_a_tally_lists_few_runs_and_no_zeros(tally: Tally, count: str, spent: str) -> None:
    assert (tally.count, tally.spent) == (count, spent)
