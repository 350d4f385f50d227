"""Trace: a journal as a list of steps: the event, the decisions of nodes, and the run afterwards.

A run is recorded twice: while it is simulated, and again when its journal is replayed. Both
recordings hold the same decisions, unless a node decides by more than its run and the event.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, Generic, TypeVar, final

from ..effects import Effect
from ..events import Event, Started
from ..graph import NodeGraph
from ..node_protocol import Leave, Node, Reaction, Wait
from ..outcomes import Outcome, outcome_name
from ..replay import overheard
from ..run import History, Run, evolve
from ..step import begin, step
from ..turn import Turn
from ..values import Message
from .subject import Subject
from .violation import Violation

__all__ = [
    "Decision",
    "Move",
    "ProcessExit",
    "Recording",
    "Trace",
    "TraceStep",
    "Transition",
    "lived",
    "moves",
    "new_in",
    "parted",
    "recorded_graph",
    "traced",
]

S = TypeVar("S")

SHORT: Final = 100
LEAVING: Final = (SystemExit, GeneratorExit)


class ProcessExit(Exception):
    """A node would have ended the process; the message says how."""


@final
@dataclass(frozen=True, slots=True)
class Transition:
    """A node was left by an outcome that led to a target; all by name."""

    node: str
    outcome: str
    target: str

    def __str__(self) -> str:
        return f"{self.node} -{self.outcome}-> {self.target}"


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """The reaction of a node, or the error it raised, after so many events of the journal.

    `transition` is set if the node was left by an outcome that the table has.
    """

    event: int
    node: str
    reaction: Reaction[Any, Outcome] | Exception
    transition: Transition | None = None


@final
@dataclass
class Recording:
    """The decisions of the nodes of a run, and which of them is deciding.

    Args:
        journal: the events so far.
        askers: the names of the nodes that asked for the effects, by effect id.
        decisions: in order; after a crash, the replayed ones follow again.
        busy: the node that is deciding; empty if none is.
    """

    journal: Sequence[Event] = ()
    askers: dict[int, str] = field(default_factory=dict[int, str])
    decisions: list[Decision] = field(default_factory=list[Decision])
    busy: str = ""

    def add(
        self,
        node: str,
        reaction: Reaction[Any, Outcome] | Exception,
        transition: Transition | None = None,
    ) -> None:
        """Add what a node has decided."""
        self.busy = ""
        self.decisions.append(Decision(len(self.journal), node, reaction, transition))

    @contextmanager
    def deciding(self, node: str) -> Generator[None, None, None]:
        """Note that a node is deciding; an error that it raises is its decision.

        Raises:
            ProcessExit: it would have ended the process.
        """
        self.busy = node
        try:
            yield
        except Exception as error:
            self.add(node, error)
            raise
        except LEAVING as error:
            wanted = f"{type(error).__name__}: {error}".removesuffix(": ")
            left = ProcessExit(f"it wanted to end the process ({wanted})")
            self.add(node, left)
            raise left from error
        self.busy = ""


def recorded_graph(graph: NodeGraph[S], recording: Recording) -> NodeGraph[S]:
    """Return a graph that runs as `graph` does, and adds each decision to the recording."""

    def add(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
        row, transition = graph.table[node.name], None
        match reaction:
            case Leave(outcome=Outcome() as outcome) if type(outcome) in row:
                target = row[type(outcome)]
                transition = Transition(node.name, outcome_name(type(outcome)), target)
            case Wait(effects=tuple() as effects):
                recording.askers.update((getattr(one, "id", 0), node.name) for one in effects)
            case _:
                pass  # The kernel refuses it, in words.
        recording.add(node.name, reaction, transition)

    def within(node: Node[S, Outcome]) -> AbstractContextManager[None]:
        return recording.deciding(node.name)

    return overheard(graph, add, within)


@final
@dataclass(frozen=True)
class TraceStep(Generic[S]):
    """An event: the effect that it answered, the node that heard it, and its consequences.

    `node` is empty for `Started`. `run` is the run afterwards.
    """

    event: Event
    answered: Effect | None
    node: str
    decisions: tuple[Decision, ...]
    effects: tuple[Effect, ...]
    run: Run[S]

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """The outcomes by which nodes were left."""
        return tuple([one.transition for one in self.decisions if one.transition is not None])


@final
@dataclass(frozen=True)
class Trace(Generic[S]):
    """The steps of a journal; `broken` is the error of the event behind them, `last`."""

    steps: tuple[TraceStep[S], ...]
    broken: Exception | None = None
    last: Event | None = None
    decisions: tuple[Decision, ...] = ()

    @property
    def run(self) -> Run[S] | None:
        """The run after the last step."""
        return self.steps[-1].run if self.steps else None


def traced(subject: Subject[S], events: Iterable[Event]) -> Trace[S]:
    """Return the trace of a journal, which is replayed: nothing is performed."""
    so_far, steps = list[Event](), list[TraceStep[S]]()
    recording = Recording(so_far)
    graph = recorded_graph(subject.graph, recording)
    run: Run[S] | None = None
    for event in events:
        so_far.append(event)
        known, answered, node = len(recording.decisions), None, ""
        try:
            if run is None:
                assert isinstance(event, Started), "a simulation begins with it"
                taken = begin(graph, event, subject.state)
            else:
                answered, node = run.pending.get(getattr(event, "effect", 0)), run.node
                taken = step(graph, run, event)
        except Exception as error:  # noqa: BLE001 - a node is the user's own, and under test.
            return Trace(tuple(steps), error, event, tuple(recording.decisions))
        decisions, run = tuple(recording.decisions[known:]), taken.run
        steps.append(TraceStep(event, answered, node, decisions, taken.effects, run))
    return Trace(tuple(steps), decisions=tuple(recording.decisions))


@final
@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """A decision of a node, with the run before it.

    Args:
        number: the event, counted from 1.
        event: the event that the node heard; None if it was entered.
        node: the node.
        before: the run that the decision before left behind; at first, the run with its input.
        entered: the run when the node was entered, which may be some events ago.
        run: the run that the node left behind.
        outcome: the outcome by which it was left; None if it waits.
        effects: the effects that it asks for if it waits.
    """

    number: int
    event: Event | None
    node: Node[S, Outcome]
    before: Run[S]
    entered: Run[S]
    run: Run[S]
    outcome: Outcome | None = None
    effects: tuple[Effect, ...] = ()


def moves(subject: Subject[S], trace: Trace[S]) -> Iterator[Move[S]]:
    """Yield the decisions of a trace in order."""
    before: Run[S] | None = None
    entered = before
    for number, taken in enumerate(trace.steps, 1):
        heard: Event | None = taken.event
        for decision in taken.decisions:
            done = decision.reaction
            if isinstance(done, Exception):
                continue  # An error ends the trace, which has no such step.
            run: Run[S] = done.run
            if isinstance(heard, Started):
                given, heard = History(heard.messages), None
                record = evolve(run.record, added=History[Message]())
                before = evolve(run, messages=given, record=record, turn=Turn())
            entered = before if heard is None else entered
            assert before is not None and entered is not None, "a trace begins with a start"  # noqa: PT018
            outcome = done.outcome if isinstance(done, Leave) else None
            effects = done.effects if isinstance(done, Wait) else ()
            node = subject.graph.nodes[decision.node]
            yield Move(number, heard, node, before, entered, run, outcome, effects)
            before, heard = run, None


def new_in(now: History[Message], before: History[Message]) -> tuple[Message, ...] | None:
    """Return the messages that a history has grown by; None if it was rewritten."""
    if now is before:
        return ()
    return now[len(before) :] if now.starts_with(before) else None


def lived(trace: Trace[S], crashes: Iterable[int]) -> tuple[Decision, ...]:
    """Return the decisions of a run that died after these events: each life begins anew."""
    lives, events = list[Decision](), len(trace.steps) + (trace.broken is not None)
    for crash in sorted({one for one in crashes if one <= events}):
        # At a crash the last event is in the journal, and `step` has not seen it; `Started` it has.
        lives += [one for one in trace.decisions if one.event <= max(1, crash - 1)]
    return (*lives, *trace.decisions)


def parted(first: Sequence[Decision], second: Sequence[Decision], reason: str) -> Violation | None:
    """Return where two recordings part that should be the same; None if they do not."""
    for one, other in zip_longest(first, second):
        if one is None or other is None or not _same(one, other):
            known = one or other
            assert known is not None, "one of them goes on"
            what, then = _said(one), _said(other)
            if one is not None and other is not None and one.node != other.node:
                then = f"was {other.node!r}: {then}"
            elif what == then:
                then = f"{then} and left another run behind"
            found = f"{reason}: node {known.node!r} {what}; asked the same again, it {then}"
            return Violation("replay", found, known.event)
    return None


def _same(one: Decision, other: Decision) -> bool:
    first, second = one.reaction, other.reaction
    if isinstance(first, Exception) or isinstance(second, Exception):
        return (one.node, type(first), str(first)) == (other.node, type(second), str(second))
    return (one.node, first) == (other.node, second)


def _said(decision: Decision | None) -> str:
    match reaction := None if decision is None else decision.reaction:
        case None:
            return "was not asked"
        case Leave(outcome=outcome):
            return f"left by {outcome_name(type(outcome))!r}"
        case Wait(effects=effects):
            return f"asked for {', '.join(type(one).__name__ for one in effects) or 'nothing'}"
        case Exception():
            return f"raised {type(reaction).__name__}: {reaction}"[:SHORT]
        case _:
            return f"answered {type(reaction).__name__}"
