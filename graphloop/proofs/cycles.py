"""Cycles: the search for shortest unbounded cycles (GL4).

A component is a strongly connected component of the split graph (`ranking.py`). The search removes
the bounded transitions of a component, which may break it into smaller components. If a component
has no bounded transition, a run may stay in it forever, and a shortest cycle in it is the witness.
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
"""A node of the split graph, and the status of the turn's tool calls at that node."""

ARCS_MAX: Final = 100_000
"""The number of transitions to search for shortest cycles; after these, longer cycles suffice."""

CYCLES_MAX: Final = 50
"""The most cycles that are reported for one graph."""

CYCLES_MIN: Final = 5
"""The most cycles that are reported for one graph after `ARCS_MAX` is reached."""


@final
@dataclass(slots=True)
class _Effort:
    """The remaining work of a cycle search in one graph.

    Attributes:
        remaining: the number of transitions that may still be searched.
        longer: for each state, a length that all cycles through the state exceed. Later searches
            use smaller components, so this lower bound stays valid.
    """

    remaining: int = ARCS_MAX
    longer: dict[tuple[bool, State], int] = field(default_factory=dict["tuple[bool, State]", int])

    @property
    def is_spent(self) -> bool:
        """Whether the limit is reached, so that the search accepts cycles that are not shortest."""
        return self.remaining <= 0


