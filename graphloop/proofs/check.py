"""check: decide what can be decided about a graph before it runs.

Walks the table the engine executes, so a proof is about what runs. Decided today: GL1 (nothing
is unreachable, nothing is a trap) and GL5 (outcomes and table agree).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Final, TypeVar

import networkx as nx

from ..graph import Graph
from ..outcomes import outcome_name
from .report import Finding, Report

if TYPE_CHECKING:
    # networkx's own class is not subscriptable; only its stubs are generic.
    Lines = nx.DiGraph[str]
else:
    Lines = nx.DiGraph

__all__ = ["check"]

S = TypeVar("S")

_CHECKED: Final = frozenset({"GL1", "GL5"})
_END: Final = "END"


def check(graph: Graph[S]) -> Report:
    """Return what is proven about `graph`, and a shortest witness for what does not hold."""
    disagreements = tuple(_disagreements(graph))
    lines = _lines(graph)
    findings = (*disagreements, *_unreachable(lines, graph.start), *_traps(lines, graph.start))
    return Report.of(graph.name, findings, _CHECKED)


def _lines(graph: Graph[S]) -> Lines:
    """Return the table as a directed graph; a target without a row is a place with no way out."""
    lines = Lines()
    lines.add_nodes_from((graph.start, *graph.table, _END))
    for edge in graph.edges:
        lines.add_edge(edge.source, edge.target)
    return lines


def _disagreements(graph: Graph[S]) -> Iterator[Finding]:
    """GL5. A graph has passed this once, at construction; a proof does not take that on trust."""
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
        for target in sorted(set(row.values()) - graph.nodes.keys() - {_END}):
            yield _wrong(place, f"leads to {target!r}, which has no row.", "add its row.")


def _wrong(place: str, message: str, fix: str) -> Finding:
    return Finding("GL5", "error", place, message, (), fix)


def _unreachable(lines: Lines, start: str) -> Iterator[Finding]:
    """GL1, seen from the start: every node that no run arrives at.

    The witness leads to the node from where its part of the graph would have to be entered.
    """
    lost = _part(lines, lines.nodes - nx.single_source_shortest_path(lines, start).keys() - {_END})
    ways: dict[str, list[str]] = {}
    for group in _groups(lost):
        if not any(source not in group for name in group for source in lost.predecessors(name)):
            for name, way in nx.single_source_shortest_path(lost, group[0]).items():
                ways[name] = min(ways.get(name, way), way, key=len)
    for name in lost:
        way = ways[name]
        yield Finding(
            "GL1",
            "error",
            f"node {name!r}",
            f"no run arrives here: no way leads from the start {start!r} to {name!r}.",
            tuple(way),
            f"lead an outcome of a node that runs arrive at to {way[0]!r}, or remove {name!r}.",
        )


def _traps(lines: Lines, start: str) -> Iterator[Finding]:
    """GL1, seen from END: every innermost part of the graph that has no way out.

    The witness leads from the start into the part and once around in it.
    """
    ways = nx.single_source_shortest_path(lines, start)
    home = nx.single_source_shortest_path(lines.reverse(), _END)
    for group in _groups(_part(lines, lines.nodes - home.keys())):
        if any(target not in group for name in group for target in lines.successors(name)):
            continue
        way = min((ways.get(name, [name]) for name in group), key=len)
        names = ", ".join(repr(name) for name in group)
        yield Finding(
            "GL1",
            "error",
            f"node {way[-1]!r}",
            f"a run that arrives here never ends: no outcome leads out of {names}.",
            (*way, *_around(lines, way[-1])),
            f"lead an outcome of {names} to END, or to a node from which END can be reached.",
        )


def _part(lines: Lines, names: Set[str]) -> Lines:
    """Return the lines among `names`. A view would do, but would list them in no stable order."""
    part = Lines()
    part.add_nodes_from(name for name in lines if name in names)
    part.add_edges_from(
        (source, target) for source, target in lines.edges if source in names and target in names
    )
    return part


def _groups(part: Lines) -> Iterator[tuple[str, ...]]:
    """Yield the sets of nodes that all reach each other, in the order of the table."""
    order = {name: number for number, name in enumerate(part)}
    groups = [
        tuple(sorted(group, key=order.__getitem__))
        for group in nx.strongly_connected_components(part)
    ]
    yield from sorted(groups, key=lambda group: order[group[0]])


def _around(lines: Lines, place: str) -> list[str]:
    """Return a shortest way from `place` back to it, without its first node; [] if none is."""
    ways = [
        way
        for after in lines.successors(place)
        if (way := nx.single_source_shortest_path(lines, after).get(place))
    ]
    return min(ways, key=len) if ways else []
