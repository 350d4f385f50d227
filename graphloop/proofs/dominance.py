"""Dominance: the dominators of a node, which are on every path from the start to the node.

networkx computes immediate dominators by the algorithm in Cooper, Harvey and Kennedy, "A Simple,
Fast Dominance Algorithm".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

import networkx as nx

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
        pairs = [(arc.source, arc.target) for row in self._arcs.values() for arc in row]
        # A root of its own, since networkx requires a root without predecessors.
        root = object()
        digraph: nx.DiGraph[object] = nx.DiGraph([(root, graph.start), *pairs])
        self._immediate: dict[object, object] = dict(nx.immediate_dominators(digraph, root))

    @property
    def reached(self) -> tuple[str, ...]:
        """The reachable nodes in the order of the table, and END if it is reachable."""
        return tuple(name for name in (*self.graph.nodes, END) if name in self._immediate)

    def before(self, node: str) -> frozenset[str]:
        """Return the other nodes on every path to `node`; empty if `node` is unreachable."""
        dominators: list[str] = []
        dominator = self._immediate.get(node)
        while isinstance(dominator, str):
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
