"""phases: the level `phase`, at which several nodes of a graph are drawn as one box.

The nodes of a cycle form one box, and so do an agent and the append node for its answer. If the
whole graph is a single cycle, all nodes of the same kind form one box; agents and people keep boxes
of their own. Every transition is shown: as an edge between two boxes, or in a count inside one box.
A box shows the marks of its nodes, with their counts added.
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
from .marks import Marks, Tone, Way, loudest, total
from .pictures import Picture, Shape, Stroke, Word, end_shape

__all__ = ["Box", "inside", "phase_picture", "phases"]

S = TypeVar("S")

Group: TypeAlias = tuple[str, ...]

_APART: Final[frozenset[Kind]] = frozenset({"graph", "human"})
"""The kinds whose nodes keep boxes of their own, so that each agent and person is visible."""

_NAMES_A_ROW: Final = 3

_ROLES: Final[tuple[Role, ...]] = ("main", "closing", "leaving", "side", "quiet")
"""The order of precedence of roles when several edges are drawn as one."""


@final
@dataclass(frozen=True, slots=True)
class Box:
    """A group of nodes that is drawn as one shape; each node is in exactly one box."""

    name: str
    look: Look
    nodes: Group


def phases(graph: NodeGraph[S]) -> tuple[Box, ...]:
    """Group the nodes of a graph into boxes, and return the boxes in the order of the table."""
    pairs = [(edge.source, edge.target) for edge in graph.edges if edge.target != "END"]
    speakers = _speaking_agents(graph)
    loops = _with_appends(graph, list(strong_components(graph.nodes, pairs)), speakers)
    if len(loops) > 1:
        return tuple(_boxes_of(graph, loops))
    kinds = _with_appends(graph, _by_kind(graph, speakers), speakers)
    return tuple(_boxes_of(graph, kinds if len(kinds) > 1 else [(name,) for name in graph.nodes]))


def inside(graph: NodeGraph[S], boxes: Sequence[Box]) -> tuple[tuple[Edge, ...], ...]:
    """Return, for each box, the transitions whose source and target are both in the box."""
    return tuple(
        tuple([edge for edge in graph.edges if {edge.source, edge.target} <= {*box.nodes}])
        for box in boxes
    )


def phase_picture(graph: NodeGraph[Any], marks: Marks, prefix: str) -> Picture:
    """Return the picture of a graph with a shape for each box of nodes, without child graphs."""
    boxes = phases(graph)
    ids = {name: f"{prefix}n{number}" for number, box in enumerate(boxes) for name in box.nodes}
    ids["END"] = f"{prefix}last"
    shapes = [
        _box_shape(graph, box, [(edge.source, edge.outcome) for edge in edges], marks, ids)
        for box, edges in zip(boxes, inside(graph, boxes), strict=True)
    ]
    every = (*shapes, end_shape(marks, ids["END"]))
    strokes, title = tuple(_box_edges(graph, marks, ids)), marks.titled(graph.name)
    return Picture(title, ids[graph.start], every, strokes, ids, prefix=prefix)


def _by_kind(graph: NodeGraph[S], speakers: Mapping[str, str]) -> list[Group]:
    """Group nodes by kind; each agent, person, and append of an agent's answer is a group alone."""
    kinds: dict[str, list[str]] = {}
    for name, node in graph.nodes.items():
        is_apart = node.kind in _APART or name in speakers
        kinds.setdefault(f"node {name}" if is_apart else node.kind, []).append(name)
    return [tuple(names) for names in kinds.values()]


def _with_appends(
    graph: NodeGraph[S], groups: Sequence[Group], speakers: Mapping[str, str]
) -> list[Group]:
    """Return the groups after moving each single append node into the group of its agent."""
    alone = {group[0] for group in groups if len(group) == 1}
    follows = {name: agent for name, agent in speakers.items() if {name, agent} <= alone}
    appends: dict[str, list[str]] = {}
    for name in graph.nodes:
        if name in follows:
            appends.setdefault(follows[name], []).append(name)
    return [(*group, *appends.get(group[0], ())) for group in groups if group[0] not in follows]


def _speaking_agents(graph: NodeGraph[S]) -> Mapping[str, str]:
    """Map each append node to its agent, if an agent is the only node that leads to it."""
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


def _boxes_of(graph: NodeGraph[S], groups: Sequence[Group]) -> Iterator[Box]:
    taken = {*graph.nodes}
    for group in groups:
        first = graph.nodes[group[0]]
        kinds = {graph.nodes[name].kind for name in group}
        if len(group) == 1 or (first.kind == "graph" and kinds <= {"graph", "append"}):
            yield Box(first.name, first.kind, group)
        elif len(kinds) == 1:
            yield Box(_unused_name(first.kind, taken), first.kind, group)
        else:
            yield Box(_unused_name(f"{_entry_node(graph, group)} loop", taken), "loop", group)


