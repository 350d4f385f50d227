"""Dominance: which nodes every run has passed before it arrives at another.

The Lengauer-Tarjan tree of immediate dominators says it for all nodes at once; what a run passes
between two visits of one node is told by the same tree of the lines around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import networkx as nx

from ..outcomes import Aborted, Failed
from .ground import END, Ground, Trail, Way, search, trail
from .lines import circles

__all__ = ["Dominance", "answering"]

S = TypeVar("S")

Line: TypeAlias = tuple[str, str]

_BEGIN = ("begin",)


_OWN: Final = __name__.partition(".")[0]


def answering(ground: Ground[S]) -> Mapping[str, tuple[Way, ...]]:
    """Return the lines out of each node, but for those by which a run ends without an answer.

    A node of this library that leaves by `aborted` or `failed` has said why the run ends, and
    nobody takes what was said before for its answer. Of other nodes nobody knows.
    """
    nodes = ground.graph.nodes
    own = {name for name, node in nodes.items() if type(node).__module__.split(".")[0] == _OWN}
    return {
        name: tuple([way for way in ways if not (name in own and _breaks_off(way))])
        for name, ways in ground.ways.items()
    }


def _breaks_off(way: Way) -> bool:
    return way.target == END and way.outcome in {Aborted, Failed}


class Dominance(Generic[S]):
    """What is passed on every way, by the lines that may be taken.

    Attributes:
        ground: the graph.
    """

    def __init__(self, ground: Ground[S], *, answers: bool = False) -> None:
        """Draw the tree.

        Args:
            ground: the graph.
            answers: whether a run that ends without an answer is left out.
        """
        self.ground = ground
        self._ways = answering(ground) if answers else ground.ways
        self._tree = _tree(_lines(self._ways), ground.graph.start, None)
        self._around = _around(ground, self._ways)

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
        around = self.around_of(node)
        if not around or node not in self._tree:
            return None
        return _above(_tree(around, None, node), node)

    def around_of(self, node: str) -> frozenset[Line]:
        """Return all lines of ways from `node` back to it; two graphs may have the same."""
        return self._around.get(node, frozenset())

    def around(self, node: str, avoided: str) -> Trail:
        """Return a shortest way to `node` that does not pass `avoided`; empty if there is none."""
        start = self.ground.graph.start
        return () if start == avoided else self._led([(start, None)], node, avoided)

    def round_trip(self, node: str, avoided: str = "") -> Trail:
        """Return a shortest way from the start to `node`, and back to it without `avoided`."""
        back: Trail = ()
        for way in self._ways.get(node, ()):
            if way.target == avoided:
                continue
            led = self._led([(way.target, None)], node, avoided)
            if (led or way.target == node) and (not back or len(led) + 1 < len(back)):
                back = (way, *led)
        return (*self.ground.trail(node), *back) if back else ()

    def _led(self, starts: list[tuple[str, None]], node: str, avoided: str) -> Trail:
        def steps(name: str) -> Iterator[tuple[Way, str]]:
            ways = self._ways.get(name, ())
            return ((way, way.target) for way in ways if way.target != avoided)

        found = search([name for name, _ in starts], steps)
        return trail(found, node) if node in found else ()


def _lines(lines: Mapping[str, tuple[Way, ...]]) -> Iterator[Line]:
    return ((way.source, way.target) for ways in lines.values() for way in ways)


def _around(ground: Ground[S], ways: Mapping[str, tuple[Way, ...]]) -> dict[str, frozenset[Line]]:
    """Return for each node that can be come back to the lines by which that is."""
    lines = [*_lines(ways)]
    part = {
        name: place
        for place, names in enumerate(circles(ground.graph.nodes, _inner(lines)))
        for name in names
    }
    within: dict[int, list[Line]] = {}
    for source, target in lines:
        if source in part and part[source] == part.get(target):
            within.setdefault(part[source], []).append((source, target))
    kept = {place: frozenset(some) for place, some in within.items()}
    return {name: kept[place] for name, place in part.items()}


def _inner(lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if line[1] != END)


def _tree(lines: Iterable[Line], start: str | None, behind: str | None) -> dict[object, object]:
    """Return the immediate dominator of all that can be come to, from the start or behind a node.

    What begins is in it with itself, or None, as its own.
    """
    drawn: nx.DiGraph[object] = nx.DiGraph()
    if start is not None:
        drawn.add_edge(_BEGIN, start)
    drawn.add_edges_from(
        (_BEGIN if source == behind else source, target) for source, target in lines
    )
    return dict(nx.immediate_dominators(drawn, _BEGIN))


def _above(tree: dict[object, object], node: str) -> frozenset[str]:
    found: list[str] = []
    at = tree.get(node)
    while isinstance(at, str) and at != node:
        found.append(at)
        at = tree.get(at)
    return frozenset(found)
