"""The asynchronous driver: performs effects, journals what happened, steps.

The driver is an async generator. What it yields is all there is to see: every `Step`, the deltas of
a model that is talking, and what happens in child runs. Whoever iterates it drives it; nobody needs
a queue, a callback or a task to watch. What is under way is in `hearing`, and has ended when the
generator has. (A `TaskGroup` cannot span a generator's yields: left early, it would be closed by
another task.)

Order is durability: an event is journaled, then stepped, then its effects are performed. A tool
that must not run twice is performed only after `Begun` has been journaled. A child run has a
driver and a journal of its own; when it parks, so does its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from time import monotonic
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ..effects import CallModel, CallTool, Effect, StartRun
from ..errors import Fenced, IllegalEvent
from ..events import Begun, Cancelled, Event, ModelReplied, Queued, Resumed, Started
from ..graph import Graph
from ..providers.base import Delta
from ..run import EndReason, Run
from ..spending import Spent
from ..step import Step, begin, step
from ..stores.base import Leases, ReleaseStatus
from ..values import UserMessage, evolve
from .asks import Pending, pending_of
from .children import Nested, Resumption, child_ended, journaled
from .hearing import SEEN, Hearing, Item, Parked
from .models import DELTAS, Models
from .perform import Performer
from .ports import Ports
from .step_timer import StepTimer

__all__ = ["DELTAS", "AsyncDriver", "Nested", "Seen"]

S = TypeVar("S")


Seen: TypeAlias = Step[S] | Delta | Nested

TURN_S: Final = 0.005
"""After how much time of its own a run lets the event loop's other tasks have a turn.

