"""RuleWalk: a graph and the automaton of a rule, side by side.

Which tools a model calls, and what people say to them, is not in the table; nor is what ran before
a conversation was handed in. A walk takes it that any of it may happen, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from ..contract import Cap, Contract
from ..outcomes import Calls, Outcome
from ..rules import (
    AtMost,
    Automaton,
    Happening,
    approved_call,
    earlier,
    entered,
    past_call,
    ran,
    returned,
    taken,
    words_of,
)
from .proof_graph import (
    END,
    Arc,
    ProofGraph,
    TablePath,
    breadth_first,
    path_to,
    shortest_path,
)
from .run_search import Exclusions

__all__ = ["RuleProduct", "Unseen", "Walked"]

S = TypeVar("S")

AROUND: Final = "\0"
"""Where a way begins that comes back to a node."""


SOME_TOOL: Final = "\0"
"""A tool that no rule names, for it stands for all of them."""

_Told: TypeAlias = Sequence[Happening]
"""What happens in a row, with nothing in between."""


@final
class Unseen:
    """Where a rule may stand after happenings that no graph shows.

    Args:
        automaton: the rule's.
    """

    def __init__(self, automaton: Automaton) -> None:
        kinds = [word.partition(":") for word in automaton.words]
        quote_names = {name for kind, _, name in kinds if kind in {"tool", "approval"}}
        self._automaton = automaton
        self._names = sorted({*quote_names, SOME_TOOL})
        self._tools = [
            (one,)
            for name in self._names
            for one in (ran(name), approved_call(name), *_both(name))
            if automaton.letter(one)
        ]
        self._after: dict[int, frozenset[int]] = {}

    @property
    def hears(self) -> bool:
        """Whether any tool or approval means something to the rule."""
        return bool(self._tools)

    def after(self, state: int) -> frozenset[int]:
        """Return the states that any tools and approvals can lead to from a state."""
        if state not in self._after:
            self._after[state] = self._closed([state], self._tools)
        return self._after[state]

    def before_the_run(self) -> frozenset[int]:
        """Return the states that a run may begin in, for what its conversation says has run.

        What ran before the last question was asked comes first; nothing there was approved.
        """
        long_ago = self._closed([self._automaton.start], [(earlier(one),) for one in self._names])
        since = [past_call(one, well=well) for one in self._names for well in (True, False)]
        return self._closed(long_ago, since)

    def _closed(self, states: Iterable[int], all_told: Sequence[_Told]) -> frozenset[int]:
        """Return the states that lists of happenings, in any order, lead to from some."""
        seen = set(states)
        todo = [*seen]
        while todo:
            here = todo.pop()
            new = {self._told(here, one) for one in all_told} - seen
            seen |= new
            todo += new
        return frozenset(seen)

    def _told(self, state: int, happened: _Told) -> int:
        for one in happened:
            state = self._automaton.after(state, one)
        return state


def _both(tool: str) -> _Told:
    return [returned(tool, well=well) for well in (True, False)]


_Bounded: TypeAlias = tuple[str, type[Outcome], Cap]
"""A bound that a node promises on one of its outcomes."""


class _Place(NamedTuple):
    """Where a walk is: at a node, in a state of the rule, with what each bound has counted."""

    node: str
    state: int
    counts: tuple[int, ...]


class Walked(NamedTuple):
    """The end of a walk: the node where the rule is broken, if it is, and the way there."""

    breach: str | None
    path: TablePath
    cut: bool

    @property
    def holds(self) -> bool:
        """Whether every way was walked, and none breaks the rule."""
        return self.breach is None and not self.cut


class RuleProduct(Generic[S]):
    """A graph and a rule, walked side by side over so many lines at most.

    Attributes:
        lines: how many lines may still be walked.
        barred: what walks leave out.
    """

    def __init__(self, ground: ProofGraph[S], automaton: Automaton, lines: int) -> None:
        self.ground = ground
        self.automaton = automaton
        self.unseen = Unseen(automaton)
        self.caps = _caps(ground)
        self.lines = self._lines = lines
        self.barred = Exclusions()
        self._refusing: tuple[_Bounded, ...] = ()

    @cached_property
    def rows(self) -> Mapping[str, Sequence[tuple[Arc, Sequence[Happening]]]]:
        """The lines out of each node, with what of each of them the rule hears."""
        hears = self.automaton.letter
        entries = {
            name: [one for one in (entered(name),) if hears(one)]
            for name in (*self.ground.reached, END)
        }
        return {
            name: [
                (arc, [*filter(hears, [taken(name, arc.word)]), *entries[arc.target]])
                for arc in self.ground.arcs[name]
            ]
            for name in self.ground.reached
        }

    @cached_property
    def deaf(self) -> frozenset[str]:
        """The nodes from which a run comes to nothing that the rule hears."""
        sources: dict[str, list[str]] = {}
        hearing: dict[str, None] = {}
        for name, row in self.rows.items():
            if any(heard for _, heard in row) or (self.unseen.hears and self.acts(name)):
                hearing[name] = None
            for arc, _ in row:
                sources.setdefault(arc.target, []).append(name)
        todo = list(hearing)
        while todo:
            new = [one for one in sources.get(todo.pop(), ()) if one not in hearing]
            hearing.update(dict.fromkeys(new))
            todo += new
        return frozenset(self.rows) - hearing.keys()

    def without(self, barred: Exclusions) -> Walked:
        """Walk all ways but those that are barred, with all the lines that a rule has."""
        self.lines, self.barred = self._lines, barred
        return self.walk(tools=False)

    def walk(self, *, tools: bool, begun: Collection[int] | None = None) -> Walked:
        """Walk all ways, the shortest first, until one breaks the rule that nodes may go.

        The bounds that nodes promise only rule ways out, so none is counted before a way is found
        that it rules out.

        Args:
            tools: whether any tools may run and any approvals be given where that can be.
            begun: the states that a run may begin in; that of a new one if not given.
        """
        starts = [self.automaton.start] if begun is None else sorted(begun)
        while True:
            found = self._walked(starts, self._refusing, tools=tools)
            broken = self.refused(found.path)
            if found.breach is None or broken is None:
                return found
            self._refusing += (broken,)

    def _walked(self, starts: Iterable[int], caps: tuple[_Bounded, ...], *, tools: bool) -> Walked:
        node, counts = self.ground.start, (0,) * len(caps)
        states = [self.automaton.after(one, entered(node)) for one in starts]
        walk = _Steps(self, caps, tools=tools)
        places = [_Place(node, state, counts) for state in states]
        path = shortest_path(
            places, walk.steps, lambda place, _: self.breaks(place, tools=tools), self.barred
        )
        if path is None:
            return Walked(None, (), walk.cut)
        return Walked(path[-1].target if path else node, path, walk.cut)

    def repeated(self) -> Walked | None:
        """Return the shortest way that visits a node too often, unless a bound rules it out."""
        rule, ground = self.automaton.rule, self.ground
        kind, _, node = words_of(rule)[0].partition(":")
        if not isinstance(rule, AtMost) or rule.per or kind != "node" or node not in ground.parents:
            return None

        def steps(name: str) -> Iterable[tuple[Arc, str]]:
            arcs = ground.arcs.get(node if name == AROUND else name, ())
            return ((arc, arc.target) for arc in arcs)

        found = breadth_first([AROUND], steps)
        if node not in found:
            return None
        path = (*ground.path_to(node), *path_to(found, node) * rule.times)
        return Walked(node, path, cut=False) if self.refused(path) is None else None

    def refused(self, path: TablePath) -> _Bounded | None:
        """Return the first bound that a node on a way promises and the way does not keep to."""
        taken_so_often = Counter((arc.source, arc.outcome) for arc in path)
        # A bound can be exceeded only by a line that is taken more often than it allows.
        caps = tuple([cap for cap in self.caps if taken_so_often[cap[:2]] > cap[2].times])
        counts: tuple[int, ...] = (0,) * len(caps)
        for arc in path if caps else ():
            after = self.counted(caps, arc, counts)
            if after is None:
                return next(
                    cap
                    for cap, count in zip(caps, counts, strict=True)
                    if self.counted((cap,), arc, (count,)) is None
                )
            counts = after
        return None

    def counted(
        self, caps: tuple[_Bounded, ...], arc: Arc, counts: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the counters after a line was taken; None if a bound rules that out."""
        contract = self.ground.contracts[arc.source]
        after: list[int] = []
        for (source, outcome, cap), count in zip(caps, counts, strict=True):
            is_own = arc.source == source and arc.outcome is outcome
            new = _count(cap, count, contract, arc.outcome, is_own=is_own)
            if new is None:
                return None
            after.append(new)
        return tuple(after)

    def acts(self, node: str) -> bool:
        """Whether tools may run, or approvals be given, at a node."""
        found = self.ground.nodes.get(node)
        if found is None:
            return False
        contract = self.ground.contracts[node]
        if contract is None or found.kind in {"gate", "execute"}:
            return True
        # Who asks a person about an answer, and not about calls, lets no call through.
        return contract.tools or (contract.asks and found.kind != "human")

    def breaks(self, place: _Place, *, tools: bool) -> bool:
        """Whether the rule is broken at a place, or can be by a tool that may run there."""
        automaton = self.automaton
        if place.state == automaton.broken or (
            place.node == END and place.state in automaton.owing
        ):
            return True
        return (
            tools and self.acts(place.node) and automaton.broken in self.unseen.after(place.state)
        )


