"""Calls: the product of a graph with the status of the turn's calls (GL2, GL3).

A state of the product is a node, whether a gate has spoken since the last reply, the status of the
turn's calls, and whether a turn is open. Kinds, outcomes and contracts decide how a node changes
the status:

    idle ──Calls──► open ──gate.Settled──► gated ──Done──► ran ──append──► idle
                     ▲                       │
                     └──────── Held ─────────┘

Calls of a reply that was cut, refused or too long are `cut`: they must never run, and need no
answer. All other calls must reach an `append` node before the next reply replaces them and before
the run ends. Calls that have run, or are cut, must not reach a node that runs tools. Calls are told
apart by the number of their turn, so a model must be asked in a turn of its own. Calls that the
caller of an iterated run puts in the model's place are not covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from ..contract import Contract
from ..node_protocol import Kind
from ..nodes import Compact, Extend
from ..outcomes import (
    AnsweredCalls,
    Calls,
    Compacted,
    ContextFull,
    Done,
    Held,
    Outcome,
    Refused,
    Retry,
    Settled,
    Truncated,
)
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, path_to, shortest_path
from .report import Finding, Unknown
from .run_search import Exclusions

__all__ = ["CallProduct", "CallState", "CallStatus", "call_faults", "find_call_faults"]

S = TypeVar("S")

CallStatus: TypeAlias = Literal["idle", "open", "gated", "ran", "cut"]

_After: TypeAlias = tuple[bool, CallStatus, bool]
"""The fields of a `CallState` without its node."""

UNANSWERED: Final[frozenset[CallStatus]] = frozenset({"open", "gated", "ran"})
CUT: Final = (Truncated, Refused, ContextFull)
DROPPED: Final = (Retry, Compacted)
"""The outcomes by which an Extend or a Compact has dropped the turn's reply."""


class CallState(NamedTuple):
    """A state of the product.

    Attributes:
        node: the node.
        gated: whether a gate has spoken since the last reply.
        status: the status of the turn's calls.
        in_turn: whether a turn is open, which gives replies and calls their number.
    """

    node: str
    gated: bool
    status: CallStatus
    in_turn: bool = False


class CallProduct(Generic[S]):
    """The reachable states of the product.

    Args:
        graph: the graph.
        like: the product of a graph with the same nodes, whose transition function is shared.

    Attributes:
        parents: the states in breadth-first order, each with its parent.
    """

    def __init__(self, graph: ProofGraph[S], like: CallProduct[S] | None = None) -> None:
        self.graph = graph
        self._known: dict[tuple[CallState, type[Outcome]], _After | None] = (
            {} if like is None else like._known
        )
        self._arcs: dict[CallState, tuple[tuple[Arc, CallState], ...]] = {}
        self.start = CallState(graph.start, gated=False, status="idle")
        self.parents: Mapping[CallState, tuple[Arc, CallState] | None] = breadth_first(
            [self.start], self.arcs_from
        )

    @cached_property
    def states(self) -> Mapping[str, Sequence[tuple[int, CallState]]]:
        """The states of each node, with their positions in breadth-first order."""
        states: dict[str, list[tuple[int, CallState]]] = {}
        for number, state in enumerate(self.parents):
            states.setdefault(state.node, []).append((number, state))
        return states

    def kind(self, node: str) -> Kind | None:
        """Return the kind of a node; None for END."""
        known = self.graph.nodes.get(node)
        return None if known is None else known.kind

    def runs_tools(self, node: str) -> bool:
        """Return whether tools may run at a node."""
        contract = self.graph.contracts.get(node)
        return self.kind(node) == "execute" or (contract is not None and contract.tools)

    def loses_calls(self, node: str) -> bool:
        """Return whether a node may throw away the calls of the turn."""
        if self.kind(node) == "model":
            return True
        if any(self._drops(node, arc.outcome) for arc in self.graph.arcs.get(node, ())):
            return True
        contract = self.graph.contracts.get(node)
        if contract is None or contract.takes_up_calls:
            return False
        return any("turn" in moved for moved in contract.moves.values())

    def _drops(self, node: str, outcome: type[Outcome]) -> bool:
        """Return whether a node that leaves by `outcome` has dropped the turn's reply."""
        dropping = isinstance(self.graph.nodes.get(node), Extend | Compact)
        return dropping and issubclass(outcome, DROPPED)

    def path_to(self, state: CallState) -> TablePath:
        """Return a shortest path from the start to a state."""
        return path_to(self.parents, state)

    def shortest_path(
        self,
        is_goal: Callable[[CallState, Arc | None], bool],
        excluded: Exclusions,
        suffix: TablePath = (),
    ) -> TablePath | None:
        """Return a shortest path from the start to a goal; None if there is none."""
        return shortest_path([self.start], self.arcs_from, is_goal, excluded, suffix)

    def arcs_from(self, state: CallState) -> tuple[tuple[Arc, CallState], ...]:
        """Return the arcs out of a state, each with the state that it leads to."""
        known = self._arcs.get(state)
        if known is None:
            afters = [
                (arc, self.after(state, arc.outcome)) for arc in self.graph.arcs.get(state.node, ())
            ]
            known = self._arcs[state] = tuple(
                (arc, CallState(arc.target, *after)) for arc, after in afters if after is not None
            )
        return known

    def after(self, state: CallState, outcome: type[Outcome]) -> _After | None:
        """Return the status after a node leaves by `outcome`; None if it cannot."""
        key = state, outcome
        if key not in self._known:
            self._known[key] = self._after(state, outcome)
        return self._known[key]

    def _after(self, state: CallState, outcome: type[Outcome]) -> _After | None:
        contract = self.graph.contracts.get(state.node)
        calls: tuple[bool, CallStatus] | None = (state.gated, "idle")
        # Calls that are dropped here are a fault of this node, so they are not followed further.
        if not self._drops(state.node, outcome):
            calls = _calls_after(state, self.kind(state.node), contract, outcome)
        if calls is None:
            return None
        gated, status = calls
        return gated, status, _in_turn(state, contract, outcome)


