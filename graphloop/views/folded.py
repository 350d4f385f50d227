"""folded: a graph drawn with several nodes in one box; nothing of it is left out.

Every line of the table is there: between two boxes, with its outcome, or inside one, where it is
counted. What is laid over the nodes is laid over their boxes, and numbers are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

from ..graph import Edge, Graph
from .drawing import Look, Role, lines, notes
from .marks import Marks, Tone, Way, loudest
from .picture import Picture, Shape, Stroke, Word
from .tally import Tally, sum_of

__all__ = ["Box", "folded_picture", "inside"]

S = TypeVar("S")

NAMES_A_ROW: Final = 3

# A line stands for several of the table: it looks like the one that says most.
_ROLES: Final[tuple[Role, ...]] = ("main", "closing", "leaving", "side", "quiet")


@final
@dataclass(frozen=True, slots=True)
class Box:
    """Nodes that are drawn as one; a node is in exactly one box."""

    name: str
    look: Look
    nodes: tuple[str, ...]


def inside(graph: Graph[S], boxes: Sequence[Box]) -> tuple[tuple[Edge, ...], ...]:
    """Return the lines of the table that both begin and end in each box."""
    places = {name: place for place, box in enumerate(boxes) for name in box.nodes}
    found: list[list[Edge]] = [[] for _ in boxes]
    for one in graph.edges:
        place = places.get(one.source)
        if place is not None and place == places.get(one.target):
            found[place].append(one)
    return tuple(map(tuple, found))


def folded_picture(
    graph: Graph[Any], boxes: Sequence[Box], marks: Marks, prefix: str
) -> tuple[Picture, Mapping[str, str]]:
    """Draw a graph in boxes, all of its nodes; return the id of each node's box, too."""
    ids = {name: f"{prefix}n{number}" for number, box in enumerate(boxes) for name in box.nodes} | {
        "END": f"{prefix}last"
    }
    shapes = [
        _shape(graph, box, within, marks, ids[box.nodes[0]])
        for box, within in zip(boxes, inside(graph, boxes), strict=True)
    ]
    shapes.append(Shape(ids["END"], marks.named("END"), None, (), marks.node_tones.get("END")))
    strokes = tuple(_strokes(graph, marks, ids))
    title = marks.titled(graph.name)
    return Picture(title, ids[graph.start], tuple(shapes), strokes, (), prefix), ids


def _shape(graph: Graph[S], box: Box, edges: Sequence[Edge], marks: Marks, place: str) -> Shape:
    tones: list[Tone | None] = [marks.node_tones.get(name) for name in box.nodes]
    shaded = marks.shaded >= {*box.nodes}
    if len(box.nodes) == 1 and not edges:
        (name,) = box.nodes
        alone = notes(graph.nodes[name])
        return Shape(place, marks.named(name), box.look, alone, tones[0], shaded)
    within = [(one.source, one.outcome) for one in edges]
    # A thick or red line inside shows on the box; a pale one does not make the box pale.
    loud = [way for way in within if marks.way_tones.get(way, "weak") != "weak"]
    tones.extend(marks.way_tones[way] for way in loud)
    visits = _visits(box, marks, within)
    words = [box.name]
    if visits.times:
        words.append(visits.count)
    if visits.spent:
        words.append(visits.spent)
    slip = tuple([note for name in box.nodes for note in notes(graph.nodes[name])])
    details = tuple(_details(box, marks, within))
    return Shape(place, tuple(words), box.look, slip, loudest(tones), shaded, details)


def _visits(box: Box, marks: Marks, within: Sequence[Way]) -> Tally:
    """Return how often a box was come to: its nodes were, but from inside it."""
    known = sum_of(marks.visits[name] for name in box.nodes if name in marks.visits)
    return known.less(_moved(marks, within)) if known.times else known


def _moved(marks: Marks, within: Sequence[Way]) -> Tally:
    return sum_of(marks.passages[way] for way in within if way in marks.passages)


def _details(box: Box, marks: Marks, within: Sequence[Way]) -> Iterator[str]:
    """Yield what a box holds, how much goes on inside, and what is known of that."""
    if box.nodes != (box.name,):
        for first in range(0, len(box.nodes), NAMES_A_ROW):
            row = ", ".join(box.nodes[first : first + NAMES_A_ROW])
            yield row if first + NAMES_A_ROW >= len(box.nodes) else f"{row},"
    if within:
        moved = _moved(marks, within)
        count = "1 line inside" if len(within) == 1 else f"{len(within)} lines inside"
        yield f"{count}: {moved.count}" if moved.times else count
    for name in box.nodes:
        for line in marks.nodes.get(name, "").split("\n"):
            if line:
                yield f"{name}: {line}" if len(box.nodes) > 1 else line
    for source, outcome in within:
        if words := marks.ways.get((source, outcome)):
            yield f"{source} {outcome} {words}"


def _strokes(graph: Graph[S], marks: Marks, ids: Mapping[str, str]) -> Iterator[Stroke]:
    """Yield the lines between boxes; of each pair all outcomes as one line."""
    roles: dict[tuple[str, str], list[Role]] = {}
    ways: dict[tuple[str, str], list[Way]] = {}
    for line in lines(graph):
        pair = ids[line.source], ids[line.target]
        if pair[0] != pair[1]:
            roles.setdefault(pair, []).append(line.role)
            ways.setdefault(pair, []).extend((line.source, one) for one in line.outcomes)
    for pair, found in ways.items():
        role = min(roles[pair], key=_ROLES.index)
        tone = loudest([marks.way_tones.get(way) for way in found])
        yield Stroke(*pair, tuple(_words(found, marks)), role, tone)


def _words(ways: Sequence[Way], marks: Marks) -> Iterator[Word]:
    """Yield each outcome once: how many nodes leave by it, how often, and what else is known."""
    by_outcome: dict[str, list[Way]] = {}
    for way in ways:
        by_outcome.setdefault(way[1], []).append(way)
    for outcome, same in by_outcome.items():
        taken = sum_of(marks.passages[way] for way in same if way in marks.passages)
        said = dict.fromkeys(words for way in same if (words := marks.ways.get(way)))
        nodes = [f"({len(same)} nodes)"] if len(same) > 1 else []
        times = [taken.count] if taken.times else []
        yield Word(outcome, " ".join([*nodes, *times, *said]))
