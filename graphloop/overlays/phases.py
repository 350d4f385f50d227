"""phases: which nodes of a graph are one, seen from further off.

Seen from far, a loop is one thing, and so is an agent with the append of what it said. A graph that
is one loop and nothing else is seen by its phases instead: all of its nodes that are of one kind.
Who decides is told apart, but in a graph that is too large to be drawn whole from near.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final, TypeVar

from ..graph import Graph
from ..node_protocol import Kind
from ..proofs.lines import groups
from ..views.folded import Box
from ..views.picture import picture
from ..views.references import has_references

__all__ = ["phases"]

S = TypeVar("S")

ALONE: Final[frozenset[Kind]] = frozenset({"graph", "human"})
"""Kinds that are nobody's phase: who answers, and who decides, is told apart."""

Group = tuple[str, ...]


def phases(graph: Graph[S]) -> tuple[Box, ...]:
    """Return the boxes that a graph's nodes are in, in the order of its table."""
    pairs = [(one.source, one.target) for one in graph.edges if one.target != "END"]
    speakers = _speakers(graph)
    loops = _with_appends(graph, list(groups(graph.nodes, pairs)), speakers)
    if len(loops) > 1:
        return tuple(_boxes(graph, loops))
    # What would be one box alone is seen from nearer.
    kinds = _with_appends(graph, _by_kind(graph, speakers), speakers)
    nodes = [(name,) for name in graph.nodes]
    return tuple(_boxes(graph, kinds if len(kinds) > 1 else nodes))


def _by_kind(graph: Graph[S], speakers: Mapping[str, str]) -> list[Group]:
    """Return the phases of a loop: nodes of one kind; agents, people and their appends alone."""
    found: dict[str, list[str]] = {}
    alone_kinds = ALONE - {"human"} if has_references(picture(graph)) else ALONE
    for name, node in graph.nodes.items():
        alone = node.kind in alone_kinds or name in speakers
        found.setdefault(f"node {name}" if alone else node.kind, []).append(name)
    return [tuple(group) for group in found.values()]


def _with_appends(
    graph: Graph[S], found: Sequence[Group], speakers: Mapping[str, str]
) -> list[Group]:
    """Return the groups with each append among those whose answer it appends."""
    alone = {group[0] for group in found if len(group) == 1}
    follows = {name: one for name, one in speakers.items() if name in alone and one in alone}
    appends: dict[str, list[str]] = {}
    for name in graph.nodes:
        if name in follows:
            appends.setdefault(follows[name], []).append(name)
    return [
        (*group, *appends.get(group[0], ())) if len(group) == 1 else group
        for group in found
        if group[0] not in follows
    ]


def _speakers(graph: Graph[S]) -> Mapping[str, str]:
    """Return of each append that is come to from one agent alone the agent whose answer it has."""
    sources: dict[str, set[str]] = {}
    for one in graph.edges:
        sources.setdefault(one.target, set()).add(one.source)
    return {
        name: source
        for name, node in graph.nodes.items()
        if node.kind == "append" and len(sources.get(name, ())) == 1
        for source in sources[name]
        if graph.nodes[source].kind == "graph"
    }


def _boxes(graph: Graph[S], found: Sequence[Group]) -> Iterator[Box]:
    taken = {*graph.nodes}
    entries = _entries(graph, found)
    for group, entry in zip(found, entries, strict=True):
        first = graph.nodes[group[0]]
        kinds = {graph.nodes[name].kind for name in group}
        if len(group) == 1 or (first.kind == "graph" and kinds <= {"graph", "append"}):
            yield Box(first.name, first.kind, group)
        elif len(kinds) == 1:
            yield Box(_free(first.kind, taken), first.kind, group)
        else:
            yield Box(_free(f"{entry} loop", taken), "loop", group)


def _entries(graph: Graph[S], found: Sequence[Group]) -> Iterator[str]:
    """Yield the node by which each group is come to first."""
    places = {name: place for place, group in enumerate(found) for name in group}
    into = {one.target for one in graph.edges if places[one.source] != places.get(one.target)}
    for group in found:
        if graph.start in group:
            yield graph.start
        else:
            yield next((name for name in group if name in into), group[0])


def _free(name: str, taken: set[str]) -> str:
    """Return a name that nothing has yet, and take it."""
    names = (name if number == 1 else f"{name} {number}" for number in count(1))
    free = next(one for one in names if one not in taken)
    taken.add(free)
    return free
