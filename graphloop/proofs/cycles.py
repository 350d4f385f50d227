"""Cycles: shortest cycles that no ranking function bounds (GL4).

A component is a strongly connected component of the split graph (`ranking.py`). Removing its
bounded arcs may break it into smaller components. A component without bounded arcs has no bound,
and a shortest cycle in it is the witness.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, Generic, TypeAlias, TypeVar, final

from .calls import CallProduct, CallState
from .proof_graph import Arc, TablePath, path_to
from .ranking import Component, Ranking

__all__ = ["Cycle", "unbounded", "unbounded_nodes"]

S = TypeVar("S")
Q = TypeVar("Q")

State: TypeAlias = tuple[str, CallState]
"""A node of the split graph, with the state of the calls there."""

ARCS_MAX: Final = 100_000
"""The arcs that are searched for shortest cycles of one graph; then longer cycles must do."""

CYCLES_MAX: Final = 50
"""The cycles that are reported of one graph."""

CYCLES_MIN: Final = 5
"""The cycles that are reported once `ARCS_MAX` is reached."""


@final
@dataclass(slots=True)
class _Effort:
    """The work that is left for one graph.

    Attributes:
        left: the arcs that may still be searched.
        longer: for each state, the length that all cycles through it exceed. Components only
            become smaller, so this stays true.
    """

    left: int = ARCS_MAX
    longer: dict[tuple[bool, State], int] = field(default_factory=dict["tuple[bool, State]", int])

    @property
    def is_spent(self) -> bool:
        """Whether longer cycles must do."""
        return self.left <= 0


@final
@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle without a bound.

    Attributes:
        into: a shortest path from the start to the cycle.
        around: the cycle.
        component: the arcs of its component in the split graph.
    """

    into: TablePath
    around: TablePath
    component: Sequence[Arc] = field(default=(), compare=False, repr=False)

    @property
    def node(self) -> str:
        """The node that the cycle is reported at, and suppressed by."""
        return self.around[0].source

    @property
    def words(self) -> str:
        """The nodes of the cycle, back to the first."""
        return " -> ".join((*(arc.source for arc in self.around), self.node))


def unbounded(
    ranking: Ranking[S],
    calls: CallProduct[S],
    aside: Container[str] = frozenset(),
    *,
    every: bool = False,
    among: Iterable[Component] | None = None,
) -> tuple[Cycle, ...]:
    """Return a shortest cycle of each component without a bound, the nearest first.

    Args:
        ranking: the bounds of the graph.
        calls: the product of the graph with its calls.
        aside: the nodes whose cycles are suppressed; these cycles do not count for the limit.
        every: whether to return all cycles, without a limit.
        among: the components to search, if not all.
    """
    todo = list(ranking.cyclic_components if among is None else among)
    cycles: list[Cycle] = []
    excused: list[Component] = []
    effort = _Effort()
    count = 0
    while todo and count < (inf if every else CYCLES_MIN if effort.is_spent else CYCLES_MAX):
        names, arcs = todo.pop()
        effort.left -= len(arcs)
        cut = set(ranking.bounded(arcs))
        left: Sequence[str] = names
        if not cut:
            cycle, passed = _CycleSearch(ranking, calls, arcs, effort).shortest(names)
            cycles.append(cycle)
            count += cycle.node not in aside
            # What stays cyclic without these nodes is another cycle.
            cut = {arc for arc in arcs if arc.source in passed or arc.target in passed}
            left = [name for name in names if name not in passed]
            if every or cycle.node in aside:
                excused.append((names, arcs))
        todo += ranking.components(left, [arc for arc in arcs if arc not in cut])
    for cycle in _cycles_beside(ranking, calls, excused, cycles):
        count += cycle.node not in aside
        if count > CYCLES_MAX and not every:
            break
        cycles.append(cycle)
    return tuple(sorted(cycles, key=lambda cycle: (len(cycle.into), cycle.words)))


def unbounded_nodes(ranking: Ranking[S]) -> Iterator[str]:
    """Yield the nodes of the split graph that are on a cycle without a bound."""
    todo = list(ranking.cyclic_components)
    while todo:
        names, arcs = todo.pop()
        cut = set(ranking.bounded(arcs))
        if cut:
            todo += ranking.components(names, [arc for arc in arcs if arc not in cut])
        else:
            yield from names


def _cycles_beside(
    ranking: Ranking[S],
    calls: CallProduct[S],
    components: Sequence[Component],
    cycles: Sequence[Cycle],
) -> Iterator[Cycle]:
    """Yield a cycle through each node that is on no other cycle.

    The reason that suppresses a cycle says nothing of nodes beside it.
    """
    covered = {arc.source for cycle in cycles for arc in cycle.around}
    order = calls.graph.order
    for names, arcs in components:
        search = _CycleSearch(ranking, calls, arcs, _Effort())
        # The cycle through the furthest node passes most of the others.
        for name in sorted(names, key=lambda name: -order.get(ranking.node(name), 0)):
            if ranking.node(name) not in covered:
                cycle, _ = search.shortest([name])
                covered |= {arc.source for arc in cycle.around}
                yield cycle