def _calls_after(  # noqa: PLR0911 - one way out for each kind of node
    state: CallState, kind: Kind | None, contract: Contract | None, outcome: type[Outcome]
) -> tuple[bool, CallStatus] | None:
    """Return whether a gate has spoken and the status, after a node leaves; None if it cannot."""
    gated, status = state.gated, state.status
    called = issubclass(outcome, Calls)
    if contract is not None and contract.takes_up_calls and status != "idle":
        if status == "cut":
            return False, "cut" if called else "idle"
        return (False, "ran" if status == "ran" else "open") if called else None
    if kind == "model":
        return False, "open" if called else "cut" if issubclass(outcome, CUT) else "idle"
    if contract is not None and "turn" in contract.moved(outcome):
        return False, "open" if called else "idle"
    if kind == "append":
        # An Append answers calls only if there are some, or a gate has seen the cut reply.
        unseen = status == "idle" or (status == "cut" and not gated)
        return None if unseen and issubclass(outcome, AnsweredCalls) else (gated, "idle")
    if kind == "gate" and issubclass(outcome, Settled):
        return True, "gated" if status == "open" else status
    if kind == "execute" and issubclass(outcome, Held):
        return False, "open" if status in UNANSWERED else status
    if kind == "execute" and issubclass(outcome, Done):
        return gated, "ran" if status in UNANSWERED else status
    return (False, "open") if called else (gated, status)


def _in_turn(state: CallState, contract: Contract | None, outcome: type[Outcome]) -> bool:
    """Return whether a turn is open after a node leaves by `outcome`."""
    # A node without a contract counts as one that opened a turn.
    if contract is None or "turn" in contract.moved(outcome):
        return True
    sure = any("turn" in contract.moved(known) for known in contract.moves)
    if "turn" in contract.may_move(outcome) and not sure:
        return True
    return state.in_turn and "close" not in contract.moved(outcome)


_Fault: TypeAlias = Literal["lost", "unanswered", "turnless", "twice", "cut"]

FAULTS: Final[Mapping[_Fault, tuple[str, str]]] = {
    "lost": (
        "the results of calls that have run never reach the history.",
        "lead this way through an Append first: it adds the results.",
    ),
    "unanswered": (
        "calls that the model asked for are never answered on this way.",
        "lead this way through an Append first: it answers what has not run, with the reason.",
    ),
    "turnless": (
        "a model is asked though no turn is open: its reply would not be recorded, or its calls "
        "would be taken for those of the turn before.",
        "lead this way through a PrepareStep, which opens the next turn.",
    ),
    "twice": (
        "calls that have run, and have their results, come to run again.",
        "lead `Done` to an Append before anything runs again.",
    ),
    "cut": (
        "calls of a reply that was cut or refused come to run.",
        "lead `Truncated`, `Refused` and `ContextFull` to an Extend, a Compact or an Append.",
    ),
}
"""The message and the fix of each fault."""


def find_call_faults(calls: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield each node where calls are lost, run twice, or run although they were cut (GL3)."""
    for node, fault in call_faults(calls):

        def is_goal(
            state: CallState, last: Arc | None, node: str = node, fault: _Fault = fault
        ) -> bool:
            return _node_at_fault(state, last) == node and _fault(calls, state) == fault

        def path_without(
            excluded: Exclusions, is_goal: Callable[[CallState, Arc | None], bool] = is_goal
        ) -> TablePath | None:
            return calls.shortest_path(is_goal, excluded)

        def finding_of(path: TablePath, node: str = node, fault: _Fault = fault) -> Finding:
            last = path[-1] if path and path[-1].target == END else None
            return calls.graph.finding(
                "GL3",
                *FAULTS[fault],
                node=node,
                path=path,
                outcome="" if last is None else last.word,
                place="" if last is None else f"{last.source!r} -{last.word}-> END",
            )

        yield calls.graph.confirmed(path_without, finding_of)


def call_faults(calls: CallProduct[S]) -> Iterable[tuple[str, _Fault]]:
    """Return the nodes at fault, the nearest first, each with its fault."""
    faults: dict[tuple[str, _Fault], None] = {}
    for state, parent in calls.parents.items():
        fault = _fault(calls, state)
        if fault is not None:
            faults[_node_at_fault(state, parent[0] if parent else None), fault] = None
    return faults


def _node_at_fault(state: CallState, last: Arc | None) -> str:
    # At END the fault is the transition into it.
    return last.source if state.node == END and last is not None else state.node


def _fault(calls: CallProduct[S], state: CallState) -> _Fault | None:
    node, status = state.node, state.status
    if status in UNANSWERED and (node == END or calls.loses_calls(node)):
        return "lost" if status == "ran" else "unanswered"
    if not state.in_turn and node in calls.graph.turnless:
        return "turnless"
    if status == "ran" and calls.runs_tools(node):
        return "twice"
    return "cut" if status == "cut" and calls.runs_tools(node) else None
