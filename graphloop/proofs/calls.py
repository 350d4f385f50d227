"""Calls: each place of a graph, with its calls (GL2, GL3).

A place is a node, whether a gate has spoken since the last reply, what is owed to the calls of the
turn, and whether a turn is open. Kinds, outcomes and contracts tell what nodes do to calls:

    idle ──Calls──► open ──gate.Settled──► gated ──Done──► ran ──append──► idle
                     ▲                       │
                     └──────── Held ─────────┘

A reply that was cut, refused or too long may hold calls as well (`cut`): they must never run, and
need no answer. Every other call has to reach an `append` before the next reply takes its place and
before the run ends. Calls that have a result, or were cut, must not come to a node that runs tools.
Calls are told apart by the number of their turn, so a model has to be asked in a turn of its own.
The calls that the caller of an iterated run puts in the model's place are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
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
from .proof_graph import (
    END,
    Arc,
    ProofGraph,
    TablePath,
    breadth_first,
    path_to,
    shortest_path,
)
from .report import Finding, Unknown
from .run_search import Exclusions

__all__ = ["OWED", "CallProduct", "CallState", "CallStatus", "call_faults", "find_call_faults"]

S = TypeVar("S")

CallStatus: TypeAlias = Literal["idle", "open", "gated", "ran", "cut"]
"""What is owed to the calls of the turn."""

_After: TypeAlias = tuple[bool, CallStatus, bool]
"""The fields of a place but its node."""

OWED: Final[frozenset[CallStatus]] = frozenset({"open", "gated", "ran"})
"""The calls are not in the history yet, and have to get there."""

CUT: Final = (Truncated, Refused, ContextFull)
DROPPED: Final = (Retry, Compacted)
"""Outcomes by which an Extend or a Compact has thrown the turn's reply away, to ask for another."""


class CallState(NamedTuple):
    """A node, whether a gate has spoken since the last reply, and what is owed to the calls.

    `in_turn` says that a turn is open: replies and calls have a number of their own.
    """

    node: str
    gated: bool
    duty: CallStatus
    in_turn: bool = False


class CallProduct(Generic[S]):
    """Every place that runs arrive at, nearest first.

    Attributes:
        ground: the graph.
        found: the places, each with the line and the place that it is come to from.
    """

    def __init__(self, ground: ProofGraph[S], like: CallProduct[S] | None = None) -> None:
        """Walk from the start.

        Args:
            ground: the graph.
            like: a walk of a graph with the same nodes; what is known of these is not asked again.
        """
        self.ground = ground
        self._known: dict[tuple[CallState, type[Outcome]], _After | None] = (
            like._known if like else {}
        )
        self._led: dict[CallState, tuple[tuple[Arc, CallState], ...]] = {}
        self.found: Mapping[CallState, tuple[Arc, CallState] | None] = breadth_first(
            [CallState(ground.start, gated=False, duty="idle")], self.steps
        )

    @cached_property
    def places(self) -> Mapping[str, Sequence[tuple[int, CallState]]]:
        """The places of each node, with how soon runs come to them."""
        places: dict[str, list[tuple[int, CallState]]] = {}
        for number, place in enumerate(self.found):
            places.setdefault(place.node, []).append((number, place))
        return places

    def kind(self, node: str) -> Kind | None:
        """Return the kind of a node; None for END."""
        found = self.ground.nodes.get(node)
        return None if found is None else found.kind

    def runs_tools(self, node: str) -> bool:
        """Whether tools may run at a node."""
        contract = self.ground.contracts.get(node)
        return self.kind(node) == "execute" or (contract is not None and contract.tools)

    def loses(self, node: str) -> bool:
        """Whether the calls of a run that arrives here are thrown away."""
        if self.kind(node) == "model":
            return True
        if any(self._drops(node, arc.outcome) for arc in self.ground.arcs.get(node, ())):
            return True
        contract = self.ground.contracts.get(node)
        if contract is None or contract.takes_up_calls:
            return False
        return any("turn" in moved for moved in contract.moves.values())

    def _drops(self, node: str, outcome: type[Outcome]) -> bool:
        """Whether a node that is left by an outcome has thrown the turn's reply away."""
        dropping = isinstance(self.ground.nodes.get(node), Extend | Compact)
        return dropping and issubclass(outcome, DROPPED)

    def needs_turn(self, node: str) -> bool:
        """Return whether a node asks a model in a turn that another node opens."""
        return node in self.ground.turnless

    def path_to(self, place: CallState) -> TablePath:
        """Return a shortest way from the start to a place."""
        return path_to(self.found, place)

    def shortest_path(
        self,
        is_goal: Callable[[CallState, Arc | None], bool],
        barred: Exclusions,
        then: TablePath = (),
    ) -> TablePath | None:
        """Return a shortest way to a place, come to by a line, without what is barred."""
        start = CallState(self.ground.start, gated=False, duty="idle")
        return shortest_path([start], self.steps, is_goal, barred, then)

    def steps(self, place: CallState) -> tuple[tuple[Arc, CallState], ...]:
        """Return where a run may go from a place."""
        known = self._led.get(place)
        if known is None:
            known = self._led[place] = tuple(self._steps(place))
        return known

    def _steps(self, place: CallState) -> Iterator[tuple[Arc, CallState]]:
        if place.node == END:
            return
        for arc in self.ground.arcs.get(place.node, ()):
            after = self.after(place, arc.outcome)
            if after is not None:
                yield arc, CallState(arc.target, *after)

    def after(self, place: CallState, outcome: type[Outcome]) -> _After | None:
        """Return how things are once a place is left by an outcome; None if it never is."""
        key = place, outcome
        if key not in self._known:
            self._known[key] = self._after(place, outcome)
        return self._known[key]

    def _after(self, place: CallState, outcome: type[Outcome]) -> _After | None:
        contract = self.ground.contracts.get(place.node)
        # What is thrown away with calls in it is found where that happens.
        dropped = self._drops(place.node, outcome)
        kind = self.kind(place.node)
        calls: tuple[bool, CallStatus] | None = (place.gated, "idle")
        if not dropped:
            calls = _calls_after(place, kind, contract, outcome)
        if calls is None:
            return None
        gated, duty = calls
        return gated, duty, _in_turn(place, contract, outcome)


