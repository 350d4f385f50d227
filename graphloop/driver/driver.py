"""The driver: performs a run's effects, and steps the run with the events that answer them.

    until the run ends, parks or is left:
        if the unsaved steps are due: journal their events, and yield them
        if no event comes before the effects in `todo`:
            start the effects, yield what they show, and wait for the event that answers one
        step the run with the event, and add the step's effects to `todo`

A step stays unsaved if the next event is known at once: one append journals both
(docs/decisions/2026-11-23-two-commits-a-turn.md). An abort ends the wait, closes the effects in
flight, and journals `Cancelled`.

`start` and `resume` return this loop as an async generator. It yields each `Step` (unless nothing
reads them: `Ports.shows_steps`), model deltas and the steps of child runs. When it has ended, every
effect has ended or is left behind. A child run has its own driver and journal. A parent that waits
only for parked children parks too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

from ..effects import CallModel
from ..errors import NotDeterministic, ProviderError, StoreError
from ..events import Cancelled, ChildEnded, Event, Queued, Resumed, Started, ToolReturned
from ..graph import NodeGraph
from ..questions import Pending, pending_of
from ..run import Run
from ..values import UserMessage, evolve
from .cancellation import CancelScope, StepTimer
from .children import NONE_TRIED, ChildRuns, EndsElsewhere
from .in_flight import InFlight, ObservedPerformer
from .models import ModelCallInFlight, Models
from .performer import Performer
from .ports import SHOWN, ChildRun, ChildStep, DriverState, Ports, Resumption, Seen, Shown
from .recorder import Recorder, first_events

__all__ = ["AsyncDriver", "ChildStep", "DriverState", "Seen"]

S = TypeVar("S")


class AsyncDriver(Generic[S]):
    """Drives one run of a graph: `start` and `resume` return a generator of the run's steps.

    When the generator is exhausted, `run` has ended, was left, or is parked with effects that this
    process cannot perform. Any driver can resume a run that has not ended. `children` drives the
    child runs. `in_flight` has the effects; its `next_delta` may replace the generator.

    Args:
        graph: the graph that the run executes.
        ports: the store, models, tools and callbacks that the run uses.
        state: the user's initial state; `resume` does not use it.
        scope: the cancel scope of the parent run; None if the run has no parent.
    """

    def __init__(
        self, graph: NodeGraph[S], ports: Ports[S], state: S, scope: CancelScope | None = None
    ) -> None:
        self._ports = ports
        step_s = ports.step_s
        timer = None if step_s is None else StepTimer(step_s, partial(self.abort, timeout=True))
        stoppable = ports.stoppable or timer is not None
        self._scope = scope = CancelScope(scope, timer)
        self._performer = performer = (ObservedPerformer if ports.observers else Performer)(ports)
        self._models = models = Models(ports, performer)
        self.children = children = ChildRuns(ports, models, partial(_driver_of, scope))
        self._recorder = recorder = Recorder(graph, ports, state, scope, models, children.asks)
        self.in_flight = InFlight(
            performer,
            lambda effect: (
                ModelCallInFlight(models, effect, recorder.latest, is_shown=stoppable)
                if type(effect) is CallModel
                else children.drive(effect, recorder.latest_started)
            ),
            scope,
            stoppable,
            ports.clock,
        )
        performer.hear = self.in_flight.hear if ports.stoppable else None
        self._ends_after_turn = self._was_left = self._is_stopped = self._todo_is_stale = False
        self._abort: Cancelled | None = None
        self._state = DriverState.RUNNING

    @property
    def run(self) -> Run[S] | None:
        """The run after all journaled events; None before the first event."""
        return self._recorder.run

    @property
    def state(self) -> DriverState:
        """`ENDED` if the journal has the run's end; else running, parked or detached."""
        run = self._recorder.run
        return self._state if run is None or run.node != "END" else DriverState.ENDED

    @property
    def exception(self) -> Exception | None:
        """The exception that the run failed with, if this process raised it; else None."""
        return None if self.run is None else self._performer.exception_behind(self.run)

    @property
    def ignores_messages(self) -> bool:
        """Whether a new message would stay unread: the run is ending, stopped or parked."""
        return (
            self._is_stopped or self._state is not DriverState.RUNNING or self._recorder.is_ending
        )

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Pending approvals and client tool results, also of child runs, in request order."""
        if self.run is None or self.run.ended:
            return ()
        return tuple(pending_of(self.run, self.children.descendants, self._ports.secret))

    def abort(self, reason: str = "", *, after_step: bool = False, timeout: bool = False) -> None:
        """End the run now: cancel its pending effects, and give every tool call a result.

        Call this method from the event loop that drives the run.

        Args:
            reason: the reason for the abort, which is journaled.
            after_step: whether the turn in progress is finished first.
            timeout: whether a time limit ends the run, so that it ends as `timeout`.
        """
        if not after_step:
            self._stop(Cancelled(self._ports.clock(), reason, timeout=timeout))
        elif self._abort is None and not self._ends_after_turn:
            self._ends_after_turn = True
            self._tell(Cancelled(self._ports.clock(), reason, after_step=True))

    def _stop(self, cancelled: Cancelled) -> None:
        if not self._is_stopped:  # The first of `abort` and `leave` counts.
            self._abort, self._is_stopped = cancelled, True
            self.in_flight.next_delta = None
            self._scope.interrupt()

    def queue(self, message: UserMessage, *, follow_up: bool, signal_id: str = "") -> None:
        """Queue a message for the next turn or, if `follow_up`, for when the run would end."""
        self._tell(Queued(self._ports.clock(), message, follow_up, signal_id))

    def _tell(self, aside: Event) -> None:
        self._recorder.asides.append(aside)
        self.in_flight.next_delta = None

    def leave(self) -> None:
        """Stop driving without cancelling the run; any driver can resume it from its journal."""
        self._was_left = self._is_stopped = True
        self.in_flight.next_delta = None
        self._scope.interrupt()

    def start(self, started: Started) -> AsyncGenerator[Seen[S], None]:
        """Return a generator that starts a run, and drives it until it ends, parks or is left."""
        return self._drive(started.run_id, (started,))

    def resume(
        self,
        run: Run[S],
        answers: Iterable[Event] = (),
        children: Mapping[str, Resumption[Any]] | None = None,
        *,
        at_once: bool = False,
        seen: int = 0,
    ) -> AsyncGenerator[Seen[S], None]:
        """Return a generator that resumes a run from its journaled state with the given answers.

        Args:
            run: the run as replayed from its journal.
            answers: events that answer the run's pending effects.
            children: the started child runs by key, with their answers; None keeps the child runs
                that this driver knows already.
            at_once: whether this driver drove the run until now, so that no effect was interrupted.
            seen: how many answers were read from the run's mailbox (`Resumption.seen`).
        """
        self._state, self._todo_is_stale = DriverState.RUNNING, True
        self._recorder.seen = max(self._recorder.seen, seen)
        children = self.children.known if children is None else children
        if at_once:
            self._recorder.set_run(run)
            self.children.known = children
        else:
            self.know(run, children)
        return self._drive(run.id, answers, resumed=not at_once)

    def know(self, run: Run[S], children: Mapping[str, Resumption[Any]]) -> None:
        """Set the run and its started child runs to states that were read from their journals."""
        self._recorder.set_run(run)
        self.children.known = children
        self._performer.resume(run)
        self.in_flight.todo = self._performer.performable(run.pending.values(), run)

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Run[S]:
        """Cancel a run that no driver drives, and return the ended run.

        Args:
            event: the cancellation to journal.
            unless_busy: whether to raise if another driver has a child run; else the child runs on.

        Raises:
            RunBusy: another driver has the run or, with `unless_busy`, one of its child runs.
        """
        recorder = self._recorder
        recorder.run_id = recorder.latest_started.id
        async with recorder:
            # An ended run is claimed as well: its release records its final status in the store.
            if recorder.is_torn:
                await self._read_again()
            if not recorder.is_over:
                await self._take(Resumed(event.at, self._ports.revision))  # No time was spent.
                await self._take(await self._cancel_all(event, unless_busy=unless_busy))
                await self._recorder.keep()
        return recorder.latest_started

    async def _drive(
        self, run_id: str, first: Iterable[Event], *, resumed: bool = False
    ) -> AsyncGenerator[Seen[S], None]:
        scope, recorder, in_flight = self._scope, self._recorder, self.in_flight
        in_flight.shared_at, self.children.tried = monotonic(), NONE_TRIED
        scope.enter(asyncio.get_running_loop())
        recorder.run_id, recorder.is_parked = run_id, False
        async with recorder:
            try:
                await self._queue_first(first, resumed=resumed)
                while True:
                    if recorder.is_due:
                        await recorder.keep()
                    while recorder.unseen:
                        yield recorder.unseen.pop(0)
                    item: Any = self._next_known()  # An event, or an item of `SHOWN`.
                    if item is None and recorder.unsaved:
                        # Held steps are journaled before an effect starts or a step is yielded.
                        recorder.is_due = True
                        continue
                    item = item or await self._next()
                    if item is None:
                        break
                    while type(item) in SHOWN:
                        yield item
                        item = await in_flight.more()
                        if recorder.asides and type(item) not in SHOWN:  # Messages come first.
                            recorder.heard += () if item is None else (item,)
                            item = None
                    if item is not None:
                        await self._take(item)
            except (GeneratorExit, asyncio.CancelledError, NotDeterministic):
                scope.enter_again()
                await self._save_before_leaving()
                raise
            finally:
                await in_flight.close()

    async def _take(self, event: Event, *, leaving: bool = False) -> None:
        """Step the run with an event, and add the step's effects to `todo`.

        An effect that is still in `todo` surely has not started; `_cancel_all` relies on this.
        """
        try:
            step, failed = self._recorder.take(event)
        except Exception:  # The event is journaled, although the kernel or a node refuses it.
            await self._recorder.keep(refused=(event,))
            raise
        self.in_flight.todo.extend(self._performer.performable(step.effects, step.run))
        if failed is not None:
            await self._recorder.keep(leaving=leaving)
            raise failed

    async def _queue_first(self, first: Iterable[Event], *, resumed: bool) -> None:
        """Queue the first events of a start or resume; `Resumed` is the first of a resume.

        Raises:
            RunBusy: another driver has journaled more events, and this driver has no work to do.
        """
        recorder = self._recorder
        if recorder.is_torn:
            await self._read_again()
            if recorder.run is not None:
                first = [event for event in first if not isinstance(event, Started)]
        said, recorder.asides = recorder.asides, []
        is_over = recorder.run is not None and recorder.run.node == "END"
        first = first_events(first, said) if said else first
        heard = recorder.heard = [] if is_over else [*first]
        if resumed and not (heard or self.in_flight.todo or (self._abort and not is_over)):
            await recorder.refuse_outrun()
        elif resumed:
            at = self._abort.at if self._abort else self._ports.clock()
            heard.insert(0, Resumed(at, self._ports.revision))

    async def _read_again(self) -> None:
        """Set a torn run to the state in its journal, which may have the failed append."""
        await self._recorder.read_again()
        if self.run is not None:
            self.know(self.run, self.children.known)

    def _next_known(self) -> Event | None:
        """Return the event to apply before any effect starts; None if the effects may start.

        It is a first event, a message or abort of the caller, an answer that waited, or an
        `EffectsStarted`. The unsaved steps and this event take a single append.
        """
        recorder, run = self._recorder, self._recorder.latest
        if run is None:
            return recorder.heard.pop(0) if recorder.heard else None
        if run.node == "END" or (recorder.unsaved and self._is_stopped):
            return None
        if recorder.heard or (recorder.asides and not self._is_stopped):
            return recorder.pop(run)
        if self._todo_is_stale:
            self._todo_is_stale = False
            self.in_flight.todo = self._performer.performable(run.pending.values(), run)
        if self._is_stopped or not self._ports.resumable:
            return None  # `EffectsStarted` costs an append, and helps only to resume the run.
        return self.in_flight.note_risky(run)

    async def _next(self) -> Shown | Event | None:
        """Return the next model delta, child step or event; None when the run parks or is left.

        An abort cancels only the wait for effects, never a write to the journal. Each other
        cancellation is raised, also beside an abort.

        A message that was queued during an effect is applied before its answer: the next turn has
        to read the message, and the answer may be the run's last event.
        """
        recorder = self._recorder
        run = recorder.latest or recorder.latest_started
        if run.node == "END":
            return None
        item: Shown | Event | None = None
        if run.turn.abandoned and not self._is_stopped:
            now, drop = self._ports.clock(), self.in_flight.drop
            item = await self._models.end_abandoned(run, now, drop)
            item = item or await self.children.end_abandoned(run, now, drop)
        if item is None and not self._is_stopped:
            item = await self.in_flight.next(run)
        if item is None and self._is_stopped:
            item = await self._stop_event()
        if recorder.asides and type(item) not in SHOWN:
            recorder.heard[:0] = [] if item is None else [item]  # type: ignore[list-item]  # No `SHOWN`.
            return recorder.pop(recorder.latest_started)
        if item is None:
            self._state = DriverState.DETACHED if self._was_left else DriverState.PARKED
            # A child run that another driver has does not wake this run at its end.
            recorder.is_parked = not (self._was_left or self.children.busy)
        return item

    async def _stop_event(self) -> Event | None:
        self._scope.enter()
        if self._abort is None:
            await self._save_before_leaving()
            return None
        await self._recorder.keep()
        # Keep finished tool results; drop an unfinished model reply, but count its cost.
        unheard, heard = await self.in_flight.close(), self._recorder.heard
        heard += [event for event in unheard if isinstance(event, ToolReturned | ChildEnded)]
        try:
            return heard.pop(0) if heard else await self._cancel_all(self._abort)
        except EndsElsewhere:  # The ends of these child runs wake this run, which then ends.
            return self._models.so_far(self._ports.clock())

    async def _save_before_leaving(self) -> None:
        """Journal queued messages and finished effects before the driver leaves the run.

        If the store fails, or the run is torn already, these events are lost as in a crash.
        """
        self._state = DriverState.DETACHED
        ended = await self.in_flight.close()
        if self._recorder.is_torn:
            return
        recorder, leaving = self._recorder, self._scope.is_left
        known = [*recorder.asides, *recorder.heard, *ended]
        recorder.asides, recorder.heard = [], []
        with suppress(StoreError, ProviderError):
            while known and (run := recorder.latest) is not None and not run.ended:
                await self._take(known.pop(0), leaving=leaving)
            if (run := recorder.latest) is not None and not run.ended:
                if self._abort is not None and not leaving:
                    await self._recorder.keep(leaving=leaving)
                    await self._take(await self._cancel_all(self._abort))
                elif revoked := self.in_flight.revoked():
                    await self._take(revoked)
            await self._recorder.keep(leaving=leaving)

    async def _cancel_all(self, event: Cancelled, *, unless_busy: bool = False) -> Cancelled:
        """Cancel the pending child runs and what tools have begun elsewhere; add the spending.

        The event also gets the usage and text of unfinished model calls, and the unstarted calls.
        """
        run = self._recorder.latest_started
        spent = event.spent + await self.children.end_all(run, event, unless_busy=unless_busy)
        said, spent = self._models.said, spent + self._models.unfinished()
        void = self._performer.not_started(self.in_flight.todo, run, self.children.started)
        await self._ports.toolbox.withdraw(run, void)
        return evolve(event, spent=spent, unstarted=void, said=said)


def _driver_of(scope: CancelScope, child: ChildRun[Any], state: object) -> AsyncDriver[Any]:
    return AsyncDriver(child.graph, child.ports, state, scope)
