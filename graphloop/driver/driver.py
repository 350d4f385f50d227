"""The driver: performs effects, journals what happened, steps.

    while the run has not ended:
        event = the next of the effects in flight
        step = apply the event, and hold it
        unless the next event follows at once (`Ahead`):
            journal what is held, and yield it       (an event is journaled before it counts)
        start the effects of the step

The driver is an async generator. It yields every `Step`, the deltas of a talking model, and the
steps of child runs. Its caller drives it by iterating it. When the generator has ended, every
effect in flight has ended or is left behind. (A `TaskGroup` cannot span a generator's yields.)

A child run has a driver and a journal of its own; when it parks, so does its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from ..effects import CallModel
from ..errors import NotDeterministic, ProviderError, StoreError
from ..events import (
    Cancelled,
    ChildEnded,
    Event,
    Queued,
    Resumed,
    Started,
    ToolReturned,
)
from ..graph import NodeGraph
from ..run import Run
from ..values import UserMessage, evolve
from .ahead import Ahead
from .cancellation import CancelScope, StepTimer
from .children import ChildRuns
from .in_flight import SEEN, InFlight
from .models import ModelCallInFlight, Models
from .pending import Pending, pending_of
from .performer import Performer
from .ports import ChildRun, ChildStep, Ports, Resumption, Seen, Shown
from .recorder import Recorder

__all__ = ["AsyncDriver", "ChildStep", "DriverState", "Seen"]

S = TypeVar("S")

SHARE_S: Final = 0.005
"""How long a run may keep the event loop from others: plain functions never really wait."""


class DriverState(Enum):
    """How a run stands with its driver.

    `DETACHED` is none of the others: there is more to do, and no driver does it. The caller went
    away, was cancelled, or lost the event loop that it drove the run in.
    """

    RUNNING = auto()
    PARKED = auto()
    ENDED = auto()
    DETACHED = auto()


class AsyncDriver(Generic[S]):
    """Drives one run of a graph.

    When the generator of `start` or `resume` is exhausted, `run` is the run's last state: ended, or
    parked with effects that this process cannot perform; then any driver can resume it. `children`
    are its child runs.

    Args:
        graph: the table to run.
        ports: the world to run it in.
        state: the user's state to begin with (unused on resume).
        scope: the cancel scope of the parent run; None for a run at the top.
    """

    def __init__(
        self, graph: NodeGraph[S], ports: Ports[S], state: S, scope: CancelScope | None = None
    ) -> None:
        self._ports = ports
        timer = None if ports.step_s is None else StepTimer(ports.step_s, self._expire)
        self._scope = scope = CancelScope(scope, timer)
        self._performer = performer = Performer(ports)
        self._models = models = Models(ports, performer)
        self.children = children = ChildRuns(ports, performer, self._driver_of)
        self._recorder = recorder = Recorder(
            graph, ports, state, scope, models, asks=lambda: [one.ask for one in self.pending]
        )
        self._in_flight = InFlight(
            performer,
            lambda effect: (
                ModelCallInFlight(models, effect)
                if isinstance(effect, CallModel)
                else children.drive(effect, recorder.latest_started)
            ),
            scope,
            ports.stoppable or timer is not None,
        )
        self._ahead = Ahead(ports, performer, self._in_flight)
        self._shared_at = 0.0
        self._ends_after_turn = self._was_left = self._is_stopped = self._todo_is_stale = False
        self._abort: Cancelled | None = None
        self._state = DriverState.RUNNING

    @property
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._recorder.run

    @property
    def state(self) -> DriverState:
        """How the run stands, once there is no more to be seen of it."""
        run = self._recorder.run
        return self._state if run is None or run.node != "END" else DriverState.ENDED

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if it ended in one in this process."""
        return None if self.run is None else self._performer.exception_behind(self.run)

    @property
    def ignores_messages(self) -> bool:
        """Whether no message would be heard now: the run ends, parks, or is left."""
        return (
            self._is_stopped or self._state is not DriverState.RUNNING or self._recorder.is_ending
        )

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The approvals and results that the run and its children wait for, in request order."""
        if self.run is None or self.run.ended:
            return ()
        return tuple(pending_of(self.run, self.children.descendants, self._ports.secret))

    def _driver_of(self, child: ChildRun[Any], state: object) -> AsyncDriver[Any]:
        return AsyncDriver(child.graph, child.ports, state, self._scope)

    def abort(self, reason: str = "", *, after_step: bool = False) -> None:
        """Stop the run now: what is pending is cancelled, the history stays paired.

        Call it from the event loop that the run is driven in.

        Args:
            reason: why, for the record.
            after_step: whether the turn in progress comes to its end first.
        """
        if not after_step:
            self._stop(Cancelled(self._ports.clock(), reason))
        elif self._abort is None and not self._ends_after_turn:
            self._ends_after_turn = True
            self._ahead.asides.append(Cancelled(self._ports.clock(), reason, after_step=True))

    def _expire(self, reason: str) -> None:
        self._stop(Cancelled(self._ports.clock(), reason, timeout=True))

    def _stop(self, cancelled: Cancelled) -> None:
        # Whichever of `abort` and `leave` is called first wins.
        if not self._is_stopped:
            self._abort, self._is_stopped = cancelled, True
            self._scope.interrupt()

    def queue(self, message: UserMessage, *, follow_up: bool) -> None:
        """Have the model read a message in the next turn, or once the run would end."""
        self._ahead.asides.append(Queued(self._ports.clock(), message, follow_up))

    def leave(self) -> None:
        """Stop driving: nothing is cancelled, and the run can be resumed from where it is."""
        self._was_left = self._is_stopped = True
        self._scope.interrupt()

    def start(self, started: Started) -> AsyncGenerator[Seen[S], None]:
        """Start a run and drive it until it ends or parks."""
        return self._drive(started.run_id, (started,))

    def resume(
        self,
        run: Run[S],
        answers: Iterable[Event] = (),
        children: Mapping[str, Resumption[Any]] | None = None,
        *,
        at_once: bool = False,
    ) -> AsyncGenerator[Seen[S], None]:
        """Resume a run where its journal stops, first with the answers that came meanwhile.

        Args:
            run: the run as its journal says.
            answers: events for its pending effects.
            children: its children that have started, by their keys, with their own answers; None
                where no more is known of them than this driver knows.
            at_once: whether this driver has driven the run up to here, so that no effect can have
                been interrupted.
        """
        self._state, self._todo_is_stale = DriverState.RUNNING, True
        children = self.children.known if children is None else children
        if at_once:
            self._recorder.set_run(run)
            self.children.known = children
        else:
            self.know(run, children)
        return self._drive(run.id, answers, resumed=not at_once)

    def know(self, run: Run[S], children: Mapping[str, Resumption[Any]]) -> None:
        """Take the run, and its children that have started, to stand as their journals say."""
        self._recorder.set_run(run)
        self.children.known = children
        self._performer.resume(run)
        self._in_flight.todo = self._performer.performable(run.pending.values(), run)

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Run[S]:
        """Cancel a run that no driver drives any more; return it as it has ended.

        Args:
            event: why.
            unless_busy: whether a child run that another driver has holds that up.

        Raises:
            RunBusy: another driver has the run, or a child run that holds it up.
        """
        recorder = self._recorder
        recorder.run_id = recorder.latest_started.id
        async with recorder:
            # Also of a run that has ended: it may not have been released as such.
            if recorder.is_torn:
                await self._read_again()
            if not recorder.is_over:
                await self._take(await self._final(event, unless_busy=unless_busy))
                await self._recorder.keep()
        return recorder.latest_started

    async def _drive(
        self, run_id: str, first: Iterable[Event], *, resumed: bool = False
    ) -> AsyncGenerator[Seen[S], None]:
        scope, recorder, self._shared_at = self._scope, self._recorder, monotonic()
        self.children.tried.clear()
        scope.enter()
        recorder.run_id = run_id
        async with recorder:
            try:
                await self._open(first, resumed=resumed)
                while True:
                    # Before anything acts, waits or is seen, what is held is journaled.
                    item: Event | None = None
                    if recorder.held and not self._is_stopped:
                        item = self._ahead.after(recorder.held[-1])
                    if item is None:
                        await recorder.keep()
                        while recorder.unseen:
                            yield recorder.unseen.pop(0)
                        if (run := recorder.run) is not None and run.node == "END":
                            break
                        scope.enter()
                        while isinstance(heard := await self._next(), SEEN):
                            yield heard
                            scope.enter()
                        item = heard
                    if item is None:
                        self._state = DriverState.DETACHED if self._was_left else DriverState.PARKED
                        break
                    await self._take(item)
            except (GeneratorExit, asyncio.CancelledError, NotDeterministic):
                scope.enter_again()
                await self._save_before_leaving()
                raise
            finally:
                await self._in_flight.close()

    async def _take(self, event: Event, *, leaving: bool = False) -> None:
        """Apply an event, and hold it; the effects of its step are to do then.

        From then on an effect is to do, done or not: so it is known not to have started.
        """
        step, failed = await self._recorder.take(event)
        if step.effects:
            self._in_flight.todo += self._performer.performable(step.effects, step.run)
        if failed is not None:
            await self._recorder.keep(leaving=leaving)
            raise failed

    async def _open(self, first: Iterable[Event], *, resumed: bool) -> None:
        """Make ready the events that a leg begins with; `Resumed` comes before them.

        Raises:
            RunBusy: another driver has taken the run further, and this one has nothing to do.
        """
        recorder = self._recorder
        if recorder.is_torn:
            await self._read_again()
            if recorder.run is not None:
                first = [event for event in first if not isinstance(event, Started)]
        is_over = recorder.run is not None and recorder.run.node == "END"
        if self._ahead.asides:
            first = self._ahead.first(first)
        heard = self._ahead.heard = [] if is_over else [*first]
        if resumed and not (heard or self._in_flight.todo):
            await recorder.refuse_outrun()
        elif resumed:
            heard.insert(0, Resumed(self._ports.clock()))

    async def _read_again(self) -> None:
        """Read a journal that the run was torn from: it may hold the last event, or the run."""
        await self._recorder.read_again()
        if self.run is not None:
            self.know(self.run, self.children.known)

    async def _next(self) -> Shown | Event | None:
        """Return what happens next: something to see, or an event; None when the run parks.

        An abort cancels the wait for effects, and nothing else: never a journal being written.
        Any other cancellation passes through, even one that comes together with an abort.

        A message that was queued while an effect was in flight comes before its answer: it is to be
        read in the very next turn, and the answer may be the run's last event.
        """
        item: Shown | Event | None = None
        if monotonic() - self._shared_at > SHARE_S:
            await asyncio.sleep(0)
            self._shared_at = monotonic()
        if self._ahead.heard:
            return self._ahead.pop(self._recorder.latest)
        run, stopping = self._recorder.latest or self._recorder.latest_started, self._is_stopped
        if not stopping:
            is_behind = self._todo_is_stale or run.turn.abandoned
            if is_behind and (ended := await self._catch_up(run)):
                return ended
            if (self._in_flight.todo or self._ahead.asides) and (event := self._ahead.next(run)):
                return event
            item = await self._in_flight.next(run)
            stopping = item is None and self._is_stopped
        if stopping:
            item = await self._stopped()
        if isinstance(item, SEEN) or not self._ahead.asides:
            return item
        if item is not None:
            self._ahead.heard.insert(0, item)
        return self._ahead.pop(run)

    async def _catch_up(self, run: Run[S]) -> Event | None:
        """Find what is to do in a leg that begins; end a child that is wanted no longer."""
        if self._todo_is_stale:
            self._todo_is_stale = False
            self._in_flight.todo = self._performer.performable(run.pending.values(), run)
        if not run.turn.abandoned:
            return None
        now, drop = self._ports.clock(), self._in_flight.drop
        return await self.children.end_unwanted(run, now, drop)

    async def _stopped(self) -> Event | None:
        if self._abort is None:
            await self._save_before_leaving()
            return None
        await self._recorder.keep()
        # What a tool has done is done; a reply that was not heard is void, and paid for.
        unheard = await self._in_flight.close()
        heard = self._ahead.heard
        heard += [event for event in unheard if isinstance(event, ToolReturned | ChildEnded)]
        if heard:
            return heard.pop(0)
        return await self._final(self._abort)

    async def _save_before_leaving(self) -> None:
        """Journal what was queued, and what has ended, and was not seen: the driver goes away.

        Where the store refuses, or what it kept is not known, the process might have died as well.
        """
        self._state = DriverState.DETACHED
        ended = await self._in_flight.close()
        if self._recorder.is_torn:
            return
        known, recorder, leaving = self._ahead.drain(), self._recorder, self._scope.is_left
        known += ended
        with suppress(StoreError, ProviderError):
            while known and (run := recorder.latest) is not None and not run.ended:
                await self._take(known.pop(0), leaving=leaving)
            if (run := recorder.latest) is not None and not run.ended:
                if self._abort is not None and not leaving:
                    await self._recorder.keep(leaving=leaving)
                    await self._take(await self._final(self._abort))
                elif revoked := self._ahead.revocation():
                    await self._take(revoked)
            await self._recorder.keep(leaving=leaving)

    async def _final(self, event: Cancelled, *, unless_busy: bool = False) -> Cancelled:
        """Cancel the children, and return the event with all that is void and was paid for.

        A child that has ended counts too, as long as its parent has not heard of it.
        """
        run = self._recorder.latest_started
        said, spent = self._models.said, event.spent + self._models.unfinished()
        spent += await self.children.end_all(run, event, unless_busy=unless_busy)
        void = self._performer.not_started(self._in_flight.todo, run, self.children.started)
        return evolve(event, spent=spent, unbegun=void, said=said)
