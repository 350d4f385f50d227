"""Calls: the product graph of a graph and the status of the turn's tool calls (GL2, GL3).

A state of the product graph has four parts: a node, whether a gate has left by `Settled` since the
last reply, the status of the turn's calls, and whether a turn is open. The kind, outcome and
contract of a node determine how a transition changes the status:

    idle ──Calls──► open ──gate.Settled──► gated ──Done──► ran ──append──► idle
                     ▲                       │
                     └─── ApprovalNeeded ────┘

Calls of a reply that was truncated, refused or too long have the status `cut`: they must never run,
and need no result. All other calls must reach an `append` node before the next reply replaces them
and before the run ends. Calls that have run, or are cut, must not reach a node that runs tools.
Calls are identified by the number of their turn, so each model call needs a turn of its own. The
proof does not cover calls that the caller of an iterated run makes up in place of the model.
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
    ApprovalNeeded,
    Calls,
    Compacted,
    ContextFull,
    Done,
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
"""The outcomes of Extend and Compact nodes that discard the turn's reply."""


class CallState(NamedTuple):
    """A state of the product graph of nodes and call statuses.

    Attributes:
        node: the name of the node.
        gated: whether a gate has left by `Settled` since the model's last reply.
        status: the status of the turn's tool calls.
        in_turn: whether a turn is open; replies and calls need its number.
    """

    node: str
    gated: bool
    status: CallStatus
    in_turn: bool = False


class CallProduct(Generic[S]):
    """The reachable states of a graph's product with the status of the turn's tool calls.

    Args:
        graph: the graph.
        like: the product of a graph with the same nodes; its cached transition function is reused.

    Attributes:
        parents: the states in breadth-first order, each with the transition and state before it.
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
        """The reachable states of each node, with their positions in breadth-first order."""
        states: dict[str, list[tuple[int, CallState]]] = {}
        for number, state in enumerate(self.parents):
            states.setdefault(state.node, []).append((number, state))
        return states

    def kind(self, node: str) -> Kind | None:
        """Return the kind of a node; None for END."""
        known = self.graph.nodes.get(node)
        return None if known is None else known.kind

    def runs_tools(self, node: str) -> bool:
        """Return whether a node may run tools, by its kind or its contract."""
        contract = self.graph.contracts.get(node)
        return self.kind(node) == "execute" or (contract is not None and contract.tools)

    def loses_calls(self, node: str) -> bool:
        """Return whether a node may discard the turn's tool calls, such as by a new reply."""
        if self.kind(node) == "model":
            return True
        if any(self._drops_reply(node, arc.outcome) for arc in self.graph.arcs.get(node, ())):
            return True
        contract = self.graph.contracts.get(node)
        if contract is None or contract.takes_up_calls:
            return False
        return any("turn" in moved for moved in contract.moves.values())

    def _drops_reply(self, node: str, outcome: type[Outcome]) -> bool:
        """Return whether a node discards the turn's reply when it leaves by `outcome`."""
        dropping = isinstance(self.graph.nodes.get(node), Extend | Compact)
        return dropping and issubclass(outcome, DROPPED)

    def path_to(self, state: CallState) -> TablePath:
        """Return a shortest path from the start to a state of the product."""
        return path_to(self.parents, state)

    def shortest_path(
        self,
        is_goal: Callable[[CallState, Arc | None], bool],
        excluded: Exclusions,
        suffix: TablePath = (),
    ) -> TablePath | None:
        """Return a shortest path from the start to a goal state; None if no path leads to a goal.

        Args:
            is_goal: whether a state, entered by a transition, is a goal.
            excluded: the paths that the search leaves out.
            suffix: transitions that follow the path; `excluded` applies to them too.
        """
        return shortest_path([self.start], self.arcs_from, is_goal, excluded, suffix)

    def arcs_from(self, state: CallState) -> tuple[tuple[Arc, CallState], ...]:
        """Return the transitions out of a state, each with the next state of the product."""
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
        """Return the fields of the next state but for its node; None if `outcome` is impossible."""
        key = state, outcome
        if key not in self._known:
            self._known[key] = self._state_after(state, outcome)
        return self._known[key]

    def _state_after(self, state: CallState, outcome: type[Outcome]) -> _After | None:
        contract = self.graph.contracts.get(state.node)
        calls: tuple[bool, CallStatus] | None = (state.gated, "idle")
        # Discarded calls are reported as a fault of this node, so the search need not follow them.
        if not self._drops_reply(state.node, outcome):
            calls = _calls_after(state, self.kind(state.node), contract, outcome)
        if calls is None:
            return None
        gated, status = calls
        return gated, status, _in_turn(state, contract, outcome)


def _calls_after(  # noqa: PLR0911 - one way out for each kind of node
    state: CallState, kind: Kind | None, contract: Contract | None, outcome: type[Outcome]
) -> tuple[bool, CallStatus] | None:
    """Return `gated` and the call status of the next state; None for an impossible outcome."""
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
        # An Append leaves by AnsweredCalls only if the turn has calls, or a gate saw the cut one.
        unseen = status == "idle" or (status == "cut" and not gated)
        return None if unseen and issubclass(outcome, AnsweredCalls) else (gated, "idle")
    if kind == "gate" and issubclass(outcome, Settled):
        return True, "gated" if status == "open" else status
    if kind == "execute" and issubclass(outcome, ApprovalNeeded):
        return False, "open" if status in UNANSWERED else status
    if kind == "execute" and issubclass(outcome, Done):
        return gated, "ran" if status in UNANSWERED else status
    return (False, "open") if called else (gated, status)


def _in_turn(state: CallState, contract: Contract | None, outcome: type[Outcome]) -> bool:
    """Return whether a turn is open after the node of `state` leaves by `outcome`."""
    # A node without a contract may have opened a turn; assume so, to report no false fault.
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
"""The message and the fix of each kind of fault."""


def find_call_faults(calls: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each node that loses or repeats tool calls (GL3).

    This includes nodes that run truncated calls, and model calls without an open turn.
    """
    for node, fault in call_faults(calls):

        def is_goal(
            state: CallState, last: Arc | None, node: str = node, fault: _Fault = fault
        ) -> bool:
            return _node_at_fault(state, last) == node and _fault_of(calls, state) == fault

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
    """Return each faulty node with its kind of fault, nearest to the start first."""
    faults: dict[tuple[str, _Fault], None] = {}
    for state, parent in calls.parents.items():
        fault = _fault_of(calls, state)
        if fault is not None:
            faults[_node_at_fault(state, parent[0] if parent else None), fault] = None
    return faults


def _node_at_fault(state: CallState, last: Arc | None) -> str:
    """Return the node to report for a faulty state; for END, the node that leads to END.

    `last` is the last transition of the path to the state.
    """
    return last.source if state.node == END and last is not None else state.node


def _fault_of(calls: CallProduct[S], state: CallState) -> _Fault | None:
    """Return the kind of fault of a state of the product; None for a correct state."""
    node, status = state.node, state.status
    if status in UNANSWERED and (node == END or calls.loses_calls(node)):
        return "lost" if status == "ran" else "unanswered"
    if not state.in_turn and node in calls.graph.turnless:
        return "turnless"
    if status == "ran" and calls.runs_tools(node):
        return "twice"
    return "cut" if status == "cut" and calls.runs_tools(node) else None
