"""Trace: a journal as steps: an event, the moves of nodes that follow, and the run afterwards.

The reactions of nodes are recorded twice: while a run is simulated, and when its journal is
replayed. They are the same, unless a node decides by more than its run and the event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

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
    "Move",
    "ProcessExit",
    "Recording",
    "Trace",
    "TraceStep",
    "difference",
    "new_in",
    "raised_text",
    "recorded_graph",
    "traced",
]

S = TypeVar("S")

LEAVING: Final = (SystemExit, GeneratorExit)

NamedReaction: TypeAlias = tuple[str, Reaction[Any, Outcome]]
"""The name of a node, and its reaction."""


class ProcessExit(Exception):
    """A node tried to end the process; the message says how."""


@final
@dataclass
class Recording:
    """The reactions of nodes while a journal grows.

    Args:
        journal: the events so far.
        askers: the names of the nodes that asked for the effects, by effect id.
        reactions: in order, by the number of the event. A process that resumes reacts to the
            whole journal once more, under the number of its last event.
        busy: the node that is deciding; empty if none is.
    """

    journal: list[Event] = field(default_factory=list[Event])
    askers: dict[int, str] = field(default_factory=dict[int, str])
    reactions: defaultdict[int, list[NamedReaction]] = field(
        default_factory=lambda: defaultdict[int, list[NamedReaction]](list)
    )
    busy: str = ""

    @contextmanager
    def deciding(self, node: str) -> Generator[None, None, None]:
        """Note that a node is deciding.

        Raises:
            ProcessExit: the node tried to end the process.
        """
        self.busy = node
        try:
            yield
        except LEAVING as error:
            self.busy = ""
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise ProcessExit(f"the node tried to end the process ({text})") from error
        except Exception:
            self.busy = ""
            raise
        self.busy = ""


def recorded_graph(graph: NodeGraph[S], recording: Recording) -> NodeGraph[S]:
    """Return a graph that runs as `graph` does, and adds each reaction to the recording."""

    def add(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
        if isinstance(reaction, Wait):
            recording.askers.update((effect.id, node.name) for effect in reaction.effects)
        recording.reactions[len(recording.journal)].append((node.name, reaction))

    def within(node: Node[S, Outcome]) -> AbstractContextManager[None]:
        return recording.deciding(node.name)

    return overheard(graph, add, within)


@final
@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """A reaction of a node, with the run before it.

    Args:
        number: the event, counted from 1.
        event: the event that the node reacts to; None if it was entered.
        node: the node.
        before: the run that the move before left behind; at first, the run with its input.
        entered: the run when the node was entered, which may be some events ago.
        reaction: the reaction.
        target: the name of the next node, or END; empty if the node waits.
    """

    number: int
    event: Event | None
    node: Node[S, Outcome]
    before: Run[S]
    entered: Run[S]
    reaction: Reaction[S, Outcome]
    target: str

    @property
    def run(self) -> Run[S]:
        """The run that the node left behind."""
        return self.reaction.run

    @property
    def outcome(self) -> Outcome | None:
        """The outcome by which the node was left; None if it waits."""
        return self.reaction.outcome if isinstance(self.reaction, Leave) else None

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects that the node asks for."""
        return self.reaction.effects if isinstance(self.reaction, Wait) else ()

    @property
    def way(self) -> tuple[str, str]:
        """The names of the node and of its outcome."""
        return self.node.name, outcome_name(type(self.outcome)) if self.outcome else ""

    def __str__(self) -> str:
        return f"{self.node.name} -{self.way[1]}-> {self.target}"


@final
@dataclass(frozen=True)
class TraceStep(Generic[S]):
    """An event: the effect that it answered, the node that heard it, and its consequences.

    `node` is empty for `Started`. `run` is the run afterwards.
    """

    event: Event
    answered: Effect | None
    node: str
    moves: tuple[Move[S], ...]
    effects: tuple[Effect, ...]
    run: Run[S]

    @property
    def transitions(self) -> tuple[Move[S], ...]:
        """The moves that left their node."""
        return tuple([move for move in self.moves if move.target])


