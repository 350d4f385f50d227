"""Visits: the largest number of visits of each node in a run.

The bounded arcs of a component, taken k times altogether, cut a run's stay in it into k + 1 phases.
In one phase a run passes each remaining component once, so its model calls are a longest path
through these. Bounded arcs can be removed one after the other or all at once. Both ways bound the
component, and the lower number counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from math import inf
from typing import Final, Generic, TypeAlias, TypeVar, final

from ..contract import Moves
from ..rules import AtMost, TemporalRule, taken
from .proof_graph import Arc, ProofGraph, strong_components
from .ranking import Component, Ranking

__all__ = ["Stay", "VisitBounds", "VisitCount"]

S = TypeVar("S")

NAMED_MAX: Final = 4
"""The arcs that a reason names before it counts the others."""

CHOICES_MAX: Final = 8
"""The bounded arcs up to which the best first arc is searched."""

_Weighed: TypeAlias = tuple[float, tuple[str, ...]]
"""A weight, with the reasons for it."""


@final
@dataclass(frozen=True, slots=True)
class Stay:
    """The most that a run does while it stays among some nodes.

    Attributes:
        visits: the visits of each node; infinite if unbounded.
        weight: the largest sum of the weights of its visits.
        why: the reasons for the weight, one line each.
    """

    visits: Mapping[str, float]
    weight: float
    why: tuple[str, ...] = ()


class VisitCount(Generic[S]):
    """Counts visits to nodes of the split graph.

    Args:
        ranking: the bounds of the graph.
        weights: the weight of a visit to each node; infinite if unknown.
    """

    def __init__(self, ranking: Ranking[S], weights: Mapping[str, float]) -> None:
        self._ranking = ranking
        self._weights = weights

    def among(self, names: Iterable[str], arcs: Sequence[Arc]) -> Stay:
        """Return the most that a run does among these nodes, by these arcs."""
        every = tuple(names)
        stays = [self._within(part) for part in self._ranking.components(every, arcs)]
        stay_of = {name: stay for stay in stays for name in stay.visits}
        groups = list(strong_components(every, [(arc.source, arc.target) for arc in arcs]))
        number_of = {name: number for number, group in enumerate(groups) for name in group}
        before: dict[int, set[int]] = {number: set() for number in range(len(groups))}
        for arc in arcs:
            source, target = number_of[arc.source], number_of[arc.target]
            if source != target:
                before[target].add(source)
        heaviest: dict[int, _Weighed] = {}
        for number in TopologicalSorter(before).static_order():
            paths = (heaviest[earlier] for earlier in before[number])
            weight, why = max(paths, key=_weight, default=(0.0, ()))
            first = groups[number][0]
            stay = stay_of.get(first)
            own = self._weights[first] if stay is None else stay.weight
            heaviest[number] = (weight + own, why if stay is None else (*why, *stay.why))
        weight, why = max(heaviest.values(), key=_weight, default=(0.0, ()))
        visits = {name: stay_of[name].visits[name] if name in stay_of else 1.0 for name in every}
        return Stay(visits, weight, why)

    def of(self, nodes: Collection[str]) -> float:
        """Return the most visits of some nodes of the table together."""
        inside: dict[str, float] = {}
        for component in self._ranking.cyclic_components:
            if any(self._ranking.node(name) in nodes for name in component[0]):
                inside.update(self._within(component).visits)
        names = [name for name in self._ranking.arcs if self._ranking.node(name) in nodes]
        return sum(inside.get(name, 1.0) for name in names)

    def by_node(self, stay: Stay) -> dict[str, float]:
        """Return the visits of each reachable node of the table.

        A node that only the table reaches, and no run, is visited 0 times.
        """
        visits = dict.fromkeys(self._ranking.graph.reached, 0.0)
        for name, count in stay.visits.items():
            visits[self._ranking.node(name)] += count
        return visits

    def _within(self, component: Component) -> Stay:
        """Return the most that a run does in one stay in a component."""
        names, arcs = component
        bounded = self._ranking.bounded(arcs)
        if not bounded:
            weight = inf if any(self._weights[name] for name in names) else 0.0
            return Stay(dict.fromkeys(names, inf), weight)
        together = self._phases(component, bounded)
        if not 1 < len(bounded) <= CHOICES_MAX:
            return together
        best = min(bounded, key=lambda arc: self._cyclic_without(component, arc))
        single = self._phases(component, [best])
        least = {name: min(together.visits[name], single.visits[name]) for name in names}
        lighter = min(single, together, key=lambda stay: stay.weight)
        return Stay(least, lighter.weight, lighter.why)

    def _cyclic_without(self, component: Component, removed: Arc) -> tuple[int, int]:
        """Return how many arcs stay cyclic without an arc, and the arc's bound."""
        names, arcs = component
        left = self._ranking.components(names, [arc for arc in arcs if arc != removed])
        cap = self._ranking.cap(removed)
        return sum(len(arcs) for _, arcs in left), 0 if cap is None else cap.times

    def _phases(self, component: Component, removed: Sequence[Arc]) -> Stay:
        """Return the most that a run does in a component that removed arcs cut into phases."""
        names, arcs = component
        gone = set(removed)
        rest = [arc for arc in arcs if arc not in gone]
        phase, times = self.among(names, rest), 0
        visits, weight = dict.fromkeys(names, 0.0), 0.0
        words: list[str] = []
        for arc in removed:
            cap = self._ranking.cap(arc)
            assert cap is not None, "only capped arcs are removed"
            times += cap.times
            words.append(f"{arc.source!r} leaves by {arc.word!r} at most {cap.times} times")
            if cap.counts:
                first = self._first_phase(names, rest, cap.counts, arc)
                weight += first.weight
                for name, count in first.visits.items():
                    visits[name] += count
        for name in names:
            visits[name] += (times + 1) * phase.visits[name]
        more = len(words) - NAMED_MAX
        words[NAMED_MAX:] = [f"{more:,} others so many times as they promise"] if more > 0 else []
        why = f"{' and '.join(words)}: {times + 1} x {phase.weight:.0f} model calls"
        why += f", and {weight:.0f} before" if weight else ""
        reasons = (why, *phase.why) if phase.weight else ()
        return Stay(visits, weight + (times + 1) * phase.weight, reasons)

    def _first_phase(
        self, names: Sequence[str], arcs: Sequence[Arc], counts: frozenset[Moves], capped: Arc
    ) -> Stay:
        """Return the phase of a run that reaches a counting arc before its counter moves."""
        fresh = self._ranking.unmoved_from_start(counts, handed_in=False)
        handed_in = self._ranking.unmoved_from_start(counts, handed_in=True)
        times = (capped.source in fresh) + (capped.source in handed_in and handed_in > fresh)
        if not times:
            return Stay({}, 0.0)
        kept = [name for name in names if name in handed_in]
        within = [
            arc
            for arc in arcs
            if arc.source in handed_in
            and arc.target in handed_in
            and (not self._ranking.moved(arc) & counts or self._ranking.is_first(arc))
        ]
        stay = self.among(kept, within)
        return Stay({name: times * n for name, n in stay.visits.items()}, times * stay.weight)


