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
from .proof_graph import END, Arc, ProofGraph, cyclic_components, strong_components

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

Part: TypeAlias = tuple[tuple[str, ...], list[Arc]]
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
        self.arcs = self._split()
        every = (arc for row in self.arcs.values() for arc in row)
        self._may_open_again = any("again" in self.may_move(arc) for arc in every)
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

    def drawn(self, arc: Arc) -> Arc:
        """Return a line between places as the line of the table that it is."""
        return Arc(self.node(arc.source), arc.outcome, self.node(arc.target))

    def whole(self) -> tuple[tuple[str, ...], list[Arc]]:
        """Return all places that runs arrive at, and the lines between."""
        arcs = [arc for name in self.arcs for arc in self.arcs[name]]
        return tuple(self.arcs), [arc for arc in arcs if arc.target in self.arcs]

    @cached_property
    def cyclic_components(self) -> Sequence[Part]:
        """The parts of the whole graph."""
        return list(self.parts(*self.whole()))

    def parts(self, names: Iterable[str], arcs: Sequence[Arc]) -> Iterator[Part]:
        """Yield the parts of what these nodes and lines make up, each with its own lines."""
        found = list(cyclic_components(names, [(arc.source, arc.target) for arc in arcs]))
        part_of = {name: place for place, part in enumerate(found) for name in part}
        inside: list[list[Arc]] = [[] for _ in found]
        for arc in arcs:
            place = part_of.get(arc.source)
            if place is not None and place == part_of.get(arc.target):
                inside[place].append(arc)
        yield from zip(found, inside, strict=True)

    def cap(self, arc: Arc) -> Cap | None:
        """Return what bounds a line, if its node promises any."""
        contract = self._contract(arc.source)
        return None if contract is None else contract.caps.get(arc.outcome)

    def may_move(self, arc: Arc) -> frozenset[Moves]:
        """Return what may have moved on when a line is taken."""
        contract = self._contract(arc.source)
        return EVERYTHING if contract is None else contract.may_move(arc.outcome)

    def moved(self, arc: Arc) -> frozenset[Moves]:
        """Return what has moved on for sure when a line is taken."""
        contract = self._contract(arc.source)
        return frozenset() if contract is None else contract.moved(arc.outcome)

    def bounded(self, arcs: Sequence[Arc]) -> list[Arc]:
        """Return those of a part's lines that are taken only so often while a run stays in it."""
        unheld = self.held_again(arcs)
        capped = [
            (arc, cap) for arc in arcs if (cap := self.cap(arc)) is not None and arc not in unheld
        ]
        if not capped:
            return []
        none: frozenset[Moves] = frozenset()
        moving = none.union(*map(self.may_move, arcs))
        kept = [(arc, cap) for arc, cap in capped if not cap.resets & moving]
        known = all(self._contract(name) is not None for name in {arc.source for arc in arcs})
        counting = {cap.counts for _, cap in kept if cap.counts and known}
        moved = {
            arc
            for counts in counting
            for arc in self._moved_between(
                arcs, [one for one, cap in kept if cap.counts == counts], counts
            )
        }
        return [arc for arc, cap in kept if not cap.counts or arc in moved]

    def held_again(self, arcs: Sequence[Arc]) -> frozenset[Arc]:
        """Return the lines of a part that calls come back to with no gate asked about them.

        Calls are held once, since a gate asks about those it held: that bounds nothing without one.
        """
        held = [arc for arc in arcs if issubclass(arc.outcome, Held)]
        if not held:
            return frozenset()
        nodes = self.ground.nodes
        silent = [
            (arc.source, arc.target)
            for arc in arcs
            if not (
                nodes[self.node(arc.source)].kind == "gate" and issubclass(arc.outcome, Settled)
            )
        ]
        whole = strong_components(dict.fromkeys(arc.source for arc in arcs), silent)
        group_of = {name: place for place, group in enumerate(whole) for name in group}
        return frozenset(arc for arc in held if group_of[arc.source] == group_of[arc.target])

    def unmoved_from_start(self, counts: frozenset[Moves], *, handed_in: bool) -> frozenset[str]:
        """Return the nodes that a run may come to before any of these has moved.

        Args:
            counts: what counts.
            handed_in: whether it began with a conversation whose calls are open.
        """
        known = self._unmoved.get((counts, handed_in))
        if known is not None:
            return known
        found = {self.ground.start}
        todo = deque(found)
        while todo:
            for arc in self.arcs.get(todo.popleft(), ()):
                moves = self.moved(arc) & counts and not (handed_in and self.is_first(arc))
                if arc.target not in found and not moves:
                    found.add(arc.target)
                    todo.append(arc.target)
        unmoved = self._unmoved[counts, handed_in] = frozenset(found - {END})
        return unmoved

    def is_first(self, arc: Arc) -> bool:
        """Whether a line may be taken once without moving what it moves otherwise.

        A run may begin with a conversation whose calls are open.
        """
        contract = self._contract(arc.source)
        return contract is not None and arc.outcome is Calls and contract.takes_up_calls

    def _contract(self, place: str) -> Contract | None:
        if place not in self._contracts:
            self._contracts[place] = self.ground.contracts.get(self.node(place))
        return self._contracts[place]

    def _split(self) -> dict[str, tuple[Arc, ...]]:
        """Return the lines between places: a node is another place where it does less.

        One that is come to with feedback just noted, or by a run that is over, may have fewer ways
        to go on.
        """
        rows: dict[str, tuple[Arc, ...]] = {}
        todo = deque([self.ground.start])
        while todo:
            place = todo.popleft()
            if place in rows:
                continue
            name, _, word = place.partition(AS)
            come = cast("Come", word)
            only = self._left_by(name, come)
            rows[place] = tuple(
                [
                    Arc(place, arc.outcome, self._place_after(arc, come))
                    for arc in self.ground.arcs.get(name, ())
                    if only is None or arc.outcome in only
                ]
            )
            todo += [arc.target for arc in rows[place] if arc.target != END]
        return rows

    def _place_after(self, arc: Arc, come: Come) -> str:
        """Return the place that a line leads to from a node that a run has come to so."""
        before, after = self._contract(arc.source), self._contract(arc.target)
        if before is None or after is None:
            return arc.target
        goes = _goes(before, arc.outcome, come)
        kept = goes == "noted" and any(map(after.keeps, self.ground.table[arc.target]))
        other = kept or self._left_by(arc.target, goes) is not None
        return arc.target + AS + goes if other else arc.target

    def _left_by(self, name: str, come: Come) -> frozenset[type[Outcome]] | None:
        node = self.ground.nodes.get(name)
        return None if node is None else left_by(node, come)

    def _moved_between(
        self, arcs: Sequence[Arc], lines: Sequence[Arc], counts: frozenset[Moves]
    ) -> Iterator[Arc]:
        """Yield those of `lines` from which no way leads back to them that moves nothing."""
        left = lines
        if not self._again:
            # What no line leads back to needs no look at how the turns stand.
            still = [arc for arc in arcs if not self.moved(arc) & counts]
            names = dict.fromkeys(name for arc in arcs for name in (arc.source, arc.target))
            whole = strong_components(names, [(arc.source, arc.target) for arc in still])
            group_of = {name: place for place, group in enumerate(whole) for name in group}
            together = {arc for arc in lines if group_of[arc.source] == group_of[arc.target]}
            left = [arc for arc in lines if arc in together and not self.moved(arc) & counts]
            yield from (arc for arc in lines if arc not in together or self.moved(arc) & counts)
        rows: dict[str, list[Arc]] = {}
        for arc in arcs if left else ():
            rows.setdefault(arc.source, []).append(arc)
        for arc in left:
            if not self._comes_back(rows, arc, counts):
                yield arc

    def _comes_back(
        self, rows: Mapping[str, Sequence[Arc]], line: Arc, counts: frozenset[Moves]
    ) -> bool:
        """Whether a way leads from a line back to itself on which nothing has moved."""
        begun: list[Asked] = [one for one in ASKED if (line.source, one) in self._places]
        found = {one for asked in begun for one in self._still(line, counts, asked)}
        todo = deque(found)
        while todo:
            name, asked = todo.popleft()
            if name == line.source:
                return True
            for arc in rows.get(name, ()):
                new = [one for one in self._still(arc, counts, asked) if one not in found]
                found.update(new)
                todo += new
        return False

    def _still(self, arc: Arc, counts: frozenset[Moves], asked: Asked) -> Iterator[At]:
        """Yield where a line leads to without moving anything that counts."""
        moved = self.moved(arc)
        same = asked == "again" and "close" not in moved
        if moved & counts - ({"turn"} if same else set()):
            return
        yield from self._led(arc, asked)

    def _led(self, arc: Arc, asked: Asked) -> Iterator[At]:
        """Yield where a line leads to, with all that may have become of the turn."""
        contract = self._contract(arc.source)
        moved, may = self.moved(arc), self.may_move(arc)
        if contract is None:
            # It may have done anything to the turn.
            for stands in STANDS:
                yield arc.target, stands
            return
        if asked == "ended" or asked == "broken":  # noqa: PLR1714 - a set narrows no type
            led = self._led_once_over(arc, asked)
            yield from (one for one in led if self._may_open_again or one[1] != "again")
            return
        if asked == "new" and "end" in moved and contract.opens_again:
            return
        if moved & {"end", "broken"}:
            yield arc.target, "ended" if "end" in moved else "broken"
            return
        before: Asked = "new" if moved & {"turn", "close"} else asked
        yield arc.target, before
        if before == "new" and "reply" in may:
            yield arc.target, "asked"
        if before == "asked" and "again" in may:
            yield arc.target, "again"

    def _led_once_over(self, arc: Arc, over: Literal["ended", "broken"]) -> Iterator[At]:
        """Yield where a line leads to that is taken by a run that has its ending."""
        known = self._left_by(self.node(arc.source), over)
        if known is None:
            # The ending may be gone, and nobody knows how the turn stands.
            yield arc.target, "asked"
            yield arc.target, "again"
        elif arc.outcome in known:
            yield arc.target, over

    def _feasible(self) -> set[At]:
        found: set[At] = {(self.ground.start, "new")}
        todo = deque(found)
        while todo:
            name, asked = todo.popleft()
            for arc in self.arcs.get(name, ()):
                new = [one for one in self._led(arc, asked) if one not in found]
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
