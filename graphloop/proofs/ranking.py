"""Ranking: the bounded transitions, which make every run leave a cycle.

A component is a strongly connected component. A transition is bounded in a component if the node's
contract caps it (`Contract.caps`) and no transition of the component resets the counter. Removing
bounded transitions may split the component, and the parts may have bounded transitions in turn. If
this removes all cycles, every run is bounded. (This is a lexicographic ranking function.)

A cap that counts turns bounds a transition only if every path from the transition back to itself
opens a turn. Opening the same turn anew (`again`) does not count.

The split graph has several copies of some nodes, by the state in which a run enters them: with
feedback noted, or after the run has ended or failed. Such a copy has fewer outcomes.
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
    ApprovalNeeded,
    Calls,
    Outcome,
    Refused,
    Resend,
    Settled,
)
from .components import cyclic_components, strong_components
from .proof_graph import END, Arc, ProofGraph

__all__ = ["Component", "EntryState", "Ranking", "outcomes_after"]

S = TypeVar("S")

EntryState: TypeAlias = Literal["", "noted", "ended", "broken"]
"""The state in which a run enters a node: with noted feedback, ended, or failed or stopped."""

AFTER_APPEND: Final[Mapping[EntryState, frozenset[type[Outcome]]]] = {
    "noted": frozenset({AnsweredCalls, Resend, Refused}),
    "ended": frozenset({outcomes.Final}),
    "broken": frozenset({Aborted}),
}
AFTER_VERIFY: Final[Mapping[EntryState, frozenset[type[Outcome]]]] = dict.fromkeys(
    ("ended", "broken"), frozenset({Accepted})
)
"""The outcomes that remain possible for an Append or a Verify, by the run's entry state."""

SEPARATOR: Final = "\0"
"""The separator of a node's name and its entry state, in names of the split graph."""

EVERYTHING: Final[frozenset[Moves]] = frozenset(get_args(Moves))

Component: TypeAlias = tuple[tuple[str, ...], list[Arc]]
"""The nodes of a strongly connected component, and the transitions between them."""

TurnState: TypeAlias = Literal["new", "asked", "again", "ended", "broken"]
"""The state of a turn: its model was not called (`new`), was called (`asked`), or the same turn is
to open anew (`again`). Or the run has ended, or has failed or was stopped (`broken`)."""

ONGOING: Final[tuple[TurnState, ...]] = ("new", "asked", "again")
TURN_STATES: Final[tuple[TurnState, ...]] = (*ONGOING, "ended", "broken")

State: TypeAlias = tuple[str, TurnState]
"""A node of the split graph, and the state of the turn on entry."""


