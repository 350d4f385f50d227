"""Dominance: the dominators of a node, which are on every path from the start to the node.

Immediate dominators are found by the algorithm in Cooper, Harvey and Kennedy, "A Simple, Fast
Dominance Algorithm".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

from ..outcomes import Aborted, Failed
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, path_to

__all__ = ["Dominance"]

S = TypeVar("S")

PACKAGE: Final = __name__.partition(".")[0]


class Dominance(Generic[S]):
    """The dominator tree of a graph.

    Args:
        graph: the graph.
        answers: whether to leave out transitions that end a run without an answer.
    """

    def __init__(self, graph: ProofGraph[S], *, answers: bool = False) -> None:
        self.graph = graph
        self._arcs = _answering_arcs(graph) if answers else graph.arcs
        self._immediate = _immediate_dominators(graph.start, self._arcs)

    @property
    def reached(self) -> tuple[str, ...]:
        """The reachable nodes in the order of the table, and END if it is reachable."""
        return tuple(name for name in (*self.graph.nodes, END) if name in self._immediate)

    def before(self, node: str) -> frozenset[str]:
        """Return the other nodes on every path to `node`; empty if `node` is unreachable."""
        dominators: list[str] = []
        dominator = self._immediate.get(node)
        while dominator is not None:
            dominators.append(dominator)
            dominator = self._immediate[dominator]
        return frozenset(dominators)

    def around(self, node: str, avoided: str) -> TablePath:
        """Return a shortest path to `node` that avoids node `avoided`; empty if none exists."""
        start = self.graph.start
        if start == avoided:
            return ()

        def arcs_from(name: str) -> Iterator[tuple[Arc, str]]:
            return ((arc, arc.target) for arc in self._arcs.get(name, ()) if arc.target != avoided)

        parents = breadth_first([start], arcs_from)
        return path_to(parents, node) if node in parents else ()


def _answering_arcs(graph: ProofGraph[S]) -> Mapping[str, tuple[Arc, ...]]:
    """Return the transitions out of each node, except those that end a run without an answer.

    A node of this package that leads to END by `aborted` or `failed` gives no answer. A node of the
    user may give an answer then, so its transitions are kept.
    """
    own = {
        name for name, node in graph.nodes.items() if type(node).__module__.split(".")[0] == PACKAGE
    }
    return {
        name: tuple(
            arc
            for arc in row
            if not (name in own and arc.target == END and arc.outcome in {Aborted, Failed})
        )
        for name, row in graph.arcs.items()
    }


def _immediate_dominators(start: str, arcs: Mapping[str, tuple[Arc, ...]]) -> dict[str, str | None]:
    """Return the immediate dominator of each reachable node; None for the start."""
    order = _reverse_postorder(start, arcs)
    place = {name: number for number, name in enumerate(order)}
    sources: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for arc in arcs.get(name, ()):
            sources[arc.target].append(name)
    immediate = {start: start}
    changed = True
    while changed:
        changed = False
        for name in order[1:]:
            known = [source for source in sources[name] if source in immediate]
            found = known[0]
            for other in known[1:]:
                while found != other:
                    if place[found] > place[other]:
                        found = immediate[found]
                    else:
                        other = immediate[other]  # noqa: PLW2901 - both go up until they meet
            if immediate.get(name) != found:
                immediate[name] = found
                changed = True
    return {**immediate, start: None}


def _reverse_postorder(start: str, arcs: Mapping[str, tuple[Arc, ...]]) -> list[str]:
    """Return the reachable nodes so that each comes before those that only it leads to."""
    left: list[str] = []
    seen = {start}
    path = [(start, iter(arcs.get(start, ())))]
    while path:
        name, following = path[-1]
        arc = next(following, None)
        if arc is None:
            left.append(name)
            path.pop()
        elif arc.target not in seen:
            seen.add(arc.target)
            path.append((arc.target, iter(arcs.get(arc.target, ()))))
    return left[::-1]
