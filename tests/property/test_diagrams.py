"""What a diagram shows is what the engine executes: drawn, and read back, nothing is different."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.graph import END, Edge, Edges, Graph
from graphloop.views.dot import dot
from graphloop.views.drawing import lines, visible
from graphloop.views.mermaid import mermaid
from graphloop.views.render import render
from tests.graphs import any_graphs

DOT_LABEL = r'"((?:[^"\\]|\\.)*)"'
DOT_NODE = re.compile(rf"  (n\d+) \[label={DOT_LABEL} shape=")
DOT_LINE = re.compile(rf"  (n\d+) -> (\w+) \[label={DOT_LABEL}.*\]")
MERMAID_NODE = re.compile(r'    (n\d+)[\[({/\\>]+"([^"]*)"[\])}/\\]+:::is_\w+')
MERMAID_LINE = re.compile(r'    (n\d+) (?:==>|-->|-\.->)\|"([^"]*)"\| (\w+)')


def table(graph: Graph[None]) -> Counter[Edge]:
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


@given(any_graphs())
def test_a_dot_diagram_read_back_is_the_executable_table(graph: Graph[None]) -> None:
    """A reviewer approves the picture; the engine must not run anything else."""
    text = dot(graph).split("\n")

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
def test_a_mermaid_diagram_read_back_is_the_executable_table(graph: Graph[None]) -> None:
    """A reviewer approves the picture; the engine must not run anything else."""
    text = mermaid(graph).split("\n")

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


@settings(max_examples=15)
@given(any_graphs())
def test_a_rendered_diagram_holds_every_line_and_every_name(graph: Graph[None]) -> None:
    """The program that draws must read the text as it was meant, whatever the names hold."""
    svg = ElementTree.fromstring(render(dot(graph), "svg"))  # noqa: S314 - we made it ourselves
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
def test_every_pair_of_nodes_is_joined_by_one_line_at_most(graph: Graph[None]) -> None:
    """Nine outcomes drawn as nine lines are a knot; nothing may be lost by joining them."""
    drawn = lines(graph)
    pairs = Counter((line.source, line.target) for line in drawn)

    assert set(pairs.values()) == {1}
    assert len(graph.edges) == sum(len(line.outcomes) for line in drawn)


@given(any_graphs())
def test_the_same_table_gives_the_same_text(graph: Graph[None]) -> None:
    """A diagram in a repository must change only when the table does."""
    edges: Edges[None] = {
        node: {
            outcome: END if target == "END" else graph.nodes[target]
            for outcome, target in graph.table[name].items()
        }
        for name, node in graph.nodes.items()
    }
    again = Graph(graph.name, graph.nodes[graph.start], edges)

    assert dot(graph) == dot(again)
    assert mermaid(graph) == mermaid(again)


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
