"""Ranking: the bounds that make every run leave a cycle.

A component is a strongly connected component. An arc is bounded in it if its node promises so
(`Contract.caps`), and no arc of the component resets the counter. Removing bounded arcs again and
again is a lexicographic ranking function: a graph whose cycles all come apart this way is bounded.

A counter of turns bounds an arc only if every path from the arc back to itself opens a turn. A
turn that is opened anew (`again`) is the same turn.

The split graph has several nodes for one node of the table, where the node has fewer outcomes after
some arcs: after noted feedback, and in a run that has ended or was broken off.
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

__all__ = ["Component", "EntryState", "Ranking", "outcomes_after"]

S = TypeVar("S")

EntryState: TypeAlias = Literal["", "noted", "ended", "broken"]
"""The state in which a run enters a node: feedback is noted, it has an ending, or it broke off."""

AFTER_APPEND: Final[Mapping[EntryState, frozenset[type[Outcome]]]] = {
    "noted": frozenset({AnsweredCalls, Resend, Refused}),
    "ended": frozenset({outcomes.Final}),
    "broken": frozenset({Aborted}),
}
AFTER_VERIFY: Final[Mapping[EntryState, frozenset[type[Outcome]]]] = dict.fromkeys(
    ("ended", "broken"), frozenset({Accepted})
)
"""The outcomes that an Append and a Verify have left, by the state in which a run enters."""

SEPARATOR: Final = "\0"
"""Stands between a node's name and its entry state in a name of the split graph."""

EVERYTHING: Final[frozenset[Moves]] = frozenset(get_args(Moves))

Component: TypeAlias = tuple[tuple[str, ...], list[Arc]]
"""The nodes of a component, and the arcs between them."""

TurnState: TypeAlias = Literal["new", "asked", "again", "ended", "broken"]
"""The turn's model was not asked, was asked, or the turn opens anew; or the run is over."""

ONGOING: Final[tuple[TurnState, ...]] = ("new", "asked", "again")
TURN_STATES: Final[tuple[TurnState, ...]] = (*ONGOING, "ended", "broken")

State: TypeAlias = tuple[str, TurnState]


