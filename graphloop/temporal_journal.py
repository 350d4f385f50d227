"""The happenings of a whole journal: a run told again, in the words of temporal rules.

Nothing is performed: nodes are asked again what they decided, which is what replay is. So a
journal that was written before there was a rule can be judged by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from .errors import StoreError
from .events import Event, Started
from .graph import Graph
from .history import History
from .node_protocol import Leave, Node, Reaction
from .outcomes import Outcome
from .overheard import overheard
from .run import Run, evolve
from .step import Step, begin, step
from .temporal.automata import Happening, entered
from .temporal.monitor import Monitor
from .temporal_happenings import (
    before_the_run,
    on_leaving,
    on_returning,
    on_wishing,
    restrained,
    run_again,
)
from .temporal_watch import lets_through

__all__ = ["journal_happenings", "watched"]

S = TypeVar("S")


def journal_happenings(graph: Graph[S], events: Iterable[Event]) -> Iterator[tuple[Happening, ...]]:
    """Yield what happens at each event of a journal, in order.

    Raises:
        StoreError: the journal does not begin with `Started`.
        IllegalEvent: an event does not fit the graph.
    """
    ways: list[_Way[S]] = []
    heard = _heard(graph, ways)
    counted: set[str] = set()
    run: Run[S] | None = None
    for event in events:
        ways.clear()
        happened: list[Happening] = []
        if run is None:
            if not isinstance(event, Started):
                raise StoreError(f"a journal begins with Started, found {type(event).__name__}")
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


def watched(monitor: Monitor, graph: Graph[S], events: Iterable[Event]) -> Monitor:
    """Return the monitor after all that happens in a journal.

    Raises:
        StoreError: the journal does not begin with `Started`.
        IllegalEvent: an event does not fit the graph.
    """
    for happened in journal_happenings(graph, events):
        for one in happened:
            monitor = monitor.after(one)
    return monitor


@dataclass(frozen=True)
class _Way(Generic[S]):
    """How a node was left: by what, and with which run."""

    node: str
    run: Run[S]
    outcome: type[Outcome]


def _heard(graph: Graph[S], ways: list[_Way[S]]) -> Graph[S]:
    """Return the same graph, which notes the ways that its nodes are left."""

    def note(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
        if isinstance(reaction, Leave):
            run = reaction.run
            target = graph.table[node.name].get(type(reaction.outcome), "")
            if lets_through(graph, node.name, target):
                # As the kernel does, which has the last word on what is let through.
                run = restrained(run, run.watch.monitor, run.watch.counted)
            ways.append(_Way(node.name, run, type(reaction.outcome)))

    return overheard(graph, note)


def _told(
    graph: Graph[S], ways: Iterable[_Way[S]], made: Step[S], counted: set[str]
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
    yield from on_wishing(made.run, made.effects, counted=counted)
