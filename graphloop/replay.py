"""Replay: a run is the fold of its events, so a journal brings it back, whole.

Nothing is performed: no model is asked, no tool runs, no callback is called. What was wished for
and not answered when the journal stops is in `run.pending`; a driver takes it up from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

from .errors import IllegalEvent, StoreError
from .events import Event, Started
from .graph import Graph
from .run import Run
from .step import Step, begin, step

__all__ = ["replay", "replay_steps"]

S = TypeVar("S")


def replay_steps(graph: Graph[S], events: Iterable[Event]) -> Iterator[Step[S]]:
    """Yield the step of each event, in order.

    Raises:
        StoreError: the journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit: the graph has changed since, or the journal is not
            of this graph.
    """
    run: Run[S] | None = None
    for number, event in enumerate(events, 1):
        if run is None:
            if not isinstance(event, Started):
                raise StoreError(f"a journal begins with Started, found {type(event).__name__}")
            if event.graph != graph.name:
                raise StoreError(f"the journal is of graph {event.graph!r}, not of {graph.name!r}")
            # The codec has validated the state against the graph's own state type.
            taken = begin(graph, event, cast("S", event.state))
        else:
            taken = _stepped(graph, run, event, number)
        run = taken.run
        yield taken


def _stepped(graph: Graph[S], run: Run[S], event: Event, number: int) -> Step[S]:
    try:
        return step(graph, run, event)
    except IllegalEvent as error:
        raise IllegalEvent(
            f"event {number} of the journal does not fit graph {graph.name!r}: {error}. The graph, "
            "or a rule of its gates, has changed since. Fix: take the run up with the code that it "
            "began with."
        ) from error


def replay(graph: Graph[S], events: Iterable[Event]) -> Run[S]:
    """Return the run that these events lead to.

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
