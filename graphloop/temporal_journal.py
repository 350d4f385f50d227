"""The happenings of a whole journal: a run told again, in the words of temporal rules.

Nothing is performed: nodes are asked again what they decided, which is what replay is. So a
journal that was written before there was a rule can be judged by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from .effects import Effect
from .errors import StoreError
from .events import Event, Started
from .graph import Graph
from .node_protocol import Kind, Leave, Node, Reaction
from .outcomes import Outcome
from .run import Run
from .step import Step, begin, step
from .temporal_automata import Happening, entered
from .temporal_happenings import on_leaving, on_wishing, restrained, run_again
from .temporal_monitor import Monitor

__all__ = ["journal_happenings", "watched"]

S = TypeVar("S")


def journal_happenings(graph: Graph[S], events: Iterable[Event]) -> Iterator[tuple[Happening, ...]]:
    """Yield what happens at each event of a journal, in order.

    Raises:
        StoreError: the journal does not begin with `Started`.
        IllegalEvent: an event does not fit the graph.
    """
    ways: list[_Way[S]] = []
    shadow = _shadow(graph, ways)
    counted: set[str] = set()
    run: Run[S] | None = None
    for event in events:
        ways.clear()
        happened: list[Happening] = []
        if run is None:
            if not isinstance(event, Started):
                raise StoreError(f"a journal begins with Started, found {type(event).__name__}")
            happened.append(entered(graph.start))
            # The codec has validated the state against the graph's own state type.
            made = begin(shadow, event, cast("S", event.state))
        else:
            answered = run.pending.get(getattr(event, "effect", 0))
            made = step(shadow, run, event)
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


@dataclass(frozen=True)
class _Shadow(Generic[S]):
    """A node that notes how it is left; it decides what the node itself decides."""

    node: Node[S, Outcome]
    ways: list[_Way[S]]

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
        return self._noted(self.node.enter(run))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        return self._noted(self.node.on(run, event, answered))

    def _noted(self, reaction: Reaction[S, Outcome]) -> Reaction[S, Outcome]:
        if isinstance(reaction, Leave):
            run = reaction.run
            if self.kind == "gate":
                # As the kernel does, which has the last word on what is let through.
                run = restrained(run, run.watch, run.counted)
            self.ways.append(_Way(self.name, run, type(reaction.outcome)))
        return reaction


def _shadow(graph: Graph[S], ways: list[_Way[S]]) -> Graph[S]:
    """Return the same graph, which notes the ways that its nodes are left."""
    shadow: Graph[S] = Graph.__new__(type(graph))
    nodes = {name: _Shadow(node, ways) for name, node in graph.nodes.items()}
    vars(shadow).update(vars(graph), nodes=nodes)
    return shadow


def _told(
    graph: Graph[S], ways: Iterable[_Way[S]], made: Step[S], counted: set[str]
) -> Iterator[Happening]:
    for way in ways:
        yield from on_leaving(
            graph.nodes[way.node].kind,
            way.run,
            node=way.node,
            outcome=way.outcome,
            target=graph.table[way.node][way.outcome],
            counted=counted,
        )
    yield from on_wishing(made.run, made.effects, counted=counted)
