"""Comparison: two graphs in one picture: new rows, removed rows, and a loss.

The picture is that of the later graph. Removed parts come last, so that all others keep their
places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import TypeVar

from ..graph import NodeGraph
from ..proofs import Change, Comparison
from .drawing import Line, lines, notes
from .levels import level_picture
from .marks import Marks, Tone, Way
from .pictures import Picture, Shape, Stroke, Word, node_picture

__all__ = ["changes_picture"]

S = TypeVar("S")


def changes_picture(before: NodeGraph[S], after: NodeGraph[S], found: Comparison) -> Picture:
    """Return `after`, with the rows and nodes marked that were added and removed since `before`.

    The way that shows the first loss is numbered.
    """
    marks = _marks(found)
    drawn = level_picture(after, marks=marks)
    ids = {**node_picture(after, marks, "")[1]}
    gone: list[Shape] = []
    for name in found.nodes_removed:
        ids[name] = f"gone{len(ids)}"
        node = before.nodes[name]
        gone.append(Shape(ids[name], (name, "(gone)"), node.kind, notes(node), "removed"))
    joined: dict[tuple[str, str], list[Word]] = {}
    for one in found.rows_removed:
        joined.setdefault((ids[one.source], ids[one.target]), []).append(
            Word(one.outcome, "(gone)")
        )
    strokes = [Stroke(*pair, tuple(words), "side", "removed") for pair, words in joined.items()]
    new = {(one.source, one.outcome) for one in found.rows_added}
    there = _apart(drawn.strokes, lines(after), new)
    shapes = (*drawn.shapes[:-1], *gone, drawn.shapes[-1])
    return replace(drawn, shapes=shapes, strokes=(*there, *strokes))


def _marks(found: Comparison) -> Marks:
    was = {(one.source, one.outcome): one.target for one in found.rows_removed}
    ways = [(one.source, one.outcome) for one in found.rows_added]
    words = {way: f"(was {was[way]})" if way in was else "(new)" for way in ways}
    tones: dict[Way, Tone] = {}
    for way, number in _numbered(found.changes).items():
        words[way] = f"{words.get(way, '')} [{number}]".strip()
        tones[way] = "strong"
    tones |= dict.fromkeys(ways, "added")
    nodes = {one.node: "(changed)" for one in found.changes if one.subject in {"node", "gate"}}
    nodes |= dict.fromkeys(found.nodes_added, "(new)")
    title = f"{found.before} -> {found.after}" if found.before != found.after else "changes"
    return Marks(
        title=f"{title}: {'weaker' if found.weaker else 'not weaker'}",
        nodes=nodes,
        ways=words,
        node_tones=dict.fromkeys(nodes, "added"),
        way_tones=tones,
    )


def _numbered(changes: Iterable[Change]) -> Mapping[Way, str]:
    """Return the numbers of the lines along the way that shows the first loss."""
    shown = next((one for one in changes if one.effect == "weaker" and one.outcomes), None)
    steps: dict[Way, str] = {}
    if shown is not None:
        for number, way in enumerate(zip(shown.witness, shown.outcomes, strict=False), 1):
            steps[way] = f"{steps[way]}, {number}" if way in steps else str(number)
    return steps


def _apart(strokes: Iterable[Stroke], drawn: Iterable[Line], new: Set[Way]) -> Iterator[Stroke]:
    """Yield lines in which new outcomes do not hide among those that were there before."""
    for stroke, line in zip(strokes, drawn, strict=True):
        ways = [(line.source, outcome) in new for outcome in line.outcomes]
        if not any(ways) or all(ways):
            yield stroke
            continue
        told = list(zip(stroke.words, ways, strict=True))
        old, fresh = (tuple([one for one, new in told if new is side]) for side in (False, True))
        yield replace(stroke, words=old, tone=None)
        yield replace(stroke, words=fresh, role="side", tone="added")
