"""A diagram shows the table that runs: every notation can be read back as the table."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from typing import get_args
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.graph import END, Edge, Edges, NodeGraph
from graphloop.views.dot import dot_of
from graphloop.views.drawing import lines, visible
from graphloop.views.levels import picture
from graphloop.views.marks import Marks, Tone
from graphloop.views.mermaid import mermaid_of
from graphloop.views.pictures import with_badges
from graphloop.views.render import render
from graphloop.views.text import text_of
from graphloop.views.theme import DARK
from tests.graphs import any_graphs

DOT_LABEL = r'"((?:[^"\\]|\\.)*)"'
DOT_NODE = re.compile(rf"  (n\d+) \[label={DOT_LABEL} shape=")
DOT_LINE = re.compile(rf"  (n\d+) -> (\w+) \[label={DOT_LABEL}.*\]")
NAME = r'("(?:[^"\\]|\\.)*"|[\w.:/+-]+)'
TEXT_NODE = re.compile(rf"(?:[·*▶+!-] )?[▱■◇▣▤△◆◐▥►○◉] {NAME}(?:  |$)")
TEXT_MORE = re.compile(r"│    (.*),")
TEXT_LINE = re.compile(rf"[├└][━─╌].[━─╌] (.*) [━─╌]+▶ {NAME} [↻↓↑]")
TEXT_WORD = re.compile(rf"{NAME}(?:, |$)")
HOSTILE = ("a ──▶ b ↓", '"]; x -> y', "└━━━ go ━▶ END ↓", "\n", '"|x', "3x (1+2)")
MERMAID_NODE = re.compile(r'    (n\d+)[\[({/\\>]+"([^"]*)"[\])}/\\]+:::is_\w+')
MERMAID_LINE = re.compile(r'    (n\d+) (?:==>|-->|-\.->)\|"([^"]*)"\| (\w+)')


def table(graph: NodeGraph[None]) -> Counter[Edge]:
    """Return the counted rows of the table in visible words; two rows may look alike."""
    return Counter(
        Edge(visible(edge.source), visible(edge.outcome), visible(edge.target))
        for edge in graph.edges
    )


def dot_words(label: str) -> list[str]:
    """Read a label as Graphviz does: `\\n` ends a line, and other escaped signs are themselves."""
    signs = re.findall(r"\\.|[^\\]", label)
    text = "".join("\n" if sign == "\\n" else sign[-1] for sign in signs)
    return [unescape(line) for line in text.split("\n")]


def mermaid_words(label: str) -> list[str]:
    """Read a label as Mermaid does: `#35;` is a character by its code, `<br/>` ends a line."""
    return [
        re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), line)
        for line in label.split("<br/>")
    ]


def text_table(shown: str) -> Counter[Edge]:
    """Read a text picture: blocks of nodes, with rows of outcomes that end with a target."""
    found: Counter[Edge] = Counter()
    source, outcomes = "", list[str]()
    for line in shown.split("\n")[3:]:
        if head := TEXT_NODE.match(line):
            source, outcomes = unquoted(head[1]), []
        elif more := TEXT_MORE.fullmatch(line):
            outcomes += words_of(more[1])
        elif row := TEXT_LINE.fullmatch(line):
            for outcome in [*outcomes, *words_of(row[1])]:
                found[Edge(source, outcome, unquoted(row[2]))] += 1
            outcomes = []
    return found


def text_pairs(shown: str) -> set[tuple[str, str]]:
    """Return the pairs of nodes that a text picture joins."""
    found: set[tuple[str, str]] = set()
    source = ""
    for line in shown.split("\n")[3:]:
        if head := TEXT_NODE.match(line):
            source = unquoted(head[1])
        elif row := TEXT_LINE.fullmatch(line):
            found.add((source, unquoted(row[2])))
    return found


def words_of(row: str) -> list[str]:
    """Return the outcomes of a row."""
    return [unquoted(match[1]) for match in TEXT_WORD.finditer(row)]


def unquoted(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word


def badges(graph: NodeGraph[None], words: list[list[str]]) -> Counter[Edge]:
    """Return the rows that badges in nodes stand for, by the lines of text of each node."""
    found: Counter[Edge] = Counter()
    ends = {line.source: line.outcomes for line in lines(graph) if line.target == "END"}
    for name, said in zip(graph.nodes, words, strict=True):
        badge = f"{', '.join(map(visible, ends.get(name, ())))} → END"
        if len(said) > 1 and said[-1] == badge:
            found.update(Edge(visible(name), visible(one), "END") for one in ends[name])
    return found


def dot_table(graph: NodeGraph[None]) -> Counter[Edge]:
    """Read a DOT picture: its lines, and the badges of its nodes."""
    text = dot_of(picture(graph)).split("\n")

    nodes = [
        match for line in text if (match := DOT_NODE.fullmatch(line[: line.find(" shape=") + 7]))
    ]
    names = {node[1]: dot_words(node[2])[0] for node in nodes} | {"last": "END"}
    found = Counter(
        Edge(names[line[1]], outcome[2:-2], names[line[2]])
        for line in map(DOT_LINE.fullmatch, text)
        if line
        for outcome in dot_words(line[3])
    ) + badges(graph, [dot_words(node[2]) for node in nodes])
    assert len(graph.nodes) == len(nodes)
    return found


@given(any_graphs())
def test_dot_text_read_back_is_the_table(graph: NodeGraph[None]) -> None:
    assert table(graph) == dot_table(graph)


def mermaid_table(graph: NodeGraph[None]) -> Counter[Edge]:
    """Read a Mermaid picture: its lines, and the badges of its nodes."""
    text = mermaid_of(picture(graph)).split("\n")

    nodes = [match for match in map(MERMAID_NODE.fullmatch, text) if match]
    names = {node[1]: mermaid_words(node[2])[0] for node in nodes} | {"last": "END"}
    found = Counter(
        Edge(names[line[1]], outcome, names[line[3]])
        for line in map(MERMAID_LINE.fullmatch, text)
        if line
        for outcome in mermaid_words(line[2])
    ) + badges(graph, [mermaid_words(node[2]) for node in nodes])
    assert len(graph.nodes) == len(nodes)
    return found


@given(any_graphs())
def test_mermaid_text_read_back_is_the_table(graph: NodeGraph[None]) -> None:
    assert table(graph) == mermaid_table(graph)


@st.composite
def marked_graphs(draw: st.DrawFn) -> tuple[NodeGraph[None], Marks]:
    """Draw a graph and any marks on it."""
    graph = draw(any_graphs())
    names = st.sampled_from([*graph.nodes, "END", "nowhere"])
    ways = st.sampled_from([(edge.source, edge.outcome) for edge in graph.edges])
    tones: st.SearchStrategy[Tone] = st.sampled_from(get_args(Tone))
    words = st.text(min_size=1, max_size=8) | st.sampled_from(HOSTILE)
    return graph, Marks(
        title=draw(words),
        nodes=draw(st.dictionaries(names, words)),
        ways=draw(st.dictionaries(ways, words)),
        node_tones=draw(st.dictionaries(names, tones)),
        way_tones=draw(st.dictionaries(ways, tones)),
        shaded=draw(st.frozensets(names)),
    )


@given(marked_graphs())
def test_marks_add_and_hide_no_line(drawn: tuple[NodeGraph[None], Marks]) -> None:
    graph, marks = drawn
    names = {f"n{number}": name for number, name in enumerate(graph.nodes)} | {"last": "END"}
    strokes = with_badges(picture(graph, marks)).strokes
    expected = Counter((names[stroke.source], names[stroke.target]) for stroke in strokes)
    assert all(
        (line.source, line.target) in expected
        for line in lines(graph)
        if line.target != "END" or marks.tone(line.ways) not in {None, "weak"}
    )

    dotted = [DOT_LINE.fullmatch(line) for line in dot_of(picture(graph, marks), DARK).split("\n")]
    assert expected == Counter((names[match[1]], names[match[2]]) for match in dotted if match)
    flow = [MERMAID_LINE.fullmatch(line) for line in mermaid_of(picture(graph, marks)).split("\n")]
    assert expected == Counter((names[match[1]], names[match[3]]) for match in flow if match)


@given(any_graphs())
def test_a_text_picture_read_back_is_the_table(graph: NodeGraph[None]) -> None:
    """No name can look like a line, or like another name."""
    assert table(graph) == text_table(text_of(picture(graph)))


@given(marked_graphs())
def test_a_text_picture_with_marks_has_the_same_lines(drawn: tuple[NodeGraph[None], Marks]) -> None:
    graph, marks = drawn
    found = text_pairs(text_of(picture(graph, marks)))

    assert {(edge.source, edge.target) for edge in table(graph)} == found


@settings(max_examples=15)
@given(any_graphs())
def test_an_svg_has_every_line_and_every_name(graph: NodeGraph[None]) -> None:
    svg = ElementTree.fromstring(render(dot_of(picture(graph)), "svg"))  # noqa: S314 - we made it ourselves
    titles = Counter(
        # A title has the side of a node at which its line begins or ends.
        (title.text or "").replace(":e", "").replace(":w", "")
        for title in svg.iter("{http://www.w3.org/2000/svg}title")
    )
    texts = {
        "".join(text.itertext()).replace("\xa0", " ").strip()
        for text in svg.iter("{http://www.w3.org/2000/svg}text")
    }

    for stroke in with_badges(picture(graph)).strokes:
        assert titles[f"{stroke.source}->{stroke.target}"] == 1
    for name in (graph.name, *graph.nodes):
        assert visible(name).replace("\xa0", " ").strip() in texts | {""}


@given(any_graphs())
def test_two_nodes_are_joined_by_one_line_at_most(graph: NodeGraph[None]) -> None:
    """No outcome is lost when outcomes are joined to one line."""
    drawn = lines(graph)
    pairs = Counter((line.source, line.target) for line in drawn)

    assert set(pairs.values()) == {1}
    assert len(graph.edges) == sum(len(line.outcomes) for line in drawn)


@given(any_graphs())
def test_the_same_table_gives_the_same_text(graph: NodeGraph[None]) -> None:
    """A diagram in a repository changes only when the table changes."""
    edges: Edges[None] = {
        node: {
            outcome: END if target == "END" else graph.nodes[target]
            for outcome, target in graph.table[name].items()
        }
        for name, node in graph.nodes.items()
    }
    again = NodeGraph(graph.name, graph.nodes[graph.start], edges)

    for write in (dot_of, mermaid_of):
        assert write(picture(graph)) == write(picture(again))


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_printable_names_are_drawn_unchanged(text: str) -> None:
    assert text == visible(text)


@given(st.text(st.characters()))
def test_visible_names_have_one_line_and_can_be_encoded(text: str) -> None:
    shown = visible(text)

    assert len(shown.splitlines()) <= 1
    assert shown == shown.encode().decode()
    assert len(text) == len(shown)