class Ranking(Generic[S]):
    """The bounded transitions of a graph, and its split graph.

    The split graph has copies of a node that has fewer outcomes in some entry states.

    Attributes:
        arcs: the transitions out of each node of the split graph.
    """

    def __init__(self, graph: ProofGraph[S]) -> None:
        self.graph = graph
        self._contracts: dict[str, Contract | None] = {}
        self.arcs = self._split_graph()
        every = (arc for row in self.arcs.values() for arc in row)
        self._may_open_again = any("again" in self.may_move(arc) for arc in every)
        self._states = self._reachable_states()
        self._unmoved: dict[tuple[frozenset[Moves], bool], frozenset[str]] = {}
        self.opens_again = any(turn == "again" for _, turn in self._states)
        """Whether a run may open the same turn again, such as after a Compact."""

    def node(self, name: str) -> str:
        """Return the name of the table's node of which a split-graph node is a copy."""
        return name.partition(SEPARATOR)[0]

    def table_arc(self, arc: Arc) -> Arc:
        """Return the table's transition of which a split-graph transition is a copy."""
        return Arc(self.node(arc.source), arc.outcome, self.node(arc.target))

    def split_graph(self) -> tuple[tuple[str, ...], list[Arc]]:
        """Return the nodes and transitions of the split graph, without END."""
        arcs = [arc for row in self.arcs.values() for arc in row]
        return tuple(self.arcs), [arc for arc in arcs if arc.target in self.arcs]

    @cached_property
    def opens_turns(self) -> bool:
        """Whether any transition may open a turn."""
        return any("turn" in self.may_move(arc) for row in self.arcs.values() for arc in row)

    @cached_property
    def cyclic_components(self) -> Sequence[Component]:
        """The strongly connected components of the split graph that contain a cycle."""
        return list(self.components(*self.split_graph()))

    def components(self, names: Iterable[str], arcs: Sequence[Arc]) -> Iterator[Component]:
        """Yield the strongly connected components of a subgraph that contain a cycle."""
        groups = list(cyclic_components(names, [(arc.source, arc.target) for arc in arcs]))
        number_of = {name: number for number, group in enumerate(groups) for name in group}
        inside: list[list[Arc]] = [[] for _ in groups]
        for arc in arcs:
            number = number_of.get(arc.source)
            if number is not None and number == number_of.get(arc.target):
                inside[number].append(arc)
        yield from zip(groups, inside, strict=True)

    def cap(self, arc: Arc) -> Cap | None:
        """Return the contract's limit on how often a transition is taken; None for no limit."""
        contract = self._contract_of(arc.source)
        return None if contract is None else contract.caps.get(arc.outcome)

    def may_move(self, arc: Arc) -> frozenset[Moves]:
        """Return the moves, such as `turn` for a new turn, that a transition may make."""
        contract = self._contract_of(arc.source)
        return EVERYTHING if contract is None else contract.may_move(arc.outcome)

    def moved(self, arc: Arc) -> frozenset[Moves]:
        """Return the moves, such as `turn` for a new turn, that a transition surely makes."""
        contract = self._contract_of(arc.source)
        return frozenset() if contract is None else contract.moved(arc.outcome)

    def bounded(self, arcs: Sequence[Arc]) -> list[Arc]:
        """Return the bounded transitions of a component, given all its transitions."""
        unasked = self.unasked_holds(arcs)
        capped = [
            (arc, cap) for arc in arcs if (cap := self.cap(arc)) is not None and arc not in unasked
        ]
        if not capped:
            return []
        none: frozenset[Moves] = frozenset()
        moving = none.union(*map(self.may_move, arcs))
        kept = [(arc, cap) for arc, cap in capped if not cap.resets & moving]
        known = all(self._contract_of(name) is not None for name in {arc.source for arc in arcs})
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
        """Return the `ApprovalNeeded` transitions that are on a cycle without a gate.

        A gate asks a person about held calls, so that calls are held only once. Without a gate on
        the cycle, the cap on `ApprovalNeeded` does not hold.
        """
        held = [arc for arc in arcs if issubclass(arc.outcome, ApprovalNeeded)]
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
        """Return the nodes that a run may enter before its first move among `counts`.

        Args:
            counts: the moves that a cap counts, such as `turn` for a new turn.
            handed_in: whether the run starts with a conversation that has unanswered calls.
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
        """Return whether a transition may lack its moves once, at the start of a run.

        This is possible if the run starts with a conversation that has unanswered calls.
        """
        contract = self._contract_of(arc.source)
        return contract is not None and arc.outcome is Calls and contract.takes_up_calls

    def _contract_of(self, name: str) -> Contract | None:
        """Return the contract of a node of the split graph; None without a contract."""
        if name not in self._contracts:
            self._contracts[name] = self.graph.contracts.get(self.node(name))
        return self._contracts[name]

    def _split_graph(self) -> dict[str, tuple[Arc, ...]]:
        """Return the transitions of the split graph by node, from a search from the start."""
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
        """Return the target, in the split graph, of a transition from a node entered in `entry`."""
        before, after = self._contract_of(arc.source), self._contract_of(arc.target)
        if before is None or after is None:
            return arc.target
        state = _next_entry(before, arc.outcome, entry)
        kept = state == "noted" and any(map(after.keeps, self.graph.table[arc.target]))
        splits = kept or self._outcomes_after(arc.target, state) is not None
        return arc.target + SEPARATOR + state if splits else arc.target

    def _outcomes_after(self, name: str, entry: EntryState) -> frozenset[type[Outcome]] | None:
        """Return the possible outcomes of a node entered in `entry`; None for all outcomes."""
        node = self.graph.nodes.get(name)
        return None if node is None else outcomes_after(node, entry)

    def _moved_between(
        self, arcs: Sequence[Arc], capped: Sequence[Arc], counts: frozenset[Moves]
    ) -> Iterator[Arc]:
        """Yield the `capped` transitions to which no path leads back without a counted move."""
        left = capped
        if not self.opens_again:
            # A transition outside all cycles without a move needs no search of turn states.
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
        """Return whether a transition can recur without a counted move, such as a new turn."""
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
        """Yield the next states after a transition; none if it surely makes a counted move."""
        moved = self.moved(arc)
        same_turn = turn == "again" and "close" not in moved
        if not moved & counts - ({"turn"} if same_turn else set()):
            yield from self._states_after(arc, turn)

    def _states_after(self, arc: Arc, turn: TurnState) -> Iterator[State]:
        """Yield the possible states after a transition, given the state of the turn before."""
        contract = self._contract_of(arc.source)
        moved, may = self.moved(arc), self.may_move(arc)
        if contract is None:
            states: list[State] = [(arc.target, state) for state in ONGOING]
            yield from states
        elif turn == "ended" or turn == "broken":  # noqa: PLR1714 - a set narrows no type
            known = self._outcomes_after(self.node(arc.source), turn)
            if known is None:
                # A node without known outcomes may clear `run.ending`, so each state is possible.
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
        """Return the pairs of node and turn state that a run may reach from the start."""
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
    """Return the possible outcomes of a node entered in state `entry`; None for all outcomes."""
    kind: type[object] = type(node)
    if kind is Append:
        return AFTER_APPEND.get(entry)
    return AFTER_VERIFY.get(entry) if kind is Verify else None


def _next_entry(contract: Contract, outcome: type[Outcome], entry: EntryState) -> EntryState:
    """Return the next node's entry state, after a node entered in `entry` leaves by `outcome`."""
    if entry in {"ended", "broken"}:
        # The split graph has a copy in these states only for nodes that keep the run's ending.
        return entry
    moved = contract.moved(outcome)
    if moved & {"end", "broken"}:
        return "ended" if "end" in moved else "broken"
    kept = entry == "noted" and contract.keeps(outcome)
    return "noted" if kept or "note" in moved else ""
