"""Child runs: each is started or resumed by a driver of its own, and ended by it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct, field

from ..conversation import latest_answer, said_after_calls
from ..effects import StartRun
from ..errors import MISTAKES, ConfigError, RunBusy
from ..events import Answering, Cancelled, ChildEnded, EffectFailed, Event, Started
from ..providers import Live
from ..run import EndReason, Run
from ..spending import Spent
from ..step import Step
from ..values import evolve
from .performer import Performer
from .ports import ChildRun, ChildStep, Parked, Ports, Resumption

__all__ = ["ChildDriver", "ChildRuns", "child_ended", "child_unwanted"]

Watched: TypeAlias = AsyncGenerator[Step[Any] | Live | ChildStep, None]

UNCOUNTED: Final = "what it spends from now on is not counted here"

UNWANTED: Final = "Stopped: its answer was not needed any more."

WITH_ANSWER: Final = frozenset({EndReason.COMPLETED, EndReason.STOP_CONDITION})
"""Ends after which the last words of a child are its answer, if there are any.

Words of a turn before that were said before the work was done, and must not pass for a report.
"""


class ChildDriver(Protocol):
    """What `ChildRuns` needs of a driver: see `AsyncDriver`."""

    @property
    def run(self) -> Run[Any] | None:
        """The run as it stands now; None before it has started."""
        ...

    @property
    def children(self) -> ChildRuns:
        """Its own child runs."""
        ...

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if the run ended in one in this process."""
        ...

    def start(self, started: Started) -> Watched:
        """Start the run."""
        ...

    def know(self, run: Run[Any], children: Mapping[str, Resumption[Any]]) -> None:
        """Take the run to stand as its journal says."""
        ...

    def resume(
        self,
        run: Run[Any],
        answers: Iterable[Event] = (),
        children: Mapping[str, Resumption[Any]] | None = None,
    ) -> Watched:
        """Resume the run."""
        ...

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Run[Any]:
        """Cancel the run, which no driver drives any more; return it as it has ended."""
        ...


