"""dot: a graph as Graphviz DOT text.

A pure function of the graph: the same table gives the same text, byte for byte. Nodes have
generated ids and names stand in labels alone, so no name can break out of its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final, TypeVar, assert_never

from ..graph import Graph
from ..node import Kind
from .drawing import INK, LINE, PALETTE, Line, kinds, lines, notes, visible

__all__ = ["dot"]

S = TypeVar("S")

_SHAPES: Final[Mapping[Kind, str]] = {
    "prepare": "shape=parallelogram",
    "model": 'shape=box style="filled,rounded" penwidth=2.2',
    "gate": "shape=diamond",
    "execute": "shape=box peripheries=2",
    "append": "shape=cylinder",
    "check": "shape=trapezium",
    "stop": "shape=hexagon",
    "human": 'shape=box style="filled,rounded,dashed"',
    "graph": "shape=folder",
    "pure": "shape=ellipse",
}

# Slanted shapes grow around their text by themselves and need less room inside.
_MARGINS: Final[Mapping[Kind, str]] = {
    "prepare": "0,0",
    "gate": "0.08,0.06",
    "check": "0,0.02",
    "stop": "0.06,0.07",
    "pure": "0.04,0.03",
}

# One font that every Graphviz has metrics for; an SVG reader falls back to its own sans serif.
_HEAD: Final = f"""\
digraph graphloop {{
  graph [bgcolor=white fontname=Helvetica fontsize=15 fontcolor="{LINE}" labelloc=t \
nodesep=0.42 ranksep=0.4 pad=0.2]
  node [fontname=Helvetica fontsize=12 fontcolor="{INK}" style=filled margin="0.16,0.09" \
height=0.42]
  edge [fontname=Helvetica fontsize=10 fontcolor="{LINE}" color="{LINE}" arrowsize=0.7]
"""


def dot(graph: Graph[S]) -> str:
    """Return `graph` as DOT text: a shape for each kind, each pair of nodes joined by one line.

    A line's label lists all outcomes that take it, one a line, in the order of the table.
    """
    ids = {name: f"n{number}" for number, name in enumerate(graph.nodes)} | {"END": "last"}
    drawn = lines(graph)
    statements = [
        f"label={_quoted(graph.name)}",
        *_nodes(graph, ids, {line.source for line in drawn if line.role in ("main", "closing")}),
        *_notes(graph, ids),
        f"first -> {ids[graph.start]} [weight=100 penwidth=1.6]",
        *(f"{ids[line.source]} -> {ids[line.target]} [{_stroke(line)}]" for line in drawn),
        *_legend(kinds(graph)),
    ]
    return _HEAD + "".join(f"  {statement}\n" for statement in statements) + "}\n"


def _nodes(graph: Graph[S], ids: Mapping[str, str], spine: Set[str]) -> Iterator[str]:
    """Yield the start, the nodes and END; those on the spine stand in one column."""
    yield (
        f'first [label="" tooltip=start shape=circle width=0.16 height=0.16 '
        f'fillcolor="{LINE}" color="{LINE}" group=spine]'
    )
    for name, node in graph.nodes.items():
        group = " group=spine" if name in spine else ""
        yield f"{ids[name]} [label={_quoted(name)} {_look(node.kind)}{_room(node.kind)}{group}]"
    yield (
        f"last [label=END shape=doublecircle margin=0.02 fontsize=10 "
        f'fillcolor="#ffffff" color="{LINE}" group=spine ordering=out]'
    )


def _notes(graph: Graph[S], ids: Mapping[str, str]) -> Iterator[str]:
    """Yield a slip of paper beside each node that has more to say than its name."""
    for name, node in graph.nodes.items():
        if words := notes(node):
            here, slip = ids[name], f"note_{ids[name]}"
            label = "".join(f"{_escaped(one)}\\l" for one in words)
            fill, outline = PALETTE[node.kind]
            yield (
                f'{slip} [label="{label}" shape=note fontsize=10 height=0.2 margin="0.1,0.05" '
                f'fillcolor="{fill}" color="{outline}"]'
            )
            yield f"{{rank=same; {here}; {slip}}}"
            yield f'{here} -> {slip} [arrowhead=none style=dotted color="{outline}"]'


def _look(kind: Kind) -> str:
    fill, outline = PALETTE[kind]
    return f'{_SHAPES[kind]} fillcolor="{fill}" color="{outline}"'


def _room(kind: Kind) -> str:
    return f' margin="{_MARGINS[kind]}"' if kind in _MARGINS else ""


def _stroke(line: Line) -> str:
    # A line of Graphviz text touches its edge; the spaces around each word keep it off.
    label = "\\n".join(f"  {_escaped(outcome)}  " for outcome in line.outcomes)
    match line.role:
        case "main":
            return f'label="{label}" penwidth=1.6 weight=100'
        case "closing":
            return f'label="{label}" penwidth=1.6 weight=0 tailport=e headport=e'
        case "leaving":
            return f'label="{label}" weight=20'
        case "quiet":
            return f'label="{label}" weight=0 style=dashed penwidth=0.8 tailport=w'
        case "side":
            return f'label="{label}"'
        case _:
            assert_never(line.role)


def _legend(used: tuple[Kind, ...]) -> Iterator[str]:
    """Yield a row of the kinds in use below END, and below it what the lines mean."""
    yield "subgraph cluster_legend {"
    yield (
        "  penwidth=0 labelloc=b fontsize=9 "
        'label="thick: main path     dashed: failures and aborts only"'
    )
    yield '  node [fontsize=9 height=0.26 width=0.4 margin="0.05,0.03"]'
    for kind in used:
        room = " margin=0" if kind in _MARGINS else ""
        yield f'  kind_{kind} [label="{kind}" {_look(kind)}{room}]'
    yield "}"
    for kind in used:
        yield f"last -> kind_{kind} [style=invis weight=2]"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Escape for a quoted label: Graphviz reads both backslashes and HTML entities there."""
    return visible(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
