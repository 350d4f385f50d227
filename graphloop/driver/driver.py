"""The driver: performs effects, journals what happened, steps.

    while the run has not ended:
        item = what the effects in flight say next
        step = journal the item, and apply it        (an event is journaled before it counts)
        start the effects of the step
        yield step

The driver is an async generator. It yields every `Step`, the deltas of a talking model, and what
happens in child runs. Its caller drives it by iterating it. When the generator has ended, every
effect in flight has ended or is left behind. (A `TaskGroup` cannot span a generator's yields.)

A child run has a driver and a journal of its own; when it parks, so does its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from time import monotonic
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ..effects import CallModel, Effect, StartRun
from ..errors import NotDeterministic, ProviderError, StoreError
from ..events import (
    Cancelled,
    ChildEnded,
    EffectsStarted,
    Event,
    Queued,
    Resumed,
    Started,
    ToolReturned,
)
from ..graph import NodeGraph
from ..providers import Live
from ..run import Run
from ..spending import Spent
from ..step import Step
from ..stores import Ask
from ..values import UserMessage, evolve
from .cancellation import CancelScope, StepTimer
from .children import ChildRuns
from .in_flight import SEEN, InFlight, Source
from .models import Models
from .pending import Pending, pending_of
from .performer import Performer
from .ports import ChildRun, ChildStep, Ports, Resumption
from .recorder import Recorder, first_events, not_before

__all__ = ["AsyncDriver", "ChildStep", "DriverState", "Seen"]

S = TypeVar("S")

Seen: TypeAlias = Step[S] | Live | ChildStep

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
    parked with effects that this process cannot perform; then any driver can resume it.

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
        self._scope = CancelScope(scope)
        self._performer = Performer(ports)
        self._models = Models(ports, self._performer)
        self._children = ChildRuns(ports, self._performer, self._driver_of)
        timer = None if ports.step_s is None else StepTimer(ports.step_s, self._expire)
        self._in_flight = InFlight(
            self._performer, self._listen, self._scope, timer, stoppable=ports.stoppable
        )
        self._recorder = Recorder(graph, ports, state, self._scope, self._performer)
        self._asides: list[Event] = []
        self._heard: list[Event] = []
        self._stopping = self._left = self._is_resumed = False
        self._abort: Cancelled | None = None
        self._state = DriverState.RUNNING

    @property
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._recorder.run

    @property
    def state(self) -> DriverState:
        """How the run stands, once there is no more to be seen of it."""
        return DriverState.ENDED if self._recorder.is_over else self._state

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if it ended in one in this process."""
        return None if self.run is None else self._performer.exception_behind(self.run)

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All child runs that this driver has seen, at any depth, by their ids."""
        return self._children.descendants

    @property
    def busy(self) -> tuple[str, ...]:
        """Why child runs were not driven here: another driver has them."""
        return self._children.busy

    @property
    def is_deaf(self) -> bool:
        """Whether no message would be heard now: the run ends, parks, or is left."""
        stopping = self._left or self._abort is not None
        return stopping or self._state is not DriverState.RUNNING or self._recorder.is_ending

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What the run and its children wait for outside, in request order."""
        if self.run is None or self.run.ended:
            return ()
        return tuple(pending_of(self.run, self.descendants, self._ports.secret))

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
        self._state = DriverState.RUNNING
        children = self._children.known if children is None else children
        if at_once:
            self._recorder.run, self._children.known = run, children
        else:
            self.know(run, children)
        return self._drive(run.id, answers, resumed=not at_once)

    def know(self, run: Run[S], children: Mapping[str, Resumption[Any]]) -> None:
        """Take the run, and its children that have started, to stand as their journals say."""
        self._recorder.run, self._children.known = run, children
        self._performer.resume(run)
        self._in_flight.restart(run)

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Spent:
        """Cancel a run that no driver drives any more; return all that it has spent.

        Args:
            event: why.
            unless_busy: whether a child run that another driver has holds that up.

        Raises:
            RunBusy: another driver has the run, or a child run that holds it up.
        """
        run_id = self._recorder.driven.id
        async with self._recorder.lease(run_id, self._asks):
            # Also of a run that has ended: it may not have been released as such.
            await self._mended(run_id)
            if not self._recorder.is_over:
                await self._take(await self._final(event, unless_busy=unless_busy))
        return self._recorder.driven.spent

    async def _drive(
        self, run_id: str, first: Iterable[Event], *, resumed: bool = False
    ) -> AsyncGenerator[Seen[S], None]:
        scope, recorder, in_flight = self._scope, self._recorder, self._in_flight
        self._children.tried.clear()
        scope.enter()
        async with recorder.lease(run_id, self._asks):
            try:
                await self._open(run_id, first, resumed=resumed)
                while recorder.unseen:
                    yield recorder.unseen.pop(0)
                while (step := await self._next_first()) is not None:
                    yield step
                    scope.enter()
                shared_at = monotonic()
                while (run := recorder.run) is not None and run.node != "END":
                    scope.enter()
                    item = await self._next(run)
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
        """Journal an event, apply it, and start what it asks for.

        From then on an effect is to do, done or not: so it is known not to have started.
        """
        step, cut = await self._recorder.take(event, leaving=leaving)
        self._models.counted(event)
        if step.effects:
            self._in_flight.start(step.effects, step.run)
        if cut is not None:
            self._recorder.unseen.append(step)
            raise cut
        return step

    async def _open(self, run_id: str, first: Iterable[Event], *, resumed: bool) -> None:
        """Make ready the events that a leg begins with."""
        if await self._mended(run_id):
            first = [event for event in first if not isinstance(event, Started)]
        self._is_resumed = resumed
        asides, self._asides = self._asides, []
        self._heard = [] if self._recorder.is_over else list(first_events(first, asides))

    async def _mended(self, run_id: str) -> bool:
        """Read again a journal that the run was torn from; tell whether the run is in it."""
        if not self._recorder.is_torn:
            return False
        await self._recorder.read_again(run_id)
        if self.run is not None:
            self.know(self.run, self._children.known)
        return self.run is not None

    async def _next_first(self) -> Step[S] | None:
        """Take the next of the events that a leg begins with; None once all are taken."""
        recorder, is_resumed, self._is_resumed = self._recorder, self._is_resumed, False
        has_more = bool(self._heard) and not recorder.is_over
        if not has_more:
            self._in_flight.restart(recorder.driven)
        if is_resumed and (has_more or self._in_flight.todo):
            return await self._take(Resumed(self._ports.clock()))
        if is_resumed:
            await recorder.refuse_outrun(recorder.driven.id)
        if has_more:
            event = (self._asides or self._heard).pop(0)
            return await self._take(not_before(self.run, event))
        return None

    async def _next(self, run: Run[S]) -> Live | ChildStep | Event | None:
        """Return what happens next: something to see, or an event; None when the run parks.

        An abort cancels the wait for effects, and nothing else: never a journal being written.
        Any other cancellation passes through, even one that comes together with an abort.

        A message that was queued while an effect was in flight comes before its answer: it is to be
        read in the very next turn, and the answer may be the run's last event.
        """
        if not self._heard:
            stopping = self._left or self._abort is not None
            if run.abandoned and not stopping:
                drop = self._in_flight.drop
                if ended := await self._children.end_unwanted(run, self._ports.clock(), drop):
                    return ended
            if stopping or not self._asides:
                todo = self._in_flight.todo
                if todo and not stopping and (started := self._started(todo, run)):
                    return started
                item: Live | ChildStep | Event | None
                item = None if stopping else await self._in_flight.next(run)
                if item is None and (self._left or self._abort is not None):
                    item = await self._stopped()
                if not self._asides or isinstance(item, SEEN):
                    return item
                if item is not None:
                    self._heard.insert(0, item)
        return (self._asides or self._heard).pop(0)

    def _started(self, todo: Sequence[Effect], run: Run[S]) -> EffectsStarted | None:
        """Return the event that must be journaled before the effects that are to do are started.

        It costs a write, so it is left out where no driver could ever resume the run; and what is
        not going to start must not seem to have started.
        """
        risky = self._performer.risky(todo, run) if self._ports.resumable else ()
        return EffectsStarted(self._ports.clock(), risky) if risky else None

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
        said, spent = "".join(self._models.said), event.spent + self._models.unfinished()
        spent += await self._children.end_all(run, event, unless_busy=unless_busy)
        void = self._performer.not_started(self._in_flight.todo, run, self._children.started)
        return evolve(event, spent=spent, unbegun=void, said=said)

    def _asks(self) -> Sequence[Ask]:
        return [pending.ask for pending in self.pending]

    def _listen(self, effect: CallModel | StartRun) -> Source:
        if isinstance(effect, CallModel):
            return self._models.ask(effect)
        return self._children.drive(effect, self._recorder.driven)

    def _driver_of(self, child: ChildRun[Any], state: object) -> AsyncDriver[Any]:
        return AsyncDriver(child.graph, child.ports, state, self._scope)
