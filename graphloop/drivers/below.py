"""The child runs below a run: each is begun or taken up by a driver of its own, and ended by it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol, TypeAlias

from ..effects import StartRun
from ..errors import MISTAKES, ConfigError, RunBusy
from ..events import Answering, Cancelled, Event, Started
from ..providers.base import Live
from ..run import Run
from ..spending import Spent
from ..step import Step
from .children import Nested, Resumption
from .hearing import Parked
from .perform import Performer
from .ports import ChildRun

__all__ = ["Below", "Driving"]

Watched: TypeAlias = AsyncGenerator[Step[Any] | Live | Nested, None]

UNCOUNTED: Final = "what it spends from now on is not counted here"


class Driving(Protocol):
    """What drives one run: see `AsyncDriver`."""

    @property
    def run(self) -> Run[Any] | None:
        """The run as it stands now; None before it has started."""
        ...

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All runs below it that have been seen, by their ids."""
        ...

    @property
    def busy(self) -> tuple[str, ...]:
        """Why runs below it were not driven here."""
        ...

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if it ended in one in this process."""
        ...

    def start(self, started: Started) -> Watched:
        """Begin the run."""
        ...

    def know(self, run: Run[Any], below: Mapping[str, Resumption[Any]]) -> None:
        """Take the run to stand as its journal tells it."""
        ...

    def resume(
        self,
        run: Run[Any],
        answers: Iterable[Event] = (),
        below: Mapping[str, Resumption[Any]] | None = None,
    ) -> Watched:
        """Take up the run."""
        ...

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Spent:
        """Cancel the run that nobody drives any more."""
        ...


class Below:
    """Drives the children of one run.

    `known` are those that have begun in another process, by their keys.

    Args:
        performer: opens them, and tells how they ended.
        driver_of: makes the driver of one that is to begin with this state.
    """

    def __init__(
        self, performer: Performer[Any], driver_of: Callable[[ChildRun[Any], object], Driving]
    ) -> None:
        self.known: Mapping[str, Resumption[Any]] = {}
        self._performer = performer
        self._driver_of = driver_of
        self._drivers: dict[str, Driving] = {}
        self._busy: dict[str, str] = {}

    @property
    def begun(self) -> frozenset[str]:
        """The keys of those that have begun, or may have, here or in another process."""
        here = [key for key, one in self._drivers.items() if one.run is not None]
        return frozenset(here).union(self.known, self._busy)

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All runs below that have been seen, by their ids."""
        found: dict[str, Run[Any]] = {}
        for child in self._drivers.values():
            if child.run is not None:
                found[child.run.id] = child.run
            found |= child.descendants
        return found

    @property
    def busy(self) -> tuple[str, ...]:
        """Why runs below were not driven here: somebody else drives them."""
        below = [one for child in self._drivers.values() for one in child.busy]
        return (*self._busy.values(), *below)

    async def drive(
        self, effect: StartRun, parent: Run[Any]
    ) -> AsyncGenerator[Nested | Answering | Parked, None]:
        """Drive a child; yield what is seen in it and, last, how it ended, or that it parks."""
        key = effect.key
        if key not in self.begun:
            refused = await self._performer.refused_child(effect, parent)
            if refused is not None:
                yield refused
                return
        self._busy.pop(key, None)
        try:
            opened = self._performer.open_child(effect, parent)
            driver, driving = self._driven(key, opened)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            yield self._performer.fail(effect, error)
            return
        try:
            async with aclosing(driving):
                async for seen in driving:
                    yield Nested(key, effect.agent, opened.graph, seen)
        except RunBusy as error:
            # Its driver will take it further: this run goes on with the rest, and then waits.
            del self._drivers[key]
            self._busy[key] = str(error)
            yield Parked(effect.id)
            return
        run = driver.run
        if run is None or not run.ended:
            yield Parked(effect.id)
        else:
            # A model that has called an agent may have been wrong itself, and is told.
            called = parent.turn.has_call(effect.key)
            mistake = None if called else _mistake(driver, run)
            yield self._performer.end_child(effect, opened, run, mistake)

    async def end(
        self, effect: StartRun, parent: Run[Any], event: Cancelled, *, unless_busy: bool
    ) -> Spent:
        """Cancel a child that has begun, here or in another process; return what it has spent.

        One that is driven elsewhere cannot be stopped from here, and spends on.

        Args:
            effect: the wish for the child.
            parent: this run.
            event: why.
            unless_busy: whether that is an error; otherwise what it has spent so far is returned.

        Raises:
            RunBusy: somebody else drives the child, or a run below it.
        """
        child, below = self._drivers.get(effect.key), self.known.get(effect.key)
        self._busy.pop(effect.key, None)
        if child is None and below is not None:
            opened = self._performer.open_child(effect, parent)
            child = self._drivers[effect.key] = self._driver_of(opened, None)
            child.know(below.run, below.children)
        if child is None or child.run is None:
            return Spent()
        try:
            return await child.cancelled(event, unless_busy=unless_busy)
        except RunBusy as error:
            if child.run.ended:
                return child.run.spent
            if unless_busy:
                if not child.busy:
                    self._busy[effect.key] = str(error)
                raise
            self._busy[effect.key] = f"{error}; {UNCOUNTED}"
            return child.run.spent

    def _driven(self, key: str, opened: ChildRun[Any]) -> tuple[Driving, Watched]:
        """Return a child's driver, and all that is to be seen of it, from where it stands on."""
        driver, below = self._drivers.get(key), self.known.get(key)
        if driver is not None and driver.run is not None:
            return driver, driver.resume(driver.run)
        if below is not None:
            driver = self._drivers[key] = self._driver_of(opened, None)
            return driver, driver.resume(below.run, below.answers, below.children)
        started = opened.begin()
        if driver is None:
            driver = self._drivers[key] = self._driver_of(opened, started.state)
        # One that was cut off as it began knows that its journal may have begun.
        return driver, driver.start(started)


def _mistake(driver: Driving, run: Run[Any]) -> Exception | None:
    """Return the mistake in the developer's code that a run has ended in; None for another end."""
    failure = None if run.ending is None else run.ending.failure
    if failure is None or failure.error not in MISTAKES:
        return None
    # In the process that ended it the exception itself is known, and where it was raised.
    return driver.exception or ConfigError(failure.message)