class ChildRuns(Struct, eq=False):
    """Drives the children of one run.

    Args:
        ports: the parent's world, where its agents are.
        performer: asks gates about a child, and words a failure.
        driver_of: makes the driver of a child that begins with this state.
        known: the children that another process has started, by their keys.
        tried: the ids of `StartRun` effects whose children this driver has tried to end since it
            was started.
        drivers: the drivers of the children that this driver has started or resumed, by their keys.
        refused: why children were not driven here, by their keys: another driver has them.
    """

    _ports: Ports[Any]
    _performer: Performer[Any]
    _driver_of: Callable[[ChildRun[Any], object], ChildDriver]
    known: Mapping[str, Resumption[Any]] = field(default_factory=dict[str, Any])
    tried: set[int] = field(default_factory=set[int])
    drivers: dict[str, ChildDriver] = field(default_factory=dict[str, Any])
    refused: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def started(self) -> frozenset[str]:
        """The keys of those that have started, or may have, here or in another process."""
        here = [key for key, driver in self.drivers.items() if driver.run is not None]
        return frozenset(here).union(self.known, self.refused)

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All child runs that have been seen, at any depth, by their ids."""
        found: dict[str, Run[Any]] = {}
        for child in self.drivers.values():
            if child.run is not None:
                found[child.run.id] = child.run
            found |= child.children.descendants
        return found

    @property
    def busy(self) -> tuple[str, ...]:
        """Why child runs were not driven here: another driver has them."""
        below = [reason for child in self.drivers.values() for reason in child.children.busy]
        return (*self.refused.values(), *below)

    async def drive(
        self, effect: StartRun, parent: Run[Any]
    ) -> AsyncGenerator[ChildStep | Answering | Parked, None]:
        """Drive a child; yield what is seen in it and, last, how it ended, or that it parks."""
        key = effect.key
        if key not in self.started:
            refused = await self._performer.refused_child(effect, parent)
            if refused is not None:
                yield refused
                return
        self.refused.pop(key, None)
        try:
            opened = self._open(effect, parent)
            driver, driving = self._driven(key, opened)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            yield self._performer.fail(effect, error)
            return
        try:
            async with aclosing(driving):
                async for seen in driving:
                    yield ChildStep(key, effect.agent, opened.graph, seen)
        except RunBusy as error:
            # Its driver takes it further: the parent goes on with the rest, and then waits.
            del self.drivers[key]
            self.refused[key] = str(error)
            yield Parked(effect.id)
            return
        run = driver.run
        if run is None or not run.ended:
            yield Parked(effect.id)
        else:
            # A model that called an agent may have made the mistake itself, and reads of it.
            called = parent.turn.has_call(effect.key)
            mistake = None if called else _mistake(driver, run)
            yield self._ended(effect, opened, run, mistake)

    async def end(
        self, effect: StartRun, parent: Run[Any], event: Cancelled, *, unless_busy: bool
    ) -> Spent:
        """Cancel a child that has started, here or in another process; return what it has spent.

        A child of another driver cannot be stopped from here, and spends on.

        Args:
            effect: what started the child.
            parent: the parent run.
            event: why.
            unless_busy: whether that is an error; otherwise what it has spent so far is returned.

        Raises:
            RunBusy: another driver has the child, or a child of its own.
        """
        child, known = self.drivers.get(effect.key), self.known.get(effect.key)
        self.refused.pop(effect.key, None)
        if child is None and known is not None:
            opened = self._open(effect, parent)
            child = self.drivers[effect.key] = self._driver_of(opened, None)
            child.know(known.run, known.children)
        if child is None or child.run is None:
            return Spent()
        try:
            return (await child.cancelled(event, unless_busy=unless_busy)).spent
        except RunBusy as error:
            if child.run.ended:
                return child.run.spent
            if unless_busy:
                if not child.children.busy:
                    self.refused[effect.key] = str(error)
                raise
            self.refused[effect.key] = f"{error}; {UNCOUNTED}"
            return child.run.spent

    async def end_all(self, parent: Run[Any], event: Cancelled, *, unless_busy: bool) -> Spent:
        """Cancel all children that a run waits for; return what they have spent, as `end` does."""
        spent = Spent()
        for effect in parent.pending.values():
            if isinstance(effect, StartRun):
                spent += await self.end(effect, parent, event, unless_busy=unless_busy)
        return spent

    async def end_unwanted(
        self, parent: Run[Any], at: float, drop: Callable[[StartRun], Awaitable[None]]
    ) -> ChildEnded | None:
        """End a child that the parent needs no more; None if other drivers have all of them.

        Those spend on, so the parent waits until they are free.

        Args:
            parent: the parent run.
            at: what time it is.
            drop: ends the effect in the parent's driver.
        """
        for effect_id in sorted(parent.abandoned - self.tried):
            self.tried.add(effect_id)
            effect = parent.pending[effect_id]
            assert isinstance(effect, StartRun), "the kernel has looked"
            await drop(effect)
            with suppress(RunBusy):
                event = Cancelled(at, "not needed any more")
                spent = await self.end(effect, parent, event, unless_busy=True)
                return child_unwanted(at, effect_id, spent)
        return None

    def _open(self, effect: StartRun, parent: Run[Any]) -> ChildRun[Any]:
        """Return the child run that an effect starts.

        Raises:
            ConfigError: there is no such agent here, or its arguments are no question.
        """
        plan = self._ports.children.get(effect.agent)
        if plan is None:
            raise ConfigError(
                f"the run starts agent {effect.agent!r}, which this driver was not given; "
                f"it has {', '.join(map(repr, self._ports.children)) or 'no agents'}"
            )
        return plan.open(effect, parent, self._ports)

    def _driven(self, key: str, opened: ChildRun[Any]) -> tuple[ChildDriver, Watched]:
        """Return a child's driver, and all that is seen of the child from where it stands."""
        driver, known = self.drivers.get(key), self.known.get(key)
        if driver is not None and driver.run is not None:
            return driver, driver.resume(driver.run)
        if known is not None:
            driver = self.drivers[key] = self._driver_of(opened, None)
            return driver, driver.resume(known.run, known.answers, known.children)
        started = opened.begin()
        if driver is None:
            driver = self.drivers[key] = self._driver_of(opened, started.state)
        # A driver that was cut off as it began knows that its journal may have begun.
        return driver, driver.start(started)

    def _ended(
        self, effect: StartRun, opened: ChildRun[Any], run: Run[Any], mistake: Exception | None
    ) -> ChildEnded | EffectFailed:
        """Return how a child ended; what its parent makes of that may fail, and is paid for."""
        if mistake is not None:
            return evolve(self._performer.fail(effect, mistake), spent=run.spent)
        try:
            return opened.end(child_ended(self._ports.clock(), effect.id, run), run)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            return evolve(self._performer.fail(effect, error), spent=run.spent)


def child_ended(at: float, effect: int, run: Run[Any]) -> ChildEnded:
    """Return how a child run ended, for its parent: its answer, or why there is none."""
    assert run.ending is not None, "a run that is over has an ending"
    reason, failure = run.ending.reason, run.ending.failure
    answer = _answer(run, reason) if reason in WITH_ANSWER else ""
    if answer.strip():
        return ChildEnded(at, effect, answer, "ok", run.spent, reason)
    if failure is not None:
        content = f"The agent failed: {failure.error}: {failure.message}"
    else:
        content = f"The agent gave no answer; it ended by {reason.value}."
        said = next((step.text for step in reversed(run.record.steps) if step.text.strip()), "")
        content += f" Its last words, which are no answer: {said}" if said else ""
    return ChildEnded(at, effect, content, "error", run.spent, reason)


def child_unwanted(at: float, effect: int, spent: Spent) -> ChildEnded:
    """Return how a child run ended that its parent no longer waits for."""
    return ChildEnded(at, effect, UNWANTED, "not_run", spent, EndReason.ABORTED)


def _answer(run: Run[Any], reason: EndReason) -> str:
    """Return what the tools answered that ended a run, or else the run's answer."""
    if reason is not EndReason.COMPLETED or not run.record.steps or said_after_calls(run):
        return latest_answer(run)
    results = [result.text for result in run.record.steps[-1].tool_results if result.status == "ok"]
    return "\n".join(results) or latest_answer(run)


def _mistake(driver: ChildDriver, run: Run[Any]) -> Exception | None:
    """Return the mistake in the developer's code that a run has ended in; None for another end."""
    failure = None if run.ending is None else run.ending.failure
    if failure is None or failure.error not in MISTAKES:
        return None
    # In the process that ended it the exception itself is known, and where it was raised.
    return driver.exception or ConfigError(failure.message)
