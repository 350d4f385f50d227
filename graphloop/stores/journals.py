"""Journals: what the events of a run tell, and the run after each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from ..errors import ConfigError, StoreError
from ..events import Event, Resumed, Started
from ..graph import NodeGraph
from ..replay import replay
from ..run import Ending, EndReason, Run
from ..spending import is_whole
from ..states import known_state_type
from .base import ReleaseStatus
from .codec import typed_events

__all__ = [
    "RELEASED_AS",
    "graph_name_of",
    "number_of",
    "out_of_order",
    "renamed",
    "revision_in",
    "revisions_in",
    "state_after",
    "typed",
    "why_ended",
]

S = TypeVar("S")

RELEASED_AS: Final[Mapping[EndReason, ReleaseStatus]] = {
    EndReason.ABORTED: "cancelled",
    EndReason.ERROR: "failed",
    EndReason.TIMEOUT: "failed",
}
"""The status that a store keeps for a run that ended so; other ends are `done`."""

WHY_MAX: Final = 1_000


def graph_name_of(first: Event) -> str:
    """Return the graph's name from the first event of a run; "" if that event is not `Started`."""
    return first.graph if isinstance(first, Started) else ""


def revisions_in(events: Iterable[Event]) -> Iterator[str]:
    """Yield the revisions of code that events tell."""
    for event in events:
        if isinstance(event, Started | Resumed) and event.revision:
            yield event.revision


def revision_in(events: Iterable[Event]) -> str:
    """Return the first revision of code that events tell; "" if they tell none."""
    return next(revisions_in(events), "")


def why_ended(ending: Ending) -> str:
    """Return why a run ended, as text of at most `WHY_MAX` characters.

    For example `budget (budget.tool_calls)`, or `ProviderError: overloaded`. The text is empty for
    a run that just completed.
    """
    reason, failure = ending.reason, ending.failure
    if failure is not None:
        return f"{failure.error}: {failure.message}"[:WHY_MAX]
    named = ", ".join([name for name in ending.stopped_by if name != reason])
    if named:
        return f"{reason} ({named})"[:WHY_MAX]
    return "" if reason is EndReason.COMPLETED else reason.value


def out_of_order(place: str, expected: int, seq: int) -> StoreError:
    """Return the error for an appended event whose number is not the next number of its run."""
    return StoreError(
        f"{place} has {expected - 1} event(s), so the next is number {expected}, not {seq}: "
        + ("this run id is taken" if seq == 1 else "another driver is writing to it")
    )


def renamed(events: Sequence[Event], run_id: str) -> tuple[Event, ...]:
    """Return a copy of a journal whose `Started` event has another run id."""
    return tuple(
        replace(event, run_id=run_id) if isinstance(event, Started) else event for event in events
    )


def typed(graph: NodeGraph[S], events: Sequence[Event]) -> Sequence[Event]:
    """Convert the states in a graph's events from plain JSON to the graph's state type."""
    return typed_events(known_state_type(graph), events)


def state_after(graph: NodeGraph[S], events: Sequence[Event], upto: int | None = None) -> Run[S]:
    """Replay a journal, and return the run after event `upto` or after the last event.

    Raises:
        ConfigError: `upto` is not a whole number.
        StoreError: the journal has no event `upto`, belongs to another graph, or has a state of
            another type than the graph's state.
        IllegalEvent: an event is not possible in this graph, because the graph has changed.
    """
    number = len(events) if upto is None else number_of(upto, events)
    if not 1 <= number <= len(events):
        raise StoreError(
            f"the journal has events 1 to {len(events)}: it cannot be replayed up to {upto}"
        )
    return replay(graph, typed(graph, events[:number]))


def number_of(number: int, events: Sequence[Event]) -> int:
    """Return the number of an event, if it is a whole one.

    Raises:
        ConfigError: it is not.
    """
    if not is_whole(number):
        raise ConfigError(
            f"expected the number of an event, from 1 to {len(events)}, found {number!r}"
        )
    return number
