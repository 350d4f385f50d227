"""mermaid: a graph as Mermaid text, for pages that draw it themselves (GitHub, GitLab, MkDocs).

A pure function of the graph: the same table gives the same text, byte for byte. Nodes have
generated ids, and every sign that means something to Mermaid stands in labels as its entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar, assert_never

from ..graph import Graph
from ..node import Kind
from .drawing import INK, LINE, PALETTE, Line, kinds, lines, notes, visible

__all__ = ["mermaid"]

S = TypeVar("S")

# The oldest notation for each shape: the `@{shape: …}` form needs Mermaid 11.3.
_SHAPES: Final[Mapping[Kind, tuple[str, str]]] = {
    "prepare": ("[/", "/]"),
    "model": ("(", ")"),
    "gate": ("{", "}"),
    "execute": ("[[", "]]"),
    "append": ("[(", ")]"),
    "check": ("[/", "\\]"),
    "stop": ("{{", "}}"),
    "human": ("([", "])"),
    "graph": ("[\\", "/]"),
    "pure": (">", "]"),
}


def mermaid(graph: Graph[S]) -> str:
    """Return `graph` as a Mermaid flowchart: the shapes, lines and legend of the DOT diagram.

    A line's label lists all outcomes that take it, one a line, in the order of the table.
    """
    return "".join(f"{statement}\n" for statement in _statements(graph))


def _statements(graph: Graph[S]) -> Iterator[str]:
    ids = {name: f"n{number}" for number, name in enumerate(graph.nodes)} | {"END": "last"}
    drawn = lines(graph)
    used = kinds(graph)
    yield "flowchart TB"
    yield f"  subgraph loop [{_quoted(graph.name)}]"
    yield "    first(( )):::start"
    for name, node in graph.nodes.items():
        yield f"    {ids[name]}{_shape(name, node.kind)}"
    yield '    last((("END"))):::final'
    yield f"    first ==> {ids[graph.start]}"
    for line in drawn:
        yield f"    {ids[line.source]} {_arrow(line)} {ids[line.target]}"
    yield from _notes(graph, ids)
    yield "  end"
    yield '  subgraph legend ["thick: main path, dotted: failures and aborts only"]'
    yield "    direction TB"
    for kind in used:
        yield f"    kind_{kind}{_shape(kind, kind)}"
    yield "  end"
    yield "  last ~~~ legend"
    yield from _styles(used)


def _notes(graph: Graph[S], ids: Mapping[str, str]) -> Iterator[str]:
    """Yield a slip of paper beside each node that has more to say than its name."""
    for name, node in graph.nodes.items():
        if words := notes(node):
            label = "<br/>".join(map(_escaped, words))
            yield f'    note_{ids[name]}["{label}"]:::is_{node.kind}'
            yield f"    {ids[name]} -.- note_{ids[name]}"


def _shape(label: str, kind: Kind) -> str:
    left, right = _SHAPES[kind]
    return f"{left}{_quoted(label)}{right}:::is_{kind}"


def _arrow(line: Line) -> str:
    label = "<br/>".join(_escaped(outcome) for outcome in line.outcomes)
    match line.role:
        case "main" | "closing":
            return f'==>|"{label}"|'
        case "quiet":
            return f'-.->|"{label}"|'
        case "leaving" | "side":
            return f'-->|"{label}"|'
        case _:
            assert_never(line.role)


def _styles(used: tuple[Kind, ...]) -> Iterator[str]:
    for kind in used:
        fill, outline = PALETTE[kind]
        width = ",stroke-width:2.5px" if kind == "model" else ""
        yield f"  classDef is_{kind} fill:{fill},stroke:{outline},color:{INK}{width}"
    yield f"  classDef start fill:{LINE},stroke:{LINE}"
    yield f"  classDef final fill:#ffffff,stroke:{LINE},color:{INK}"
    yield "  classDef frame fill:none,stroke:none"
    yield "  class loop,legend frame"
    yield f"  linkStyle default stroke:{LINE}"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Escape for a quoted label: whatever is not a letter, a digit, `_` or a space is an entity."""
    return "".join(
        character if character.isalnum() or character in "_ " else f"#{ord(character)};"
        for character in visible(text)
    )