def _entry_node(graph: NodeGraph[S], group: Group) -> str:
    """Return the first node of a group that a transition from outside, or the start, leads to."""
    into = {edge.target for edge in graph.edges if edge.source not in group} | {graph.start}
    return next((name for name in group if name in into), group[0])


def _unused_name(name: str, taken: set[str]) -> str:
    """Return `name`, with a number if it is in `taken`, and add the result to `taken`."""
    names = (name if number == 1 else f"{name} {number}" for number in count(1))
    free = next(candidate for candidate in names if candidate not in taken)
    taken.add(free)
    return free


def _box_shape(
    graph: NodeGraph[S], box: Box, within: Sequence[Way], marks: Marks, ids: Mapping[str, str]
) -> Shape:
    shape_id, slip = (
        ids[box.nodes[0]],
        [
            note
            for name in box.nodes
            for note in notes(graph.nodes[name], graph.surroundings.placed)
        ],
    )
    tones: list[Tone | None] = [marks.node_tones.get(name) for name in box.nodes]
    shaded = marks.shaded >= {*box.nodes}
    if len(box.nodes) == 1 and not within:
        words = marks.node_words(box.nodes[0])
        return Shape(shape_id, words, box.look, tuple(slip), tones[0], shaded)
    # Pale transitions inside are left out, because a box is pale only if all its nodes are.
    loud = [way for way in within if marks.way_tones.get(way, "weak") != "weak"]
    tones.extend(marks.way_tones[way] for way in loud)
    moved = total(marks.passages[way] for way in within if way in marks.passages)
    visits = total(marks.visits[name] for name in box.nodes if name in marks.visits)
    # A transition inside the box is a visit of a node, but it does not enter the box.
    entered = (visits + -moved).count if visits.times else ""
    return Shape(
        shape_id,
        (box.name, *filter(None, [entered, visits.spent])),
        box.look,
        tuple(slip),
        loudest(tones),
        shaded,
        tuple(_box_lines(box, marks, within, moved.count if moved.times else "")),
    )


def _box_lines(box: Box, marks: Marks, within: Sequence[Way], moved: str) -> Iterator[str]:
    """Yield the text lines of a box: its nodes, its count of inner transitions, and their marks."""
    if box.nodes != (box.name,):
        for first in range(0, len(box.nodes), _NAMES_A_ROW):
            row = ", ".join(box.nodes[first : first + _NAMES_A_ROW])
            yield row if first + _NAMES_A_ROW >= len(box.nodes) else f"{row},"
    if within:
        lines_inside = "1 line inside" if len(within) == 1 else f"{len(within)} lines inside"
        yield f"{lines_inside}: {moved}" if moved else lines_inside
    for name in box.nodes:
        for line in filter(None, marks.nodes.get(name, "").split("\n")):
            yield f"{name}: {line}" if len(box.nodes) > 1 else line
    for source, outcome in within:
        if words := marks.ways.get((source, outcome)):
            yield f"{source} {outcome} {words}"


def _box_edges(graph: NodeGraph[S], marks: Marks, ids: Mapping[str, str]) -> Iterator[Stroke]:
    """Yield an edge for each pair of boxes, with all outcomes that lead from one to the other."""
    roles: dict[tuple[str, str], list[Role]] = {}
    ways: dict[tuple[str, str], list[Way]] = {}
    for line in lines(graph):
        pair = ids[line.source], ids[line.target]
        if pair[0] != pair[1]:
            roles.setdefault(pair, []).append(line.role)
            ways.setdefault(pair, []).extend(line.ways)
    for pair, between in ways.items():
        role = min(roles[pair], key=_ROLES.index)
        yield Stroke(*pair, tuple(_edge_labels(between, marks)), role, marks.tone(between))


def _edge_labels(ways: Sequence[Way], marks: Marks) -> Iterator[Word]:
    """Yield a label for each different outcome: its number of nodes, its counts and its marks."""
    for outcome in dict.fromkeys(outcome for _, outcome in ways):
        same = [way for way in ways if way[1] == outcome]
        nodes = f"({len(same)} nodes)" if len(same) > 1 else ""
        taken = total(marks.passages[way] for way in same if way in marks.passages)
        words = dict.fromkeys(marks.ways.get(way, "") for way in same)
        counts = taken.count if taken.times else ""
        yield Word(outcome, " ".join(filter(None, [nodes, counts, *words])))
