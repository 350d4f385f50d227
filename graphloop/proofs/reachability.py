"""Reachability: paths from the start to each node, and from there to END (GL1); table rows (GL5).

A breadth-first search from the start and a backward search from END decide GL1. GL5 compares each
row of the table with the declared outcomes of its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TypeAlias, TypeVar

from ..contract import Cap
from ..graph import NodeGraph
from ..outcomes import Outcome, outcome_name
from .components import strong_components
from .proof_graph import (
    END,
    Arc,
    ProofGraph,
    TablePath,
    breadth_first,
    path_to,
)
from .report import Finding

__all__ = [
    "closed_components",
    "find_table_mismatches",
    "find_traps",
    "find_unreachable_nodes",
    "islands",
]

S = TypeVar("S")

_Rows: TypeAlias = Mapping[str, tuple[Arc, ...]]
"""The transitions out of each node."""


def find_unreachable_nodes(graph: ProofGraph[S]) -> Iterator[Finding]:
    """Yield a finding for each node that no path from the start reaches (GL1)."""
    for island in islands(graph):
        for name in island:
            yield graph.finding(
                "GL1",
                f"no run arrives here: no way leads from the start {graph.start!r} to {name!r}.",
                f"lead an outcome of a reachable node to {island[0]!r}, or remove {name!r}.",
                node=name,
            )


def islands(graph: ProofGraph[S]) -> list[tuple[str, ...]]:
    """Return groups of unreachable nodes; each node is reachable from the first of its group."""
    rows = _all_rows(graph.node_graph)
    seen = breadth_first([graph.start], lambda name: _arcs_from(rows, name))
    lost = [name for name in rows if name not in seen and name != END]
    inside = [(arc.source, arc.target) for name in lost for arc in rows[name]]
    inside = [(source, target) for source, target in inside if target not in seen]
    components = list(strong_components(lost, inside))
    number_of = {name: number for number, names in enumerate(components) for name in names}
    entered = {
        number_of[target] for source, target in inside if number_of[source] != number_of[target]
    }
    heads = [names[0] for number, names in enumerate(components) if number not in entered]
    parents = breadth_first(
        heads, lambda name: [pair for pair in _arcs_from(rows, name) if pair[1] not in seen]
    )
    groups: dict[str, list[str]] = {head: [head] for head in heads}
    for name in lost:
        path = path_to(parents, name)
        if path:
            groups[path[0].source].append(name)
    return [tuple(names) for names in groups.values()]


def find_traps(graph: ProofGraph[S]) -> Iterator[Finding]:
    """Yield a finding for each group of nodes that a run can enter but never leave (GL1).

    A group is a strongly connected component without a transition out of it. The witness leads from
    the start into the group, and once around a cycle in it.
    """
    rows = _all_rows(graph.node_graph)
    seen = breadth_first([graph.start], lambda name: _arcs_from(rows, name))
    order = {name: number for number, name in enumerate(seen)}
    for component in closed_components(graph):
        first = min(component, key=lambda name: order.get(name, len(order)))
        into = path_to(seen, first) if first in seen else ()
        path = (*into, *_cycle_through(rows, first))
        names = ", ".join(map(repr, component))
        yield graph.finding(
            "GL1",
            f"a run that arrives here never ends: no outcome leads out of {names}.",
            f"lead an outcome of {names} to END, or to a node from which END can be reached.",
            node=first,
            path=graph.run_prefix(path),
        )


def closed_components(graph: ProofGraph[S]) -> Iterator[tuple[str, ...]]:
    """Yield the strongly connected components from which no transition leads out."""
    rows = _all_rows(graph.node_graph)
    into: dict[str, list[Arc]] = {}
    for row in rows.values():
        for arc in row:
            into.setdefault(arc.target, []).append(arc)
    ending = breadth_first([END], lambda name: ((arc, arc.source) for arc in into.get(name, ())))
    stuck = [name for name in rows if name not in ending]
    pairs = [(arc.source, arc.target) for name in stuck for arc in rows[name]]
    for component in strong_components(stuck, pairs):
        inside = set(component)
        if all(arc.target in inside for name in component for arc in rows[name]):
            yield component


def _cycle_through(rows: _Rows, node: str) -> TablePath:
    """Return a shortest cycle through `node`; empty if `node` is on no cycle."""
    back = breadth_first([arc.target for arc in rows[node]], lambda name: _arcs_from(rows, name))
    path = path_to(back, node) if node in back else ()
    second = path[0].source if path else node
    first = next((arc for arc in rows[node] if arc.target == second), None)
    return () if first is None else (first, *path)


def _all_rows(graph: NodeGraph[S]) -> dict[str, tuple[Arc, ...]]:
    """Return the transitions of each node, including those that contracts rule out.

    A target that has no row in the table gets an empty row.
    """
    rows: dict[str, tuple[Arc, ...]] = {graph.start: ()}
    for name, row in graph.table.items():
        rows[name] = tuple(Arc(name, outcome, target) for outcome, target in row.items())
    targets = [arc.target for row in rows.values() for arc in row]
    return rows | {name: () for name in targets if name not in rows and name != END}


def _arcs_from(rows: _Rows, name: str) -> Iterator[tuple[Arc, str]]:
    """Return the transitions out of a node, each with its target."""
    return ((arc, arc.target) for arc in rows.get(name, ()))


def find_table_mismatches(graph: ProofGraph[S]) -> Iterator[Finding]:
    """Yield a finding for each difference between the table and the nodes (GL5)."""
    nodes, table = graph.nodes, graph.table
    if graph.start not in nodes:
        yield _table_error(f"start={graph.start!r}", "the start node has no row.", "add its row.")
    for name in sorted(nodes.keys() ^ table.keys()):
        yield _table_error(
            f"node {name!r}", "has no row, or its row no node.", "add what is missing."
        )
    for name, row in table.items():
        place = f"row of {name!r}"
        declared = nodes[name].outcomes if name in nodes else frozenset(row)
        for word in sorted(map(outcome_name, declared - row.keys())):
            yield _table_error(
                place, f"outcome {word!r} leads nowhere.", "give it a target or END."
            )
        for word in sorted(map(outcome_name, row.keys() - declared)):
            yield _table_error(place, f"{name!r} never leaves by {word!r}.", "remove it.")
        # A set difference with all nodes would cost the size of the graph for each row.
        for target in sorted({name for name in row.values() if name not in nodes and name != END}):
            yield _table_error(place, f"leads to {target!r}, which has no row.", "add its row.")
        if (contract := graph.contracts.get(name)) is not None:
            yield from _unfit_caps(name, contract.caps, declared)


def _unfit_caps(
    name: str, caps: Mapping[type[Outcome], Cap], declared: Set[type[Outcome]]
) -> Iterator[Finding]:
    """Yield a finding for each cap whose other outcome the node does not have."""
    for outcome, cap in caps.items():
        if cap.instead is not None and cap.instead not in declared - {outcome}:
            yield _table_error(
                f"contract of {name!r}",
                f"the cap of {outcome_name(outcome)!r} has instead={cap.instead!r}, which is no "
                "other outcome of the node.",
                "name the outcome by which the node leaves a stopped run.",
            )


def _table_error(place: str, message: str, fix: str) -> Finding:
    """Return a GL5 error without a witness."""
    return Finding("GL5", "error", place, message, (), fix)
