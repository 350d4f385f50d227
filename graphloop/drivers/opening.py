"""What a driver begins with: what was said before anybody drove comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..events import Event, Queued, Started
from ..values import evolve

__all__ = ["opening"]


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
