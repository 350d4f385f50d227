"""Dominance: the nodes that every way to a node passes.

networkx finds the node that comes last on all ways to a node, by Cooper, Harvey and Kennedy, "A
Simple, Fast Dominance Algorithm".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

import networkx as nx

from ..outcomes import Aborted, Failed
from .proof_graph import END, ProofGraph, TablePath, Transition, breadth_first, path_to

__all__ = ["Dominance"]

S = TypeVar("S")

OWN: Final = __name__.partition(".")[0]


class Dominance(Generic[S]):
    """The nodes that every way passes, by the lines that may be taken.

    Attributes:
        ground: the graph.
    """

    def __init__(self, ground: ProofGraph[S], *, answers: bool = False) -> None:
        """Draw the tree.

        Args:
            ground: the graph.
            answers: whether a run that ends without an answer is left out.
        """
        self.ground = ground
        self._ways = _answering(ground) if answers else ground.ways
        lines = [(way.source, way.target) for ways in self._ways.values() for way in ways]
        begin, start = object(), ground.graph.start
        drawn: nx.DiGraph[object] = nx.DiGraph([(begin, start), *lines])
        self._last: dict[object, object] = dict(nx.immediate_dominators(drawn, begin))

    @property
    def reached(self) -> tuple[str, ...]:
        """The nodes that runs arrive at, and END, in the order of the table."""
        names = (*self.ground.graph.nodes, END)
        return tuple(name for name in names if name in self._last)

    def before(self, node: str) -> frozenset[str]:
        """Return what every run has passed that arrives at `node`; nothing if none does."""
        found: list[str] = []
        at = self._last.get(node)
        while isinstance(at, str):
            found.append(at)
            at = self._last[at]
        return frozenset(found)

    def around(self, node: str, avoided: str) -> TablePath:
        """Return a shortest way to `node` that does not pass `avoided`; empty if there is none."""
        start = self.ground.graph.start
        if start == avoided:
            return ()

        def steps(name: str) -> Iterator[tuple[Transition, str]]:
            ways = self._ways.get(name, ())
            return ((way, way.target) for way in ways if way.target != avoided)

        found = breadth_first([start], steps)
        return path_to(found, node) if node in found else ()


def _answering(ground: ProofGraph[S]) -> Mapping[str, tuple[Transition, ...]]:
    """Return the lines out of each node, but for those by which a run ends without an answer.

    A node of this library that leaves by `aborted` or `failed` has said why the run ends, so the
    text before it is no answer. Of other nodes that is unknown.
    """
    nodes = ground.graph.nodes
    own = {name for name, node in nodes.items() if type(node).__module__.split(".")[0] == OWN}
    return {
        name: tuple([way for way in ways if not (name in own and _breaks_off(way))])
        for name, ways in ground.ways.items()
    }


def _breaks_off(way: Transition) -> bool:
    return way.target == END and way.outcome in {Aborted, Failed}
