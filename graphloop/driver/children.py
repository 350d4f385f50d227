"""Child runs: starts, resumes and ends each child run with a driver of its own.

    not begun --Started is journaled, placed--> begun --the parent parks--> a worker drives it
        ended <--the parent reads its journal-- the parent wakes <--its end, or its questions--+

So goes a child run that is placed: another worker drives it (`Ports.elsewhere`). Each other child
run is driven here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from ..conversation import ended_answer
from ..effects import StartRun
from ..errors import MISTAKES, ConfigError, RunBusy
from ..events import Answering, Cancelled, ChildEnded, EffectFailed, Event, Started
from ..questions import pending_of
from ..run import EndReason, Run
from ..spending import Spent
from ..step import Step
from ..stores import Ask, Mailbox, RunCommand
from ..values import evolve
from .models import Models
from .ports import ChildRun, ChildStep, Parked, Ports, Resumption, Shown

__all__ = [
    "NONE_TRIED",
    "NOT_NEEDED",
    "ChildDriver",
    "ChildRuns",
    "EndsElsewhere",
    "child_abandoned",
    "child_ended",
]

Watched: TypeAlias = AsyncGenerator[Step[Any] | Shown, None]

UNCOUNTED: Final = "what it spends from now on is not counted here"

NOT_NEEDED: Final = "not needed any more"
ABANDONED: Final = f"Stopped: its answer was {NOT_NEEDED}."

NONE_TRIED: Final = frozenset[int]()
"""No effects; a shared value, since each `frozenset()` would be a new one."""

WITH_ANSWER: Final = frozenset({EndReason.COMPLETED, EndReason.STOP_CONDITION})
"""End reasons after which a child's last text is its answer, if it has text.

Text from earlier turns is no answer, because the child wrote it before its work was done.
"""


class EndsElsewhere(RunBusy):
    """A run cannot end yet: other workers were told to end child runs, whose spending counts."""


class ChildDriver(Protocol):
    """The part of `AsyncDriver` that `ChildRuns` uses to drive a child run."""

    @property
    def run(self) -> Run[Any] | None:
        """The run after all journaled events; None before the first event."""
        ...

    @property
    def children(self) -> ChildRuns:
        """The child runs of this driver's run."""
        ...

    @property
    def exception(self) -> Exception | None:
        """The exception that the run failed with, if this process raised it; else None."""
        ...

    def start(self, started: Started) -> Watched:
        """Return a generator that starts the run and drives it."""
        ...

    def know(self, run: Run[Any], children: Mapping[str, Resumption[Any]]) -> None:
        """Set the run and its started child runs to states that were read from their journals."""
        ...

    def resume(
        self,
        run: Run[Any],
        answers: Iterable[Event] = (),
        children: Mapping[str, Resumption[Any]] | None = None,
    ) -> Watched:
        """Return a generator that resumes the run with the given answers and drives it."""
        ...

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Run[Any]:
        """Cancel the run, which no driver drives, and return the ended run."""
        ...


