"""Replay: rebuilds a run from the events of its journal.

A replay performs no effects: it asks no model, runs no tool and calls no callback. Effects without
an answer in the journal are in `run.pending`; a driver resumes the run from there.

`overheard` returns a copy of a graph that calls a listener with each reaction of a node. The nodes
of the copy decide as before. So a rule can be checked against journals older than the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

from msgspec import Struct

from .effects import Effect
from .errors import IllegalEvent, StoreError
from .events import Event, Started
from .graph import NodeGraph
from .node_protocol import Kind, Leave, Node, Reaction
from .outcomes import Outcome
from .rule_watch import (
    before_the_run,
    lets_through,
    on_effects,
    on_leaving,
    on_returning,
    restrained,
    run_again,
)
from .rules import Happening, entered
from .run import History, Run, evolve
from .step import Step, begin, step
from .turn import CallVerdict
from .values import ToolCall, call_key

__all__ = [
    "Hear",
    "JudgedCall",
    "Within",
    "journal_happenings",
    "judged_steps",
    "overheard",
    "replay",
    "replay_steps",
]

S = TypeVar("S")


def replay_steps(graph: NodeGraph[S], events: Iterable[Event]) -> Iterator[Step[S]]:
    """Yield the kernel's `Step` for each event of a journal, in order.

    Raises:
        StoreError: the journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit the graph: the graph has changed since the run, or the
            journal belongs to another graph.
    """
    run: Run[S] | None = None
    for number, event in enumerate(events, 1):
        if run is None:
            if not isinstance(event, Started):
                raise StoreError(
                    f"journal: expected Started as the first event, found {type(event).__name__}"
                )
            if event.graph != graph.name:
                raise StoreError(f"the journal is of graph {event.graph!r}, not of {graph.name!r}")
            # The codec has validated the state against the graph's own state type.
            taken = begin(graph, event, cast("S", event.state))
        else:
            taken = _step_or_explain(graph, run, event, number)
        run = taken.run
        yield taken


def _step_or_explain(graph: NodeGraph[S], run: Run[S], event: Event, number: int) -> Step[S]:
    try:
        return step(graph, run, event)
    except IllegalEvent as error:
        raise IllegalEvent(
            f"event {number} of the journal does not fit graph {graph.name!r}: {error}. The graph, "
            "or a rule of its gates, has changed since. Fix: resume the run with the code that it "
            "began with."
        ) from error


def replay(graph: NodeGraph[S], events: Iterable[Event]) -> Run[S]:
    """Return the run after all of these events.

    Raises:
        StoreError: there are no events, or they are not a journal of this graph.
        IllegalEvent: an event does not fit the graph.
    """
    run: Run[S] | None = None
    for taken in replay_steps(graph, events):
        run = taken.run
    if run is None:
        raise StoreError("the journal is empty: there is no run to replay")
    return run


Hear: TypeAlias = Callable[[Node[S, Outcome], Reaction[S, Outcome]], None]
"""A listener that is called with each node and each of its reactions."""

Within: TypeAlias = Callable[[Node[S, Outcome]], AbstractContextManager[None]]
"""A function that returns the context manager in which a node makes its decision."""


def _no_group(_: Node[S, Outcome]) -> AbstractContextManager[None]:
    return nullcontext()


def overheard(graph: NodeGraph[S], hear: Hear[S], within: Within[S] = _no_group) -> NodeGraph[S]:
    """Return a copy of `graph` that behaves the same, and calls `hear` with each node's reaction.

    Each node decides inside a context manager from `within`. It can detect that the node raises or
    does not return.
    """
    # Skip the constructor: it has checked the same table before.
    heard: NodeGraph[S] = NodeGraph.__new__(type(graph))
    nodes = {name: _Overheard(node, hear, within) for name, node in graph.nodes.items()}
    vars(heard).update(vars(graph), nodes=nodes)
    return heard


class _Overheard(Struct, Generic[S], frozen=True):
    node: Node[S, Outcome]
    hear: Hear[S]
    within: Within[S]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> Kind:
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        with self.within(self.node):
            reaction = self.node.enter(run)
        return self._told(reaction)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        with self.within(self.node):
            reaction = self.node.on(run, event, answered)
        return self._told(reaction)

    def _told(self, reaction: Reaction[S, Outcome]) -> Reaction[S, Outcome]:
        self.hear(self.node, reaction)
        return reaction


def journal_happenings(
    graph: NodeGraph[S], events: Iterable[Event]
) -> Iterator[tuple[Happening, ...]]:
    """Yield, for each event of a journal, the occurrences that temporal rules can name.

    Raises:
        StoreError: the journal does not begin with `Started`.
        IllegalEvent: an event does not fit the graph.
    """
    ways: list[_Way[S]] = []
    heard = _recording_exits(graph, ways)
    counted: set[str] = set()
    run: Run[S] | None = None
    for event in events:
        ways.clear()
        happened: list[Happening] = []
        if run is None:
            if not isinstance(event, Started):
                raise StoreError(
                    f"journal: expected Started as the first event, found {type(event).__name__}"
                )
            # The codec has validated the state against the graph's own state type.
            made = begin(heard, event, cast("S", event.state))
            first = evolve(made.run, messages=History(event.messages))
            happened += [*before_the_run(first), entered(graph.start)]
        else:
            answered = run.pending.get(getattr(event, "effect", 0))
            happened += on_returning(run, event, answered)
            made = step(heard, run, event)
            if not ways:
                happened += run_again(event, answered, made.run)
        happened += _told(graph, ways, made, counted)
        run = made.run
        yield tuple(happened)


class JudgedCall(NamedTuple):
    """A tool call, the key of the call, and a gate's verdict about the call."""

    key: str
    call: ToolCall
    verdict: CallVerdict


