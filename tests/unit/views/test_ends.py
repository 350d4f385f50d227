"""Many ways to one END: drawn where they are taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop.graph import Graph
from graphloop.views.dot import dot
from graphloop.views.ends import ENDS_MAX, with_ends
from graphloop.views.marks import Marks
from graphloop.views.mermaid import mermaid
from graphloop.views.picture import Picture, picture
from graphloop.views.text import text
from tests.graphs import build


def row(nodes: int) -> Graph[None]:
    """Return nodes in a row that all can end the run."""
    names = [f"n{number}" for number in range(nodes)]
    after = [*names[1:], "END"]
    return build({one: [other, "END"] for one, other in zip(names, after, strict=True)})


def lines(drawn: Picture) -> list[tuple[str, str]]:
    """Return the lines of a picture by the words of its shapes."""
    words = {shape.id: shape.words[0] for shape in drawn.shapes}
    return [(words[one.source], words[one.target]) for one in drawn.strokes]


def test_a_few_lines_lead_to_one_end() -> None:
    """Where a run ends is one place."""
    drawn = picture(row(ENDS_MAX + 1))

    assert drawn is with_ends(drawn)


def test_many_lines_lead_to_an_end_each_and_none_is_lost() -> None:
    """What is known of END stands at the one where the main path ends."""
    drawn = picture(row(ENDS_MAX + 2), Marks(nodes={"END": "2x"}))
    spread = with_ends(drawn)
    ends = [shape for shape in spread.shapes if shape.kind is None]

    assert lines(drawn) == lines(spread)
    assert ENDS_MAX + 2 == len(ends) == len({shape.id for shape in ends})
    assert ("END", "2x") == ends[-1].words
    assert {("END",)} == {shape.words for shape in ends[:-1]}
    assert ends[-1].id == next(one.target for one in spread.strokes if one.source == "n13")


@pytest.mark.parametrize("draw", [dot, mermaid])
def test_what_is_laid_out_is_drawn_with_many_ends(draw: Callable[[Graph[None]], str]) -> None:
    """A text for a terminal has no lines that could cross."""
    assert "last_3" in draw(row(20))
    assert 1 == text(row(20)).count("◉ END")
