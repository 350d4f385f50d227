"""What a driver begins with: what was said before anybody drove comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..events import Decided, Event, Queued, Started
from ..run import Run
from ..values import evolve

__all__ = ["not_before", "opening"]


def opening(first: Iterable[Event], said: Sequence[Event]) -> Iterator[Event]:
    """Yield the first events of a leg, and what was said before it at its place.

    An answer may open a turn, so what is to be read in that turn comes before it. `Started` opens
    one itself, and therefore has with it what its model is to read.
    """
    rest = said
    for event in first:
        if isinstance(event, Started):
            now = [one for one in rest if isinstance(one, Queued) and not one.follow_up]
            rest = [one for one in rest if one not in now]
            yield evolve(event, steering=tuple([one.message for one in now]))
            continue
        yield from rest
        rest = ()
        yield event
    yield from rest


def not_before(run: Run[Any] | None, event: Event) -> Event:
    """Return an event that came before a leg of a run began, stamped with when that was.

    Answers are read, and things are said, before a driver takes the run up; in the journal they
    come after that. When a person decided is kept beside it.
    """
    if run is None or event.at >= run.at:
        return event
    if isinstance(event, Decided) and event.given_at is None:
        return evolve(event, at=run.at, given_at=event.at)
    return evolve(event, at=run.at)