class ChildRuns(Struct, eq=False):
    """Drives the child runs of one parent run.

    Args:
        ports: the parent's ports, with the agents that can be child runs.
        models: the parent's model calls: `due` hears of postponed children, and `performer` asks
            gates about a child's call, and makes the events of failures.
        driver_of: returns a driver for a child run with the given initial state. It does not hold
            the parent's driver: without such cycles, an ended run leaves memory at once.
        known: the child runs that started before this driver resumed the parent, by key.
        tried: ids of the `StartRun` effects whose abandoned children this driver has tried to end
            since the last start or resume.
        drivers: the drivers of the child runs that this driver has started or resumed, by key.
        refused: error messages for the child runs that another driver has, by key.
        placed: the keys of the child runs that this driver has left to other workers.
    """

    _ports: Ports[Any]
    _models: Models[Any]
    _driver_of: Callable[[ChildRun[Any], object], ChildDriver]
    known: Mapping[str, Resumption[Any]] = {}
    tried: frozenset[int] = NONE_TRIED
    drivers: dict[str, ChildDriver] = {}
    refused: dict[str, str] = {}
    placed: frozenset[str] = frozenset()

    @property
    def started(self) -> frozenset[str]:
        """The keys of the child runs that may have started, here or in another process."""
        here = [key for key, driver in self.drivers.items() if driver.run is not None]
        return frozenset(here).union(self.known, self.refused, self.placed)

    @property
    def due(self) -> float:
        """The monotonic time at which the parent, once parked, goes on; infinite for never."""
        return self._models.due

    def asks(self, run: Run[Any]) -> Sequence[Ask]:
        """Return the questions for which a run and its child runs wait, in request order."""
        return [one.ask for one in pending_of(run, self.descendants, self._ports.secret)]

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All child runs that this driver has driven or read, at any depth, by run id."""
        found: dict[str, Run[Any]] = {}
        for key, known in self.known.items():
            if key not in self.drivers:
                found |= {known.run.id: known.run, **known.descendants}
        for child in self.drivers.values():
            if child.run is not None:
                found[child.run.id] = child.run
            found |= child.children.descendants
        return found

    @property
    def busy(self) -> tuple[str, ...]:
        """Error messages for the child runs, at any depth, that another driver has."""
        below = [reason for child in self.drivers.values() for reason in child.children.busy]
        return (*self.refused.values(), *below)

    async def drive(
        self, effect: StartRun, parent: Run[Any]
    ) -> AsyncGenerator[ChildStep | Answering | Parked, None]:
        """Drive a child run; yield its steps and deltas and, last, its end event or `Parked`."""
        key = effect.key
        if key not in self.started:
            refused = await self._models.performer.refused_child(effect, parent)
            if refused is not None:
                yield refused
                return
        self.refused.pop(key, None)
        driven: tuple[ChildDriver, Watched] | None = None
        started: Started | None = None
        try:
            opened = self._ports.open_child(effect, parent)
            if opened.is_placed and not self._has_ended(key):
                started = None if key in self.started else await opened.begin()
            else:
                driven = await self._drive_child(key, opened)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            yield self._models.performer.fail(effect, error)
            return
        if driven is None:
            await self._hand_over(key, opened, started)
            yield Parked(effect.id)
            return
        driver, driving = driven
        try:
            async with aclosing(driving):
                async for seen in driving:
                    yield ChildStep(key, effect.agent, opened.graph, seen)
        except RunBusy as error:
            # Another driver has the child: the parent performs its other effects, and then parks.
            del self.drivers[key]
            self.refused[key] = str(error)
            yield Parked(effect.id)
            return
        run = driver.run
        if run is None or not run.ended:
            due = driver.children.due
            self._models.due = min(self._models.due, due)
            yield Parked(effect.id, due)
        else:
            # A mistake may come from the calling model's arguments, so the model reads the failure.
            called = parent.turn.has_call(effect.key)
            mistake = None if called else _mistake_of(driver, run)
            yield self._end_of_child(effect, opened, run, mistake)

    async def end(
        self, effect: StartRun, parent: Run[Any], event: Cancelled, *, unless_busy: bool
    ) -> Spent:
        """Cancel a child run that may have started, here or elsewhere; return its spending.

        A child that another driver has cannot be cancelled here. It is told to end, but may go on
        spending.

        Args:
            effect: the effect that starts the child.
            parent: the parent run.
            event: the cancellation to journal in the child run.
            unless_busy: whether to raise if another driver has the child; else its spending so far
                is returned.

        Raises:
            EndsElsewhere: the child, or one of its children, is placed and has not ended. It has no
                time to do so if the cancellation is a `timeout`.
            RunBusy: with `unless_busy`, another driver has the child or one of its children.
        """
        child, known = self.drivers.get(effect.key), self.known.get(effect.key)
        was_placed = known is not None and known.is_placed
        if effect.key in self.placed or (was_placed and not self._has_ended(effect.key)):
            await self._tell_to_end(f"{parent.id}/{effect.key}", event)
            if not event.timeout:
                raise EndsElsewhere(f"run {parent.id!r} waits for the end of {effect.key!r}")
            return Spent() if known is None else known.run.spent
        self.refused.pop(effect.key, None)
        if child is None and known is not None:
            opened = self._ports.open_child(effect, parent)
            child = self.drivers[effect.key] = self._driver_of(opened, None)
            child.know(known.run, known.children)
        if child is None or child.run is None:
            return Spent()
        try:
            return (await child.cancelled(event, unless_busy=unless_busy)).spent
        except EndsElsewhere:
            raise
        except RunBusy as error:
            if child.run.ended:
                return child.run.spent
            await self._tell_to_end(child.run.id, event)
            if unless_busy:
                if not child.children.busy:
                    self.refused[effect.key] = str(error)
                raise
            self.refused[effect.key] = f"{error}; {UNCOUNTED}"
            return child.run.spent

    async def end_all(self, parent: Run[Any], event: Cancelled, *, unless_busy: bool) -> Spent:
        """Cancel all pending child runs of a parent as `end` does; return their total spending.

        Raises:
            RunBusy: as `end` raises it, after each other child run was cancelled.
        """
        spent, busy = Spent(), list[RunBusy]()
        for effect in parent.pending.values():
            if isinstance(effect, StartRun):
                try:
                    spent += await self.end(effect, parent, event, unless_busy=unless_busy)
                except RunBusy as error:
                    busy.append(error)
        if busy:
            raise busy[0]
        return spent

    async def end_abandoned(
        self, parent: Run[Any], at: float, drop: Callable[[StartRun], Awaitable[None]]
    ) -> ChildEnded | None:
        """End one abandoned child run, and return its `ChildEnded`; None if none could be ended.

        A child that another driver has goes on spending, so the parent still waits for its end.

        Args:
            parent: the parent run.
            at: the current time, in seconds since the epoch.
            drop: ends the child's effect in the parent's driver.
        """
        for effect_id in sorted(parent.abandoned - self.tried):
            self.tried |= {effect_id}
            effect = parent.pending[effect_id]
            assert isinstance(effect, StartRun), "the kernel has looked"
            await drop(effect)
            with suppress(RunBusy):
                event = Cancelled(at, NOT_NEEDED)
                spent = await self.end(effect, parent, event, unless_busy=True)
                return child_abandoned(at, effect_id, spent)
        return None

    def _has_ended(self, key: str) -> bool:
        known = self.known.get(key)
        return known is not None and known.run.ended

    async def _hand_over(self, key: str, opened: ChildRun[Any], started: Started | None) -> None:
        """Let other workers drive a child run; `started` is the first event of a new one.

        Raises:
            StoreError: the store fails; a resume of the parent hands the child run over again.
        """
        assert self._ports.elsewhere is not None, "it is placed"
        if started is not None:
            await self._ports.store.append(opened.run_id, 1, started)
        await self._ports.elsewhere.place(opened.run_id)
        self.placed |= {key}

    async def _tell_to_end(self, run_id: str, event: Cancelled) -> None:
        """Put a cancellation into the mailbox of a child run that another driver may have."""
        store = self._ports.store
        if isinstance(store, Mailbox):
            command = RunCommand("cancel", event.reason, "cancel")
            await store.post(run_id, command.key, command.signal_id, command.text)

    async def _drive_child(self, key: str, opened: ChildRun[Any]) -> tuple[ChildDriver, Watched]:
        """Return a child's driver, and the generator that starts or resumes the child run."""
        driver, known = self.drivers.get(key), self.known.get(key)
        if driver is not None and driver.run is not None:
            return driver, driver.resume(driver.run)
        if known is not None:
            driver = self.drivers[key] = self._driver_of(opened, None)
            return driver, driver.resume(known.run, known.answers, known.children)
        started = await opened.begin()
        if driver is None:
            driver = self.drivers[key] = self._driver_of(opened, started.state)
        # Reuse a driver whose first append failed: it knows that `Started` may be journaled.
        return driver, driver.start(started)

    def _end_of_child(
        self, effect: StartRun, opened: ChildRun[Any], run: Run[Any], mistake: Exception | None
    ) -> ChildEnded | EffectFailed:
        """Return the event of a child's end, with the child's spending.

        A mistake in the developer's code, or an exception in `ChildRun.end`, gives `EffectFailed`.
        """
        if mistake is not None:
            return evolve(self._models.performer.fail(effect, mistake), spent=run.spent)
        try:
            return opened.end(child_ended(self._ports.clock(), effect.id, run), run)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            return evolve(self._models.performer.fail(effect, error), spent=run.spent)