def _weight(weighed: _Weighed) -> float:
    return weighed[0]


class VisitBounds(Generic[S]):
    """The largest number of visits of nodes, which the proofs of rules look up first."""

    def __init__(self, graph: ProofGraph[S]) -> None:
        self.graph = graph

    @cached_property
    def ranking(self) -> Ranking[S]:
        """The bounds of the graph."""
        return Ranking(self.graph)

    @cached_property
    def visits(self) -> VisitCount[S]:
        """The count of visits, without weights."""
        return VisitCount(self.ranking, dict.fromkeys(self.ranking.arcs, 0.0))

    def keeps(self, rule: TemporalRule) -> bool:
        """Return whether the bounds alone prove a rule of the form `at_most`."""
        return isinstance(rule, AtMost) and not rule.per and self._most(rule.what) <= rule.times

    def _most(self, word: str) -> float:
        """Return how often a run enters a node, or leaves nodes by an outcome, at most."""
        if word.startswith("node:"):
            node = word.removeprefix("node:")
            return self.visits.of([node]) if node in self.graph.reached else inf
        if not word.startswith("outcome:"):
            return inf
        arcs = [arc for name in self.graph.reached for arc in self.graph.arcs[name]]
        nodes = {arc.source for arc in arcs if word in taken(arc.source, arc.word).words}
        return self.visits.of(nodes)
