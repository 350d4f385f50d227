"""rule_visits: rules that count, decided by how often nodes are visited at most."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import inf
from typing import Generic, TypeVar

from ..rules import AtMost, TemporalRule, taken
from .ground import Ground
from .ranking import Ranking
from .visits import Visits

__all__ = ["Most"]

S = TypeVar("S")


class Most(Generic[S]):
    """How often nodes are visited at most, and so left, by the bounds that nodes promise."""

    def __init__(self, ground: Ground[S]) -> None:
        self.ground = ground

    @cached_property
    def ranking(self) -> Ranking[S]:
        """What bounds the graph's cycles."""
        return Ranking(self.ground)

    @cached_property
    def visits(self) -> Mapping[str, float]:
        """The most visits of each node that runs arrive at."""
        names, ways = self.ranking.whole()
        counted = Visits(self.ranking, dict.fromkeys(names, 0.0))
        return counted.by_node(counted.among(names, ways))

    def keeps(self, rule: TemporalRule) -> bool:
        """Whether a rule that counts can never be broken, as nothing comes so often."""
        return isinstance(rule, AtMost) and not rule.per and self._happens(rule.what) <= rule.times

    def _happens(self, word: str) -> float:
        """Return how often a node is entered, or an outcome taken, at most."""
        if word.startswith("node:"):
            return self.visits.get(word.removeprefix("node:"), inf)
        if not word.startswith("outcome:"):
            return inf
        ways = [way for name in self.ground.reached for way in self.ground.ways[name]]
        nodes = {way.source for way in ways if word in taken(way.source, way.word).words}
        return sum(self.visits[node] for node in nodes)