class Ranking(Generic[S]):
    """The bounded arcs of a graph.

    Attributes:
        arcs: the arcs out of each node of the split graph.
    """

    def __init__(self, graph: ProofGraph[S]) -> None:
        self.graph = graph
        self._contracts: dict[str, Contract | None] = {}
        self.arcs = self._split()
        every = (arc for row in self.arcs.values() for arc in row)
        self._may_open_again = any("again" in self.may_move(arc) for arc in every)
        self._states = self._reachable_states()
        self._unmoved: dict[tuple[frozenset[Moves], bool], frozenset[str]] = {}
        self.opens_again = any(turn == "again" for _, turn in self._states)
        """Whether a run may open the same turn anew, as a Compact asks for."""

    def node(self, name: str) -> str:
        """Return the node of the table that a node of the split graph stands for."""
        return name.partition(SEPARATOR)[0]

    def table_arc(self, arc: Arc) -> Arc:
        """Return the transition of the table that an arc of the split graph stands for."""
        return Arc(self.node(arc.source), arc.outcome, self.node(arc.target))

    def split_graph(self) -> tuple[tuple[str, ...], list[Arc]]:
        """Return the nodes and arcs of the split graph, without END."""
        arcs = [arc for row in self.arcs.values() for arc in row]
        return tuple(self.arcs), [arc for arc in arcs if arc.target in self.arcs]

    @cached_property
    def cyclic_components(self) -> Sequence[Component]:
        """The components of the split graph that contain a cycle."""
        return list(self.components(*self.split_graph()))

    def components(self, names: Iterable[str], arcs: Sequence[Arc]) -> Iterator[Component]:
        """Yield the components of these nodes and arcs that contain a cycle."""
        groups = list(cyclic_components(names, [(arc.source, arc.target) for arc in arcs]))
        number_of = {name: number for number, group in enumerate(groups) for name in group}
        inside: list[list[Arc]] = [[] for _ in groups]
        for arc in arcs:
            number = number_of.get(arc.source)
            if number is not None and number == number_of.get(arc.target):
                inside[number].append(arc)
        yield from zip(groups, inside, strict=True)

    def cap(self, arc: Arc) -> Cap | None:
        """Return the bound that a contract promises for an arc."""
        contract = self._contract(arc.source)
        return None if contract is None else contract.caps.get(arc.outcome)

    def may_move(self, arc: Arc) -> frozenset[Moves]:
        """Return what an arc may move on."""
        contract = self._contract(arc.source)
        return EVERYTHING if contract is None else contract.may_move(arc.outcome)

    def moved(self, arc: Arc) -> frozenset[Moves]:
        """Return what an arc surely moves on."""
        contract = self._contract(arc.source)
        return frozenset() if contract is None else contract.moved(arc.outcome)

    def bounded(self, arcs: Sequence[Arc]) -> list[Arc]:
        """Return the bounded arcs of a component, given all its arcs."""
        unasked = self.unasked_holds(arcs)
        capped = [
            (arc, cap) for arc in arcs if (cap := self.cap(arc)) is not None and arc not in unasked
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
                arcs, [arc for arc, cap in kept if cap.counts == counts], counts
            )
        }
        return [arc for arc, cap in kept if not cap.counts or arc in moved]

    def unasked_holds(self, arcs: Sequence[Arc]) -> frozenset[Arc]:
        """Return the `Held` arcs that a cycle without a gate leads back to.

        A gate asks about held calls, so that they are held once. Without a gate, no bound holds.
        """
        held = [arc for arc in arcs if issubclass(arc.outcome, Held)]
        if not held:
            return frozenset()
        nodes = self.graph.nodes
        gateless = [
            (arc.source, arc.target)
            for arc in arcs
            if not (
                nodes[self.node(arc.source)].kind == "gate" and issubclass(arc.outcome, Settled)
            )
        ]
        groups = strong_components(dict.fromkeys(arc.source for arc in arcs), gateless)
        number_of = {name: number for number, group in enumerate(groups) for name in group}
        return frozenset(arc for arc in held if number_of[arc.source] == number_of[arc.target])

    def unmoved_from_start(self, counts: frozenset[Moves], *, handed_in: bool) -> frozenset[str]:
        """Return the nodes that a run may enter before any of these moves.

        Args:
            counts: the moves that a counter counts.
            handed_in: whether the run begins with a conversation that has open calls.
        """
        if (counts, handed_in) not in self._unmoved:
            reached = {self.graph.start}
            queue = deque(reached)
            while queue:
                for arc in self.arcs.get(queue.popleft(), ()):
                    moves = self.moved(arc) & counts and not (handed_in and self.is_first(arc))
                    if arc.target not in reached and not moves:
                        reached.add(arc.target)
                        queue.append(arc.target)
            self._unmoved[counts, handed_in] = frozenset(reached - {END})
        return self._unmoved[counts, handed_in]

    def is_first(self, arc: Arc) -> bool:
        """Return whether a handed-in conversation may take an arc once without its moves."""
        contract = self._contract(arc.source)
        return contract is not None and arc.outcome is Calls and contract.takes_up_calls

    def _contract(self, name: str) -> Contract | None:
        if name not in self._contracts:
            self._contracts[name] = self.graph.contracts.get(self.node(name))
        return self._contracts[name]

    def _split(self) -> dict[str, tuple[Arc, ...]]:
        """Return the arcs of the split graph, by node."""
        rows: dict[str, tuple[Arc, ...]] = {}
        queue = deque([self.graph.start])
        while queue:
            name = queue.popleft()
            if name in rows:
                continue
            node, _, word = name.partition(SEPARATOR)
            entry = cast("EntryState", word)
            only = self._outcomes_after(node, entry)
            rows[name] = tuple(
                Arc(name, arc.outcome, self._split_target(arc, entry))
                for arc in self.graph.arcs.get(node, ())
                if only is None or arc.outcome in only
            )
            queue += [arc.target for arc in rows[name] if arc.target != END]
        return rows

    def _split_target(self, arc: Arc, entry: EntryState) -> str:
        """Return the node of the split graph that an arc leads to, if its source is so entered."""
        before, after = self._contract(arc.source), self._contract(arc.target)
        if before is None or after is None:
            return arc.target
        state = _next_entry(before, arc.outcome, entry)
        kept = state == "noted" and any(map(after.keeps, self.graph.table[arc.target]))
        splits = kept or self._outcomes_after(arc.target, state) is not None
        return arc.target + SEPARATOR + state if splits else arc.target

    def _outcomes_after(self, name: str, entry: EntryState) -> frozenset[type[Outcome]] | None:
        node = self.graph.nodes.get(name)
        return None if node is None else outcomes_after(node, entry)

    def _moved_between(
        self, arcs: Sequence[Arc], capped: Sequence[Arc], counts: frozenset[Moves]
    ) -> Iterator[Arc]:
        """Yield the capped arcs that no path without a move leads back to."""
        left = capped
        if not self.opens_again:
            # An arc outside every component of unmoving arcs needs no search of turn states.
            still = [(arc.source, arc.target) for arc in arcs if not self.moved(arc) & counts]
            names = dict.fromkeys(name for arc in arcs for name in (arc.source, arc.target))
            groups = strong_components(names, still)
            number_of = {name: number for number, group in enumerate(groups) for name in group}
            left = [
                arc
                for arc in capped
                if number_of[arc.source] == number_of[arc.target] and not self.moved(arc) & counts
            ]
            unmoving = set(left)
            yield from (arc for arc in capped if arc not in unmoving)
        rows: dict[str, list[Arc]] = {}
        for arc in arcs if left else ():
            rows.setdefault(arc.source, []).append(arc)
        for arc in left:
            if not self._comes_back(rows, arc, counts):
                yield arc

    def _comes_back(
        self, rows: Mapping[str, Sequence[Arc]], arc: Arc, counts: frozenset[Moves]
    ) -> bool:
        """Return whether a path without a move leads from an arc back to itself."""
        turns: list[TurnState] = [t for t in TURN_STATES if (arc.source, t) in self._states]
        reached = {state for turn in turns for state in self._unmoved_states(arc, counts, turn)}
        queue = deque(reached)
        while queue:
            name, turn = queue.popleft()
            if name == arc.source:
                return True
            for following in rows.get(name, ()):
                states = self._unmoved_states(following, counts, turn)
                new = [state for state in states if state not in reached]
                reached.update(new)
                queue += new
        return False

    def _unmoved_states(
        self, arc: Arc, counts: frozenset[Moves], turn: TurnState
    ) -> Iterator[State]:
        """Yield the states after an arc, unless it surely moves what is counted."""
        moved = self.moved(arc)
        same_turn = turn == "again" and "close" not in moved
        if not moved & counts - ({"turn"} if same_turn else set()):
            yield from self._states_after(arc, turn)

    def _states_after(self, arc: Arc, turn: TurnState) -> Iterator[State]:
        """Yield the states that an arc may lead to."""
        contract = self._contract(arc.source)
        moved, may = self.moved(arc), self.may_move(arc)
        if contract is None:
            states: list[State] = [(arc.target, state) for state in ONGOING]
            yield from states
        elif turn == "ended" or turn == "broken":  # noqa: PLR1714 - a set narrows no type
            known = self._outcomes_after(self.node(arc.source), turn)
            if known is None:
                # The ending may be gone, and the state of the turn is unknown.
                yield arc.target, "asked"
                if self._may_open_again:
                    yield arc.target, "again"
            elif arc.outcome in known:
                yield arc.target, turn
        elif turn == "new" and "end" in moved and contract.opens_again:
            return
        elif moved & {"end", "broken"}:
            yield arc.target, "ended" if "end" in moved else "broken"
        else:
            before: TurnState = "new" if moved & {"turn", "close"} else turn
            yield arc.target, before
            if before == "new" and "reply" in may:
                yield arc.target, "asked"
            if before == "asked" and "again" in may:
                yield arc.target, "again"

    def _reachable_states(self) -> set[State]:
        reached: set[State] = {(self.graph.start, "new")}
        queue = deque(reached)
        while queue:
            name, turn = queue.popleft()
            for arc in self.arcs.get(name, ()):
                new = [state for state in self._states_after(arc, turn) if state not in reached]
                reached.update(new)
                queue += new
        return reached


def outcomes_after(node: Node[S, Outcome], entry: EntryState) -> frozenset[type[Outcome]] | None:
    """Return the outcomes of a node that a run enters in a state; None for all outcomes."""
    kind: type[object] = type(node)
    if kind is Append:
        return AFTER_APPEND.get(entry)
    return AFTER_VERIFY.get(entry) if kind is Verify else None


def _next_entry(contract: Contract, outcome: type[Outcome], entry: EntryState) -> EntryState:
    """Return the state in which a run enters the node after one that it entered in `entry`."""
    if entry in {"ended", "broken"}:
        # The split graph has such a node only where the node keeps the ending.
        return entry
    moved = contract.moved(outcome)
    if moved & {"end", "broken"}:
        return "ended" if "end" in moved else "broken"
    kept = entry == "noted" and contract.keeps(outcome)
    return "noted" if kept or "note" in moved else ""
