"""Ahead: the events that a driver can apply without waiting for an effect.

The driver journals an event before its effects start. Some events need no append of their own,
because the next event is known at once: no effect starts, and no step is yielded, in between. The
driver holds such an event, and journals it together with the next one
(docs/decisions/2026-11-23-two-commits-a-turn.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from ..events import (
    CallsChecked,
    Decided,
    EffectsStarted,
    Event,
    ModelReplied,
    Queued,
    Resumed,
    Started,
)
from ..run import Run
from ..step import Step
from ..values import evolve
from .in_flight import InFlight
from .performer import Performer
from .ports import Ports

__all__ = ["Ahead", "first_events", "not_before"]

S = TypeVar("S")

HOLDABLE: Final = frozenset({ModelReplied, CallsChecked})
"""Event types that may be held, because a resumed run can produce such events again."""


class Ahead(Struct, Generic[S], eq=False):
    """Queues known events, and returns the events that need no wait for an effect.

    Args:
        ports: the clock, and whether another driver could resume the run.
        performer: tells which effects call a user's function or must not be repeated.
        in_flight: holds the effects that have not started (`todo`).
        asides: messages and aborts from the caller, which are applied before other events.
        heard: the first events of a start or resume, and answers that wait for the `asides`.
    """

    _ports: Ports[S]
    _performer: Performer[S]
    _in_flight: InFlight[S]
    asides: list[Event] = []
    heard: list[Event] = []
    _noted: tuple[int, ...] = ()

    def first(self, events: Iterable[Event]) -> Iterable[Event]:
        """Return the first events of a start or resume, merged with all `asides`."""
        said, self.asides = self.asides, []
        return first_events(events, said)

    def pop(self, run: Run[S] | None) -> Event:
        """Remove and return the next known event, dated no earlier than the run's last event."""
        # Messages that were queued before a resume are journaled after its `Resumed`.
        resumes = self.heard and isinstance(self.heard[0], Resumed)
        event = (self.heard if resumes else self.asides or self.heard).pop(0)
        return event if run is None or event.at >= run.at else not_before(run, event)

    def drain(self) -> list[Event]:
        """Remove and return all known events."""
        known = [*self.asides, *self.heard]
        self.asides, self.heard = [], []
        return known

    def after(self, last: Step[S]) -> Event | None:
        """Return the event to apply before the last held step is journaled, or None.

        By one append, the driver then journals both events. After None, it journals the held
        step now.
        """
        run = last.run
        if type(last.event) not in HOLDABLE or run.node == "END" or run.turn.abandoned:
            return None
        return self.pop(run) if self.heard else self.next(run)

    def next(self, run: Run[S]) -> Event | None:
        """Return the event to apply before the effects in `todo` start; None if they may start.

        The event is a message or abort from the caller, an `EffectsStarted` for calls that must not
        be repeated.
        """
        if self.asides:
            return self.pop(run)
        todo = self._in_flight.todo
        # `EffectsStarted` costs an append, and helps only a driver that resumes the run.
        if todo and self._ports.resumable and (risky := self._performer.risky(todo, run)):
            self._noted = risky
            return EffectsStarted(self._ports.clock(), risky)
        return None

    def revocation(self) -> EffectsStarted | None:
        """Return an `EffectsStarted` with the ids of effects that have not started, or None.

        The journal has the start of these effects already, but the driver leaves the run before
        they start. Without such effects the result is None.
        """
        here = {effect.id for effect in self._in_flight.todo}
        unbegun = tuple([effect for effect in self._noted if effect in here])
        return EffectsStarted(self._ports.clock(), (), unbegun=unbegun) if unbegun else None


def first_events(first: Iterable[Event], said: Sequence[Event]) -> Iterator[Event]:
    """Merge messages that were queued before a start or resume into its first events.

    `Started` opens a turn, so it carries the messages for that turn (`steering`). An answer may
    open a turn too, so on a resume the messages come before the first answer.
    """
    rest = said
    for event in first:
        if isinstance(event, Started):
            now = [each for each in rest if isinstance(each, Queued) and not each.follow_up]
            rest = [each for each in rest if each not in now]
            yield evolve(event, steering=tuple([each.message for each in now]))
            continue
        yield from rest
        rest = ()
        yield event
    yield from rest


def not_before(run: Run[Any] | None, event: Event) -> Event:
    """Return the event with its time raised to the run's, so that journal times never decrease.

    Answers and messages may be older than the `Resumed` event before them in the journal. A
    decision keeps its original time in `given_at`.
    """
    if run is None or event.at >= run.at:
        return event
    if isinstance(event, Decided) and event.given_at is None:
        return evolve(event, at=run.at, given_at=event.at)
    return evolve(event, at=run.at)
