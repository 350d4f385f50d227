"""mermaid: writes a picture as Mermaid text, which GitHub, GitLab and MkDocs draw in a page.

The same graph always gives the same bytes. Shapes have generated ids. In labels, characters with a
meaning in Mermaid are written as entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from .drawing import Look, Role, visible
from .marks import Tone
from .pictures import Picture, with_badges
from .theme import LIGHT, Theme

__all__ = ["mermaid_escaped", "mermaid_of"]

# The old syntax of each shape, because the newer `@{shape: …}` needs Mermaid 11.3.
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

_ARROWS: Final[Mapping[Role, str]] = {
    "main": "==>",
    "closing": "==>",
    "quiet": "-.->",
    "leaving": "-->",
    "side": "-->",
}


def mermaid_of(drawn: Picture, theme: Theme = LIGHT) -> str:
    """Return a picture as a Mermaid flowchart, with a legend of the drawn kinds of nodes."""
    return "".join(f"{statement}\n" for statement in _style_statements(drawn, theme))


def _style_statements(drawn: Picture, theme: Theme) -> Iterator[str]:
    used: list[Look] = [kind for kind in theme.palette if kind in drawn.kinds]
    tones: list[Tone | None] = []
    yield "flowchart TB"
    yield f"  subgraph loop [{_quote(drawn.title)}]"
    for part, line_tones in _graph_statements(drawn):
        yield f"    {part}"
        tones += line_tones
    yield "  end"
    yield '  subgraph legend ["thick: main path, dotted: failures and aborts only"]'
    yield "    direction TB"
    for kind in used:
        yield f"    kind_{kind}{_node_shape((kind,), kind)}"
    yield "  end"
    yield "  last ~~~ legend"
    yield from _line_styles(used, theme)
    yield from _box_styles(drawn, theme)
    for number, tone in enumerate(tones):
        if tone is not None:
            yield f"  linkStyle {number} {_tone_style(tone, theme)}"


Part: TypeAlias = tuple[str, tuple[Tone | None, ...]]
"""A Mermaid statement, and a tuple with the tone of the edge that it draws; empty without an edge.

The tones stay in order, because `linkStyle` refers to an edge by its number in the text.
"""

_PLAIN_LINE: Final = (None,)


def _graph_statements(plain: Picture) -> Iterator[Part]:
    """Yield the Mermaid statements of a graph and its child graphs, with the tones of edges."""
    drawn = with_badges(plain)
    yield f"{drawn.prefix}first(( )):::start", ()
    for shape in drawn.shapes:
        if shape.kind is None:
            yield f'{shape.id}((("{_join_lines(shape.words)}"))):::final', ()
        elif shape.details:
            text = _join_lines((*shape.lines, *shape.details))
            yield f'{shape.id}["{text}"]:::is_{shape.kind}', ()
        else:
            yield f"{shape.id}{_node_shape(shape.lines, shape.kind)}", ()
    yield f"{drawn.prefix}first ==> {drawn.start}", _PLAIN_LINE
    for stroke in drawn.strokes:
        arrow, label = _ARROWS[stroke.role], _join_lines([str(word) for word in stroke.words])
        yield f'{stroke.source} {arrow}|"{label}"| {stroke.target}', (stroke.tone,)
    for shape in drawn.shapes:
        if shape.notes:
            yield f'note_{shape.id}["{_join_lines(shape.notes)}"]:::is_{shape.kind}', ()
            yield f"{shape.id} -.- note_{shape.id}", _PLAIN_LINE
    for inner in drawn.inner:
        child = inner.picture
        yield f"subgraph {child.prefix}box [{_quote(child.title)}]", ()
        yield from ((f"  {part}", tones) for part, tones in _graph_statements(child))
        yield "end", ()
        yield f'{inner.owner} -.->|"runs"| {child.prefix}first', _PLAIN_LINE


def _node_shape(words: Sequence[str], kind: Look) -> str:
    left, right = _SHAPES[kind]
    return f'{left}"{_join_lines(words)}"{right}:::is_{kind}'


def _line_styles(used: Sequence[Look], theme: Theme) -> Iterator[str]:
    for kind in used:
        fill, outline = theme.palette[kind]
        width = ",stroke-width:2.5px" if kind == "model" else ""
        yield f"  classDef is_{kind} fill:{fill},stroke:{outline},color:{theme.ink}{width}"
    yield f"  classDef start fill:{theme.line},stroke:{theme.line}"
    yield f"  classDef final fill:{theme.paper},stroke:{theme.line},color:{theme.ink}"
    yield "  classDef frame fill:none,stroke:none"
    yield "  class loop,legend frame"
    yield f"  linkStyle default stroke:{theme.line}"


def _box_styles(drawn: Picture, theme: Theme) -> Iterator[str]:
    """Yield a style statement for each node with a tone or shade, also in child graphs."""
    for shape in drawn.shapes:
        if shape.is_shaded:
            yield f"  style {shape.id} fill:{theme.shade}"
        if shape.tone == "lit":
            edge = theme.tones["lit"]
            yield f"  style {shape.id} fill:{theme.lit},stroke:{edge},stroke-width:4px"
        elif shape.tone is not None:
            yield f"  style {shape.id} {_tone_style(shape.tone, theme)}"
    for inner in drawn.inner:
        yield f"  style {inner.picture.prefix}box fill:none,stroke:{theme.line}"
        yield from _box_styles(inner.picture, theme)


def _tone_style(tone: Tone, theme: Theme) -> str:
    width = "" if tone == "weak" else ",stroke-width:3px"
    dashes = ",stroke-dasharray:6 4" if tone == "removed" else ""
    ink = theme.faint if tone == "weak" else theme.tones[tone]
    return f"stroke:{theme.tones[tone]},color:{ink}{width}{dashes}"


def _join_lines(words: Sequence[str]) -> str:
    return "<br/>".join(map(mermaid_escaped, words))


def _quote(text: str) -> str:
    return f'"{mermaid_escaped(text)}"'


def mermaid_escaped(text: str, safe: str = "_ ") -> str:
    """Escape a text for a Mermaid label: all but letters, digits and `safe` become entities."""
    return "".join(
        character if character.isalnum() or character in safe else f"#{ord(character)};"
        for character in visible(text)
    )
