"""Reachability: where runs arrive, and how they end (GL1, GL5).

A breadth-first search from the start and another from END, backwards, decide GL1. GL5 asks each
row of the table; a graph asks the same when it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from ..graph import NodeGraph
from ..outcomes import outcome_name
from .proof_graph import END, ProofGraph, Transition, breadth_first, path_to, strong_components
from .report import Finding

__all__ = ["find_table_mismatches", "find_traps", "find_unreachable_nodes", "islands", "shut"]

S = TypeVar("S")


def find_unreachable_nodes(ground: ProofGraph[S]) -> Iterator[Finding]:
    """Yield every node that no run arrives at."""
    start = ground.graph.start
    for island in islands(ground):
        for name in island:
            yield ground.finding(
                "GL1",
                f"no run arrives here: no way leads from the start {start!r} to {name!r}.",
                f"lead an outcome of a node that runs arrive at to {island[0]!r}, or remove "
                f"{name!r}.",
                node=name,
            )


def islands(ground: ProofGraph[S]) -> list[tuple[str, ...]]:
    """Return what no run arrives at: each time where to enter it, and what that leads to."""
    graph, ways = ground.graph, _all_ways(ground.graph)
    seen = breadth_first([graph.start], lambda name: _steps(ways, name))
    lost = [name for name in ways if name not in seen and name != END]
    inside = [(way.source, way.target) for name in lost for way in ways[name]]
    inside = [(source, target) for source, target in inside if target not in seen]
    parts = list(strong_components(lost, inside))
    part_of = {name: place for place, part in enumerate(parts) for name in part}
    after = {part_of[target] for source, target in inside if part_of[source] != part_of[target]}
    heads = [part[0] for place, part in enumerate(parts) if place not in after]
    found = breadth_first(
        heads, lambda name: [one for one in _steps(ways, name) if one[1] not in seen]
    )
    led: dict[str, list[str]] = {head: [] for head in heads}
    for name in lost:
        walked = path_to(found, name)
        led[walked[0].source if walked else name].append(name)
    return [(head, *[name for name in names if name != head]) for head, names in led.items()]


def find_traps(ground: ProofGraph[S]) -> Iterator[Finding]:
    """Yield every innermost part of the graph that has no way out.

    The witness leads from the start into the part and once around in it.
    """
    ways = _all_ways(ground.graph)
    seen = breadth_first([ground.graph.start], lambda name: _steps(ways, name))
    for group in shut(ground):
        yield _trap(ground, ways, group, seen)


def shut(ground: ProofGraph[S]) -> Iterator[tuple[str, ...]]:
    """Yield the innermost parts of a graph that have no way out."""
    ways = _all_ways(ground.graph)
    back: dict[str, list[Transition]] = {}
    for row in ways.values():
        for way in row:
            back.setdefault(way.target, []).append(way)
    home = breadth_first([END], lambda name: ((way, way.source) for way in back.get(name, ())))
    closed = [name for name in ways if name not in home]
    lines = [(way.source, way.target) for name in closed for way in ways[name]]
    for group in strong_components(closed, lines):
        within = set(group)
        if not any(way.target not in within for name in group for way in ways[name]):
            yield group


def _trap(
    ground: ProofGraph[S],
    ways: Mapping[str, tuple[Transition, ...]],
    group: tuple[str, ...],
    seen: Mapping[str, tuple[Transition, str] | None],
) -> Finding:
    order = {name: place for place, name in enumerate(seen)}
    into = min(group, key=lambda name: order.get(name, len(order)))
    walked = path_to(seen, into) if into in seen else ()
    around = breadth_first([way.target for way in ways[into]], lambda name: _steps(ways, name))
    back = path_to(around, into) if into in around else ()
    entered = back[0].source if back else into
    first = next((way for way in ways[into] if way.target == entered), None)
    names = ", ".join(repr(name) for name in group)
    return ground.finding(
        "GL1",
        f"a run that arrives here never ends: no outcome leads out of {names}.",
        f"lead an outcome of {names} to END, or to a node from which END can be reached.",
        node=into,
        walked=ground.run(walked if first is None else (*walked, first, *back)),
    )


def _all_ways(graph: NodeGraph[S]) -> dict[str, tuple[Transition, ...]]:
    """Return every line, also those that no node leaves by: they are drawn, too.

    A target without a row is a place with no way out.
    """
    ways: dict[str, tuple[Transition, ...]] = {graph.start: ()}
    for name, row in graph.table.items():
        ways[name] = tuple(Transition(name, outcome, target) for outcome, target in row.items())
    return ways | {
        way.target: ()
        for row in ways.values()
        for way in row
        if way.target not in ways and way.target != END
    }


def _steps(
    ways: Mapping[str, tuple[Transition, ...]], name: str
) -> Iterator[tuple[Transition, str]]:
    return ((way, way.target) for way in ways.get(name, ()))


def find_table_mismatches(ground: ProofGraph[S]) -> Iterator[Finding]:
    """Yield every place where the table does not fit the nodes."""
    graph = ground.graph
    if graph.start not in graph.nodes:
        yield _wrong(f"start={graph.start!r}", "the start node has no row.", "add its row.")
    for name in sorted(graph.nodes.keys() ^ graph.table.keys()):
        yield _wrong(f"node {name!r}", "has no row, or its row no node.", "add what is missing.")
    for name, row in graph.table.items():
        place = f"row of {name!r}"
        declared = graph.nodes[name].outcomes if name in graph.nodes else frozenset(row)
        for word in sorted(outcome_name(outcome) for outcome in declared - row.keys()):
            yield _wrong(place, f"outcome {word!r} leads nowhere.", "give it a target or END.")
        for word in sorted(outcome_name(outcome) for outcome in row.keys() - declared):
            yield _wrong(place, f"{name!r} never leaves by {word!r}.", "remove it.")
        # Not as a difference of sets: that would go through all nodes for every row.
        lost = {one for one in row.values() if one not in graph.nodes and one != END}
        for target in sorted(lost):
            yield _wrong(place, f"leads to {target!r}, which has no row.", "add its row.")


def _wrong(place: str, message: str, fix: str) -> Finding:
    return Finding("GL5", "error", place, message, (), fix)