Effects that never really wait (a plain function, a scripted model) would otherwise keep timers,
signals and other runs out for as long as the run lasts.
"""

RELEASED_AS: Final[Mapping[EndReason, ReleaseStatus]] = {
    EndReason.ABORTED: "cancelled",
    EndReason.ERROR: "failed",
    EndReason.TIMEOUT: "failed",
}


class AsyncDriver(Generic[S]):
    """Drives one run of a graph.

    When the generator of `start` or `resume` is exhausted, `run` is the run's last state: it has
    ended, or is parked with pending effects that nobody in this process can perform. It can then be
    resumed, by the same driver too.

    Args:
        graph: the table to run.
        ports: the world to run it in.
        state: the user's state to begin with (unused on resume).
    """

    def __init__(self, graph: Graph[S], ports: Ports[S], state: S) -> None:
        self._run: Run[S] | None = None
        self._graph = graph
        self._ports = ports
        self._state = state
        self._performer = Performer(ports)
        self._models = Models(ports, self._performer)
        self._hearing = Hearing(self._performer, self._listen)
        self._is_durable: bool = getattr(ports.store, "durable", True)
        self._asides: list[Event] = []
        self._heard: Event | None = None
        self._stopping = False
        self._children: dict[str, AsyncDriver[Any]] = {}
        self._below: Mapping[str, Resumption[Any]] = {}
        self._waiter: asyncio.Task[object] | None = None
        self._timer = StepTimer(ports.step_s, lambda reason: self.abort(reason, timeout=True))
        self._abort: Cancelled | None = None
        self._interrupted = False
        self._left = False

    @property
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._run

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if it ended in one in this process."""
        raised, run = self._performer.exception, self._run
        failure = run.ending.failure if run is not None and run.ending is not None else None
        if raised is None or failure is None:
            return None
        is_it = (failure.error, failure.message) == (type(raised).__name__, str(raised))
        return raised if is_it else None

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All runs below this one that this driver has seen, by their ids."""
        found: dict[str, Run[Any]] = {}
        for child in self._children.values():
            if child.run is not None:
                found[child.run.id] = child.run
            found |= child.descendants
        return found

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What the run and its children wait for outside, in request order."""
        if self._run is None or self._run.ended:
            return ()
        return tuple(pending_of(self._run, self.descendants, self._ports.secret))

    def abort(self, reason: str = "", *, after_step: bool = False, timeout: bool = False) -> None:
        """Stop the run now: what is pending is cancelled, the history stays paired.

        Call it from the event loop that the run is driven in.

        Args:
            reason: why, for the record.
            after_step: whether the turn under way comes to its end first.
            timeout: whether a time limit is the reason.
        """
        if self._abort is not None or (after_step and self._stopping):
            return
        cancelled = Cancelled(self._ports.clock(), reason, after_step, timeout)
        if after_step:
            self._stopping = True
            self._asides.append(cancelled)
        else:
            self._abort = cancelled
            self._interrupt()

    def queue(self, message: UserMessage, *, follow_up: bool) -> None:
        """Have the model read a message in the next turn, or once the run would end."""
        self._asides.append(Queued(self._ports.clock(), message, follow_up))

    def leave(self) -> None:
        """Stop driving: nothing is journaled, and the run can be resumed from where it is."""
        self._left = True
        self._interrupt()

    def start(self, started: Started) -> AsyncGenerator[Seen[S], None]:
        """Begin a run and drive it until it ends or parks."""
        return self._drive(started.run_id, (started,))

    def resume(
        self,
        run: Run[S],
        answers: Iterable[Event] = (),
        below: Mapping[str, Resumption[Any]] | None = None,
        *,
        at_once: bool = False,
    ) -> AsyncGenerator[Seen[S], None]:
        """Take up a run where its journal stops, first with the answers that came meanwhile.

        Args:
            run: the run as its journal tells it.
            answers: events for its pending effects.
            below: its children that have begun, by their keys, with their own answers.
            at_once: whether this driver has driven the run up to here, so that nothing that has
                begun can have been interrupted.
        """
        self._run, self._below, self._heard = run, below or {}, None
        self._performer.begun = frozenset() if at_once else run.begun
        return self._drive(run.id, answers, taken_up=not at_once)

    async def cancelled(self, event: Cancelled) -> Spent:
        """Cancel a run that nobody drives any more; return all that it has spent."""
        run = self._driven()
        if not run.ended:
            async with self._leased(run.id):
                await self._take(await self._final(event))
        return self._driven().spent

    @asynccontextmanager
    async def _leased(self, run_id: str) -> AsyncGenerator[None, None]:
        """Be the run's only driver, where the store sees to that."""
        store = self._ports.store
        if not isinstance(store, Leases):
            yield
            return
        await store.claim(run_id)
        try:
            yield
        except Fenced:
            # Another has taken the run over: it is not ours to release.
            raise
        except BaseException:
            await self._release(store, run_id)
            raise
        await self._release(store, run_id)

    async def _release(self, leases: Leases, run_id: str) -> None:
        asks = [one.ask for one in self.pending]
        await leases.release(run_id, self._status(), asks)

    async def _drive(
        self, run_id: str, first: Iterable[Event], *, taken_up: bool = False
    ) -> AsyncGenerator[Seen[S], None]:
        hearing = self._hearing
        async with self._leased(run_id):
            try:
                async for taken in self._begin(first, taken_up=taken_up):
                    yield taken
                others_ran_at = monotonic()
                while (run := self._driven()).node != "END":
                    if self._is_durable and hearing.todo and (begun := self._begun(run)):
                        yield await self._take(begun)
                    item = await self._next(run)
                    if item is None:
                        break
                    if isinstance(item, SEEN):
                        yield item
                        continue
                    taken = await self._take(item)
                    hearing.todo += self._performable(taken.effects)
                    yield taken
                    if monotonic() - others_ran_at > TURN_S:
                        await asyncio.sleep(0)
                        others_ran_at = monotonic()
            finally:
                await hearing.close()

    async def _begin(
        self, first: Iterable[Event], *, taken_up: bool
    ) -> AsyncGenerator[Step[S], None]:
        """Take the events that a leg begins with, and find out what is to do then."""
        for event in first:
            if taken_up:
                yield await self._take(Resumed(self._ports.clock()))
                taken_up = False
            yield await self._take(event)
        self._hearing.todo = self._performable(self._driven().pending.values())
        if taken_up and self._hearing.todo:
            yield await self._take(Resumed(self._ports.clock()))

    def _begun(self, run: Run[S]) -> Begun | None:
        """Return the event that must be journaled before what is to do is done."""
        risky = [
            effect.id
            for effect in self._hearing.todo
            if isinstance(effect, CallTool)
            and effect.id not in run.begun
            and not self._performer.is_repeatable(effect)
        ]
        return Begun(self._ports.clock(), tuple(risky)) if risky else None

    async def _next(self, run: Run[S]) -> Delta | Nested | Event | None:
        """Return what happens next: something to see, or an event; None when the run parks.

        What somebody said while an effect was under way comes before its answer: it is to be read
        in the very next turn, and the answer may be the run's last event.
        """
        if self._heard is None:
            if self._left or self._abort is not None:
                return await self._stopped()
            if not self._asides:
                item = await self._hear(run)
                if isinstance(item, SEEN) or not self._asides:
                    return item
                self._heard = item
        if self._asides:
            return self._asides.pop(0)
        heard, self._heard = self._heard, None
        return heard

    async def _hear(self, run: Run[S]) -> Delta | Nested | Event | None:
        """Wait for what happens next.

        An abort cancels what is awaited here, and nothing else: never a journal being written.
        Any other cancellation passes through, even one that comes together with an abort.
        """
        self._timer.begin(run)
        waiter = self._waiter = asyncio.current_task()
        cancelled_before = 0 if waiter is None else waiter.cancelling()
        try:
            return await self._hearing.hear(run)
        except asyncio.CancelledError:
            if not self._interrupted or (waiter and waiter.cancelling() > cancelled_before + 1):
                raise
            self._waiter = None  # Stopping is not interrupted by a second wish to stop.
            return await self._stopped()
        finally:
            self._waiter = None
            self._timer.end()
            if self._interrupted and waiter is not None:
                self._interrupted = False
                waiter.uncancel()

    async def _stopped(self) -> Event | None:
        await self._hearing.close()
        abort = None if self._left else self._abort
        return None if abort is None else await self._final(abort)

    async def _final(self, event: Cancelled) -> Cancelled:
        """Cancel the children, and return the event with all that is void and was paid for.

        A child that has ended counts too, as long as its parent has not heard of it.
        """
        spent = event.spent + self._models.unfinished()
        for effect in self._driven().pending.values():
            if isinstance(effect, StartRun) and (child := self._known_child(effect)) is not None:
                spent += await child.cancelled(event)
        return evolve(event, spent=spent)

    def _known_child(self, effect: StartRun) -> AsyncDriver[Any] | None:
        """Return the driver of a child that has begun, here or in another process."""
        child, below = self._children.get(effect.key), self._below.get(effect.key)
        if child is None and below is not None:
            opened = self._performer.open_child(effect, self._driven())
            child = self._children[effect.key] = AsyncDriver(opened.graph, opened.ports, None)
            child._run, child._below = below.run, below.children
        return child if child is not None and child.run is not None else None

    def _driven(self) -> Run[S]:
        if self._run is None:
            raise IllegalEvent("a driver starts with Started, or resumes a run")
        return self._run

    async def _take(self, event: Event) -> Step[S]:
        """Journal an event, then step: the order that makes a run survive its process."""
        if isinstance(event, Started):
            cut = await journaled(self._ports, event.run_id, 1, event)
            taken = begin(self._graph, event, self._state)
        else:
            run = self._driven()
            cut = await journaled(self._ports, run.id, run.seq + 1, event)
            taken = step(self._graph, run, event)
            if isinstance(event, ModelReplied):
                self._models.counted(event.effect)
        self._run = taken.run
        if cut is not None:
            raise cut
        return taken

    def _performable(self, effects: Iterable[Effect]) -> list[Effect]:
        return [effect for effect in effects if self._performer.can_perform(effect)]

    def _listen(self, effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        return self._models.ask(effect) if isinstance(effect, CallModel) else self._child(effect)

    async def _child(self, effect: StartRun) -> AsyncGenerator[Item, None]:
        """Drive a child run; yield what is seen in it and, last, how it ended, or that it parks."""
        try:
            opened = self._performer.open_child(effect, self._driven())
        except Exception as error:  # noqa: BLE001 - the effect boundary
            yield self._performer.fail(effect, error)
            return
        key, below = effect.key, self._below.get(effect.key)
        driver = self._children.get(key)
        if driver is not None and driver.run is not None:
            driving = driver.resume(driver.run)
        else:
            driver = self._children[key] = AsyncDriver(opened.graph, opened.ports, opened.state)
            driving = (
                driver.start(opened.started)
                if below is None
                else driver.resume(below.run, below.answers, below.children)
            )
        async with aclosing(driving):
            async for seen in driving:
                yield Nested(key, effect.agent, opened.graph, seen)
        run = driver.run
        if run is None or not run.ended:
            yield Parked(effect.id)
        else:
            yield child_ended(self._ports.clock(), effect.id, run)

    def _interrupt(self) -> None:
        # A tool that aborts its own run is let finish: it runs inside the waiting task.
        if self._waiter is not None and self._waiter is not asyncio.current_task():
            self._interrupted = self._waiter.cancel()

    def _status(self) -> ReleaseStatus:
        ending = self._run.ending if self._run is not None and self._run.ended else None
        return "suspended" if ending is None else RELEASED_AS.get(ending.reason, "done")