def judged_steps(
    graph: NodeGraph[S], events: Iterable[Event]
) -> Iterator[tuple[Step[S], tuple[JudgedCall, ...]]]:
    """Yield each event's step, as `replay_steps` does, with the verdicts of gates in that step.

    Raises:
        StoreError: the journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit the graph.
    """
    ways: list[_Way[S]] = []
    for taken in replay_steps(_recording_exits(graph, ways), events):
        gates = [way.run.turn for way in ways if graph.nodes[way.node].kind == "gate"]
        judged = [
            JudgedCall(call_key(turn.number, place), call, verdict)
            for turn in gates
            for place, (call, verdict) in enumerate(zip(turn.calls, turn.verdicts, strict=False))
            if verdict is not None
        ]
        yield taken, tuple(judged)
        ways.clear()


class _Way(Struct, Generic[S], frozen=True):
    """An exit from a node: the run at that exit, and the outcome."""

    node: str
    run: Run[S]
    outcome: type[Outcome]


def _recording_exits(graph: NodeGraph[S], ways: list[_Way[S]]) -> NodeGraph[S]:
    """Return a copy of the graph that adds each exit from a node to `ways`."""

    def note(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
        if isinstance(reaction, Leave):
            run = reaction.run
            target = graph.table[node.name].get(type(reaction.outcome), "")
            if lets_through(graph, node.name, target):
                # The kernel, too, denies calls that a rule forbids when a run leaves a gate.
                run = restrained(run, run.watch.monitor, run.watch.counted)
            ways.append(_Way(node.name, run, type(reaction.outcome)))

    return overheard(graph, note)


def _told(
    graph: NodeGraph[S], ways: Iterable[_Way[S]], made: Step[S], counted: set[str]
) -> Iterator[Happening]:
    for way in ways:
        target = graph.table[way.node][way.outcome]
        yield from on_leaving(
            way.run,
            node=way.node,
            outcome=way.outcome,
            target=target,
            lets=lets_through(graph, way.node, target),
            counted=counted,
        )
    yield from on_effects(made.run, made.effects, counted=counted)
