"""What a diagram shows is what the engine executes: drawn, and read back, nothing is different."""

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
    """Return the executable table in visible words; counted, for two words may look alike."""
    return Counter(
        Edge(visible(edge.source), visible(edge.outcome), visible(edge.target))
        for edge in graph.edges
    )


def dot_words(label: str) -> list[str]:
    """Read a label as Graphviz does: `\\n` ends a line, and any other sign escaped is itself."""
    signs = re.findall(r"\\.|[^\\]", label)
    text = "".join("\n" if sign == "\\n" else sign[-1] for sign in signs)
    return [unescape(line) for line in text.split("\n")]


def mermaid_words(label: str) -> list[str]:
    """Read a label as Mermaid does: `#35;` is a sign by its number, `<br/>` ends a line."""
    return [
        re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), line)
        for line in label.split("<br/>")
    ]


def text_table(shown: str) -> Counter[Edge]:
    """Read a text for terminals: blocks of nodes, rows of outcomes, the last with the target."""
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
    """Return which nodes are joined in a text for terminals."""
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
    return [unquoted(one[1]) for one in TEXT_WORD.finditer(row)]


def unquoted(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word


@given(any_graphs())
def test_a_dot_diagram_read_back_is_the_executable_table(graph: NodeGraph[None]) -> None:
    """A reviewer approves the picture; the engine must not run anything else."""
    text = dot_of(picture(graph)).split("\n")

    nodes = [match for one in text if (match := DOT_NODE.fullmatch(one[: one.find(" shape=") + 7]))]
    names = {node[1]: dot_words(node[2])[0] for node in nodes} | {"last": "END"}
    found = Counter(
        Edge(names[line[1]], outcome[2:-2], names[line[2]])
        for line in map(DOT_LINE.fullmatch, text)
        if line
        for outcome in dot_words(line[3])
    )

    assert len(graph.nodes) == len(nodes)
    assert table(graph) == found


@given(any_graphs())
def test_a_mermaid_diagram_read_back_is_the_executable_table(graph: NodeGraph[None]) -> None:
    """A reviewer approves the picture; the engine must not run anything else."""
    text = mermaid_of(picture(graph)).split("\n")

    nodes = [match for match in map(MERMAID_NODE.fullmatch, text) if match]
    names = {node[1]: mermaid_words(node[2])[0] for node in nodes} | {"last": "END"}
    found = Counter(
        Edge(names[line[1]], outcome, names[line[3]])
        for line in map(MERMAID_LINE.fullmatch, text)
        if line
        for outcome in mermaid_words(line[2])
    )

    assert len(graph.nodes) == len(nodes)
    assert table(graph) == found


@st.composite
def marked_graphs(draw: st.DrawFn) -> tuple[NodeGraph[None], Marks]:
    """Draw a graph, and marks for it whose words and tones are anything."""
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
def test_an_overlay_adds_no_line_and_hides_none(drawn: tuple[NodeGraph[None], Marks]) -> None:
    """Whatever is laid over a diagram, in any theme, and whatever it says."""
    graph, marks = drawn
    names = {f"n{number}": name for number, name in enumerate(graph.nodes)} | {"last": "END"}
    expected = Counter((line.source, line.target) for line in lines(graph))

    dotted = [DOT_LINE.fullmatch(one) for one in dot_of(picture(graph, marks), DARK).split("\n")]
    assert expected == Counter((names[one[1]], names[one[2]]) for one in dotted if one)
    flow = [MERMAID_LINE.fullmatch(one) for one in mermaid_of(picture(graph, marks)).split("\n")]
    assert expected == Counter((names[one[1]], names[one[3]]) for one in flow if one)


@given(any_graphs())
def test_a_text_read_back_is_the_executable_table(graph: NodeGraph[None]) -> None:
    """On a terminal, too: no name can draw a line, or look like another."""
    assert table(graph) == text_table(text_of(picture(graph)))


@given(marked_graphs())
def test_a_text_with_an_overlay_has_the_same_lines(drawn: tuple[NodeGraph[None], Marks]) -> None:
    """However hostile what is laid over it."""
    graph, marks = drawn
    found = text_pairs(text_of(picture(graph, marks)))

    assert {(edge.source, edge.target) for edge in table(graph)} == found


@settings(max_examples=15)
@given(any_graphs())
def test_a_rendered_diagram_holds_every_line_and_every_name(graph: NodeGraph[None]) -> None:
    """The program that draws must read the text as it was meant, whatever the names hold."""
    svg = ElementTree.fromstring(render(dot_of(picture(graph)), "svg"))  # noqa: S314 - we made it ourselves
    titles = Counter(
        # A line that starts or ends at a side of its nodes says so in its title.
        (title.text or "").replace(":e", "").replace(":w", "")
        for title in svg.iter("{http://www.w3.org/2000/svg}title")
    )
    texts = {
        "".join(text.itertext()).replace("\xa0", " ").strip()
        for text in svg.iter("{http://www.w3.org/2000/svg}text")
    }

    ids = {name: f"n{number}" for number, name in enumerate(graph.nodes)} | {"END": "last"}
    for line in lines(graph):
        assert titles[f"{ids[line.source]}->{ids[line.target]}"] == 1
    for name in (graph.name, *graph.nodes):
        assert visible(name).replace("\xa0", " ").strip() in texts | {""}


@given(any_graphs())
def test_every_pair_of_nodes_is_joined_by_one_line_at_most(graph: NodeGraph[None]) -> None:
    """Nine outcomes drawn as nine lines are a knot; nothing may be lost by joining them."""
    drawn = lines(graph)
    pairs = Counter((line.source, line.target) for line in drawn)

    assert set(pairs.values()) == {1}
    assert len(graph.edges) == sum(len(line.outcomes) for line in drawn)


@given(any_graphs())
def test_the_same_table_gives_the_same_text(graph: NodeGraph[None]) -> None:
    """A diagram in a repository must change only when the table does."""
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
def test_words_without_control_characters_are_drawn_as_they_are(text: str) -> None:
    """Names are the user's own; only what cannot be seen is changed."""
    assert text == visible(text)


@given(st.text(st.characters()))
def test_visible_words_stay_on_one_line_and_can_be_written(text: str) -> None:
    """A name that breaks a line, or a file's encoding, would break the diagram."""
    shown = visible(text)

    assert len(shown.splitlines()) <= 1
    assert shown == shown.encode().decode()
    assert len(text) == len(shown)