def _calls_after(  # noqa: PLR0911 - one way out for each kind of node
    place: CallState, kind: Kind | None, contract: Contract | None, outcome: type[Outcome]
) -> tuple[bool, CallStatus] | None:
    """Return how the calls are after a node was left by an outcome; None if it never is."""
    gated, duty = place.gated, place.duty
    called = issubclass(outcome, Calls)
    if contract is not None and contract.takes_up_calls and duty != "idle":
        return _taken_up(duty, called=called)
    if kind == "model":
        return False, "open" if called else "cut" if issubclass(outcome, CUT) else "idle"
    if contract is not None and "turn" in contract.moved(outcome):
        return False, "open" if called else "idle"
    if kind == "append":
        # What no gate has seen was not called.
        unseen = duty == "idle" or (duty == "cut" and not gated)
        empty = unseen and issubclass(outcome, AnsweredCalls)
        return None if empty else (gated, "idle")
    if kind == "gate" and issubclass(outcome, Settled):
        return True, "gated" if duty == "open" else duty
    if kind == "execute" and issubclass(outcome, Held):
        return False, "open" if duty in OWED else duty
    if kind == "execute" and issubclass(outcome, Done):
        return gated, "ran" if duty in OWED else duty
    return (False, "open") if called else (gated, duty)


def _in_turn(place: CallState, contract: Contract | None, outcome: type[Outcome]) -> bool:
    """Return whether a turn is open once a node was left by an outcome."""
    # What promises nothing is taken to have opened one; what says when it surely does, only then.
    if contract is None or "turn" in contract.moved(outcome):
        return True
    sure = any("turn" in contract.moved(one) for one in contract.moves)
    if "turn" in contract.may_move(outcome) and not sure:
        return True
    return place.in_turn and "close" not in contract.moved(outcome)


def _taken_up(duty: CallStatus, *, called: bool) -> tuple[bool, CallStatus] | None:
    """Return how the calls leave a node that takes up what is open, with the results it has."""
    if duty == "cut":
        # Such a reply may hold no calls; then the node does what it does without.
        return False, "cut" if called else "idle"
    if not called:
        return None
    return False, "ran" if duty == "ran" else "open"


_Wrong: TypeAlias = tuple[str, str, str]
"""A fault at a place: its kind, the fault in words, and the fix."""


def find_call_faults(walk: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield every place where calls are lost, run again, or run though they were cut."""
    for node, wrong in call_faults(walk):
        found = partial(_misanswered, walk, node, wrong)
        yield walk.ground.confirmed(found, partial(_told, walk, wrong))


def call_faults(walk: CallProduct[S]) -> Iterable[tuple[str, _Wrong]]:
    """Return the nodes where something is wrong, and what, the nearest first."""
    found: dict[tuple[str, _Wrong], None] = {}
    for place, come in walk.found.items():
        wrong = _wrong(walk, place)
        if wrong is not None:
            found[_at(place, None if come is None else come[0]), wrong] = None
    return found


def _at(place: CallState, last: Arc | None) -> str:
    """Return the node that a place is told of: at END the line into it is wrong."""
    return last.source if place.node == END and last is not None else place.node


def _misanswered(
    walk: CallProduct[S], node: str, wrong: _Wrong, barred: Exclusions
) -> TablePath | None:
    return walk.shortest_path(
        lambda at, last: _at(at, last) == node and _wrong(walk, at) == wrong, barred
    )


def _told(walk: CallProduct[S], wrong: _Wrong, path: TablePath) -> Finding:
    last = path[-1] if path else None
    node = walk.ground.start if last is None else last.target
    line = last if last is not None and node == END else None
    return walk.ground.finding(
        "GL3",
        wrong[1],
        wrong[2],
        node=node if line is None else line.source,
        path=path,
        outcome="" if line is None else line.word,
        place="" if line is None else f"{line.source!r} -{line.word}-> END",
    )


def _wrong(walk: CallProduct[S], place: CallState) -> _Wrong | None:
    """Return what is wrong at a place: what it is, in words, and the fix."""
    node, duty = place.node, place.duty
    if duty in OWED and (node == END or walk.loses(node)):
        if duty == "ran":
            return (
                "lost",
                "the results of calls that have run never reach the history.",
                "lead this way through an Append first: it adds the results.",
            )
        return (
            "unanswered",
            "calls that the model asked for are never answered on this way.",
            "lead this way through an Append first: it answers what has not run, with the reason.",
        )
    if not place.in_turn and walk.needs_turn(node):
        return (
            "turnless",
            "a model is asked though no turn is open: its reply would not be recorded, or its "
            "calls would be taken for those of the turn before.",
            "lead this way through a PrepareStep, which opens the next turn.",
        )
    if duty == "ran" and walk.runs_tools(node):
        return (
            "twice",
            "calls that have run, and have their results, come to run again.",
            "lead `Done` to an Append before anything runs again.",
        )
    if duty == "cut" and walk.runs_tools(node):
        return (
            "cut",
            "calls of a reply that was cut or refused come to run.",
            "lead `Truncated`, `Refused` and `ContextFull` to an Extend, a Compact or an Append.",
        )
    return None
