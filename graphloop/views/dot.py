"""dot: a graph as Graphviz DOT text.

A pure function of the graph: the same table gives the same text, byte for byte. Nodes have
generated ids and names stand in labels alone, so no name can break out of its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, TypeVar, assert_never

from ..graph import Graph
from .drawing import Look, visible
from .ends import with_ends
from .marks import Marks, Tone
from .picture import Picture, Shape, Stroke, picture
from .references import has_references, with_references
from .theme import LIGHT, Theme

__all__ = ["dot", "dot_of"]

S = TypeVar("S")

_PLAIN: Final = Marks()

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

_BOX: Final[Mapping[Look, str]] = {
    "model": 'shape=box style="filled,rounded" penwidth=2.2',
    "execute": "shape=box peripheries=2",
    "human": 'shape=box style="filled,rounded,dashed"',
    "graph": "shape=folder",
    "loop": 'shape=box style="filled,rounded" peripheries=2',
}
"""Shapes that are as wide as their text; the others are drawn as plain boxes around details."""

_SPINE: Final = ("main", "closing")

STRAIGHT_MAX: Final = 1_000
"""Up to how many lines a main path is drawn straight: of more, that would take minutes."""

# Slanted shapes grow around their text by themselves and need less room inside.
_MARGINS: Final[Mapping[Look, str]] = {
    "prepare": "0,0",
    "gate": "0.08,0.06",
    "check": "0,0.02",
    "stop": "0.06,0.07",
    "act": "0,0.02",
    "pure": "0.04,0.03",
}

# One font that every Graphviz has metrics for; an SVG reader falls back to its own sans serif.
_HEAD: Final = """\
digraph graphloop {{
  graph [bgcolor={page} fontname=Helvetica fontsize=15 fontcolor="{line}" labelloc=t \
nodesep=0.42 ranksep=0.4 pad=0.2]
  node [fontname=Helvetica fontsize=12 fontcolor="{ink}" style=filled margin="0.16,0.09" \
height=0.42]
  edge [fontname=Helvetica fontsize=10 fontcolor="{line}" color="{line}" arrowsize=0.7]
"""


def dot(graph: Graph[S], marks: Marks = _PLAIN, *, theme: Theme = LIGHT, expand: int = 0) -> str:
    """Return `graph` as DOT text: a shape for each kind, each pair of nodes joined by one line.

    A line's label lists all outcomes that take it, one a line, in the order of the table.

    Args:
        graph: what is drawn.
        marks: what is laid over it.
        theme: its colours.
        expand: how many graphs deep children are drawn too, as far as they are known.
    """
    return dot_of(picture(graph, marks, expand=expand), theme)


def dot_of(drawn: Picture, theme: Theme = LIGHT) -> str:
    """Return a picture as DOT text."""
    drawn = _laid_out(drawn)
    page = theme.page if theme.page.isalpha() else f'"{theme.page}"'
    head = _HEAD.format(page=page, ink=theme.ink, line=theme.line)
    statements = [
        f"label={_quoted(drawn.title)}",
        *(["nslimit=0.05"] if len(drawn.strokes) > STRAIGHT_MAX else []),
        *_parts(drawn, theme),
        *_legend(drawn, theme),
    ]
    return head + "".join(f"  {statement}\n" for statement in statements) + "}\n"


def _laid_out(drawn: Picture) -> Picture:
    """Return a picture without the lines that would take minutes, and hide the rest."""
    return with_references(with_ends(drawn))


def _parts(drawn: Picture, theme: Theme) -> Iterator[str]:
    """Yield the shapes and lines of a graph, and the graphs that it runs, in boxes beside it."""
    spine = {one.source for one in drawn.strokes if one.role in _SPINE}
    lists = {one.id for one in drawn.shapes if one.is_reference and len(one.words) > 1}
    yield from _shapes(drawn, theme, spine)
    for shape in drawn.shapes:
        yield from _notes(shape, theme)
    yield f"{drawn.prefix}first -> {drawn.start} [weight=100 penwidth=1.6]"
    for stroke in drawn.strokes:
        yield f"{stroke.source} -> {stroke.target} [{_stroke(drawn, stroke, theme)}]"
        if stroke.target in lists:
            yield f"{{rank=same; {stroke.source}; {stroke.target}}}"
    for inner in drawn.inner:
        below = inner.picture
        yield f"subgraph cluster_{below.prefix}box {{"
        # The label of the outermost line may stick out of what it belongs to: it stays in the box.
        yield (
            f"  label={_quoted(below.title)} fontsize=12 style=rounded margin=64 "
            f'color="{theme.line}"'
        )
        yield from (f"  {part}" for part in _parts(_laid_out(below), theme))
        yield "}"
        outline = theme.palette["graph"][1]
        yield (
            f'{inner.owner} -> {below.prefix}first [label="  runs  " style=dotted penwidth=1.4 '
            f'color="{outline}" fontcolor="{outline}" arrowhead=onormal]'
        )


def _shapes(drawn: Picture, theme: Theme, spine: Set[str]) -> Iterator[str]:
    """Yield the start, the nodes and END; those on the spine stand in one column."""
    group = f"{drawn.prefix}spine"
    yield (
        f'{drawn.prefix}first [label="" tooltip=start shape=circle width=0.16 height=0.16 '
        f'fillcolor="{theme.line}" color="{theme.line}" group={group}]'
    )
    for shape in drawn.shapes:
        label = "\\n".join(map(_escaped, shape.words))
        if shape.details:
            label += "\\n" + "".join(f"{_escaped(one)}\\l" for one in shape.details)
        tone = _tone(shape.tone, theme, node=True)
        if shape.kind is None:
            label = label if label == "END" else f'"{label}"'
            column = f" group={group} ordering=out" if shape == drawn.shapes[-1] else ""
            yield (
                f"{shape.id} [label={label} shape=doublecircle margin=0.02 fontsize=10 "
                f'fillcolor="{theme.paper}" color="{theme.line}"{column}{tone}]'
            )
            continue
        if shape.is_reference:
            if len(shape.words) > 1:
                label = "".join(f"{_escaped(one)}\\l" for one in shape.words)
            yield f'{shape.id} [label="{label}" shape=plaintext style="" fontsize=10 height=0.2]'
            continue
        column = f" group={group}" if shape.id in spine else ""
        fill = _boxed(shape.kind, theme) if shape.details else _filled(shape.kind, theme)
        look = f"{fill}{column}"
        shade = f' fillcolor="{theme.shade}"' if shape.is_shaded else ""
        yield f'{shape.id} [label="{label}" {look}{shade}{tone}]'


def _notes(shape: Shape, theme: Theme) -> Iterator[str]:
    """Yield a slip of paper beside a node that has more to say than its name."""
    if not shape.notes or shape.kind is None:
        return
    slip = f"note_{shape.id}"
    label = "".join(f"{_escaped(one)}\\l" for one in shape.notes)
    fill, outline = theme.palette[shape.kind]
    yield (
        f'{slip} [label="{label}" shape=note fontsize=10 height=0.2 margin="0.1,0.05" '
        f'fillcolor="{fill}" color="{outline}"]'
    )
    yield f"{{rank=same; {shape.id}; {slip}}}"
    yield f'{shape.id} -> {slip} [arrowhead=none style=dotted color="{outline}"]'


def _filled(kind: Look, theme: Theme) -> str:
    return f"{_look(kind, theme)}{_room(kind)}"


def _boxed(kind: Look, theme: Theme) -> str:
    """Return the look of a node that holds more than its name: a box in the colours of its kind."""
    fill, outline = theme.palette[kind]
    look = _BOX.get(kind, "shape=box")
    return f'{look} fillcolor="{fill}" color="{outline}" margin="0.18,0.12"'


def _look(kind: Look, theme: Theme) -> str:
    fill, outline = theme.palette[kind]
    return f'{_SHAPES[kind]} fillcolor="{fill}" color="{outline}"'


def _room(kind: Look) -> str:
    return f' margin="{_MARGINS[kind]}"' if kind in _MARGINS else ""


def _tone(tone: Tone | None, theme: Theme, *, node: bool) -> str:
    """Return what overrides the usual look of a node or a line."""
    if tone is None:
        return ""
    colour = theme.tones[tone]
    look = f' color="{colour}" fontcolor="{colour}"'
    match tone:
        case "weak":
            return f' color="{colour}" fontcolor="{theme.faint}" fillcolor="{theme.paper}"'
        case "lit":
            return f' color="{colour}" penwidth=3.4 fillcolor="{theme.lit}"'
        case "removed":
            style = "filled,dashed" if node else "dashed"
            return f'{look} penwidth=1.8 style="{style}" fillcolor="{theme.paper}"'
        case "strong" | "added" | "alarm":
            return f"{look} penwidth=2.6"
        case _:
            assert_never(tone)


def _stroke(drawn: Picture, stroke: Stroke, theme: Theme) -> str:
    look = _by_role(stroke, list(map(str, stroke.words)), _sides(drawn, stroke))
    return look + _tone(stroke.tone, theme, node=False)


def _sides(drawn: Picture, stroke: Stroke) -> str:
    """Return at which sides of its nodes a line is held."""
    # A line that is held at a side is drawn around everything else, also around a frame.
    if drawn.prefix or stroke.target.startswith("to"):
        return ""
    match stroke.role:
        case "closing":
            return " tailport=e headport=e"
        # Boxes leave no room beside them for a line between two of them.
        case "quiet" if stroke.target.startswith("last") or not _boxes(drawn):
            return " tailport=w"
        case _:
            return ""


def _boxes(drawn: Picture) -> bool:
    return any(shape.details for shape in drawn.shapes)


def _by_role(stroke: Stroke, words: Sequence[str], sides: str) -> str:
    # A line of Graphviz text touches its edge; the spaces around each word keep it off.
    label = "\\n".join(f"  {_escaped(word)}  " for word in words)
    match stroke.role:
        case "main":
            return f'label="{label}" penwidth=1.6 weight=100'
        case "closing":
            return f'label="{label}" penwidth=1.6 weight=0{sides}'
        case "leaving":
            return f'label="{label}" weight=20'
        case "quiet":
            return f'label="{label}" weight=0 style=dashed penwidth=0.8{sides}'
        case "side":
            return f'label="{label}"'
        case _:
            assert_never(stroke.role)


def _legend(drawn: Picture, theme: Theme) -> Iterator[str]:
    """Yield a row of the kinds in use below END, and below it what the lines mean."""
    used = drawn.kinds
    named = "     to a name: goes on at the node of that name" if has_references(drawn) else ""
    yield "subgraph cluster_legend {"
    yield (
        "  penwidth=0 labelloc=b fontsize=9 "
        f'label="thick: main path     dashed: failures and aborts only{named}"'
    )
    yield '  node [fontsize=9 height=0.26 width=0.4 margin="0.05,0.03"]'
    for kind in used:
        room = " margin=0" if kind in _MARGINS else ""
        yield f'  kind_{kind} [label="{kind}" {_look(kind, theme)}{room}]'
    yield "}"
    for kind in used:
        yield f"last -> kind_{kind} [style=invis weight=2]"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Escape for a quoted label: Graphviz reads both backslashes and HTML entities there."""
    return visible(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