@final
@dataclass(frozen=True)
class Trace(Generic[S]):
    """The steps of a journal; `broken` is the error of the event behind them, `last`."""

    steps: tuple[TraceStep[S], ...]
    broken: Exception | None = None
    last: Event | None = None

    @property
    def run(self) -> Run[S] | None:
        """The run after the last step."""
        return self.steps[-1].run if self.steps else None

    @property
    def moves(self) -> Iterator[Move[S]]:
        """The moves of all steps."""
        return chain.from_iterable(step.moves for step in self.steps)


def traced(subject: Subject[S], events: Iterable[Event]) -> Trace[S]:
    """Return the trace of a journal, which is replayed: nothing is performed."""
    recording, steps = Recording(), list[TraceStep[S]]()
    graph = recorded_graph(subject.graph, recording)
    run: Run[S] | None = None
    last: Move[S] | None = None
    for number, event in enumerate(events, 1):
        recording.journal.append(event)
        answered, node = None, ""
        try:
            if run is None:
                assert isinstance(event, Started), "a simulation begins with it"
                taken = begin(graph, event, subject.state)
            else:
                answered, node = run.pending.get(getattr(event, "effect", 0)), run.node
                taken = step(graph, run, event)
        except Exception as error:  # noqa: BLE001 - a node is the user's own, and under test.
            return Trace(tuple(steps), error, event)
        moves = tuple(_moves(subject.graph, number, event, recording.reactions[number], last))
        last, run = moves[-1] if moves else last, taken.run
        steps.append(TraceStep(event, answered, node, moves, taken.effects, run))
    return Trace(tuple(steps))


def _moves(
    graph: NodeGraph[S],
    number: int,
    event: Event,
    reactions: Iterable[NamedReaction],
    last: Move[S] | None,
) -> Iterator[Move[S]]:
    """Yield the moves that follow an event; `last` is the move before it."""
    heard: Event | None = event
    for name, reaction in reactions:
        run: Run[S] = reaction.run
        if last is None:
            assert isinstance(event, Started), "a journal begins with it"
            record = evolve(run.record, added=History[Message]())
            messages, heard = History(event.messages), None
            before = evolve(run, messages=messages, record=record, turn=Turn())
        else:
            before = last.run
        entered = before if last is None or heard is None else last.entered
        target = ""
        if isinstance(reaction, Leave):
            target = graph.table[name][type(reaction.outcome)]
        last = Move(number, heard, graph.nodes[name], before, entered, reaction, target)
        heard = None
        yield last


def new_in(now: History[Message], before: History[Message]) -> tuple[Message, ...] | None:
    """Return the messages that a history has grown by; None if it was rewritten."""
    if now is before:
        return ()
    return now[len(before) :] if now.starts_with(before) else None


def difference(
    trace: Trace[Any], reactions: Mapping[int, Sequence[NamedReaction]], reason: str
) -> Violation | None:
    """Return the first reaction of a recorded run that differs from its trace; None if none does.

    Args:
        trace: the trace.
        reactions: of the other run, by the number of the event.
        reason: why both should be the same.
    """
    for number, taken in enumerate(trace.steps, 1):
        replayed = [(move.node.name, move.reaction) for move in taken.moves]
        recorded = reactions.get(number, ())
        # A process that resumed here has replayed what came before, too.
        recorded = recorded[max(0, len(recorded) - len(replayed)) :] if replayed else ()
        for first, second in zip_longest(recorded, replayed):
            if first != second:
                name = (first or second or ("", None))[0]
                text = f"node {name!r} {_text(first)}; asked the same again, {_text(second, name)}"
                return Violation("replay", f"{reason}: {text}", number)
    return None


def raised_text(error: Exception) -> str:
    """Return the words for an error, with the kernel's note of the node that raised it."""
    words = str(error) if isinstance(error, ProcessExit) else f"{type(error).__name__}: {error}"
    notes: list[str] = getattr(error, "__notes__", [])
    return ", ".join([words, *notes])


def _text(named: NamedReaction | None, other: str | None = None) -> str:
    """Return the words for a reaction; `other` is the name of the node that reacted before."""
    match named:
        case None:
            words = "did not react"
        case _, Leave(outcome=outcome):
            words = f"left by {outcome_name(type(outcome))!r}"
        case _, reaction:
            words = (
                f"asked for {', '.join(type(e).__name__ for e in reaction.effects) or 'nothing'}"
            )
    if other is None:
        return words
    return f"it {words}" if named is None or named[0] == other else f"node {named[0]!r} {words}"
