"""Trace: a replayed journal, as a list of events with the node reactions that each caused.

The fuzzer records node reactions while it simulates a run, and again when it replays the journal.
The two records are equal, unless a node depends on more than its run and the event.
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
"""The name of a node, and its reaction to an event."""


class ProcessExit(Exception):
    """A node raised `SystemExit` or `GeneratorExit`, which the message names."""


@final
@dataclass
class Recording:
    """The journal of a run in progress, and the node reactions recorded so far.

    Args:
        journal: the events so far.
        askers: maps the id of each effect to the name of the node that requested it.
        reactions: maps the number of an event to the reactions to it, in order. After a crash, the
            replay of the whole journal adds all its reactions under the number of the last event.
        busy: the name of the node that is reacting now; empty if no node is.
    """

    journal: list[Event] = field(default_factory=list[Event])
    askers: dict[int, str] = field(default_factory=dict[int, str])
    reactions: defaultdict[int, list[NamedReaction]] = field(
        default_factory=lambda: defaultdict[int, list[NamedReaction]](list)
    )
    busy: str = ""

    @contextmanager
    def deciding(self, node: str) -> Generator[None, None, None]:
        """Context manager: set `busy` to this node's name while the node reacts to an event.

        Ctrl-C leaves the name in `busy`.

        Raises:
            ProcessExit: the node raised `SystemExit` or `GeneratorExit`.
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
    """Return a copy of the graph that adds each reaction of its nodes to the recording."""

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
    """A reaction of a node to an event, with the run before the reaction.

    Args:
        number: the number of the event that caused the reaction, from 1.
        event: the event that the node reacts to; None if the run has just entered the node.
        node: the node that reacts.
        before: the run before this reaction; for the first move, the run with its input.
        entered: the run when it entered the node, possibly several events earlier.
        reaction: the node's reaction.
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
        """The run after this reaction."""
        return self.reaction.run

    @property
    def outcome(self) -> Outcome | None:
        """The outcome by which the run left the node; None if the node waits."""
        return self.reaction.outcome if isinstance(self.reaction, Leave) else None

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects that the node requests; empty if the run left the node."""
        return self.reaction.effects if isinstance(self.reaction, Wait) else ()

    @property
    def way(self) -> tuple[str, str]:
        """The names of the node and of its outcome; the second is empty if the node waits."""
        return self.node.name, outcome_name(type(self.outcome)) if self.outcome else ""

    def __str__(self) -> str:
        return f"{self.node.name} -{self.way[1]}-> {self.target}"


@final
@dataclass(frozen=True)
class TraceStep(Generic[S]):
    """An event of the journal, with the node reactions and the effects that it caused.

    Attributes:
        event: the event.
        answered: the pending effect that the event answers; None if it answers no effect.
        node: the name of the run's node before the event; empty for `Started`.
        moves: the node reactions to the event, in order.
        effects: the effects that the nodes requested.
        run: the run after the event.
    """

    event: Event
    answered: Effect | None
    node: str
    moves: tuple[Move[S], ...]
    effects: tuple[Effect, ...]
    run: Run[S]

    @property
    def transitions(self) -> tuple[Move[S], ...]:
        """The moves by which the run left a node."""
        return tuple([move for move in self.moves if move.target])


@final
@dataclass(frozen=True)
class Trace(Generic[S]):
    """The replayed steps of a journal, up to its end or to the first event that raised an error.

    Attributes:
        steps: the replayed steps.
        broken: the error that the replay raised; None if it reached the end.
        last: the event at which the replay raised `broken`.
    """

    steps: tuple[TraceStep[S], ...]
    broken: Exception | None = None
    last: Event | None = None

    @property
    def run(self) -> Run[S] | None:
        """The run after the last step; None if there are no steps."""
        return self.steps[-1].run if self.steps else None

    @property
    def moves(self) -> Iterator[Move[S]]:
        """The moves of all steps, in order."""
        return chain.from_iterable(step.moves for step in self.steps)


def traced(subject: Subject[S], events: Iterable[Event]) -> Trace[S]:
    """Replay a journal without performing its effects, and return the trace of the replay."""
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
        moves = tuple(
            _moves_of_event(subject.graph, number, event, recording.reactions[number], last)
        )
        last, run = moves[-1] if moves else last, taken.run
        steps.append(TraceStep(event, answered, node, moves, taken.effects, run))
    return Trace(tuple(steps))


def _moves_of_event(
    graph: NodeGraph[S],
    number: int,
    event: Event,
    reactions: Iterable[NamedReaction],
    last: Move[S] | None,
) -> Iterator[Move[S]]:
    """Yield a `Move` for each reaction to an event; `last` is the latest move before the event."""
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
    """Return the messages at the end of `now` that `before` lacks; None if older ones changed."""
    if now is before:
        return ()
    return now[len(before) :] if now.starts_with(before) else None


def difference(
    trace: Trace[Any], reactions: Mapping[int, Sequence[NamedReaction]], reason: str
) -> Violation | None:
    """Return a "replay" violation at the first reaction that differs from the trace, or None.

    Args:
        trace: the trace of a run.
        reactions: the reactions recorded in another run, by the number of the event.
        reason: the beginning of the violation's text, which says what a difference means.
    """
    for number, taken in enumerate(trace.steps, 1):
        replayed = [(move.node.name, move.reaction) for move in taken.moves]
        recorded = reactions.get(number, ())
        # After a crash here the recording begins with reactions of the replay; keep the last ones.
        recorded = recorded[max(0, len(recorded) - len(replayed)) :] if replayed else ()
        for first, second in zip_longest(recorded, replayed):
            if first != second:
                name = (first or second or ("", None))[0]
                again = f"asked the same again, {_reaction_text(second, name)}"
                text = f"{reason}: node {name!r} {_reaction_text(first)}; {again}"
                return Violation("replay", text, number)
    return None


def raised_text(error: Exception) -> str:
    """Return an error as text, with the kernel's note that names the node that raised it."""
    words = str(error) if isinstance(error, ProcessExit) else f"{type(error).__name__}: {error}"
    notes: list[str] = getattr(error, "__notes__", [])
    return ", ".join([words, *notes])


def _reaction_text(named: NamedReaction | None, other: str | None = None) -> str:
    """Return a reaction as text; with `other`, the subject is "it" or the node's name.

    `other` is the name of the node in the reaction that this reaction is compared with.
    """
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