class _CycleSearch(Generic[S]):
    """Finds shortest cycles in one component."""

    def __init__(
        self,
        ranking: Ranking[S],
        calls: CallProduct[S],
        arcs: Sequence[Arc],
        effort: _Effort,
    ) -> None:
        self._ranking, self._calls, self._effort = ranking, calls, effort
        self._arcs, self._rows = arcs, _rows(arcs)
        # An arc whose own bound is reset elsewhere is on no cycle that is unbounded by itself.
        uncapped = [arc for arc in arcs if (cap := ranking.cap(arc)) is None or cap.counts]
        self._uncapped_rows = _rows(uncapped)

    def shortest(self, names: Sequence[str]) -> tuple[Cycle, frozenset[str]]:
        """Return a shortest cycle through one of these nodes, and all nodes that it passes.

        First choice is a cycle that is unbounded by itself and keeps the state of the calls.
        """
        node = self._ranking.node
        repeatable = self._repeatable(names, by_itself=True) or self._repeatable(names)
        if repeatable is not None:
            into, around = repeatable
        else:
            around = self._any_cycle(names)
            order = self._calls.graph.order
            starts = [at for at, arc in enumerate(around) if arc.source in names]
            first = min(starts, key=lambda at: order.get(node(around[at].source), 0))
            around = (*around[first:], *around[:first])
            into = self._calls.graph.path_to(node(around[0].source))
        drawn = tuple(map(self._ranking.table_arc, around))
        return Cycle(into, drawn, self._arcs), frozenset(arc.source for arc in around)

    def _any_cycle(self, names: Sequence[str]) -> TablePath:
        """Return a shortest cycle, whatever it does to the calls."""
        best: TablePath = ()
        for name in names:
            if best and self._effort.is_spent:
                break
            longest = len(best) - 1 if best else len(self._rows)
            best = _path_back(name, self._row_of, longest, self._effort) or best
        return best

    def _row_of(self, name: str) -> Iterator[tuple[Arc, str]]:
        return ((arc, arc.target) for arc in self._rows[name])

    def _repeatable(
        self, names: Sequence[str], *, by_itself: bool = False
    ) -> tuple[TablePath, TablePath] | None:
        """Return a path into a shortest cycle that keeps the state of the calls, and the cycle.

        Args:
            names: the nodes that the cycle may begin at.
            by_itself: whether no arc of the cycle may bound it.
        """
        rows = self._uncapped_rows if by_itself else self._rows

        def arcs_from(state: State) -> Iterator[tuple[Arc, State]]:
            for arc in rows.get(state[0], ()):
                after = self._calls.after(state[1], arc.outcome)
                if after is not None:
                    yield arc, (arc.target, CallState(self._ranking.node(arc.target), *after))

        best: TablePath = ()
        into: TablePath = ()
        # A component without such a cycle must not be searched from each of its nodes.
        least = self._effort.left - sum(map(len, rows.values()))
        for start in self._starts([name for name in names if name in rows]):
            if self._effort.is_spent and (best or self._effort.left < least):
                break
            longest = len(best) - 1 if best else len(self._calls.parents)
            if self._effort.longer.get((by_itself, start), 0) >= longest:
                continue
            around = _path_back(start, arcs_from, longest, self._effort)
            if not around:
                self._effort.longer[by_itself, start] = longest
            elif not (by_itself and self._ranking.bounded(around)):
                best, into = around, self._calls.path_to(start[1])
        return (into, best) if best else None

    def _starts(self, names: Sequence[str]) -> list[State]:
        """Return the states of these nodes, the nearest first."""
        states = [
            (number, name, state)
            for name in names
            for number, state in self._calls.states.get(self._ranking.node(name), ())
        ]
        return [(name, state) for _, name, state in sorted(states, key=lambda entry: entry[0])]


def _path_back(
    start: Q,
    arcs_from: Callable[[Q], Iterable[tuple[Arc, Q]]],
    longest: int,
    effort: _Effort,
) -> TablePath:
    """Return a shortest cycle through `start` of at most `longest` arcs; empty for none."""
    parents: dict[Q, tuple[Arc, Q] | None] = {}
    layer = [start]
    for _ in range(longest):
        following: list[Q] = []
        for state in layer:
            for arc, target in arcs_from(state):
                effort.left -= 1
                if target == start:
                    return (*path_to({**parents, start: None}, state), arc)
                if target not in parents:
                    parents[target] = arc, state
                    following.append(target)
        layer = following
    return ()


def _rows(arcs: Sequence[Arc]) -> Mapping[str, Sequence[Arc]]:
    rows: dict[str, list[Arc]] = {}
    for arc in arcs:
        rows.setdefault(arc.source, []).append(arc)
    return rows
