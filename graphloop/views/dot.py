"""dot: writes a picture as Graphviz DOT text; the same graph always gives the same bytes.

Shapes have generated ids, and the names of nodes appear only in escaped labels. So a node's name
cannot break the DOT syntax.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from .drawing import Look, Role, visible
from .marks import Tone
from .pictures import Picture, Shape, Stroke, with_badges
from .theme import LIGHT, Theme

__all__ = ["dot_of"]

_SHAPES: Final[Mapping[Look, str]] = {
    "prepare": "shape=parallelogram",
    "model": 'shape=box style="filled,rounded" penwidth=2.2',
    "gate": "shape=diamond",
    "execute": "shape=box peripheries=2",
    "append": "shape=cylinder",
    "check": "shape=trapezium",
    "stop": "shape=hexagon",
    "human": 'shape=box style="filled,rounded,dashed"',
    "graph": "shape=folder",
    "act": "shape=invhouse",
    "pure": "shape=ellipse",
    "loop": 'shape=box style="filled,rounded" peripheries=2',
}

_WIDE: Final[Set[Look]] = frozenset({"model", "execute", "human", "graph", "loop"})
"""The kinds that keep their shape when it holds details; the others are then drawn as boxes."""

_MARGINS: Final[Mapping[Look, str]] = {
    "prepare": "0,0",
    "gate": "0.08,0.06",
    "check": "0,0.02",
    "stop": "0.06,0.07",
    "act": "0,0.02",
    "pure": "0.04,0.03",
}
"""The inner margins of slanted shapes, which Graphviz makes larger than their text needs."""

_LINES: Final[Mapping[Role, str]] = {
    "main": " penwidth=1.6 weight=100",
    "closing": " penwidth=1.6 weight=0",
    "leaving": " weight=20",
    "quiet": " weight=0 style=dashed penwidth=0.8",
    "side": "",
}

# Helvetica, because every Graphviz knows its metrics; an SVG viewer may replace the font.
_HEAD: Final = """\
digraph graphloop {{
  graph [bgcolor={page} fontname=Helvetica fontsize=15 fontcolor="{line}" labelloc=t \
nodesep=0.42 ranksep=0.4 pad=0.2]
  node [fontname=Helvetica fontsize=12 fontcolor="{ink}" style=filled margin="0.16,0.09" \
height=0.42]
  edge [fontname=Helvetica fontsize=10 fontcolor="{line}" color="{line}" arrowsize=0.7]
"""


def dot_of(drawn: Picture, theme: Theme = LIGHT) -> str:
    """Return a picture as DOT text, with a legend that explains the shapes of the drawn kinds.

    The label of an edge lists its outcomes, in the order of the graph's table.
    """
    page = theme.page if theme.page.isalpha() else f'"{theme.page}"'
    head = _HEAD.format(page=page, ink=theme.ink, line=theme.line)
    statements = [
        f"label={_quote(drawn.title)}",
        *_graph_statements(drawn, theme),
        *_legend_statements(drawn, theme),
    ]
    return head + "".join(f"  {statement}\n" for statement in statements) + "}\n"


def _graph_statements(plain: Picture, theme: Theme) -> Iterator[str]:
    """Yield the DOT statements for a graph's nodes and edges, and a frame for each child graph."""
    drawn = with_badges(plain)
    spine = {line.source for line in drawn.strokes if line.role in {"main", "closing"}}
    group = f" group={drawn.prefix}spine"
    yield (
        f'{drawn.prefix}first [label="" tooltip=start shape=circle width=0.16 height=0.16 '
        f'fillcolor="{theme.line}" color="{theme.line}"{group}]'
    )
    for shape in drawn.shapes:
        if shape.kind is None:
            yield _end_statement(shape, theme, group)
        else:
            yield _node_statement(shape, shape.kind, theme, group if shape.id in spine else "")
    for shape in drawn.shapes:
        if shape.notes and shape.kind is not None:
            yield from _note_statements(shape, shape.kind, theme)
    yield f"{drawn.prefix}first -> {drawn.start} [weight=100 penwidth=1.6]"
    has_boxes = any(shape.details for shape in drawn.shapes)
    for stroke in drawn.strokes:
        sides = "" if drawn.prefix else _side_attributes(stroke, has_boxes=has_boxes)
        # The spaces keep the label away from its edge.
        label = "\\n".join(f"  {_escape(str(word))}  " for word in stroke.words)
        look = f'label="{label}"{_LINES[stroke.role]}{sides}{_tone_attributes(stroke.tone, theme)}'
        yield f"{stroke.source} -> {stroke.target} [{look}]"
    for inner in drawn.inner:
        yield from _child_frame(inner.owner, inner.picture, theme)


def _child_frame(owner: str, child: Picture, theme: Theme) -> Iterator[str]:
    """Yield the DOT statements for a framed child graph and the edge from the node that runs it."""
    yield f"subgraph cluster_{child.prefix}box {{"
    # A smaller margin would leave the label of the outermost edge outside the frame.
    yield f'  label={_quote(child.title)} fontsize=12 style=rounded margin=64 color="{theme.line}"'
    yield from (f"  {part}" for part in _graph_statements(child, theme))
    yield "}"
    outline = theme.palette["graph"][1]
    yield (
        f'{owner} -> {child.prefix}first [label="  runs  " style=dotted penwidth=1.4 '
        f'color="{outline}" fontcolor="{outline}" arrowhead=onormal]'
    )


def _end_statement(shape: Shape, theme: Theme, group: str) -> str:
    label = _label(shape.words)
    label = label if label == "END" else f'"{label}"'
    return (
        f"{shape.id} [label={label} shape=doublecircle "
        f'margin=0.02 fontsize=10 fillcolor="{theme.paper}" color="{theme.line}"{group} '
        f"ordering=out{_tone_attributes(shape.tone, theme, node='filled,')}]"
    )


def _node_statement(shape: Shape, kind: Look, theme: Theme, group: str) -> str:
    label, outline = _label(shape.lines), _SHAPES[kind]
    margin = f' margin="{_MARGINS[kind]}"' if kind in _MARGINS else ""
    if shape.details:
        label += "\\n" + _left_aligned(shape.details)
        outline = outline if kind in _WIDE else "shape=box"
        margin = ' margin="0.18,0.12"'
    shade = f' fillcolor="{theme.shade}"' if shape.is_shaded else ""
    tone = _tone_attributes(shape.tone, theme, node="filled,")
    fill = _colour_attributes(kind, theme)
    return f'{shape.id} [label="{label}" {outline} {fill}{margin}{group}{shade}{tone}]'


def _note_statements(shape: Shape, kind: Look, theme: Theme) -> Iterator[str]:
    """Yield the DOT statements for the note box beside a node."""
    slip = f"note_{shape.id}"
    yield (
        f'{slip} [label="{_left_aligned(shape.notes)}" shape=note fontsize=10 height=0.2 '
        f'margin="0.1,0.05" {_colour_attributes(kind, theme)}]'
    )
    yield f"{{rank=same; {shape.id}; {slip}}}"
    yield f'{shape.id} -> {slip} [arrowhead=none style=dotted color="{theme.palette[kind][1]}"]'


def _colour_attributes(kind: Look, theme: Theme) -> str:
    fill, outline = theme.palette[kind]
    return f'fillcolor="{fill}" color="{outline}"'


def _tone_attributes(tone: Tone | None, theme: Theme, *, node: str = "") -> str:
    """Return the DOT attributes by which a tone changes the look of a node or an edge."""
    if tone is None:
        return ""
    colour = f' color="{theme.tones[tone]}"'
    if tone == "weak":
        return f'{colour} fontcolor="{theme.faint}" fillcolor="{theme.paper}"'
    if tone == "lit":
        return f'{colour} penwidth=3.4 fillcolor="{theme.lit}"'
    ink = f'{colour} fontcolor="{theme.tones[tone]}"'
    if tone == "removed":
        return f'{ink} penwidth=1.8 style="{node}dashed" fillcolor="{theme.paper}"'
    return f"{ink} penwidth=2.6"


def _side_attributes(stroke: Stroke, *, has_boxes: bool) -> str:
    """Return the DOT attributes for the sides of the nodes at which an edge begins and ends."""
    if stroke.role == "closing":
        return " tailport=e headport=e"
    # Details make boxes wide; beside them there is room only for edges to END.
    beside = stroke.role == "quiet" and (stroke.target == "last" or not has_boxes)
    return " tailport=w" if beside else ""


def _legend_statements(drawn: Picture, theme: Theme) -> Iterator[str]:
    """Yield the DOT statements of the legend: the drawn kinds below END, then the edge styles."""
    used: list[Look] = [kind for kind in theme.palette if kind in drawn.kinds]
    yield "subgraph cluster_legend {"
    yield (
        "  penwidth=0 labelloc=b fontsize=9 "
        'label="thick: main path     dashed: failures and aborts only"'
    )
    yield '  node [fontsize=9 height=0.26 width=0.4 margin="0.05,0.03"]'
    for kind in used:
        margin = " margin=0" if kind in _MARGINS else ""
        colours = _colour_attributes(kind, theme)
        yield f'  kind_{kind} [label="{kind}" {_SHAPES[kind]} {colours}{margin}]'
    yield "}"
    for kind in used:
        yield f"last -> kind_{kind} [style=invis weight=2]"


def _label(words: tuple[str, ...]) -> str:
    return "\\n".join(map(_escape, words))


def _left_aligned(words: tuple[str, ...]) -> str:
    return "".join(f"{_escape(line)}\\l" for line in words)


def _quote(text: str) -> str:
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    """Escape a text for a quoted DOT label: quotes, backslashes and the `&` of HTML entities."""
    return visible(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
