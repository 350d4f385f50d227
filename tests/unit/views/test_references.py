"""Large graphs: what leads far says where, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from graphloop.graph import Graph
from graphloop.views.dot import dot, dot_of
from graphloop.views.marks import Tone
from graphloop.views.picture import Inner, Picture, Shape, Stroke, Word, picture
from graphloop.views.references import FAR, LONG, has_references, with_references
from graphloop.views.render import save
from graphloop.views.text import text
from tests.graphs import build


def crossed(nodes: int, *, straight: bool) -> Graph[None]:
    """Return nodes with a second line each to anywhere; the first ones are a path, or not."""
    rng = random.Random(1)  # noqa: S311 - a graph like any other, and always the same.
    names = [f"n{number}" for number in range(nodes)]
    rows = {
        one: [after, rng.choice(names)]
        for one, after in zip(names, [*names[1:], "END"], strict=True)
    }
    if not straight:
        rows = {one: rng.sample(row, 2) for one, row in rows.items()}
    return build(rows)


def lines(drawn: Picture) -> list[tuple[str, str]]:
    """Return the lines of a picture by the words of its shapes, wherever those stand."""
    words = {one.id: one.words[0].removeprefix("to ") for one in drawn.shapes}
    return [(words[one.source], words[one.target]) for one in drawn.strokes]


def test_a_small_graph_is_drawn_as_it_is() -> None:
    """Pictures in reviews must not change for what is asked of larger ones."""
    drawn = picture(crossed(30, straight=True))

    assert drawn is with_references(drawn)
    assert "goes on at" not in dot_of(drawn)


@pytest.mark.parametrize("straight", [True, False])
def test_no_line_is_lost_in_a_large_graph(*, straight: bool) -> None:
    """Each leads to a node, or to its name; what stood there stays, and END stays last."""
    drawn = picture(crossed(300, straight=straight))
    shown = with_references(drawn)

    assert lines(drawn) == lines(shown)
    assert len({one.id for one in shown.shapes}) == len(shown.shapes)
    assert [one for one in shown.shapes if one in drawn.shapes] == [*drawn.shapes]
    assert shown.shapes[-1] == drawn.shapes[-1]
    names = {one.id for one in shown.shapes if one.is_reference}
    assert 150 < len(names) < 320
    assert not names & {one.source for one in shown.strokes}
    assert all(one.role != "main" for one in shown.strokes if one.target in names)


def test_a_line_that_leads_near_is_drawn() -> None:
    """A loop is seen as a loop, in however large a graph."""
    rows = {f"n{at}": [f"n{at + 1}", f"n{max(0, at - FAR)}"] for at in range(200)}
    drawn = picture(build(rows | {"n200": ["END", "n0"]}))
    shown = with_references(drawn)

    assert [("n200", "to n0")] == [
        ("n200", one.words[0]) for one in shown.shapes if one.is_reference
    ]


def test_one_line_through_a_whole_large_graph_is_told_by_name() -> None:
    """A ring of a thousand nodes is laid out in a moment but for the line that closes it."""
    for count, ends in ((LONG, 0), (LONG + 2, 1)):
        rows = {f"n{at}": [f"n{(at + 1) % count}"] for at in range(count)}
        rows[f"n{count - 1}"].append("END")
        shown = with_references(picture(build(rows)))
        assert ends == sum(one.is_reference for one in shown.shapes)


def test_the_legend_says_what_a_name_means() -> None:
    """Also where only a graph in a box is large."""
    large = picture(crossed(300, straight=True))
    around = picture(build({"a": ["END"]}))
    around = Picture(
        around.title, around.start, around.shapes, around.strokes, (Inner("n0", large),)
    )

    assert has_references(around)
    assert "to a name: goes on at the node of that name" in dot_of(around)
    assert "to n" in dot_of(around)


def test_text_needs_no_names_for_what_is_far() -> None:
    """Every row of it says where it leads anyway."""
    assert "to n" not in text(crossed(300, straight=True))


def meshed(boxes: int, tones: Mapping[int, Tone] | None = None) -> Picture:
    """Return boxes of which each leads to each other one, and one to END."""
    places = [f"n{number}" for number in range(boxes)]
    shapes = (*(Shape(one, (one,), "loop") for one in places), Shape("last", ("END",), None))
    ways = [(one, other) for one in places for other in places if one != other] + [("n3", "last")]
    strokes = [
        Stroke(*way, (Word("go"), Word("no", "(2 nodes)")), "main", (tones or {}).get(number))
        for number, way in enumerate(ways)
    ]
    return Picture("boxes", "n0", shapes, tuple(strokes))


def test_where_each_leads_to_each_there_is_one_way_through_and_a_list_beside_each() -> None:
    """As the boxes of a large graph do: a hundred lines between ten shapes cannot be followed."""
    drawn = meshed(10)
    shown = with_references(drawn)
    lists = {one.id: one.words for one in shown.shapes if one.is_reference}
    whole = [(one.source, one.target) for one in shown.strokes if one.target not in lists]

    column = ["n0", "n1", "n2", *(f"n{at}" for at in range(4, 10)), "n3", "last"]
    assert set(pairwise(column)) == set(whole)
    assert 10 == len(whole)
    assert 91 == len(whole) + sum(map(len, lists.values()))
    beside = {one.source: lists[one.target] for one in shown.strokes if one.target in lists}
    assert "to n2: go, no (2 nodes)" == beside["n0"][0]
    assert 8 == len(beside["n0"])
    assert drawn.shapes[-1] == shown.shapes[-1]


def test_what_is_laid_over_a_line_is_seen_in_a_list_of_its_own() -> None:
    """A witness, or what was never taken, is not lost among the others."""
    shown = with_references(meshed(10, {2: "strong", 3: "strong"}))
    (own,) = [one for one in shown.strokes if one.tone == "strong"]
    (listed,) = [one.words for one in shown.shapes if one.id == own.target]

    assert ("to n3: go, no (2 nodes)", "to n4: go, no (2 nodes)") == listed
    assert f"{{rank=same; n0; {own.target}}}" in dot_of(shown)


def test_a_few_shapes_that_all_lead_to_each_other_are_drawn_as_they_are() -> None:
    """Seven agents that hand over to each other are no crowd."""
    drawn = meshed(7)

    assert drawn is with_references(drawn)


def test_a_main_path_that_comes_back_has_an_end() -> None:
    """Boxes stand for several nodes: the main path may pass one twice."""
    shapes = (Shape("a", ("a",), "loop"), Shape("b", ("b",), "loop"), Shape("last", ("END",), None))
    ways = (("a", "b"), ("b", "a"), ("b", "last"))
    strokes = tuple([Stroke(one, other, (Word("go"),), "main") for one, other in ways])
    drawn = Picture("boxes", "a", shapes, strokes)

    assert drawn is with_references(drawn)


@pytest.mark.parametrize("straight", [True, False])
def test_a_graph_of_hundreds_of_nodes_is_drawn(tmp_path: Path, *, straight: bool) -> None:
    """It would not be within a minute, with its lines across the page."""
    save(crossed(300, straight=straight), tmp_path / "large.svg")

    assert b"to n1" in (tmp_path / "large.svg").read_bytes()


def test_the_layout_of_thousands_of_lines_is_bounded() -> None:
    """A straight main path is worth seconds, not minutes."""
    rows = {f"n{at}": [f"n{at + 1}", "END"] for at in range(600)} | {"n600": ["END"]}

    assert "nslimit" in dot(build(rows))
    assert "nslimit" not in dot(crossed(300, straight=True))
