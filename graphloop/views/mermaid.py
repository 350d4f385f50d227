"""mermaid: a picture as Mermaid text, for pages that draw it themselves (GitHub, GitLab, MkDocs).

A pure function: the same table gives the same text, byte for byte. Shapes have generated ids, and
each sign that means something to Mermaid stands in labels as its entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never

from .drawing import Look, visible
from .marks import Tone
from .pictures import Picture, Shape, Stroke
from .theme import LIGHT, Theme

__all__ = ["mermaid_escaped", "mermaid_of"]

# The oldest notation for each shape: the `@{shape: …}` form needs Mermaid 11.3.
_SHAPES: Final[Mapping[Look, tuple[str, str]]] = {
    "prepare": ("[/", "/]"),
    "model": ("(", ")"),
    "gate": ("{", "}"),
    "execute": ("[[", "]]"),
    "append": ("[(", ")]"),
    "check": ("[/", "\\]"),
    "stop": ("{{", "}}"),
    "human": ("([", "])"),
    "graph": ("[\\", "/]"),
    "act": ("[\\", "\\]"),
    "pure": (">", "]"),
    "loop": ("[", "]"),
}


def mermaid_of(drawn: Picture, theme: Theme = LIGHT) -> str:
    """Return a picture as a Mermaid flowchart: the shapes, lines and legend of the DOT diagram."""
    return "".join(f"{statement}\n" for statement in _statements(drawn, theme))


def _statements(drawn: Picture, theme: Theme) -> Iterator[str]:
    used: list[Look] = [kind for kind in theme.palette if kind in drawn.kinds]
    looks: list[str] = []
    count = 0
    yield "flowchart TB"
    yield f"  subgraph loop [{_quoted(drawn.title)}]"
    for part, stroke in _parts(drawn):
        yield f"    {part}"
        if stroke is not None:
            if stroke.tone is not None:
                looks.append(f"  linkStyle {count} {_look(stroke.tone, theme)}")
            count += 1
    yield "  end"
    yield '  subgraph legend ["thick: main path, dotted: failures and aborts only"]'
    yield "    direction TB"
    for kind in used:
        yield f"    kind_{kind}{_shape((kind,), kind)}"
    yield "  end"
    yield "  last ~~~ legend"
    yield from _styles(used, theme)
    yield from _boxes(drawn, theme)
    yield from looks


_FIRST: Final = Stroke("", "", (), "main")
"""A line without words; `linkStyle` counts it as well."""


def _parts(drawn: Picture) -> Iterator[tuple[str, Stroke | None]]:
    """Yield the statements of a graph; beside each that draws a line, that line."""
    yield f"{drawn.prefix}first(( )):::start", None
    for shape in drawn.shapes:
        if shape.kind is None:
            yield f'{shape.id}((("{_lines(shape.words)}"))):::final', None
        else:
            yield f"{shape.id}{_node(shape, shape.kind)}", None
    yield f"{drawn.prefix}first ==> {drawn.start}", _FIRST
    for stroke in drawn.strokes:
        yield f"{stroke.source} {_arrow(stroke)} {stroke.target}", stroke
    yield from _notes(drawn.shapes)
    for inner in drawn.inner:
        child = inner.picture
        yield f"subgraph {child.prefix}box [{_quoted(child.title)}]", None
        yield from ((f"  {part}", line) for part, line in _parts(child))
        yield "end", None
        yield f'{inner.owner} -.->|"runs"| {child.prefix}first', _FIRST


def _notes(shapes: Sequence[Shape]) -> Iterator[tuple[str, Stroke | None]]:
    """Yield a slip of paper with the notes of each node beside it."""
    for shape in shapes:
        if shape.notes:
            yield f'note_{shape.id}["{_lines(shape.notes)}"]:::is_{shape.kind}', None
            yield f"{shape.id} -.- note_{shape.id}", _FIRST


def _node(shape: Shape, kind: Look) -> str:
    """Return a node in the shape of its kind, or in a box if it has details."""
    if not shape.details:
        return _shape(shape.words, kind)
    return f'["{_lines((*shape.words, *shape.details))}"]:::is_{kind}'


def _shape(words: Sequence[str], kind: Look) -> str:
    left, right = _SHAPES[kind]
    return f'{left}"{_lines(words)}"{right}:::is_{kind}'


def _arrow(stroke: Stroke) -> str:
    label = _lines(list(map(str, stroke.words)))
    match stroke.role:
        case "main" | "closing":
            return f'==>|"{label}"|'
        case "quiet":
            return f'-.->|"{label}"|'
        case "leaving" | "side":
            return f'-->|"{label}"|'
        case _:
            assert_never(stroke.role)


def _styles(used: Sequence[Look], theme: Theme) -> Iterator[str]:
    for kind in used:
        fill, outline = theme.palette[kind]
        width = ",stroke-width:2.5px" if kind == "model" else ""
        yield f"  classDef is_{kind} fill:{fill},stroke:{outline},color:{theme.ink}{width}"
    yield f"  classDef start fill:{theme.line},stroke:{theme.line}"
    yield f"  classDef final fill:{theme.paper},stroke:{theme.line},color:{theme.ink}"
    yield "  classDef frame fill:none,stroke:none"
    yield "  class loop,legend frame"
    yield f"  linkStyle default stroke:{theme.line}"


def _boxes(drawn: Picture, theme: Theme) -> Iterator[str]:
    """Yield the styles that override the usual look of nodes, also in child graphs."""
    for shape in drawn.shapes:
        if shape.is_shaded:
            yield f"  style {shape.id} fill:{theme.shade}"
        if shape.tone == "lit":
            edge = theme.tones["lit"]
            yield f"  style {shape.id} fill:{theme.lit},stroke:{edge},stroke-width:4px"
        elif shape.tone is not None:
            yield f"  style {shape.id} {_look(shape.tone, theme)}"
    for inner in drawn.inner:
        yield f"  style {inner.picture.prefix}box fill:none,stroke:{theme.line}"
        yield from _boxes(inner.picture, theme)


def _look(tone: Tone, theme: Theme) -> str:
    width = "" if tone == "weak" else ",stroke-width:3px"
    dashes = ",stroke-dasharray:6 4" if tone == "removed" else ""
    ink = theme.faint if tone == "weak" else theme.tones[tone]
    return f"stroke:{theme.tones[tone]},color:{ink}{width}{dashes}"


def _lines(words: Sequence[str]) -> str:
    return "<br/>".join(map(mermaid_escaped, words))


def _quoted(text: str) -> str:
    return f'"{mermaid_escaped(text)}"'


def mermaid_escaped(text: str, safe: str = "_ ") -> str:
    """Escape for a quoted label: all but letters, digits and `safe` signs become entities."""
    return "".join(
        character if character.isalnum() or character in safe else f"#{ord(character)};"
        for character in visible(text)
    )