@final
@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle of the table whose number of rounds is not bounded.

    Attributes:
        into: a shortest path from the start to the cycle.
        around: the transitions of the cycle.
        component: the transitions of the strongly connected component that contains the cycle.
    """

    into: TablePath
    around: TablePath
    component: Sequence[Arc] = field(default=(), compare=False, repr=False)

    @property
    def node(self) -> str:
        """The node that a finding about this cycle names, for use in `ignore`."""
        return self.around[0].source

    @property
    def words(self) -> str:
        """The nodes of the cycle as text, with the first node again at the end: `a -> b -> a`."""
        return " -> ".join((*(arc.source for arc in self.around), self.node))


def unbounded(
    ranking: Ranking[S],
    calls: CallProduct[S],
    aside: Container[str] = frozenset(),
    *,
    every: bool = False,
    among: Iterable[Component] | None = None,
) -> tuple[Cycle, ...]:
    """Return a shortest cycle of each unbounded component, nearest to the start first.

    Args:
        ranking: the bounded transitions of the graph.
        calls: the product of the graph with the status of tool calls.
        aside: the nodes whose cycles are suppressed; their cycles do not count for the limit.
        every: whether to return all cycles, without a limit.
        among: the components to search; all components by default.
    """
    todo = list(ranking.cyclic_components if among is None else among)
    cycles: list[Cycle] = []
    excused: list[Component] = []
    effort = _Effort()
    count = 0
    while todo and count < (inf if every else CYCLES_MIN if effort.is_spent else CYCLES_MAX):
        names, arcs = todo.pop()
        effort.remaining -= len(arcs)
        cut = set(ranking.bounded(arcs))
        remaining: Sequence[str] = names
        if not cut:
            cycle, passed = _CycleSearch(ranking, calls, arcs, effort).shortest(names)
            cycles.append(cycle)
            count += cycle.node not in aside
            # Remove the nodes of this cycle, to find other cycles of the component.
            cut = {arc for arc in arcs if arc.source in passed or arc.target in passed}
            remaining = [name for name in names if name not in passed]
            if every or cycle.node in aside:
                excused.append((names, arcs))
        todo += ranking.components(remaining, [arc for arc in arcs if arc not in cut])
    for cycle in _cycles_beside(ranking, calls, excused, cycles):
        count += cycle.node not in aside
        if count > CYCLES_MAX and not every:
            break
        cycles.append(cycle)
    return tuple(sorted(cycles, key=lambda cycle: (len(cycle.into), cycle.words)))


def unbounded_nodes(ranking: Ranking[S]) -> Iterator[str]:
    """Yield the nodes of the split graph that are in an unbounded component."""
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
    """Yield a cycle through each node of the components that is on none of `cycles`.

    A suppressed cycle hides only its own nodes, so other nodes of its component are reported too.
    """
    covered = {arc.source for cycle in cycles for arc in cycle.around}
    order = calls.graph.order
    for names, arcs in components:
        search = _CycleSearch(ranking, calls, arcs, _Effort())
        # Start at the furthest node: its cycle is likely to cover most of the other nodes.
        for name in sorted(names, key=lambda name: -order.get(ranking.node(name), 0)):
            if ranking.node(name) not in covered:
                cycle, _ = search.shortest([name])
                covered |= {arc.source for arc in cycle.around}
                yield cycle


class _CycleSearch(Generic[S]):
    """Finds shortest cycles in one strongly connected component."""

    def __init__(
        self,
        ranking: Ranking[S],
        calls: CallProduct[S],
        arcs: Sequence[Arc],
        effort: _Effort,
    ) -> None:
        self._ranking, self._calls, self._effort = ranking, calls, effort
        self._arcs, self._rows = arcs, _arcs_by_source(arcs)
        # A cap on visits fails only because another transition of the component resets it. So a
        # cycle that is unbounded by itself avoids transitions with such a cap.
        uncapped = [arc for arc in arcs if (cap := ranking.cap(arc)) is None or cap.counts]
        self._uncapped_rows = _arcs_by_source(uncapped)

    def shortest(self, names: Sequence[str]) -> tuple[Cycle, frozenset[str]]:
        """Return a shortest cycle through one of these nodes, and all nodes on the cycle.

        The search prefers cycles without any bounded transition that leave the status of the tool
        calls unchanged, since a run can repeat such a cycle.
        """
        node = self._ranking.node
        repeatable = self._repeatable_cycle(names, by_itself=True) or self._repeatable_cycle(names)
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
        """Return a shortest cycle through one of these nodes; it may change the call status."""
        best: TablePath = ()
        for name in names:
            if best and self._effort.is_spent:
                break
            longest = len(best) - 1 if best else len(self._rows)
            best = _path_back(name, self._row_of, longest, self._effort) or best
        return best

    def _row_of(self, name: str) -> Iterator[tuple[Arc, str]]:
        return ((arc, arc.target) for arc in self._rows[name])

    def _repeatable_cycle(
        self, names: Sequence[str], *, by_itself: bool = False
    ) -> tuple[TablePath, TablePath] | None:
        """Return a path to a shortest cycle that restores the call status, and that cycle.

        Args:
            names: the nodes at which the cycle may begin.
            by_itself: whether the cycle must be unbounded without the rest of its component.
        """
        rows = self._uncapped_rows if by_itself else self._rows

        def arcs_from(state: State) -> Iterator[tuple[Arc, State]]:
            for arc in rows.get(state[0], ()):
                after = self._calls.after(state[1], arc.outcome)
                if after is not None:
                    yield arc, (arc.target, CallState(self._ranking.node(arc.target), *after))

        best: TablePath = ()
        into: TablePath = ()
        # Without this limit, a component without such a cycle is searched from each of its nodes.
        least = self._effort.remaining - sum(map(len, rows.values()))
        for start in self._nearest_states([name for name in names if name in rows]):
            if self._effort.is_spent and (best or self._effort.remaining < least):
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

    def _nearest_states(self, names: Sequence[str]) -> list[State]:
        """Return the reachable states of these nodes, nearest to the start first."""
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
    """Return a shortest cycle through `start` of at most `longest` transitions; empty if none."""
    parents: dict[Q, tuple[Arc, Q] | None] = {}
    layer = [start]
    for _ in range(longest):
        following: list[Q] = []
        for state in layer:
            for arc, target in arcs_from(state):
                effort.remaining -= 1
                if target == start:
                    return (*path_to({**parents, start: None}, state), arc)
                if target not in parents:
                    parents[target] = arc, state
                    following.append(target)
        layer = following
    return ()


def _arcs_by_source(arcs: Sequence[Arc]) -> Mapping[str, Sequence[Arc]]:
    """Return transitions grouped by their source node."""
    rows: dict[str, list[Arc]] = {}
    for arc in arcs:
        rows.setdefault(arc.source, []).append(arc)
    return rows
