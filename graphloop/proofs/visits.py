"""Visits: upper bounds of how often a run visits each node.

If a run takes the bounded transitions of a component at most k times, these cut its stay in the
component into at most k + 1 phases. Without the bounded transitions, the component falls into
smaller components. A phase enters each of these at most once, so the model calls of a phase are
those of a longest path through them. Bounded transitions can be removed one by one or all at once;
both ways give an upper bound, and the smaller of the two is used.
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
from .components import strong_components
from .proof_graph import Arc, ProofGraph
from .ranking import Component, Ranking

__all__ = ["Stay", "VisitBounds", "VisitCount"]

S = TypeVar("S")

NAMED_MAX: Final = 4
"""The most transitions that a reason names; it only counts the others."""

CHOICES_MAX: Final = 8
"""If a component has more bounded transitions, they are removed only all at once."""

_Weighed: TypeAlias = tuple[float, tuple[str, ...]]
"""An upper bound of model calls or another weight, and the reasons for it."""


@final
@dataclass(frozen=True, slots=True)
class Stay:
    """The upper bounds of a run's visits and total weight while it stays in a set of nodes.

    Attributes:
        visits: the most visits of each node; infinite if unbounded.
        weight: the largest sum of the weights of all visits, such as of their model calls.
        why: the reasons for `weight`, one line each.
    """

    visits: Mapping[str, float]
    weight: float
    why: tuple[str, ...] = ()


class VisitCount(Generic[S]):
    """Computes upper bounds of visits to nodes of the split graph.

    Args:
        ranking: the bounded transitions of the graph.
        weights: the weight of one visit of each node, such as its model calls; infinite if unknown.
    """

    def __init__(self, ranking: Ranking[S], weights: Mapping[str, float]) -> None:
        self._ranking = ranking
        self._weights = weights

    def among(self, names: Iterable[str], arcs: Sequence[Arc]) -> Stay:
        """Return the upper bounds of a stay in the subgraph of these nodes and transitions."""
        every = tuple(names)
        stays = [self._stay_in(part) for part in self._ranking.components(every, arcs)]
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
            weight, why = max(paths, key=_weight_of, default=(0.0, ()))
            first = groups[number][0]
            stay = stay_of.get(first)
            own = self._weights[first] if stay is None else stay.weight
            heaviest[number] = (weight + own, why if stay is None else (*why, *stay.why))
        weight, why = max(heaviest.values(), key=_weight_of, default=(0.0, ()))
        visits = {name: stay_of[name].visits[name] if name in stay_of else 1.0 for name in every}
        return Stay(visits, weight, why)

    def of(self, nodes: Collection[str]) -> float:
        """Return the most visits that a run makes to nodes of the table, summed over `nodes`."""
        inside: dict[str, float] = {}
        for component in self._ranking.cyclic_components:
            if any(self._ranking.node(name) in nodes for name in component[0]):
                inside.update(self._stay_in(component).visits)
        names = [name for name in self._ranking.arcs if self._ranking.node(name) in nodes]
        return sum(inside.get(name, 1.0) for name in names)

    def by_node(self, stay: Stay) -> dict[str, float]:
        """Return the most visits of each node of the table, summed over its split-graph copies.

        A node that is not in the split graph is reachable in the table, but no run visits it.
        """
        visits = dict.fromkeys(self._ranking.graph.reached, 0.0)
        for name, count in stay.visits.items():
            visits[self._ranking.node(name)] += count
        return visits

    def _stay_in(self, component: Component) -> Stay:
        """Return the upper bounds of one stay in a strongly connected component."""
        names, arcs = component
        bounded = self._ranking.bounded(arcs)
        if not bounded:
            weight = inf if any(self._weights[name] for name in names) else 0.0
            return Stay(dict.fromkeys(names, inf), weight)
        together = self._stay_by_phases(component, bounded)
        if not 1 < len(bounded) <= CHOICES_MAX:
            return together
        best = min(bounded, key=lambda arc: self._cyclic_without(component, arc))
        single = self._stay_by_phases(component, [best])
        least = {name: min(together.visits[name], single.visits[name]) for name in names}
        lighter = min(single, together, key=lambda stay: stay.weight)
        return Stay(least, lighter.weight, lighter.why)

    def _cyclic_without(self, component: Component, removed: Arc) -> tuple[int, int]:
        """Return how many transitions remain on cycles without `removed`, and its cap."""
        names, arcs = component
        left = self._ranking.components(names, [arc for arc in arcs if arc != removed])
        cap = self._ranking.cap(removed)
        return sum(len(arcs) for _, arcs in left), 0 if cap is None else cap.times

    def _stay_by_phases(self, component: Component, removed: Sequence[Arc]) -> Stay:
        """Return the upper bounds of a component, by phases between the `removed` transitions."""
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
            often = "once" if cap.times == 1 else f"{cap.times} times"
            words.append(f"{arc.source!r} leaves by {arc.word!r} at most {often}")
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
        """Return the upper bounds of the extra phase before the first move that a cap counts.

        A run may take the transition `capped` once more before that first move. Without such a
        phase, the bounds are 0.
        """
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


def _weight_of(weighed: _Weighed) -> float:
    """Return the weight without its reasons."""
    return weighed[0]


class VisitBounds(Generic[S]):
    """Upper bounds of visits, which prove some `at_most` rules without a further search."""

    def __init__(self, graph: ProofGraph[S]) -> None:
        self.graph = graph

    @cached_property
    def ranking(self) -> Ranking[S]:
        """The bounded transitions of the graph, computed at first use."""
        return Ranking(self.graph)

    @cached_property
    def visits(self) -> VisitCount[S]:
        """The upper bounds of visits, with all weights 0."""
        return VisitCount(self.ranking, dict.fromkeys(self.ranking.arcs, 0.0))

    def keeps(self, rule: TemporalRule) -> bool:
        """Return whether the upper bounds of visits alone prove an `at_most` rule."""
        return (
            isinstance(rule, AtMost) and not rule.per and self._most_times(rule.what) <= rule.times
        )

    def _most_times(self, word: str) -> float:
        """Return the most times that the node or outcome `word` happens in a run; else infinity."""
        if word.startswith("node:"):
            node = word.removeprefix("node:")
            return self.visits.of([node]) if node in self.graph.reached else inf
        if not word.startswith("outcome:"):
            return inf
        arcs = [arc for name in self.graph.reached for arc in self.graph.arcs[name]]
        nodes = {arc.source for arc in arcs if word in taken(arc.source, arc.word).words}
        return self.visits.of(nodes)
