"""Every level draws all lines of the table, and its counts add up."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from graphloop.graph import Edge, NodeGraph
from graphloop.views.dot import dot_of
from graphloop.views.drawing import visible
from graphloop.views.levels import LEVELS, Level, picture
from graphloop.views.marks import Marks, Tally, Tone, Way
from graphloop.views.mermaid import mermaid_of
from graphloop.views.phases import inside, phases
from graphloop.views.pictures import Picture, with_badges
from graphloop.views.text import text_of
from graphloop.views.theme import DARK
from tests.graphs import any_graphs, build

SEVERAL = re.compile(r"\((\d+) nodes\)")
TIMES = re.compile(r"(?:^|[ :])([\d,]+)x(?: \([\d+,]+\))?")
INSIDE = re.compile(r"(\d+) lines? inside(?:: ([\d,]+)x)?(?: \([\d+,]+\))?")
DOT_LINE = re.compile(r"  (n\d+) -> (n\d+|last) \[")
MERMAID_LINE = re.compile(r'    (n\d+) (?:==>|-->|-\.->)\|".*"\| (\w+)')


def drawn_lines(drawn: Picture) -> Counter[tuple[str, str, str]]:
    """Return the lines between boxes, each with the number of table rows that it stands for."""
    found: Counter[tuple[str, str, str]] = Counter()
    for stroke in drawn.strokes:
        for word in stroke.words:
            several = SEVERAL.match(word.more)
            count = int(several[1]) if several else 1
            found[stroke.source, word.outcome, stroke.target] += count
    return found


def taken(more: str) -> int:
    """Return the count in a text such as `3x (2+1)`."""
    said = TIMES.search(SEVERAL.sub("", more))
    return int(said[1].replace(",", "")) if said else 0


def counted_inside(drawn: Picture) -> tuple[int, int]:
    """Return the number of lines inside boxes, and how often runs took them."""
    lines = passages = 0
    for shape in drawn.shapes:
        # A node may have any name, but the names of a box come before its count.
        for said in [match for match in map(INSIDE.fullmatch, shape.details) if match][:1]:
            lines += int(said[1])
            passages += int((said[2] or "0").replace(",", ""))
    return lines, passages


@given(any_graphs())
def test_each_line_is_between_two_boxes_or_inside_one(graph: NodeGraph[None]) -> None:
    boxes = phases(graph)
    drawn = picture(graph, level="phase")
    ids = {
        name: shape.id
        for shape, box in zip(drawn.shapes, boxes, strict=False)
        for name in box.nodes
    }
    ids["END"] = "last"
    within: Counter[Edge] = Counter(edge for edges in inside(graph, boxes) for edge in edges)
    between = Counter(edge for edge in graph.edges if edge not in within)

    assert {1} >= set(within.values())
    assert Counter((ids[edge.source], edge.outcome, ids[edge.target]) for edge in between) == (
        drawn_lines(drawn)
    )
    assert len(graph.edges) == drawn_lines(drawn).total() + within.total()


@given(any_graphs())
def test_every_notation_has_the_lines_of_the_picture(graph: NodeGraph[None]) -> None:
    for level in LEVELS:
        drawn = picture(graph, level=level)
        pairs = {(line.source, line.target) for line in with_badges(drawn).strokes}
        dotted = map(DOT_LINE.match, dot_of(drawn, DARK).split("\n"))
        flow = map(MERMAID_LINE.fullmatch, mermaid_of(drawn, DARK).split("\n"))

        assert pairs == {(match[1], match[2]) for match in dotted if match}
        assert pairs == {(match[1], match[2]) for match in flow if match}
        assert text_of(drawn).count("▶ ") >= len(drawn.strokes)


@st.composite
def walked(draw: st.DrawFn) -> tuple[NodeGraph[None], Marks, int]:
    """Draw a graph, the counts of random walks on it, and the number of their steps."""
    graph = draw(any_graphs(st.sampled_from("abcdefgh")))
    targets = {(edge.source, edge.outcome): edge.target for edge in graph.edges}
    visits: Counter[str] = Counter()
    ways: Counter[Way] = Counter()
    for _ in range(draw(st.integers(1, 3))):
        place = graph.start
        visits[place] += 1
        for number in draw(st.lists(st.integers(0, 20), max_size=20)):
            if place == "END":
                break
            row = [way for way in targets if way[0] == place]
            way = row[number % len(row)]
            ways[way] += 1
            place = targets[way]
            visits[place] += 1
    marks = Marks(
        visits={name: Tally((count,), tokens=count) for name, count in visits.items()},
        passages={way: Tally((count,)) for way, count in ways.items()},
    )
    return graph, marks, ways.total()


@given(walked())
def test_counts_add_up_at_every_level(found: tuple[NodeGraph[None], Marks, int]) -> None:
    graph, marks, steps = found
    tokens = sum(tally.tokens for tally in marks.visits.values())
    for level in LEVELS:
        drawn = picture(graph, marks, level)
        between = sum(taken(word.more) for line in drawn.strokes for word in line.words)
        _, within = counted_inside(drawn)
        assert steps == between + within
        words = [line for shape in drawn.shapes for line in shape.words if line.endswith(" tokens")]
        assert tokens == sum(int(line.split()[0].replace(",", "")) for line in words)


@given(walked())
def test_a_box_is_visited_as_often_as_lines_lead_to_it(
    found: tuple[NodeGraph[None], Marks, int],
) -> None:
    """The box of the start is entered once more for each run."""
    graph, marks, _ = found
    begun = marks.visits[graph.start].total - sum(
        marks.passages[edge.source, edge.outcome].total
        for edge in graph.edges
        if edge.target == graph.start and (edge.source, edge.outcome) in marks.passages
    )
    drawn = picture(graph, marks, "phase")
    for shape in drawn.shapes:
        into = sum(
            taken(word.more)
            for stroke in drawn.strokes
            if stroke.target == shape.id
            for word in stroke.words
        )
        into += begun if shape.id == drawn.start else 0
        assert into == taken(" ".join(shape.words[1:2]))


@given(any_graphs(), st.data())
def test_marks_hide_and_add_no_line_at_any_level(
    graph: NodeGraph[None], data: st.DataObject
) -> None:
    level: Level = data.draw(st.sampled_from(LEVELS))
    names = st.sampled_from([*graph.nodes, "END"])
    ways = st.sampled_from([(edge.source, edge.outcome) for edge in graph.edges])
    tones: st.SearchStrategy[Tone] = st.sampled_from(get_args(Tone))
    words = st.text("xyz", min_size=1, max_size=5)
    marks = Marks(
        nodes=data.draw(st.dictionaries(names, words)),
        ways=data.draw(st.dictionaries(ways, words)),
        way_tones=data.draw(st.dictionaries(ways, tones)),
        shaded=data.draw(st.frozensets(names)),
    )
    plain, marked = picture(graph, level=level), picture(graph, marks, level)

    assert drawn_lines(plain) == drawn_lines(marked)
    # The words of a mark are beside its line, or in the box that contains the line.
    text = " ".join(
        [word.more for line in marked.strokes for word in line.words]
        + [line for shape in marked.shapes for line in shape.details]
    )
    assert all(word in text for word in marks.ways.values())


@st.composite
def grown(draw: st.DrawFn) -> tuple[NodeGraph[None], NodeGraph[None], str]:
    """Draw a graph, and the same graph with one more node in its table."""
    rows = draw(
        st.dictionaries(
            st.sampled_from("abcdefgh"),
            st.lists(st.sampled_from("abcdefgh"), min_size=1),
            min_size=1,
        )
    )
    known = {
        name: [target if target in rows else "END" for target in row][:12]
        for name, row in rows.items()
    }
    where = draw(st.integers(1, len(known)))
    items = list(known.items())
    items.insert(where, ("new", ["END"]))
    return build(known), build(dict(items)), "new"


def in_order(drawn: Picture, text: str) -> list[str]:
    """Return the names of nodes in the order of a text."""
    names = {shape.id: shape.words[0] for shape in drawn.shapes}
    stated = re.findall(r"^ +(n\d+)(?: \[label|\[|\(|\{|>)", text, re.MULTILINE)
    return [names[shape_id] for shape_id in stated]


@given(grown())
def test_a_new_node_moves_no_other_node(
    found: tuple[NodeGraph[None], NodeGraph[None], str],
) -> None:
    """So two versions of a picture can be compared by eye."""
    before, after, new = found
    for level in ("node", "detail"):
        old, now = picture(before, level=level), picture(after, level=level)
        for written in (dot_of, mermaid_of):
            assert in_order(old, written(old)) == [
                name for name in in_order(now, written(now)) if name != new
            ]
        ends = {shape.id: shape.words[0] for shape in old.shapes}
        later = {shape.id: shape.words[0] for shape in now.shapes}
        lines = [(ends[line.source], ends[line.target]) for line in old.strokes]
        assert lines == [
            (later[line.source], later[line.target])
            for line in now.strokes
            if new not in (later[line.source], later[line.target])
        ]


@given(any_graphs())
def test_no_name_of_a_box_looks_like_a_line(graph: NodeGraph[None]) -> None:
    """No name of a node looks like a line of the table."""
    for line in text_of(picture(graph, level="phase")).split("\n"):
        assert line == visible(line)
        if line[:1] in {"├", "└"}:
            assert re.fullmatch(r"[├└][━─╌].[━─╌] .* [━─╌]+▶ .* [↻↓↑]", line)