class _Steps(Generic[S]):
    """The lines out of each place, until too many have been walked."""

    def __init__(self, product: RuleProduct[S], caps: tuple[_Bounded, ...], *, tools: bool) -> None:
        self.product = product
        self.caps = caps
        self.tools = tools
        self.cut = False

    def steps(self, place: _Place) -> Iterable[tuple[Arc, _Place]]:
        """Yield where each line out of a place leads."""
        product = self.product
        if place.node == END:
            return
        # Only a way to END can still break a rule that hears nothing more: one that is owed.
        if place.node in product.deaf and place.state not in product.automaton.owing:
            return
        states = [place.state]
        if self.tools and product.acts(place.node):
            states = sorted(product.unseen.after(place.state))
        row = product.rows[place.node]
        product.lines -= len(row) * (len(self.caps) + len(states))
        if product.lines < 0:
            self.cut = True
            return
        for arc, heard in row:
            counts = product.counted(self.caps, arc, place.counts) if self.caps else ()
            if counts is not None:
                for state in states:
                    after = reduce(product.automaton.after, heard, state)
                    yield arc, _Place(arc.target, after, counts)


def _caps(ground: ProofGraph[S]) -> tuple[_Bounded, ...]:
    """Return the bounds of all nodes that runs arrive at, but those that leave no line."""
    held: list[_Bounded] = []
    for node in ground.reached:
        contract = ground.contracts[node]
        caps: Mapping[type[Outcome], Cap] = {} if contract is None else contract.caps
        held += [(node, outcome, cap) for outcome, cap in caps.items() if not cap.never]
    return tuple(held)


def _count(
    cap: Cap, count: int, contract: Contract | None, outcome: type[Outcome], *, is_own: bool
) -> int | None:
    """Return a bound's counter after a line was taken, or None if it rules that out.

    What is counted stands in the upper digits; the lowest says that something has moved on since
    the outcome was last taken. Every doubt leaves the counter lower: that rules out less.
    """
    taken_before, moved = divmod(count, 2)
    if is_own and (moved or not cap.counts):
        taken_before, moved = taken_before + 1, 0
        if taken_before > cap.times:
            return None
    if contract is None:
        # It may move anything on, but nothing sets back a counter that nothing resets.
        return 0 if cap.resets or cap.counts else 2 * taken_before
    may_move = contract.may_move(outcome)
    if may_move & cap.resets or (cap.counts and "again" in may_move):
        return 0
    # By these a run may once leave without having moved anything.
    if contract.moved(outcome) & cap.counts and not (outcome is Calls and contract.takes_up_calls):
        moved = 1
    return 2 * taken_before + moved
