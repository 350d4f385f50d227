"""Guarding: what can be come to with less before it that keeps things from happening.

A set of guards may stand before a node though none of them alone always does: one on each way. So
guards are compared along whole runs. From the start, and behind every line that both graphs have:
whatever the later graph comes to by way of some guards, the earlier could come to by way of no
others. A guard counts only if it was left by an outcome that it had: a person's yes is no no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Generic, NamedTuple, TypeVar

import networkx as nx

from ..outcomes import outcome_name
from .dominance import answering
from .ground import END, Ground, Trail, Way, search, trail
from .parameter_changes import GUARDS, is_guard

__all__ = ["Unguarded", "guards_of", "unguarded"]

S = TypeVar("S")

ANSWER_GUARDS = frozenset({"check", "human"})
"""The kinds that may keep a run from ending; the others keep it from acting."""


class Unguarded(NamedTuple):
    """What can be come to without guards that one of always stood before it.

    Attributes:
        nodes: what can be come to.
        guards: the first guards of the earlier graph on the ways there; none if no way led there.
        behind: the line behind which it is so; None from the start.
        more: behind how many more lines it is so.
        walked: a shortest way of the later graph to the first of the nodes.
    """

    nodes: tuple[str, ...]
    guards: tuple[str, ...]
    behind: Way | None
    more: int
    walked: Trail


def guards_of(ground: Ground[S], kinds: Set[str] = GUARDS) -> tuple[str, ...]:
    """Return the nodes that runs arrive at and that keep something from happening."""
    nodes = ground.graph.nodes
    return tuple(
        [one for one in ground.reached if is_guard(nodes[one]) and nodes[one].kind in kinds]
    )


def unguarded(
    old: Ground[S], new: Ground[S], acting: Set[str], told: Set[tuple[str, str]] = frozenset()
) -> Iterator[Unguarded]:
    """Yield what can be come to with less before it, nodes that act first.

    Nobody knows what a function of one's own does, or keeps from happening. It counts as what acts;
    and behind a line as a guard of what it always stood before there, but not from the start, where
    the next function may do in its place.

    Args:
        old: the earlier graph.
        new: the later one.
        acting: the nodes that act in both, and that runs of both arrive at.
        told: each guard that is known to be passed no more, with the node that it stood before.
    """
    guards = guards_of(old)
    pure = [one for one in old.reached if old.graph.nodes[one].kind == "pure"]
    may_act = {*acting, *[one for one in pure if one in new.parents]}
    strict = _Comparison(old, new, guards, acting)
    found = [*strict.losses(may_act)]
    yield from strict.shown(found, told)
    rest = may_act - {node for loss in found for node in strict.named(loss.lost)}
    if pure:
        since = _Comparison(old, new, (*guards, *pure), acting, strict=False)
        yield from since.shown([*since.losses(rest)], told)
    if END in old.parents and END in new.parents:
        ends = _Comparison(old, new, guards_of(old, ANSWER_GUARDS), acting, answers=True)
        yield from ends.shown([*ends.losses({END})], told)


class _Loss(NamedTuple):
    """That some nodes are unguarded behind a line, or from the start; sets as bits."""

    behind: Way | None
    lost: int
    was: int


class _Comparison(Generic[S]):
    """Two graphs, cut where the earlier one's guards stand.

    If strict, a guard that is left by an outcome that it did not have was not passed, nor was one
    that the earlier graph met only behind another. If of answers, runs that end without one are no
    loss.
    """

    def __init__(
        self,
        old: Ground[S],
        new: Ground[S],
        guards: Iterable[str],
        acting: Set[str],
        *,
        strict: bool = True,
        answers: bool = False,
    ) -> None:
        self.old, self.new, self.acting, self.strict = old, new, acting, strict
        self.guards = frozenset(guards)
        self.ways = answering(new) if answers else new.ways
        earlier = answering(old) if answers else old.ways
        names = dict.fromkeys((*old.graph.nodes, *new.graph.nodes, END))
        self.bits = {name: 1 << place for place, name in enumerate(names)}
        self.names = tuple(names)
        self.guarding = self._bits_of(self.guards)
        self.first = self.guarding if strict else 0
        self._firsts: dict[int, list[tuple[str, int]]] = {}
        self.known = {(way.source, way.word): way for ways in old.ways.values() for way in ways}
        # What a guard promised never to leave by, and may now, is an outcome that it had.
        self.asleep = {
            (name, outcome_name(outcome)): target
            for name in self.guards
            for outcome, target in old.graph.table[name].items()
        }
        self.every = _spread(earlier, self.bits, lambda _: False)
        self.before = _spread(earlier, self.bits, lambda way: way.source in self.guards)
        self.after = _spread(self.ways, self.bits, self._is_passed)

    def _is_passed(self, way: Way) -> bool:
        """Whether a line is one by which a guard has let a run through, or not, before."""
        if way.source not in self.guards:
            return False
        line = way.source, way.word
        return not self.strict or line in self.known or self.asleep.get(line) == way.target

    def named(self, bits: int) -> tuple[str, ...]:
        """Return the nodes of a set."""
        return tuple([self.names[place] for place in _places(bits)])

    def losses(self, nodes: Set[str]) -> Iterator[_Loss]:
        """Yield where any of some nodes is guarded less.

        If strict, also where no way of the earlier graph led to it at all, unless that is behind a
        node that neither guards nor acts, or nothing guards it anyway.
        """
        targets = self._bits_of(nodes)
        free = self._met(self.old.graph.start, self.before)
        if self.strict:
            lost = self._come_to(self.new.graph.start, free) & targets & ~free
            if lost:
                yield _Loss(None, lost, free)
        for source in self.new.reached:
            for way in self.ways[source] if source in self.old.parents else ():
                earlier = self.known.get((source, way.word))
                if earlier is None:
                    continue
                was = self._met(earlier.target, self.before)
                lost = self._come_to(way.target, was) & targets & ~was
                led = self._met(earlier.target, self.every)
                if not (self.strict and source in self.guards):
                    lost &= led | ~free if self.strict and source in self.acting else led
                if lost:
                    yield _Loss(way, lost, was)

    def shown(self, losses: list[_Loss], told: Set[tuple[str, str]]) -> Iterator[Unguarded]:
        """Yield the losses that say what the others follow from, those from the start first."""
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[_Loss]] = {}
        nearest = self._nearest(losses)
        for loss in losses:
            nodes_by_guards: dict[tuple[str, ...], list[str]] = {}
            for node in self.named(loss.lost):
                if loss.behind is not None and loss.behind not in nearest[node]:
                    continue
                guards = self._guards_before(node, loss.was)
                if not guards or any((guard, node) not in told for guard in guards):
                    nodes_by_guards.setdefault(guards, []).append(node)
            for guards, nodes in nodes_by_guards.items():
                groups.setdefault((tuple(nodes), guards), []).append(loss)
                if loss.behind is None:
                    for node in nodes:
                        nearest[node] -= {*self._walked(loss, node)}
        for (several, guards), same in groups.items():
            walked = self._walked(same[0], several[0])
            yield Unguarded(several, guards, same[0].behind, len(same) - 1, walked)

    def _nearest(self, losses: list[_Loss]) -> dict[str, set[Way]]:
        """Return for each node the lines after which no other loss of it need follow."""
        lines: dict[str, dict[Way, None]] = {}
        for loss in losses:
            for node in self.named(loss.lost):
                ways = lines.setdefault(node, {})
                if loss.behind is not None:
                    ways[loss.behind] = None
        every = [way for ways in self.ways.values() for way in ways]
        around = [way for way in every if not self._is_passed(way)]
        backs = [_backwards(around), _backwards(every)]
        return {node: _last(node, ways, backs) for node, ways in lines.items()}

    def _guards_before(self, node: str, was: int) -> tuple[str, ...]:
        """Return the first guards that the earlier graph met, and that led on to a node."""
        firsts = self._firsts.get(was)
        if firsts is None:
            names = self.named(was & self.guarding)
            firsts = self._firsts[was] = [(one, self.every.get(one, 0)) for one in names]
        bit = self.bits[node]
        return tuple([one for one, led in firsts if led & bit])

    def _walked(self, loss: _Loss, node: str) -> Trail:
        """Return a shortest way of the later graph that shows a loss."""

        def steps(name: str) -> Iterator[tuple[Way, str]]:
            stays = not self.strict or bool(self.bits[name] & loss.was)
            ways = self.ways.get(name, ())
            return ((way, way.target) for way in ways if not (stays and self._is_passed(way)))

        way = loss.behind
        begin = self.new.graph.start if way is None else way.target
        into = () if way is None else (*self.new.trail(way.source), way)
        return (*into, *trail(search([begin], steps), node))

    def _come_to(self, begin: str, was: int) -> int:
        """Return what the later graph comes to, past guards that the earlier did not meet first."""
        found, done = self._met(begin, self.after), was
        while waiting := found & self.first & ~done:
            done |= waiting
            for name in self.named(waiting):
                for way in self.ways.get(name, ()):
                    found |= self._met(way.target, self.after)
        return found

    def _met(self, begin: str, spread: dict[str, int]) -> int:
        return self.bits[begin] | spread.get(begin, 0)

    def _bits_of(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self.bits[name]
        return found


def _backwards(ways: Iterable[Way]) -> dict[str, list[Way]]:
    found: dict[str, list[Way]] = {}
    for way in ways:
        found.setdefault(way.target, []).append(way)
    return found


def _last(node: str, lines: dict[Way, None], backs: list[dict[str, list[Way]]]) -> set[Way]:
    """Return those of some lines that lead to a node by way of none of the others; or the first."""
    for back in backs:

        def steps(name: str, back: dict[str, list[Way]] = back) -> Iterator[tuple[Way, str]]:
            return ((way, way.source) for way in back.get(name, ()) if way not in lines)

        found = search([node], steps)
        last = {way for way in lines if way.target in found}
        if last:
            return last
    return set([*lines][:1])


def _places(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _spread(
    lines_of: Mapping[str, Iterable[Way]], bits: dict[str, int], is_shut: Callable[[Way], bool]
) -> dict[str, int]:
    """Return what can be come to from behind each node, by lines that are not shut."""
    lines: nx.DiGraph[str] = nx.DiGraph()
    for ways in lines_of.values():
        lines.add_edges_from((way.source, way.target) for way in ways if not is_shut(way))
    found: dict[str, int] = {}
    condensed = nx.condensation(lines)
    for place in reversed([*nx.topological_sort(condensed)]):
        members: Set[str] = condensed.nodes[place]["members"]
        met = 0
        for name in members:
            for target in lines.successors(name):
                met |= bits[target] | found.get(target, 0)
        found.update(dict.fromkeys(members, met))
    return found
