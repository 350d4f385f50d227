"""text: a picture for terminals: a block a node, a row a line, at most 80 columns where names fit.

Nodes stand in the order of the table. The arrow behind a target says where to look for it: further
down, further up (that is how a loop is closed), or right here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar, assert_never

from ..graph import Graph
from .drawing import Look, visible
from .marks import Marks, Tone
from .picture import Picture, Shape, Stroke, Word, picture

__all__ = ["WIDTH", "text", "text_of"]

S = TypeVar("S")

WIDTH: Final = 80
ROOM: Final = 34
"""How much of a row is for outcomes."""

_PLAIN: Final = Marks()

_SIGNS: Final[Mapping[Look, str]] = {
    "prepare": "▱",
    "model": "■",
    "gate": "◇",
    "execute": "▣",
    "append": "▤",
    "check": "△",
    "stop": "◆",
    "human": "◐",
    "graph": "▥",
    "act": "►",
    "pure": "○",
    "loop": "◌",
}

_TONES: Final[Mapping[Tone, str]] = {
    "weak": "·",
    "strong": "*",
    "lit": "▶",
    "added": "+",
    "removed": "-",
    "alarm": "!",
}

_SIMPLE: Final = re.compile(r"[\w.:/+-]+")
_KNOWN: Final = re.compile(r"[\w.:/+()\[\], -]+")


def text(graph: Graph[S], marks: Marks = _PLAIN, *, expand: int = 0) -> str:
    """Return `graph` as text for a terminal.

    Args:
        graph: what is drawn.
        marks: what is laid over it.
        expand: how many graphs deep children are drawn too, as far as they are known.
    """
    return text_of(picture(graph, marks, expand=expand))


def text_of(drawn: Picture) -> str:
    """Return a picture as text for a terminal; a block a node, then what its children run."""
    return "".join(f"{line.rstrip()}\n" for line in _blocks(drawn))


def _blocks(drawn: Picture) -> Iterator[str]:
    names = {shape.id: shape.words[0] for shape in drawn.shapes}
    places = {shape.id: place for place, shape in enumerate(drawn.shapes)}
    rows: dict[str, list[Stroke]] = {shape.id: [] for shape in drawn.shapes}
    for stroke in drawn.strokes:
        rows[stroke.source].append(stroke)
    yield visible(drawn.title)
    yield ""
    yield f"● start ━▶ {_word(names[drawn.start])}"
    for shape in drawn.shapes:
        yield ""
        yield _head(shape)
        yield from (f"┊   {visible(one)}" for one in shape.details)
        yield from (f"│   {visible(one)}" for one in shape.notes)
        yield from _rows(rows[shape.id], names, places)
    for inner in drawn.inner:
        yield ""
        yield f"┌─ run by {_word(names[inner.owner])}: "
        yield from (f"│ {line}" for line in _blocks(inner.picture))


def _head(shape: Shape) -> str:
    """Return the line of a node: its sign, its name, its kind, and what is known of it."""
    mark = f"{_TONES[shape.tone]} " if shape.tone is not None else ""
    sign = "◉" if shape.kind is None else _SIGNS[shape.kind]
    kind = "" if shape.kind is None or shape.kind == shape.words[0] else f"  ({shape.kind})"
    shade = "  ▒" if shape.is_shaded else ""
    words = "".join(f"  {visible(one)}" for one in shape.words[1:])
    # END is no name that a node can have, so it needs no quotes.
    return f"{mark}{sign} {_word(shape.words[0])}{kind}{shade}{words}"


def _rows(
    strokes: Sequence[Stroke], names: Mapping[str, str], places: Mapping[str, int]
) -> Iterator[str]:
    for number, stroke in enumerate(strokes, 1):
        corner = "└" if number == len(strokes) else "├"
        dash = _dash(stroke)
        mark = _TONES[stroke.tone] if stroke.tone is not None else dash
        *above, last = _packed([_told(one) for one in stroke.words])
        yield from (f"│    {line}," for line in above)
        fill = dash * max(1, ROOM - len(last))
        way = places[stroke.target] - places[stroke.source]
        look = "↻" if way == 0 else "↓" if way > 0 else "↑"
        target = _word(names[stroke.target])
        yield f"{corner}{dash}{mark}{dash} {last} {fill}▶ {target} {look}"


def _packed(words: Sequence[str]) -> list[str]:
    """Return the words in lines that fit, parted by commas."""
    lines = [words[0]]
    for word in words[1:]:
        joined = f"{lines[-1]}, {word}"
        if len(joined) < ROOM:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _dash(stroke: Stroke) -> str:
    match stroke.role:
        case "main" | "closing":
            return "━"
        case "quiet":
            return "╌"
        case "leaving" | "side":
            return "─"
        case _:
            assert_never(stroke.role)


def _told(word: Word) -> str:
    """Return an outcome and what is known of it, in quotes where that could be taken for a line."""
    if not word.more:
        return _word(word.outcome)
    more = visible(word.more)
    quoted = more if _KNOWN.fullmatch(more) else json.dumps(more, ensure_ascii=False)
    return f"{_word(word.outcome)} {quoted}"


def _word(name: str) -> str:
    """Return a name as it is, or in quotes where it could be taken for something else."""
    shown = visible(name)
    return shown if _SIMPLE.fullmatch(shown) else json.dumps(shown, ensure_ascii=False)
