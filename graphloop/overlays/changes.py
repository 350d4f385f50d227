"""changes: two graphs in one picture: what is new, what is gone, and the way that got weaker.

Drawn is the later graph, as it always is; what is gone is added to it, and stands last, so that
what stayed keeps its place. From far, a line that is gone from inside a box is told in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Final, TypeVar

from ..graph import Edge, Graph
from ..proofs.difference import Difference
from ..proofs.table_changes import TableChanges
from ..proofs.verdict import Consequence
from ..views.drawing import Line, lines, notes
from ..views.marks import Marks, Tone, Way
from ..views.picture import Picture, Shape, Stroke, Word
from .levels import DRAWS, Level, level_picture

__all__ = ["changes_picture"]

S = TypeVar("S")

NEW: Final = "(new)"
GONE: Final = "(gone)"


def changes_picture(
    before: Graph[S], after: Graph[S], found: Difference, level: Level = "node"
) -> Picture:
    """Return `after`, with what was added and removed since `before` marked in it.

    The witness of the first thing that got weaker is numbered.

    Args:
        before: the earlier graph.
        after: the later graph.
        found: their difference.
        level: how near it is seen.
    """
    changes = found.changes
    marks = _marks(after, found)
    drawn = level_picture(after, level, marks)
    ids = {**DRAWS[level](after, marks, "")[1]}
    for name in changes.nodes_removed:
        ids[name] = f"gone{len(ids)}"
    gone, inside = _gone(changes, ids)
    shapes = [
        replace(one, details=(*one.details, *inside.get(one.id, ()))) for one in drawn.shapes[:-1]
    ]
    for name in changes.nodes_removed:
        node = before.nodes[name]
        shapes.append(Shape(ids[name], (name, GONE), node.kind, notes(node), "removed"))
    new = {way for way, tone in marks.way_tones.items() if tone == "added"}
    # A line between boxes stands for lines of several nodes: words say which of them are new.
    there = drawn.strokes if level == "phase" else _apart(drawn.strokes, lines(after), new)
    return replace(drawn, shapes=(*shapes, drawn.shapes[-1]), strokes=(*there, *gone))


def _marks(after: Graph[S], found: Difference) -> Marks:
    changes = found.changes
    new: list[Way] = [(one.source, one.outcome) for one in changes.edges_added]
    words = dict.fromkeys(new, NEW)
    for one in changes.rewired:
        new.append((one.source, one.outcome))
        words[new[-1]] = f"(was {one.before})"
    tones: dict[Way, Tone] = {}
    for way, number in _numbered(found.verdict).items():
        words[way] = f"{words.get(way, '')} [{number}]".strip()
        tones[way] = "strong"
    tones |= dict.fromkeys(new, "added")
    node_words = dict.fromkeys(changes.nodes_added, NEW)
    node_words |= {one.node: f"({one.what} changed)" for one in changes.nodes_changed}
    added: Tone = "added"
    verdict = "weaker" if found.weaker else "not weaker"
    title = f"{found.before} -> {found.after}" if found.before != after.name else "changes"
    return Marks(
        title=f"{title}: {verdict}",
        nodes=node_words,
        ways=words,
        node_tones=dict.fromkeys(node_words, added),
        way_tones=tones,
    )


def _numbered(verdict: Iterable[Consequence]) -> Mapping[Way, str]:
    shown = next((one for one in verdict if one.effect == "weaker" and one.witness), None)
    if shown is None:
        return {}
    steps: dict[Way, str] = {}
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
        yield replace(stroke, words=tuple([word for word, is_new in told if not is_new]), tone=None)
        fresh = tuple([word for word, is_new in told if is_new])
        yield replace(stroke, words=fresh, role="side", tone="added")


def _gone(
    changes: TableChanges, ids: Mapping[str, str]
) -> tuple[list[Stroke], Mapping[str, list[str]]]:
    """Return the lines that are gone, those of one pair as one, and those inside each box."""
    gone = [*changes.edges_removed]
    gone += [Edge(one.source, one.outcome, one.before) for one in changes.rewired]
    joined: dict[tuple[str, str], dict[Word, None]] = {}
    inside: dict[str, list[str]] = {}
    for one in gone:
        pair = ids[one.source], ids[one.target]
        if pair[0] == pair[1] and one.source != one.target:
            told = f"{one.source} {one.outcome} to {one.target} {GONE}"
            inside.setdefault(pair[0], []).append(told)
        else:
            joined.setdefault(pair, {})[Word(one.outcome, GONE)] = None
    strokes = [Stroke(*pair, tuple(words), "side", "removed") for pair, words in joined.items()]
    return strokes, inside
