"""Ranking: the lines that a run takes only so often.

A part is a set of nodes that all reach each other. Taking such lines out of it, and out of what
is left again and again, is a lexicographic ranking: a graph whose cycles all come apart this way
is bounded, and how often each line is taken says how far.

A line is taken only so often if its node promises so (`Contract.caps`), and nothing within the
part sets the counter back. A counter that counts turns bounds a line only if every way from the
line back to itself opens one: a turn that is opened anew (`again`) is no other one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from .. import outcomes
from ..contract import Cap, Contract, Moves
from ..node_protocol import Node
from ..nodes import Append, Verify
from ..outcomes import (
    Aborted,
    Accepted,
    AnsweredCalls,
    Calls,
    Held,
    Outcome,
    Refused,
    Resend,
    Settled,
)
from .proof_graph import END, ProofGraph, Transition, cyclic_components, strong_components

__all__ = ["Come", "Part", "Ranking", "left_by"]

S = TypeVar("S")

Come: TypeAlias = Literal["", "noted", "ended", "broken"]
"""How a run comes to a node: with feedback just noted, with an ending, or broken off."""

APPENDED: Final[Mapping[Come, frozenset[type[Outcome]]]] = {
    "noted": frozenset({AnsweredCalls, Resend, Refused}),
    "ended": frozenset({outcomes.Final}),
    "broken": frozenset({Aborted}),
}
"""By what an Append leaves a run that comes to it so."""

VERIFIED: Final[Mapping[Come, frozenset[type[Outcome]]]] = dict.fromkeys(
    ("ended", "broken"), frozenset({Accepted})
)
"""By what a Verify does."""

AS: Final = "\0"
"""What stands between the name of a node and how a run comes to it."""

EVERYTHING: Final[frozenset[Moves]] = frozenset(get_args(Moves))

Part: TypeAlias = tuple[tuple[str, ...], list[Transition]]
"""Nodes that all reach each other, and the lines by which they do."""

Asked: TypeAlias = Literal["new", "asked", "again", "ended", "broken"]
"""Whether the turn's model was asked, if so whether the turn is to be opened once more, and whether
the run has an ending or was broken off.
"""

STANDS: Final[tuple[Asked, ...]] = ("new", "asked", "again")
"""How a turn may stand whose run is not over."""

ASKED: Final[tuple[Asked, ...]] = (*STANDS, "ended", "broken")

At: TypeAlias = tuple[str, Asked]


class Ranking(Generic[S]):
    """The bounds of a graph's cycles.

    Args:
        ground: the graph.
    """

    def __init__(self, ground: ProofGraph[S]) -> None:
        self.ground = ground
        self._contracts: dict[str, Contract | None] = {}
        self.ways = self._split()
        every = (way for row in self.ways.values() for way in row)
        self._may_open_again = any("again" in self.may_move(way) for way in every)
        self._places = self._feasible()
        self._unmoved: dict[tuple[frozenset[Moves], bool], frozenset[str]] = {}
        self._again = any(asked == "again" for _, asked in self._places)

    @property
    def opens_again(self) -> bool:
        """Whether a turn may be opened once more as the same one, as a Compact asks for."""
        return self._again

    def node(self, place: str) -> str:
        """Return the node that a place is, however a run has come to it."""
        return place.partition(AS)[0]

    def drawn(self, way: Transition) -> Transition:
        """Return a line between places as the line of the table that it is."""
        return Transition(self.node(way.source), way.outcome, self.node(way.target))

    def whole(self) -> tuple[tuple[str, ...], list[Transition]]:
        """Return all places that runs arrive at, and the lines between."""
        ways = [way for name in self.ways for way in self.ways[name]]
        return tuple(self.ways), [way for way in ways if way.target in self.ways]

    @cached_property
    def cyclic_components(self) -> Sequence[Part]:
        """The parts of the whole graph."""
        return list(self.parts(*self.whole()))

    def parts(self, names: Iterable[str], ways: Sequence[Transition]) -> Iterator[Part]:
        """Yield the parts of what these nodes and lines make up, each with its own lines."""
        found = list(cyclic_components(names, [(way.source, way.target) for way in ways]))
        part_of = {name: place for place, part in enumerate(found) for name in part}
        inside: list[list[Transition]] = [[] for _ in found]
        for way in ways:
            place = part_of.get(way.source)
            if place is not None and place == part_of.get(way.target):
                inside[place].append(way)
        yield from zip(found, inside, strict=True)

    def cap(self, way: Transition) -> Cap | None:
        """Return what bounds a line, if its node promises any."""
        contract = self._contract(way.source)
        return None if contract is None else contract.caps.get(way.outcome)

    def may_move(self, way: Transition) -> frozenset[Moves]:
        """Return what may have moved on when a line is taken."""
        contract = self._contract(way.source)
        return EVERYTHING if contract is None else contract.may_move(way.outcome)

    def moved(self, way: Transition) -> frozenset[Moves]:
        """Return what has moved on for sure when a line is taken."""
        contract = self._contract(way.source)
        return frozenset() if contract is None else contract.moved(way.outcome)

    def bounded(self, ways: Sequence[Transition]) -> list[Transition]:
        """Return those of a part's lines that are taken only so often while a run stays in it."""
        unheld = self.held_again(ways)
        capped = [
            (way, cap) for way in ways if (cap := self.cap(way)) is not None and way not in unheld
        ]
        if not capped:
            return []
        none: frozenset[Moves] = frozenset()
        moving = none.union(*map(self.may_move, ways))
        kept = [(way, cap) for way, cap in capped if not cap.resets & moving]
        known = all(self._contract(name) is not None for name in {way.source for way in ways})
        counting = {cap.counts for _, cap in kept if cap.counts and known}
        moved = {
            way
            for counts in counting
            for way in self._moved_between(
                ways, [one for one, cap in kept if cap.counts == counts], counts
            )
        }
        return [way for way, cap in kept if not cap.counts or way in moved]

    def held_again(self, ways: Sequence[Transition]) -> frozenset[Transition]:
        """Return the lines of a part that calls come back to with no gate asked about them.

        Calls are held once, since a gate asks about those it held: that bounds nothing without one.
        """
        held = [way for way in ways if issubclass(way.outcome, Held)]
        if not held:
            return frozenset()
        nodes = self.ground.graph.nodes
        silent = [
            (way.source, way.target)
            for way in ways
            if not (
                nodes[self.node(way.source)].kind == "gate" and issubclass(way.outcome, Settled)
            )
        ]
        whole = strong_components(dict.fromkeys(way.source for way in ways), silent)
        group_of = {name: place for place, group in enumerate(whole) for name in group}
        return frozenset(way for way in held if group_of[way.source] == group_of[way.target])

    def unmoved_from_start(self, counts: frozenset[Moves], *, handed_in: bool) -> frozenset[str]:
        """Return the nodes that a run may come to before any of these has moved.

        Args:
            counts: what counts.
            handed_in: whether it began with a conversation whose calls are open.
        """
        known = self._unmoved.get((counts, handed_in))
        if known is not None:
            return known
        found = {self.ground.graph.start}
        todo = deque(found)
        while todo:
            for way in self.ways.get(todo.popleft(), ()):
                moves = self.moved(way) & counts and not (handed_in and self.is_first(way))
                if way.target not in found and not moves:
                    found.add(way.target)
                    todo.append(way.target)
        unmoved = self._unmoved[counts, handed_in] = frozenset(found - {END})
        return unmoved

    def is_first(self, way: Transition) -> bool:
        """Whether a line may be taken once without moving what it moves otherwise.

        A run may begin with a conversation whose calls are open.
        """
        contract = self._contract(way.source)
        return contract is not None and way.outcome is Calls and contract.takes_up_calls

    def _contract(self, place: str) -> Contract | None:
        if place not in self._contracts:
            self._contracts[place] = self.ground.contracts.get(self.node(place))
        return self._contracts[place]

    def _split(self) -> dict[str, tuple[Transition, ...]]:
        """Return the lines between places: a node is another place where it does less.

        One that is come to with feedback just noted, or by a run that is over, may have fewer ways
        to go on.
        """
        rows: dict[str, tuple[Transition, ...]] = {}
        todo = deque([self.ground.graph.start])
        while todo:
            place = todo.popleft()
            if place in rows:
                continue
            name, _, word = place.partition(AS)
            come = cast("Come", word)
            only = self._left_by(name, come)
            rows[place] = tuple(
                [
                    Transition(place, way.outcome, self._place_after(way, come))
                    for way in self.ground.ways.get(name, ())
                    if only is None or way.outcome in only
                ]
            )
            todo += [way.target for way in rows[place] if way.target != END]
        return rows

    def _place_after(self, way: Transition, come: Come) -> str:
        """Return the place that a line leads to from a node that a run has come to so."""
        before, after = self._contract(way.source), self._contract(way.target)
        if before is None or after is None:
            return way.target
        goes = _goes(before, way.outcome, come)
        kept = goes == "noted" and any(map(after.keeps, self.ground.graph.table[way.target]))
        other = kept or self._left_by(way.target, goes) is not None
        return way.target + AS + goes if other else way.target

    def _left_by(self, name: str, come: Come) -> frozenset[type[Outcome]] | None:
        node = self.ground.graph.nodes.get(name)
        return None if node is None else left_by(node, come)

    def _moved_between(
        self, ways: Sequence[Transition], lines: Sequence[Transition], counts: frozenset[Moves]
    ) -> Iterator[Transition]:
        """Yield those of `lines` from which no way leads back to them that moves nothing."""
        left = lines
        if not self._again:
            # What no line leads back to needs no look at how the turns stand.
            still = [way for way in ways if not self.moved(way) & counts]
            names = dict.fromkeys(name for way in ways for name in (way.source, way.target))
            whole = strong_components(names, [(way.source, way.target) for way in still])
            group_of = {name: place for place, group in enumerate(whole) for name in group}
            together = {way for way in lines if group_of[way.source] == group_of[way.target]}
            left = [way for way in lines if way in together and not self.moved(way) & counts]
            yield from (way for way in lines if way not in together or self.moved(way) & counts)
        rows: dict[str, list[Transition]] = {}
        for way in ways if left else ():
            rows.setdefault(way.source, []).append(way)
        for way in left:
            if not self._comes_back(rows, way, counts):
                yield way

    def _comes_back(
        self, rows: Mapping[str, Sequence[Transition]], line: Transition, counts: frozenset[Moves]
    ) -> bool:
        """Whether a way leads from a line back to itself on which nothing has moved."""
        begun: list[Asked] = [one for one in ASKED if (line.source, one) in self._places]
        found = {one for asked in begun for one in self._still(line, counts, asked)}
        todo = deque(found)
        while todo:
            name, asked = todo.popleft()
            if name == line.source:
                return True
            for way in rows.get(name, ()):
                new = [one for one in self._still(way, counts, asked) if one not in found]
                found.update(new)
                todo += new
        return False

    def _still(self, way: Transition, counts: frozenset[Moves], asked: Asked) -> Iterator[At]:
        """Yield where a line leads to without moving anything that counts."""
        moved = self.moved(way)
        same = asked == "again" and "close" not in moved
        if moved & counts - ({"turn"} if same else set()):
            return
        yield from self._led(way, asked)

    def _led(self, way: Transition, asked: Asked) -> Iterator[At]:
        """Yield where a line leads to, with all that may have become of the turn."""
        contract = self._contract(way.source)
        moved, may = self.moved(way), self.may_move(way)
        if contract is None:
            # It may have done anything to the turn.
            for stands in STANDS:
                yield way.target, stands
            return
        if asked == "ended" or asked == "broken":  # noqa: PLR1714 - a set narrows no type
            led = self._led_once_over(way, asked)
            yield from (one for one in led if self._may_open_again or one[1] != "again")
            return
        if asked == "new" and "end" in moved and contract.opens_again:
            return
        if moved & {"end", "broken"}:
            yield way.target, "ended" if "end" in moved else "broken"
            return
        before: Asked = "new" if moved & {"turn", "close"} else asked
        yield way.target, before
        if before == "new" and "reply" in may:
            yield way.target, "asked"
        if before == "asked" and "again" in may:
            yield way.target, "again"

    def _led_once_over(self, way: Transition, over: Literal["ended", "broken"]) -> Iterator[At]:
        """Yield where a line leads to that is taken by a run that has its ending."""
        known = self._left_by(self.node(way.source), over)
        if known is None:
            # The ending may be gone, and nobody knows how the turn stands.
            yield way.target, "asked"
            yield way.target, "again"
        elif way.outcome in known:
            yield way.target, over

    def _feasible(self) -> set[At]:
        found: set[At] = {(self.ground.graph.start, "new")}
        todo = deque(found)
        while todo:
            name, asked = todo.popleft()
            for way in self.ways.get(name, ()):
                new = [one for one in self._led(way, asked) if one not in found]
                found.update(new)
                todo += new
        return found


def left_by(node: Node[S, Outcome], come: Come) -> frozenset[type[Outcome]] | None:
    """Return what a node is left by that a run comes to so; None if that may be anything."""
    kind: type[object] = type(node)
    if kind is Append:
        return APPENDED.get(come)
    return VERIFIED.get(come) if kind is Verify else None


def _goes(contract: Contract, outcome: type[Outcome], come: Come) -> Come:
    """Return how a run goes on from a node that it has come to so."""
    if come in {"ended", "broken"}:
        # Such a place is one of its own only where the node leaves the ending as it is.
        return come
    moved = contract.moved(outcome)
    if moved & {"end", "broken"}:
        return "ended" if "end" in moved else "broken"
    kept = come == "noted" and contract.keeps(outcome)
    return "noted" if kept or "note" in moved else ""
