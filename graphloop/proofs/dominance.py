"""Dominance: which nodes every run has passed before it arrives at another.

The Lengauer-Tarjan tree of immediate dominators says it for all nodes at once; what a run passes
between two visits of one node is told by the same tree of the graph that begins behind the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import networkx as nx

from .ground import END, Ground, Trail, Way, search, trail

__all__ = ["Dominance"]

S = TypeVar("S")

_BEGIN = ("begin",)


class Dominance(Generic[S]):
    """What is passed on every way, by the lines that may be taken.

    Attributes:
        ground: the graph.
    """

    def __init__(self, ground: Ground[S]) -> None:
        self.ground = ground
        self._tree = _tree(ground, None)

    @property
    def reached(self) -> tuple[str, ...]:
        """What runs arrive at, END included, in the order of the table."""
        names = (*self.ground.graph.nodes, END)
        return tuple(name for name in names if name in self._tree)

    def before(self, node: str) -> frozenset[str]:
        """Return what every run has passed that arrives at `node`; nothing if none does."""
        return _above(self._tree, node)

    def between(self, node: str) -> frozenset[str] | None:
        """Return what every run passes between two visits of `node`; None if it has but one."""
        if node == END or node not in self._tree:
            return None
        tree = _tree(self.ground, node)
        return _above(tree, node) if node in tree else None

    def around(self, node: str, avoided: str) -> Trail:
        """Return a shortest way to `node` that does not pass `avoided`; empty if there is none."""
        start = self.ground.graph.start
        return () if start == avoided else self._led([(start, None)], node, avoided)

    def round_trip(self, node: str, avoided: str = "") -> Trail:
        """Return a shortest way from the start to `node`, and back to it without `avoided`."""
        back: Trail = ()
        for way in self.ground.ways.get(node, ()):
            if way.target == avoided:
                continue
            led = self._led([(way.target, None)], node, avoided)
            if (led or way.target == node) and (not back or len(led) + 1 < len(back)):
                back = (way, *led)
        return (*self.ground.trail(node), *back) if back else ()

    def _led(self, starts: list[tuple[str, None]], node: str, avoided: str) -> Trail:
        def steps(name: str) -> Iterator[tuple[Way, str]]:
            ways = self.ground.ways.get(name, ())
            return ((way, way.target) for way in ways if way.target != avoided)

        found = search([name for name, _ in starts], steps)
        return trail(found, node) if node in found else ()


def _tree(ground: Ground[S], behind: str | None) -> dict[object, object]:
    """Return the immediate dominator of all that can be come to, from the start or behind a node.

    What begins is in it with itself, or None, as its own.
    """
    lines: nx.DiGraph[object] = nx.DiGraph()
    if behind is None:
        lines.add_edge(_BEGIN, ground.graph.start)
    for source, ways in ground.ways.items():
        for way in ways:
            lines.add_edge(_BEGIN if source == behind else source, way.target)
    if _BEGIN not in lines:
        return {}
    return dict(nx.immediate_dominators(lines, _BEGIN))


def _above(tree: dict[object, object], node: str) -> frozenset[str]:
    found: list[str] = []
    at = tree.get(node)
    while isinstance(at, str) and at != node:
        found.append(at)
        at = tree.get(at)
    return frozenset(found)
