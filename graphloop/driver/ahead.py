"""Ahead: what a driver knows of the next event before it waits for anything.

The driver journals an event before anything acts on it. Some events need no commit of their own,
because the next event follows without anything that acts, waits, or is told of them. The driver
holds these and journals them with the next one
(docs/decisions/2026-11-23-two-commits-a-turn.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from ..effects import CheckCalls
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
"""Facts that a resumed run makes again, without harm. The words of a person are not."""


class Ahead(Struct, Generic[S], eq=False):
    """Keeps the events that are known, and tells what may be held until the next one.

    Args:
        ports: whether another driver could resume the run, and the clock.
        performer: knows the effects that call a function of the user's, or must not repeat.
        in_flight: the effects that are to do.
        asides: what the caller said, which comes before anything else.
        heard: the first events of a leg, and the answers that had to wait.
    """

    _ports: Ports[S]
    _performer: Performer[S]
    _in_flight: InFlight[S]
    asides: list[Event] = field(default_factory=list[Event])
    heard: list[Event] = field(default_factory=list[Event])
    _noted: tuple[int, ...] = ()

    def first(self, events: Iterable[Event]) -> Iterable[Event]:
        """Return the first events of a leg, with what was said before it."""
        said, self.asides = self.asides, []
        return first_events(events, said) if said else events

    def pop(self, run: Run[S] | None) -> Event:
        """Take the next of the events that are known."""
        # What was said before the leg has begun is journaled once it has.
        resumes = self.heard and isinstance(self.heard[0], Resumed)
        event = (self.heard if resumes else self.asides or self.heard).pop(0)
        return event if run is None or event.at >= run.at else not_before(run, event)

    def drain(self) -> list[Event]:
        """Take all events that are known."""
        known = [*self.asides, *self.heard]
        self.asides, self.heard = [], []
        return known

    def after(self, last: Step[S]) -> Event | None:
        """Return the event that follows a held one without a wait; None if that one is to be kept.

        It is then journaled with the next.
        """
        run = last.run
        if type(last.event) not in HOLDABLE or run.node == "END" or run.turn.abandoned:
            return None
        return self.pop(run) if self.heard else self.next(run)

    def next(self, run: Run[S]) -> Event | None:
        """Return what comes before any effect starts; None if the effects may start.

        That is what the caller said, the note of effects that must not start without it, and the
        check of calls about which neither a rule nor an approval decides.
        """
        if self.asides:
            return self.pop(run)
        todo = self._in_flight.todo
        if not todo:
            return None
        # A note costs a write, for nothing where no driver could ever resume the run.
        if self._ports.resumable and (risky := self._performer.risky(todo, run)):
            self._noted = risky
            return EffectsStarted(self._ports.clock(), risky)
        effect = todo[0]
        if len(run.pending) > 1 or not isinstance(effect, CheckCalls):
            return None
        checked = self._performer.checked(effect, run)
        if checked is not None:
            todo.clear()
        return checked

    def revocation(self) -> EffectsStarted | None:
        """Return the note that effects have not started after all: their driver leaves first."""
        here = {effect.id for effect in self._in_flight.todo}
        unbegun = tuple([effect for effect in self._noted if effect in here])
        return EffectsStarted(self._ports.clock(), (), unbegun=unbegun) if unbegun else None


def first_events(first: Iterable[Event], said: Sequence[Event]) -> Iterator[Event]:
    """Yield the first events of a leg, and at its place what was said before the leg.

    An answer may open a turn, so what is to be read in that turn comes before it. `Started` opens
    a turn itself, and therefore has with it what its model is to read.
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
    """Return the event at no earlier time than the run, so that time never goes back.

    The driver reads answers and queues messages before it resumes a run; the journal has them
    after that. A decision keeps its own time in `given_at`.
    """
    if run is None or event.at >= run.at:
        return event
    if isinstance(event, Decided) and event.given_at is None:
        return evolve(event, at=run.at, given_at=event.at)
    return evolve(event, at=run.at)
