"""phases: the level `phase`, at which several nodes of a graph are drawn as one box.

A loop is one box, and so is an agent with the append of its answer. A graph that is one loop and
nothing else is drawn by its phases instead: all its nodes of one kind; agents and people stay
apart. Nothing is left out: every line of the table is between two boxes, with its outcome, or
inside one, where it is counted. Marks on nodes become marks on boxes, and numbers add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar, final

from ..graph import Edge, NodeGraph
from ..node_protocol import Kind
from ..proofs import strong_components
from .drawing import Look, Role, lines, notes
from .marks import Marks, Tally, Tone, Way, loudest
from .pictures import Picture, Shape, Stroke, Word, end_shape

__all__ = ["Box", "inside", "phase_picture", "phases"]

S = TypeVar("S")

Group: TypeAlias = tuple[str, ...]

_APART: Final[frozenset[Kind]] = frozenset({"graph", "human"})
"""Kinds that form no phase: a reader wants to see who answers and who decides."""

_NAMES_A_ROW: Final = 3

# A line stands for several of the table: it has the first of their roles in this order.
_ROLES: Final[tuple[Role, ...]] = ("main", "closing", "leaving", "side", "quiet")


@final
@dataclass(frozen=True, slots=True)
class Box:
    """Nodes that are drawn as one; every node is in exactly one box."""

    name: str
    look: Look
    nodes: Group


def phases(graph: NodeGraph[S]) -> tuple[Box, ...]:
    """Return the boxes of a graph, in the order of its table."""
    pairs = [(edge.source, edge.target) for edge in graph.edges if edge.target != "END"]
    speakers = _speakers(graph)
    loops = _with_appends(graph, list(strong_components(graph.nodes, pairs)), speakers)
    if len(loops) > 1:
        return tuple(_boxes(graph, loops))
    kinds = _with_appends(graph, _by_kind(graph, speakers), speakers)
    nodes = [(name,) for name in graph.nodes]
    return tuple(_boxes(graph, kinds if len(kinds) > 1 else nodes))


def inside(graph: NodeGraph[S], boxes: Sequence[Box]) -> tuple[tuple[Edge, ...], ...]:
    """Return, for each box, the lines of the table that begin and end in it."""
    places = {name: place for place, box in enumerate(boxes) for name in box.nodes}
    found: list[list[Edge]] = [[] for _ in boxes]
    for edge in graph.edges:
        place = places[edge.source]
        if place == places.get(edge.target):
            found[place].append(edge)
    return tuple(map(tuple, found))


def phase_picture(
    graph: NodeGraph[Any], marks: Marks, prefix: str
) -> tuple[Picture, Mapping[str, str]]:
    """Draw one graph with a shape for each box; also return the id of each node's box."""
    boxes = phases(graph)
    ids = {name: f"{prefix}n{number}" for number, box in enumerate(boxes) for name in box.nodes}
    ids |= {"END": f"{prefix}last"}
    shapes = [
        _shape(graph, box, within, marks, ids[box.nodes[0]])
        for box, within in zip(boxes, inside(graph, boxes), strict=True)
    ]
    every = (*shapes, end_shape(marks, ids["END"]))
    strokes = tuple(_strokes(graph, marks, ids))
    return Picture(marks.titled(graph.name), ids[graph.start], every, strokes, (), prefix), ids


def _by_kind(graph: NodeGraph[S], speakers: Mapping[str, str]) -> list[Group]:
    """Return the phases of a loop: nodes of one kind; agents, people and their appends alone."""
    found: dict[str, list[str]] = {}
    for name, node in graph.nodes.items():
        is_apart = node.kind in _APART or name in speakers
        found.setdefault(f"node {name}" if is_apart else node.kind, []).append(name)
    return [tuple(group) for group in found.values()]


def _with_appends(
    graph: NodeGraph[S], found: Sequence[Group], speakers: Mapping[str, str]
) -> list[Group]:
    """Return the groups with each append in the group of the agent whose answer it appends."""
    alone = {group[0] for group in found if len(group) == 1}
    follows = {name: agent for name, agent in speakers.items() if {name, agent} <= alone}
    appends: dict[str, list[str]] = {}
    for name in graph.nodes:
        if name in follows:
            appends.setdefault(follows[name], []).append(name)
    return [(*group, *appends.get(group[0], ())) for group in found if group[0] not in follows]


