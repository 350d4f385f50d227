"""Cycles: the parts of a graph that nothing bounds (GL4).

Parts of the graph come apart as lines that are taken only so often leave them; what stays cyclic
has no bound. The witness leads from the start into a shortest such cycle and once around.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, Generic, TypeAlias, TypeVar, final

from .calls import CallProduct, CallState
from .proof_graph import Arc, TablePath, path_to
from .ranking import Part, Ranking

__all__ = ["Cycle", "circled", "unbounded"]

S = TypeVar("S")
Q = TypeVar("Q")

At: TypeAlias = tuple[str, CallState]
"""A place of the ranking, and how the calls are there."""

LINES_MAX: Final = 100_000
"""How many lines are looked at for shortest cycles of one graph; past that, short ones must do."""

CYCLES_MAX: Final = 50
"""How many cycles are told: who has as many wants to mend some before reading on."""

CYCLES_MIN: Final = 5
"""How many are told of a graph so large that looking for more would take long."""


@final
@dataclass(slots=True)
class _Search:
    """How many lines may still be looked at, and what is known of cycles by now.

    Parts only become smaller: a place whose cycles are all longer than that keeps longer ones.
    """

    left: int = LINES_MAX
    longer: dict[tuple[bool, At], int] = field(default_factory=dict["tuple[bool, At]", int])

    @property
    def over(self) -> bool:
        """Whether what was found has to do."""
        return self.left <= 0


@final
@dataclass(frozen=True, slots=True)
class Cycle:
    """A way round that nothing bounds, and a shortest way into it."""

    into: TablePath
    around: TablePath
    arcs: Sequence[Arc] = field(default=(), compare=False, repr=False)
    """The lines of the part that it is in, between places of the ranking."""

    @property
    def node(self) -> str:
        """The node that it is told of, and set aside by."""
        return self.around[0].source

    @property
    def words(self) -> str:
        """Its nodes, back to the first."""
        names = (*(arc.source for arc in self.around), self.around[0].source)
        return " -> ".join(names)


def unbounded(
    ranking: Ranking[S],
    walk: CallProduct[S],
    aside: Container[str] = frozenset(),
    *,
    every: bool = False,
    among: Iterable[Part] | None = None,
) -> tuple[Cycle, ...]:
    """Return a shortest cycle of each part of the graph that nothing bounds, nearest first.

    Args:
        ranking: what bounds the graph's cycles.
        walk: its calls.
        aside: the nodes whose cycles are excused: those are returned beside the most that are told.
        every: to return all of them, however many there are.
        among: the parts to look at, if not all.
    """
    todo = list(ranking.cyclic_components if among is None else among)
    found: list[Cycle] = []
    excused: list[Part] = []
    breadth_first = _Search()
    count = 0
    while todo and count < (inf if every else CYCLES_MIN if breadth_first.over else CYCLES_MAX):
        names, arcs = todo.pop()
        breadth_first.left -= len(arcs)
        out = set(ranking.bounded(arcs))
        left: Sequence[str] = names
        if not out:
            cycle, passed = _Cycles(ranking, walk, arcs, breadth_first).shortest(names)
            found.append(cycle)
            count += cycle.node not in aside
            # What else goes in circles here has a finding of its own.
            out = {arc for arc in arcs if arc.source in passed or arc.target in passed}
            left = [name for name in names if name not in passed]
            if every or cycle.node in aside:
                excused.append((names, arcs))
        todo += ranking.parts(left, [arc for arc in arcs if arc not in out])
    for cycle in _beside(ranking, walk, excused, found):
        count += cycle.node not in aside
        if count > CYCLES_MAX and not every:
            break
        found.append(cycle)
    return tuple(sorted(found, key=lambda one: (len(one.into), one.words)))


def circled(ranking: Ranking[S]) -> Iterator[str]:
    """Yield the places of the ranking that are on a cycle that nothing bounds."""
    todo = list(ranking.cyclic_components)
    while todo:
        names, arcs = todo.pop()
        out = set(ranking.bounded(arcs))
        if out:
            todo += ranking.parts(names, [arc for arc in arcs if arc not in out])
        else:
            yield from names


def _beside(
    ranking: Ranking[S], walk: CallProduct[S], parts: Sequence[Part], found: Sequence[Cycle]
) -> Iterator[Cycle]:
    """Yield a cycle through each node that is on no other one: no reason for those is for it."""
    on = {arc.source for cycle in found for arc in cycle.around}
    order = walk.ground.order
    for names, arcs in parts:
        cycles = _Cycles(ranking, walk, arcs, _Search())
        # What is furthest has most of the others on its way.
        for name in sorted(names, key=lambda one: -order.get(ranking.node(one), 0)):
            if ranking.node(name) not in on:
                cycle, _ = cycles.shortest([name])
                on |= {arc.source for arc in cycle.around}
                yield cycle


class _Cycles(Generic[S]):
    """Finds shortest cycles in one part."""

    def __init__(
        self,
        ranking: Ranking[S],
        walk: CallProduct[S],
        arcs: Sequence[Arc],
        breadth_first: _Search,
    ) -> None:
        # A line whose own bound begins anew elsewhere goes round only with what sets it back.
        free = [arc for arc in arcs if (cap := ranking.cap(arc)) is None or cap.counts]
        self._ranking, self._ground, self._search = ranking, walk.ground, breadth_first
        self._ways, self._rows = arcs, _rows(arcs)
        self._alone = _Repeated(walk, ranking, _rows(free), breadth_first)
        self._together = _Repeated(walk, ranking, self._rows, breadth_first)

    def shortest(self, names: Sequence[str]) -> tuple[Cycle, frozenset[str]]:
        """Return a shortest cycle through one of these places, and the places it passes."""
        node = self._ranking.node
        repeated = self._alone.shortest(names, alone=True) or self._together.shortest(names)
        if repeated is not None:
            into, around = repeated
        else:
            around = self._as_far_as_the_lines_go(names)
            starts = [at for at, arc in enumerate(around) if arc.source in names]
            at = min(starts, key=lambda one: self._ground.order.get(node(around[one].source), 0))
            around = (*around[at:], *around[:at])
            into = self._ground.path_to(node(around[0].source))
        drawn = tuple(map(self._ranking.drawn, around))
        return Cycle(into, drawn, self._ways), frozenset(arc.source for arc in around)

    def _as_far_as_the_lines_go(self, names: Sequence[str]) -> TablePath:
        best: TablePath = ()
        for name in names:
            if best and self._search.over:
                break
            most = len(best) - 1 if best else len(self._rows)
            best = _back(name, self._steps, most, self._search) or best
        return best

    def _steps(self, name: str) -> Iterator[tuple[Arc, str]]:
        return ((arc, arc.target) for arc in self._rows[name])


class _Repeated(Generic[S]):
    """Looks for a shortest cycle that leaves the calls as they were, and the way into it.

    A run that goes round it once can go round again.
    """

    def __init__(
        self,
        walk: CallProduct[S],
        ranking: Ranking[S],
        rows: Mapping[str, Sequence[Arc]],
        breadth_first: _Search,
    ) -> None:
        self._walk = walk
        self._ranking = ranking
        self._rows = rows
        self._search = breadth_first
        self._lines_max = sum(map(len, rows.values()))

    def shortest(
        self, names: Sequence[str], *, alone: bool = False
    ) -> tuple[TablePath, TablePath] | None:
        """Return one through these and the way into it.

        With `alone`, nothing on the cycle itself bounds it.
        """
        best: TablePath = ()
        into: TablePath = ()
        looked = self._search.left - self._lines_max
        for start in self._starts(names):
            # A part that has none at all must not be looked through from each of its places.
            if self._search.over and (best or self._search.left < looked):
                break
            most = len(best) - 1 if best else len(self._walk.found)
            if self._search.longer.get((alone, start), 0) >= most:
                continue
            around = _back(start, self._steps, most, self._search)
            if not around:
                self._search.longer[alone, start] = most
            elif not (alone and self._ranking.bounded(around)):
                best, into = around, self._walk.path_to(start[1])
        return (into, best) if best else None

    def _starts(self, names: Sequence[str]) -> list[At]:
        """Return where a cycle may begin, the nearest first."""
        found = [
            (number, name, place)
            for name in names
            if name in self._rows
            for number, place in self._walk.places.get(self._ranking.node(name), ())
        ]
        return [(name, place) for _, name, place in sorted(found, key=lambda one: one[0])]

    def _steps(self, at: At) -> Iterator[tuple[Arc, At]]:
        name, place = at
        for arc in self._rows.get(name, ()):
            after = self._walk.after(place, arc.outcome)
            if after is not None:
                yield arc, (arc.target, CallState(self._ranking.node(arc.target), *after))


def _back(
    start: Q,
    steps: Callable[[Q], Iterable[tuple[Arc, Q]]],
    most: int,
    breadth_first: _Search,
) -> TablePath:
    """Return a shortest way from a place back to it, of so many lines at most; empty for none."""
    found: dict[Q, tuple[Arc, Q] | None] = {}
    here = [start]
    for _ in range(most):
        after: list[Q] = []
        for place in here:
            for arc, there in steps(place):
                breadth_first.left -= 1
                if there == start:
                    path = path_to({**found, start: None}, place)
                    return (*path, arc)
                if there not in found:
                    found[there] = arc, place
                    after.append(there)
        here = after
    return ()


def _rows(arcs: Sequence[Arc]) -> dict[str, list[Arc]]:
    rows: dict[str, list[Arc]] = {}
    for arc in arcs:
        rows.setdefault(arc.source, []).append(arc)
    return rows