def child_ended(at: float, effect: int, run: Run[Any]) -> ChildEnded:
    """Return the `ChildEnded` of an ended child run: its answer, or the reason for having none."""
    assert run.ending is not None, "a run that is over has an ending"
    reason, failure = run.ending.reason, run.ending.failure
    answer = ended_answer(run) if reason in WITH_ANSWER else ""
    if answer.strip():
        return ChildEnded(at, effect, answer, "ok", run.spent, reason)
    if failure is not None:
        content = f"The agent failed: {failure.error}: {failure.message}"
    else:
        content = f"The agent gave no answer; it ended by {reason.value}."
        said = next((step.text for step in reversed(run.record.steps) if step.text.strip()), "")
        content += f" Its last words, which are no answer: {said}" if said else ""
    return ChildEnded(at, effect, content, "error", run.spent, reason)


def child_abandoned(at: float, effect: int, spent: Spent) -> ChildEnded:
    """Return the `ChildEnded` of a child run that its parent has abandoned."""
    return ChildEnded(at, effect, ABANDONED, "not_run", spent, EndReason.ABORTED)


def _mistake_of(driver: ChildDriver, run: Run[Any]) -> Exception | None:
    """Return the exception if a mistake in the developer's code has ended a run; else None."""
    failure = None if run.ending is None else run.ending.failure
    if failure is None or failure.error not in MISTAKES:
        return None
    # Only the process that raised the exception has its traceback; others have the message.
    return driver.exception or ConfigError(failure.message)
