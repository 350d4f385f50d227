"""The driver: performs effects, journals what happened, steps.

    while the run has not ended:
        event = the next of the effects in flight
        step = journal the event, and apply it       (an event is journaled before it counts)
        start the effects of the step
        yield step

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
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    Queued,
    Resumed,
    Started,
    ToolReturned,
)
from ..graph import NodeGraph
from ..run import Run
from ..step import Step
from ..values import UserMessage, evolve
from .cancellation import CancelScope, StepTimer
from .children import ChildRuns
from .in_flight import SEEN, InFlight
from .models import ModelCallInFlight, Models
from .pending import Pending, pending_of
from .performer import Performer
from .ports import ChildRun, ChildStep, Ports, Resumption, Seen, Shown
from .recorder import Recorder, first_events, not_before

__all__ = ["AsyncDriver", "ChildStep", "DriverState", "Seen"]

S = TypeVar("S")

SHARE_S: Final = 0.005
"""How long a run may keep the event loop: effects of a test or a plain function never really wait.

Timers, signals and other runs would otherwise wait for as long as the run lasts.
"""


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
        timer = (
            None if ports.step_s is None else StepTimer(ports.step_s, self._expire, self._driven)
        )
        self._scope = scope = CancelScope(scope, timer)
        self._performer = performer = Performer(ports)
        self._models = models = Models(ports, performer)

        def driver_of(child: ChildRun[Any], state: object) -> AsyncDriver[Any]:
            return AsyncDriver(child.graph, child.ports, state, scope)

        self.children = children = ChildRuns(ports, performer, driver_of)
        self._recorder = recorder = Recorder(
            graph,
            ports,
            state,
            scope,
            performer,
            asks=lambda: [pending.ask for pending in self.pending],
        )
        self._in_flight = InFlight(
            performer,
            lambda effect: (
                ModelCallInFlight(models, effect)
                if isinstance(effect, CallModel)
                else children.drive(effect, recorder.driven)
            ),
            scope,
            ports.stoppable or timer is not None,
        )
        self._asides: list[Event] = []
        self._heard: list[Event] = []
        self._stopping = self._left = self._restarts = False
        self._abort: Cancelled | None = None
        self._state = DriverState.RUNNING

    @property
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._recorder.run

    def _driven(self) -> Run[S]:
        return self._recorder.driven

    @property
    def state(self) -> DriverState:
        """How the run stands, once there is no more to be seen of it."""
        run = self._recorder.run
        return self._state if run is None or run.node != "END" else DriverState.ENDED

    @property
    def _is_disturbed(self) -> bool:
        """Whether something else than the effect in flight has a say."""
        return bool(self._asides or self._heard or self._left or self._abort is not None)

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if it ended in one in this process."""
        return None if self.run is None else self._performer.exception_behind(self.run)

    @property
    def is_deaf(self) -> bool:
        """Whether no message would be heard now: the run ends, parks, or is left."""
        stopping = self._left or self._abort is not None
        return stopping or self._state is not DriverState.RUNNING or self._recorder.is_ending

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The approvals and results that the run and its children wait for, in request order."""
        if self.run is None or self.run.ended:
            return ()
        return tuple(pending_of(self.run, self.children.descendants, self._ports.secret))

    def abort(self, reason: str = "", *, after_step: bool = False) -> None:
        """Stop the run now: what is pending is cancelled, the history stays paired.

        Call it from the event loop that the run is driven in.

        Args:
            reason: why, for the record.
            after_step: whether the turn in progress comes to its end first.
        """
        if not after_step:
            self._stop(Cancelled(self._ports.clock(), reason))
        elif self._abort is None and not self._stopping:
            self._stopping = True
            self._asides.append(Cancelled(self._ports.clock(), reason, after_step=True))

    def _expire(self, reason: str) -> None:
        self._stop(Cancelled(self._ports.clock(), reason, timeout=True))

    def _stop(self, cancelled: Cancelled) -> None:
        # The first word counts: a run that was left is not stopped, nor the other way round.
        if self._abort is None and not self._left:
            self._abort = cancelled
            self._scope.interrupt()

    def queue(self, message: UserMessage, *, follow_up: bool) -> None:
        """Have the model read a message in the next turn, or once the run would end."""
        self._asides.append(Queued(self._ports.clock(), message, follow_up))

    def leave(self) -> None:
        """Stop driving: nothing is cancelled, and the run can be resumed from where it is."""
        self._left = True
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
        self._state, self._restarts = DriverState.RUNNING, True
        children = self.children.known if children is None else children
        if at_once:
            self._recorder.run, self.children.known = run, children
        else:
            self.know(run, children)
        return self._drive(run.id, answers, resumed=not at_once)

    def know(self, run: Run[S], children: Mapping[str, Resumption[Any]]) -> None:
        """Take the run, and its children that have started, to stand as their journals say."""
        self._recorder.run, self.children.known = run, children
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
        recorder.run_id = recorder.driven.id
        async with recorder:
            # Also of a run that has ended: it may not have been released as such.
            if recorder.is_torn:
                await self._read_again()
            if not recorder.is_over:
                await self._take(await self._final(event, unless_busy=unless_busy))
        return recorder.driven

    async def _drive(
        self, run_id: str, first: Iterable[Event], *, resumed: bool = False
    ) -> AsyncGenerator[Seen[S], None]:
        scope, recorder, in_flight = self._scope, self._recorder, self._in_flight
        self.children.tried.clear()
        scope.enter()
        recorder.run_id = run_id
        async with recorder:
            try:
                is_resumed = await self._open(first, resumed=resumed)
                while recorder.unseen:
                    yield recorder.unseen.pop(0)
                if is_resumed:
                    yield await self._take(Resumed(self._ports.clock()))
                while self._heard and ((run := recorder.run) is None or run.node != "END"):
                    scope.enter()
                    yield await self._take(self._pop(run))
                shared_at = monotonic()
                while (run := recorder.run or recorder.driven).node != "END":
                    scope.enter()
                    item: Shown | Event | None
                    if in_flight.is_talking and not self._is_disturbed:
                        item = await in_flight.next(run)
                    else:
                        item = self._pop(run) if self._heard else await self._next(run)
                    if item is None:
                        self._state = DriverState.DETACHED if self._left else DriverState.PARKED
                        break
                    yield item if isinstance(item, SEEN) else await self._take(item)
                    if monotonic() - shared_at > SHARE_S:
                        await asyncio.sleep(0)
                        shared_at = monotonic()
            except (GeneratorExit, asyncio.CancelledError, NotDeterministic):
                scope.enter_again()
                await self._keep()
                raise
            finally:
                await in_flight.close()

    async def _take(self, event: Event, *, leaving: bool = False) -> Step[S]:
        """Journal an event, apply it, and start the effects of its step.

        From then on an effect is to do, done or not: so it is known not to have started.
        """
        step, cut = await self._recorder.take(event, leaving=leaving)
        if isinstance(event, (ModelReplied, EffectFailed)):
            # The journal knows now what the call has used.
            self._models.calls.pop(event.effect, None)
        if step.effects:
            self._in_flight.todo += self._performer.performable(step.effects, step.run)
        if cut is not None:
            self._recorder.unseen.append(step)
            raise cut
        return step

    async def _open(self, first: Iterable[Event], *, resumed: bool) -> bool:
        """Make ready the events that a leg begins with; tell whether `Resumed` comes before them.

        Raises:
            RunBusy: another driver has taken the run further, and this one has nothing to do.
        """
        recorder, asides, self._asides = self._recorder, self._asides, []
        if recorder.is_torn:
            await self._read_again()
            if recorder.run is not None:
                first = [event for event in first if not isinstance(event, Started)]
        over = recorder.run is not None and recorder.run.node == "END"
        self._heard = [] if over else [*(first_events(first, asides) if asides else first)]
        if resumed and not (self._heard or self._in_flight.todo):
            await recorder.refuse_outrun()
            return False
        return resumed

    async def _read_again(self) -> None:
        """Read a journal that the run was torn from: it may hold the last event, or the run."""
        await self._recorder.read_again()
        if self.run is not None:
            self.know(self.run, self.children.known)

    def _pop(self, run: Run[S] | None) -> Event:
        """Take the next of the events that are known; what the caller said comes first."""
        event = (self._asides or self._heard).pop(0)
        return event if run is None or event.at >= run.at else not_before(run, event)

    async def _next(self, run: Run[S]) -> Shown | Event | None:
        """Return what happens next: something to see, or an event; None when the run parks.

        An abort cancels the wait for effects, and nothing else: never a journal being written.
        Any other cancellation passes through, even one that comes together with an abort.

        A message that was queued while an effect was in flight comes before its answer: it is to be
        read in the very next turn, and the answer may be the run's last event.
        """
        item: Shown | Event | None = None
        in_flight = self._in_flight
        if self._restarts:
            self._restarts = False
            in_flight.todo = self._performer.performable(run.pending.values(), run)
        stopping = self._left or self._abort is not None
        if not stopping:
            if run.turn.abandoned:
                now = self._ports.clock()
                if ended := await self.children.end_unwanted(run, now, in_flight.drop):
                    return ended
            if self._asides:
                return self._pop(run)
            if (event := self._before_acting(run)) is not None:
                return event
            item = await in_flight.next(run)
            stopping = item is None and (self._left or self._abort is not None)
        if stopping:
            item = await self._stopped()
        if isinstance(item, SEEN) or not self._asides:
            return item
        if item is not None:
            self._heard.insert(0, item)
        return self._pop(run)

    def _before_acting(self, run: Run[S]) -> Event | None:
        """Return an event that needs no wait: effects are noted as started, or calls checked."""
        # A note costs a write: for nothing where no driver could ever resume the run.
        todo = self._in_flight.todo if self._ports.resumable else ()
        if todo and (risky := self._performer.risky(todo, run)):
            return EffectsStarted(self._ports.clock(), risky)
        check = self._in_flight.only_check()
        checked = None if check is None else self._performer.checked(check, run)
        if checked is not None:
            self._in_flight.todo.clear()
        return checked

    async def _stopped(self) -> Event | None:
        if self._abort is None:
            await self._keep()
            return None
        # What a tool has done is done; a reply that was not heard is void, and paid for.
        unheard = await self._in_flight.close()
        self._heard += [event for event in unheard if isinstance(event, ToolReturned | ChildEnded)]
        if self._heard:
            return self._heard.pop(0)
        return await self._final(self._abort)

    async def _keep(self) -> None:
        """Journal what was queued, and what has ended, and was not seen: the driver goes away.

        Where the store refuses, or what it kept is not known, the process might have died as well.
        """
        self._state = DriverState.DETACHED
        ended = await self._in_flight.close()
        if self._recorder.is_torn:
            return
        known, self._asides, self._heard = [*self._asides, *self._heard, *ended], [], []
        with suppress(StoreError, ProviderError):
            while known and self.run is not None and not self._recorder.is_over:
                step = await self._take(known.pop(0), leaving=self._scope.is_left)
                self._recorder.unseen.append(step)
            if self._abort is not None and not (self._recorder.is_over or self._scope.is_left):
                await self._take(await self._final(self._abort))

    async def _final(self, event: Cancelled, *, unless_busy: bool = False) -> Cancelled:
        """Cancel the children, and return the event with all that is void and was paid for.

        A child that has ended counts too, as long as its parent has not heard of it.
        """
        run = self._recorder.driven
        said, spent = self._models.said, event.spent + self._models.unfinished()
        spent += await self.children.end_all(run, event, unless_busy=unless_busy)
        void = self._performer.not_started(self._in_flight.todo, run, self.children.started)
        return evolve(event, spent=spent, unbegun=void, said=said)