def _speakers(graph: NodeGraph[S]) -> Mapping[str, str]:
    """Return the agent of each append that only one agent leads to."""
    sources: dict[str, set[str]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    return {
        name: source
        for name, node in graph.nodes.items()
        if node.kind == "append" and len(sources.get(name, ())) == 1
        for source in sources[name]
        if graph.nodes[source].kind == "graph"
    }


def _boxes(graph: NodeGraph[S], found: Sequence[Group]) -> Iterator[Box]:
    taken = {*graph.nodes}
    for group, entry in zip(found, _entries(graph, found), strict=True):
        first = graph.nodes[group[0]]
        kinds = {graph.nodes[name].kind for name in group}
        if len(group) == 1 or (first.kind == "graph" and kinds <= {"graph", "append"}):
            yield Box(first.name, first.kind, group)
        elif len(kinds) == 1:
            yield Box(_free(first.kind, taken), first.kind, group)
        else:
            yield Box(_free(f"{entry} loop", taken), "loop", group)


def _entries(graph: NodeGraph[S], found: Sequence[Group]) -> Iterator[str]:
    """Yield the node of each group at which runs enter it."""
    places = {name: place for place, group in enumerate(found) for name in group}
    into = {edge.target for edge in graph.edges if places[edge.source] != places.get(edge.target)}
    for group in found:
        if graph.start in group:
            yield graph.start
        else:
            yield next((name for name in group if name in into), group[0])


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no box and no node has, and add it to `taken`."""
    names = (name if number == 1 else f"{name} {number}" for number in count(1))
    free = next(candidate for candidate in names if candidate not in taken)
    taken.add(free)
    return free


def _shape(graph: NodeGraph[S], box: Box, edges: Sequence[Edge], marks: Marks, place: str) -> Shape:
    tones: list[Tone | None] = [marks.node_tones.get(name) for name in box.nodes]
    shaded = marks.shaded >= {*box.nodes}
    if len(box.nodes) == 1 and not edges:
        (name,) = box.nodes
        alone = notes(graph.nodes[name])
        return Shape(place, marks.node_words(name), box.look, alone, tones[0], shaded)
    within = [(edge.source, edge.outcome) for edge in edges]
    # A thick or red line inside shows on the box; a pale one does not make the box pale.
    loud = [way for way in within if marks.way_tones.get(way, "weak") != "weak"]
    tones.extend(marks.way_tones[way] for way in loud)
    moved = _passages(within, marks)
    visits = sum([marks.visits[name] for name in box.nodes if name in marks.visits], Tally())
    # Runs that move inside a box do not enter it again.
    entered = visits.less_often(moved) if visits.times else visits
    words = [box.name, *([entered.count] if entered.times else []), *filter(None, [entered.spent])]
    slip = tuple([note for name in box.nodes for note in notes(graph.nodes[name])])
    details = tuple(_details(box, marks, within, moved))
    return Shape(place, tuple(words), box.look, slip, loudest(tones), shaded, details)


def _details(box: Box, marks: Marks, within: Sequence[Way], moved: Tally) -> Iterator[str]:
    """Yield the nodes of a box, the number of lines inside, and the marks on both."""
    if box.nodes != (box.name,):
        for first in range(0, len(box.nodes), _NAMES_A_ROW):
            row = ", ".join(box.nodes[first : first + _NAMES_A_ROW])
            yield row if first + _NAMES_A_ROW >= len(box.nodes) else f"{row},"
    if within:
        lines_inside = "1 line inside" if len(within) == 1 else f"{len(within)} lines inside"
        yield f"{lines_inside}: {moved.count}" if moved.times else lines_inside
    for name in box.nodes:
        for line in filter(None, marks.nodes.get(name, "").split("\n")):
            yield f"{name}: {line}" if len(box.nodes) > 1 else line
    for source, outcome in within:
        if words := marks.ways.get((source, outcome)):
            yield f"{source} {outcome} {words}"


def _strokes(graph: NodeGraph[S], marks: Marks, ids: Mapping[str, str]) -> Iterator[Stroke]:
    """Yield a line for each pair of boxes, with all outcomes between them."""
    roles: dict[tuple[str, str], list[Role]] = {}
    ways: dict[tuple[str, str], list[Way]] = {}
    for line in lines(graph):
        pair = ids[line.source], ids[line.target]
        if pair[0] != pair[1]:
            roles.setdefault(pair, []).append(line.role)
            ways.setdefault(pair, []).extend((line.source, outcome) for outcome in line.outcomes)
    for pair, found in ways.items():
        role = min(roles[pair], key=_ROLES.index)
        tone = loudest([marks.way_tones.get(way) for way in found])
        yield Stroke(*pair, tuple(_words(found, marks)), role, tone)


def _words(ways: Sequence[Way], marks: Marks) -> Iterator[Word]:
    """Yield each outcome once, with how many nodes leave by it, and its marks."""
    by_outcome: dict[str, list[Way]] = {}
    for way in ways:
        by_outcome.setdefault(way[1], []).append(way)
    for outcome, same in by_outcome.items():
        taken = _passages(same, marks)
        said = dict.fromkeys(words for way in same if (words := marks.ways.get(way)))
        nodes = [f"({len(same)} nodes)"] if len(same) > 1 else []
        times = [taken.count] if taken.times else []
        yield Word(outcome, " ".join([*nodes, *times, *said]))


def _passages(ways: Sequence[Way], marks: Marks) -> Tally:
    return sum([marks.passages[way] for way in ways if way in marks.passages], Tally())
