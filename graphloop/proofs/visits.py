"""Visits: how often a run visits each node at most.

The lines that a ranking takes out of a part cut a run's stay in it into phases: taken k times
altogether, they leave k + 1. In one phase a run goes once through the parts of what is left, so
what it asks of models is a longest path through them. Lines can be taken out one after the other
or all at once; both bound the part, and the lower number counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from math import inf
from typing import Final, Generic, TypeVar, final

from ..contract import Moves
from ..rules import AtMost, TemporalRule, taken
from .proof_graph import Arc, ProofGraph, strong_components
from .ranking import Part, Ranking

__all__ = ["Stay", "VisitBounds", "Visits"]

S = TypeVar("S")

NAMED_MAX: Final = 4
"""How many lines a reason names before it says how many more there are."""

CHOICES_MAX: Final = 8
"""Among how many lines the first to be taken out is chosen with care."""


@final
@dataclass(frozen=True, slots=True)
class Stay:
    """The most that a run does in one stay among some nodes.

    Attributes:
        visits: how often it visits each; infinite where nothing says.
        weight: the most that its visits weigh together.
        why: what the weight follows from, a line a reason.
    """

    visits: Mapping[str, float]
    weight: float
    why: tuple[str, ...] = ()


class Visits(Generic[S]):
    """Counts visits.

    Args:
        ranking: what bounds the graph.
        weights: what a visit to each node weighs; infinite where that is not known.
    """

    def __init__(self, ranking: Ranking[S], weights: Mapping[str, float]) -> None:
        self._ranking = ranking
        self._weights = weights

    def among(self, names: Iterable[str], arcs: Sequence[Arc]) -> Stay:
        """Return the most that a stay among these nodes, by these lines, comes to."""
        every = tuple(names)
        stays = [self._within(part) for part in self._ranking.parts(every, arcs)]
        inside = {name: stay for stay in stays for name in stay.visits}
        whole = list(strong_components(every, [(arc.source, arc.target) for arc in arcs]))
        group_of = {name: place for place, group in enumerate(whole) for name in group}
        before: dict[int, set[int]] = {place: set() for place in range(len(whole))}
        for arc in arcs:
            source, target = group_of[arc.source], group_of[arc.target]
            if source != target:
                before[target].add(source)
        most: dict[int, tuple[float, tuple[str, ...]]] = {}
        for place in TopologicalSorter(before).static_order():
            weight, why = max((most[one] for one in before[place]), key=_heavy, default=(0.0, ()))
            stay = inside.get(whole[place][0])
            own = self._weights[whole[place][0]] if stay is None else stay.weight
            most[place] = (weight + own, why if stay is None else (*why, *stay.why))
        weight, why = max(most.values(), key=_heavy, default=(0.0, ()))
        visits = {name: inside[name].visits[name] if name in inside else 1.0 for name in every}
        return Stay(visits, weight, why)

    def of(self, nodes: Collection[str]) -> float:
        """Return the most visits of some nodes together: only their own cycles are looked at."""
        inside: dict[str, float] = {}
        for part in self._ranking.cyclic_components:
            if any(self._ranking.node(name) in nodes for name in part[0]):
                inside.update(self._within(part).visits)
        names = [name for name in self._ranking.arcs if self._ranking.node(name) in nodes]
        return sum(inside.get(name, 1.0) for name in names)

    def by_node(self, stay: Stay) -> dict[str, float]:
        """Return the visits of every node that the table leads to, however a run comes to it.

        A node that the table leads to and no run arrives at is visited 0 times.
        """
        visits = dict.fromkeys(self._ranking.ground.reached, 0.0)
        for place, count in stay.visits.items():
            visits[self._ranking.node(place)] += count
        return visits

    def _within(self, part: Part) -> Stay:
        names, arcs = part
        bounded = self._ranking.bounded(arcs)
        if not bounded:
            weight = inf if any(self._weights[name] for name in names) else 0.0
            return Stay(dict.fromkeys(names, inf), weight)
        found = self._phases(part, bounded)
        if 1 < len(bounded) <= CHOICES_MAX:
            one = min(bounded, key=lambda arc: self._left(part, arc))
            other = self._phases(part, [one])
            least = {name: min(found.visits[name], other.visits[name]) for name in names}
            lighter = min(other, found, key=lambda stay: stay.weight)
            return Stay(least, lighter.weight, lighter.why)
        return found

    def _left(self, part: Part, out: Arc) -> tuple[int, int]:
        """Return how much still goes in circles once a line is taken out."""
        names, arcs = part
        left = self._ranking.parts(names, [arc for arc in arcs if arc != out])
        cap = self._ranking.cap(out)
        return sum(len(arcs) for _, arcs in left), 0 if cap is None else cap.times

    def _phases(self, part: Part, out: Sequence[Arc]) -> Stay:
        names, arcs = part
        taken_out = set(out)
        rest = [arc for arc in arcs if arc not in taken_out]
        one, times = self.among(names, rest), 0
        visits, weight = dict.fromkeys(names, 0.0), 0.0
        words: list[str] = []
        for arc in out:
            cap = self._ranking.cap(arc)
            assert cap is not None, "only what is capped is taken out"
            times += cap.times
            words.append(f"{arc.source!r} leaves by {arc.word!r} at most {cap.times} times")
            if cap.counts:
                first = self._first(names, rest, cap.counts, arc)
                weight += first.weight
                for name, count in first.visits.items():
                    visits[name] += count
        for name in names:
            visits[name] += (times + 1) * one.visits[name]
        asked = f"{one.weight:.0f} model calls"
        more = len(words) - NAMED_MAX
        words[NAMED_MAX:] = [f"{more:,} others so many times as they promise"] if more > 0 else []
        why = f"{' and '.join(words)}: {times + 1} x {asked}"
        why += f", and {weight:.0f} before" if weight else ""
        return Stay(
            visits, weight + (times + 1) * one.weight, (why, *one.why) if one.weight else ()
        )

    def _first(
        self,
        names: Sequence[str],
        arcs: Sequence[Arc],
        counts: frozenset[Moves],
        line: Arc,
    ) -> Stay:
        """Return the phase of a run that comes to a counting line before anything has moved."""
        fresh = self._ranking.unmoved_from_start(counts, handed_in=False)
        still = self._ranking.unmoved_from_start(counts, handed_in=True)
        times = (line.source in fresh) + (line.source in still and still > fresh)
        if not times:
            return Stay({}, 0.0)
        kept = [name for name in names if name in still]
        within = [arc for arc in arcs if arc.source in still and arc.target in still]
        stay = self.among(kept, [arc for arc in within if self._is_still(arc, counts)])
        visits = {name: times * count for name, count in stay.visits.items()}
        return Stay(visits, times * stay.weight)

    def _is_still(self, arc: Arc, counts: frozenset[Moves]) -> bool:
        return not self._ranking.moved(arc) & counts or self._ranking.is_first(arc)


def _heavy(one: tuple[float, tuple[str, ...]]) -> float:
    return one[0]


class VisitBounds(Generic[S]):
    """How often nodes are visited at most, and so left, by the bounds that nodes promise."""

    def __init__(self, ground: ProofGraph[S]) -> None:
        self.ground = ground

    @cached_property
    def ranking(self) -> Ranking[S]:
        """The bounds of the graph's cycles."""
        return Ranking(self.ground)

    @cached_property
    def visits(self) -> Visits[S]:
        """The count of visits, without their model calls."""
        return Visits(self.ranking, dict.fromkeys(self.ranking.arcs, 0.0))

    def keeps(self, rule: TemporalRule) -> bool:
        """Whether a rule that counts can never be broken, as nothing comes so often."""
        return isinstance(rule, AtMost) and not rule.per and self._happens(rule.what) <= rule.times

    def _happens(self, word: str) -> float:
        """Return how often a node is entered, or an outcome taken, at most."""
        if word.startswith("node:"):
            node = word.removeprefix("node:")
            return self.visits.of([node]) if node in self.ground.reached else inf
        if not word.startswith("outcome:"):
            return inf
        arcs = [arc for name in self.ground.reached for arc in self.ground.arcs[name]]
        nodes = {arc.source for arc in arcs if word in taken(arc.source, arc.word).words}
        return self.visits.of(nodes)
