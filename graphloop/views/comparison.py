"""Draws two versions of a graph as one picture that shows the added and the removed parts.

The picture also numbers the run that shows the first lost guarantee. The removed nodes come after
all nodes of the later version, which so keep their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from ..graph import NodeGraph
from ..proofs import Comparison
from .drawing import lines, notes
from .levels import picture
from .marks import Marks, Tone, Way
from .pictures import Picture, Shape, Stroke, Word

__all__ = ["changes_picture"]

S = TypeVar("S")


def changes_picture(before: NodeGraph[S], after: NodeGraph[S], comparison: Comparison) -> Picture:
    """Return the picture of `after`, with its differences from `before` marked.

    If `after` lost a guarantee, the transitions of a run that shows the first loss are numbered.
    """
    drawn = picture(after, _marks_of(comparison))
    ids = {**drawn.ids}
    gone: list[Shape] = []
    for name in comparison.nodes_removed:
        ids[name] = f"gone{len(ids)}"
        node = before.nodes[name]
        gone.append(Shape(ids[name], (name, "(gone)"), node.kind, notes(node), "removed"))
    rows: dict[tuple[str, str], list[Word]] = {}
    for row in comparison.rows_removed:
        rows.setdefault((ids[row.source], ids[row.target]), []).append(Word(row.outcome, "(gone)"))
    removed = [Stroke(*pair, tuple(words), "side", "removed") for pair, words in rows.items()]
    kept = _split_new_edges(
        drawn, after, {(row.source, row.outcome) for row in comparison.rows_added}
    )
    shapes = (*drawn.shapes[:-1], *gone, drawn.shapes[-1])
    return replace(drawn, shapes=shapes, strokes=(*kept, *removed))


def _marks_of(comparison: Comparison) -> Marks:
    was = {(row.source, row.outcome): row.target for row in comparison.rows_removed}
    added = [(row.source, row.outcome) for row in comparison.rows_added]
    words = {way: f"(was {was[way]})" if way in was else "(new)" for way in added}
    tones: dict[Way, Tone] = {}
    for way, numbers in _number_transitions(comparison).items():
        words[way] = f"{words.get(way, '')} [{numbers}]".strip()
        tones[way] = "strong"
    tones |= dict.fromkeys(added, "added")
    changes = [change for change in comparison.changes if change.subject in {"node", "gate"}]
    nodes = {change.node: "(changed)" for change in changes}
    nodes |= dict.fromkeys(comparison.nodes_added, "(new)")
    is_renamed = comparison.before != comparison.after
    title = f"{comparison.before} -> {comparison.after}" if is_renamed else "changes"
    return Marks(
        title=f"{title}: {'weaker' if comparison.weaker else 'not weaker'}",
        nodes=nodes,
        ways=words,
        node_tones=dict.fromkeys(nodes, "added"),
        way_tones=tones,
    )


def _number_transitions(comparison: Comparison) -> dict[Way, str]:
    """Map each transition of the run that shows the first lost guarantee to its step numbers."""
    numbers: dict[Way, str] = {}
    losses = (loss for loss in comparison.changes if loss.effect == "weaker" and loss.outcomes)
    for loss in [*losses][:1]:
        for number, way in enumerate(zip(loss.witness, loss.outcomes, strict=False), 1):
            numbers[way] = f"{numbers[way]}, {number}" if way in numbers else str(number)
    return numbers


def _split_new_edges(drawn: Picture, graph: NodeGraph[S], added: set[Way]) -> Iterator[Stroke]:
    """Yield the edges of a picture; an edge with old and added outcomes becomes two edges."""
    for stroke, line in zip(drawn.strokes, lines(graph), strict=True):
        words = [*zip(stroke.words, [way in added for way in line.ways], strict=True)]
        old, new = (
            tuple([word for word, is_new in words if is_new is side]) for side in (False, True)
        )
        if old and new:
            yield replace(stroke, words=old, tone=None)
            yield replace(stroke, words=new, role="side", tone="added")
        else:
            yield stroke
