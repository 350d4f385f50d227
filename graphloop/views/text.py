"""text: writes a picture as text for terminals, with a block for each node and a row for each edge.

Nodes are in the order of the table. The arrow after a target points to the target's block: below
(`↓`), above (`↑`, which closes a cycle), or the same block (`↻`). Rows have 80 columns, fewer for a
narrow terminal, or more if names are long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .drawing import Look, Role, visible
from .marks import Tone
from .pictures import Picture, Shape, Stroke, Word

__all__ = ["text_of"]

_ROOM: Final = 34
"""The most columns of a row for outcomes; the rest of the row is for the target."""

_ROOM_MIN: Final = 10
_BESIDE: Final = 10
"""The columns of a row beside its outcomes and the name of its target."""

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

_DASHES: Final[Mapping[Role, str]] = {
    "main": "━",
    "closing": "━",
    "quiet": "╌",
    "leaving": "─",
    "side": "─",
}

_SIMPLE: Final = re.compile(r"[\w.:/+-]+")
_KNOWN: Final = re.compile(r"[\w.:/+()\[\], -]+")


def text_of(drawn: Picture, columns: int = 80) -> str:
    """Return a picture as text for terminals, with its child graphs at the end.

    Args:
        drawn: the picture.
        columns: the width of the terminal.
    """
    return "".join(f"{line.rstrip()}\n" for line in _node_blocks(drawn, columns))


def _node_blocks(drawn: Picture, columns: int) -> Iterator[str]:
    longest = max(len(_name_text(shape.words[0])) for shape in drawn.shapes)
    room = min(_ROOM, max(_ROOM_MIN, columns - _BESIDE - longest))
    names = {shape.id: shape.words[0] for shape in drawn.shapes}
    places = {shape.id: place for place, shape in enumerate(drawn.shapes)}
    rows: dict[str, list[Stroke]] = {shape.id: [] for shape in drawn.shapes}
    for stroke in drawn.strokes:
        rows[stroke.source].append(stroke)
    yield visible(drawn.title)
    yield ""
    yield f"● start ━▶ {_name_text(names[drawn.start])}"
    for shape in drawn.shapes:
        yield ""
        yield _block_head(shape)
        yield from (f"┊   {visible(line)}" for line in shape.details)
        yield from (f"│   {visible(line)}" for line in shape.notes)
        yield from _edge_rows(rows[shape.id], names, places, room)
    for inner in drawn.inner:
        yield ""
        yield f"┌─ run by {_name_text(names[inner.owner])}: "
        yield from (f"│ {line}" for line in _node_blocks(inner.picture, columns - 2))


def _block_head(shape: Shape) -> str:
    """Return the first line of a node's block: its symbol, name, kind and marks."""
    mark = f"{_TONES[shape.tone]} " if shape.tone is not None else ""
    sign = "◉" if shape.kind is None else _SIGNS[shape.kind]
    kind = "" if shape.kind is None or shape.kind == shape.words[0] else f"  ({shape.kind})"
    shade = "  ▒" if shape.is_shaded else ""
    words = "".join(f"  {visible(line)}" for line in shape.words[1:])
    # END is shown like a node's name, because no node can have this name.
    return f"{mark}{sign} {_name_text(shape.words[0])}{kind}{shade}{words}"


def _edge_rows(
    strokes: Sequence[Stroke], names: Mapping[str, str], places: Mapping[str, int], room: int
) -> Iterator[str]:
    for number, stroke in enumerate(strokes, 1):
        corner = "└" if number == len(strokes) else "├"
        dash = _DASHES[stroke.role]
        mark = _TONES[stroke.tone] if stroke.tone is not None else dash
        *earlier, last = _pack_outcomes([_outcome_text(word) for word in stroke.words], room)
        yield from (f"│    {line}," for line in earlier)
        fill = dash * max(1, room - len(last))
        way = places[stroke.target] - places[stroke.source]
        look = "↻" if way == 0 else "↓" if way > 0 else "↑"
        target = _name_text(names[stroke.target])
        yield f"{corner}{dash}{mark}{dash} {last} {fill}▶ {target} {look}"


def _pack_outcomes(words: Sequence[str], room: int) -> list[str]:
    """Join the outcomes of an edge with commas into as few lines as fit its columns."""
    lines = [words[0]]
    for word in words[1:]:
        joined = f"{lines[-1]}, {word}"
        if len(joined) < room:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _outcome_text(word: Word) -> str:
    """Return an outcome and its marks as text, in quotes if they have unusual characters."""
    if not word.more:
        return _name_text(word.outcome)
    more = visible(word.more)
    quoted = more if _KNOWN.fullmatch(more) else json.dumps(more, ensure_ascii=False)
    return f"{_name_text(word.outcome)} {quoted}"


def _name_text(name: str) -> str:
    """Return a name, in quotes if it has characters other than letters, digits and `.:/+-_`."""
    shown = visible(name)
    return shown if _SIMPLE.fullmatch(shown) else json.dumps(shown, ensure_ascii=False)
