"""The asynchronous driver: performs effects, journals what happened, steps.

The driver is an async generator. What it yields is all there is to see: every `Step`, the deltas of
a model that is talking, and what happens in child runs. Its caller drives it by iterating it. What
is under way is in `hearing`, and has ended, or is left behind, when the generator has ended. (A
`TaskGroup` cannot span a generator's yields: left early, another task would close it.)

Order is durability: an event is journaled, then stepped, then its effects are performed. A tool
that must not run twice is performed only after `Begun` has been journaled. A child run has a
driver and a journal of its own; when it parks, so does its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Generic, TypeAlias, TypeVar

from ..effects import CallModel, Effect, StartRun
from ..errors import NotDeterministic, ProviderError, RunBusy, StoreError
from ..events import Begun, Cancelled, ChildEnded, Event, Queued, Resumed, Started, ToolReturned
from ..graph import Graph
from ..providers.base import Live
from ..run import Run
from ..spending import Spent
from ..step import Step
from ..values import UserMessage, evolve
from .asks import Pending, pending_of
from .below import Below
from .caller import Caller
from .children import Nested, Resumption, child_unwanted
from .fairness import Turns
from .hearing import SEEN, Hearing, Item
from .lease import Leased, status_of
from .models import DELTAS, Models
from .opening import not_before, opening
from .perform import Performer
from .ports import ChildRun, Ports
from .recorder import Recorder
from .stand import Stand
from .step_timer import StepTimer

__all__ = ["DELTAS", "AsyncDriver", "Nested", "Seen"]

S = TypeVar("S")

Seen: TypeAlias = Step[S] | Live | Nested


class AsyncDriver(Generic[S]):
    """Drives one run of a graph.

    When the generator of `start` or `resume` is exhausted, `run` is the run's last state: ended, or
    parked with effects that nobody in this process can perform; then any driver can resume it.

    Args:
        graph: the table to run.
        ports: the world to run it in.
        state: the user's state to begin with (unused on resume).
        caller: who awaits the run above this one; None for a run at the top.
    """

    def __init__(
        self, graph: Graph[S], ports: Ports[S], state: S, caller: Caller | None = None
    ) -> None:
        self._ports = ports
        self._performer = Performer(ports)
        self._models = Models(ports, self._performer)
        self._asides: list[Event] = []
        self._heard: list[Event] = []
        self._stopping = self._left = False
        self._caller = Caller(caller)
        stoppable = ports.stoppable or ports.step_s is not None
        self._hearing = Hearing(self._performer, self._listen, self._caller, stoppable=stoppable)
        self._recorder = Recorder(graph, ports, state, self._caller, self._performer)
        self._below = Below(self._performer, self._driver_of)
        self._timer = StepTimer(
            ports.step_s, lambda why: self._stop(Cancelled(ports.clock(), why, timeout=True))
        )
        self._abort: Cancelled | None = None
        self._stand = Stand.UNDER_WAY
        self._tried: set[int] = set()

    @property
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._recorder.run

    @property
    def stand(self) -> Stand:
        """How the run stands, once there is no more to be seen of it."""
        return Stand.ENDED if self._recorder.is_over else self._stand

    @property
    def exception(self) -> Exception | None:
        """The exception behind the run's failure, if it ended in one in this process."""
        return None if self.run is None else self._performer.exception_behind(self.run)

    @property
    def descendants(self) -> Mapping[str, Run[Any]]:
        """All runs below this one that this driver has seen, by their ids."""
        return self._below.descendants

    @property
    def busy(self) -> tuple[str, ...]:
        """Why children below this run were not driven here: somebody else drives them."""
        return self._below.busy

    @property
    def is_deaf(self) -> bool:
        """Whether nothing that is said now would be heard: the run ends, parks, or is left."""
        stopping = self._left or self._abort is not None
        return stopping or self._stand is not Stand.UNDER_WAY or self._recorder.is_ending

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
            after_step: whether the turn under way comes to its end first.
        """
        if not after_step:
            self._stop(Cancelled(self._ports.clock(), reason))
        elif self._abort is None and not self._stopping:
            self._stopping = True
            self._asides.append(Cancelled(self._ports.clock(), reason, after_step=True))

    def _stop(self, cancelled: Cancelled) -> None:
        # What is said first counts: who has left a run has not stopped it, nor the other way round.
        if self._abort is None and not self._left:
            self._abort = cancelled
            self._caller.interrupt()

    def queue(self, message: UserMessage, *, follow_up: bool) -> None:
        """Have the model read a message in the next turn, or once the run would end."""
        self._asides.append(Queued(self._ports.clock(), message, follow_up))

    def leave(self) -> None:
        """Stop driving: nothing is cancelled, and the run can be resumed from where it is."""
        self._left = True
        self._caller.interrupt()

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
            below: its children that have begun, by their keys, with their own answers; None where
                nothing is known of them but what this driver knows.
            at_once: whether this driver has driven the run up to here, so that nothing that has
                begun can have been interrupted.
        """
        self._stand = Stand.UNDER_WAY
        below = self._below.known if below is None else below
        if at_once:
            self._recorder.run, self._below.known = run, below
        else:
            self.know(run, below)
        return self._drive(run.id, answers, taken_up=not at_once)

    def know(self, run: Run[S], below: Mapping[str, Resumption[Any]]) -> None:
        """Take the run to stand as its journal tells it, and so its children that have begun."""
        self._recorder.run, self._below.known = run, below
        self._performer.take_up(run)
        self._hearing.todo = self._waiting()

    async def cancelled(self, event: Cancelled, *, unless_busy: bool) -> Spent:
        """Cancel a run that nobody drives any more; return all that it has spent.

        Args:
            event: why.
            unless_busy: whether a run below it that somebody else drives holds that up.

        Raises:
            RunBusy: somebody else drives it, or a run below it that holds it up.
        """
        run_id = self._recorder.driven.id
        async with self._leased(run_id):  # One that has ended may not have been released so.
            await self._mended(run_id)
            if not self._recorder.is_over:
                await self._take(await self._final(event, unless_busy=unless_busy))
        return self._recorder.driven.spent

    def _leased(self, run_id: str) -> Leased:
        return Leased(
            self._ports.store,
            run_id,
            lambda: (status_of(self.run), [one.ask for one in self.pending]),
        )

    async def _drive(
        self, run_id: str, first: Iterable[Event], *, taken_up: bool = False
    ) -> AsyncGenerator[Seen[S], None]:
        hearing, resumable = self._hearing, self._ports.resumable
        self._tried.clear()
        self._caller.enters()
        async with self._leased(run_id):
            try:
                first = await self._mended(run_id, first)
                while self._recorder.unseen:
                    yield self._recorder.unseen.pop(0)
                async with aclosing(self._begin(first, taken_up=taken_up)) as beginning:
                    async for taken in beginning:
                        yield taken
                        self._caller.enters()
                turns = Turns()
                while (run := self.run) is not None and run.node != "END":
                    self._caller.enters()
                    if resumable and hearing.todo and (begun := self._begun(run)):
                        yield await self._take(begun)
                    item = await self._next(run)
                    if item is None:
                        self._stand = Stand.LEFT if self._left else Stand.PARKED
                        break
                    yield item if isinstance(item, SEEN) else await self._take(item)
                    await turns.share()
            except (GeneratorExit, asyncio.CancelledError, NotDeterministic):
                self._caller.leaves()
                await self._keep()
                raise
            finally:
                await hearing.close()

    async def _mended(self, run_id: str, first: Iterable[Event] = ()) -> Iterable[Event]:
        """Read again a journal that the run was torn from; return what is to be taken first."""
        if self._recorder.is_torn:
            await self._recorder.read_again(run_id)
            if self.run is not None:
                self.know(self.run, self._below.known)
                return [one for one in first if not isinstance(one, Started)]
        return first

    async def _begin(
        self, first: Iterable[Event], *, taken_up: bool
    ) -> AsyncGenerator[Step[S], None]:
        """Take the events that a leg begins with, and find out what is to do then."""
        asides, self._asides = self._asides, []
        self._heard = [] if self._recorder.is_over else list(opening(first, asides))
        while self._heard and not self._recorder.is_over:
            if taken_up:
                yield await self._take(Resumed(self._ports.clock()))
                taken_up = False
            yield await self._take(not_before(self.run, (self._asides or self._heard).pop(0)))
        self._hearing.todo = self._waiting()
        if taken_up and self._hearing.todo:
            yield await self._take(Resumed(self._ports.clock()))
        elif taken_up:
            await self._recorder.refuse_outrun(self._recorder.driven.id)

    def _begun(self, run: Run[S]) -> Begun | None:
        """Return the event that must be journaled before what is to do is done.

        It costs a write, so it is left out where nobody could ever come back to the run; and what
        is not going to begin must not seem to have begun.
        """
        if self._left or self._abort is not None:
            return None
        risky = self._performer.risky(self._hearing.todo, run)
        return Begun(self._ports.clock(), risky) if risky else None

    async def _next(self, run: Run[S]) -> Live | Nested | Event | None:
        """Return what happens next: something to see, or an event; None when the run parks.

        What somebody said while an effect was under way comes before its answer: it is to be read
        in the very next turn, and the answer may be the run's last event.
        """
        if not self._heard:
            stopping = self._left or self._abort is not None
            if run.turn.abandoned and not stopping and (ended := await self._unwanted(run)):
                return ended
            if stopping or not self._asides:
                item = await (self._stopped() if stopping else self._hear(run))
                if not self._asides or isinstance(item, SEEN):
                    return item
                self._heard[:0] = () if item is None else (item,)
        return self._asides.pop(0) if self._asides else self._heard.pop(0)

    async def _hear(self, run: Run[S]) -> Live | Nested | Event | None:
        """Wait for what happens next.

        An abort cancels what is awaited here, and nothing else: never a journal being written.
        Any other cancellation passes through, even one that comes together with an abort.
        """
        self._timer.begin(run)
        self._caller.waits()
        try:
            return await self._hearing.hear(run)
        except asyncio.CancelledError:
            if not self._caller.heeds():
                raise
            return await self._stopped()
        finally:
            self._caller.goes_on()
            self._timer.end()

    async def _stopped(self) -> Event | None:
        if self._abort is None:
            await self._keep()
            return None
        # What a tool has done is done; a reply that nobody has heard is void, and paid for.
        unheard = await self._hearing.close()
        self._heard += [one for one in unheard if isinstance(one, ToolReturned | ChildEnded)]
        if self._heard:
            return self._heard.pop(0)
        return await self._final(self._abort)

    async def _keep(self) -> None:
        """Journal what was said, and what has ended, and nobody has seen: the driver goes away.

        Where the store refuses, or nobody knows what it kept, it is as if the process had died.
        """
        self._stand = Stand.LEFT
        ended = await self._hearing.close()
        if self._recorder.is_torn:
            return
        known = [*self._asides, *self._heard, *ended]
        self._asides, self._heard = [], []
        with suppress(StoreError, ProviderError):
            while known and self.run is not None and not self._recorder.is_over:
                taken = await self._take(known.pop(0), going=self._caller.has_left)
                self._recorder.unseen.append(taken)
            if self._abort is not None and not (self._recorder.is_over or self._caller.has_left):
                await self._take(await self._final(self._abort))

    async def _final(self, event: Cancelled, *, unless_busy: bool = False) -> Cancelled:
        """Cancel the children, and return the event with all that is void and was paid for.

        A child that has ended counts too, as long as its parent has not heard of it.
        """
        run = self._recorder.driven
        said, spent = "".join(self._models.said), event.spent + self._models.unfinished()
        for effect in run.pending.values():
            if isinstance(effect, StartRun):
                spent += await self._below.end(effect, run, event, unless_busy=unless_busy)
        void = self._performer.unbegun(self._hearing.todo, run, self._below.begun)
        return evolve(event, spent=spent, unbegun=void, said=said)

    async def _unwanted(self, run: Run[S]) -> Event | None:
        """End a child that nobody waits for; None if somebody else drives all of them.

        Those spend on, so the run waits until they are free.
        """
        for effect_id in sorted(run.abandoned - self._tried):
            self._tried.add(effect_id)
            effect = run.pending[effect_id]
            assert isinstance(effect, StartRun), "a fan-out waits for child runs only"
            await self._hearing.drop(effect)
            event = Cancelled(self._ports.clock(), "not needed any more")
            with suppress(RunBusy):
                spent = await self._below.end(effect, run, event, unless_busy=True)
                return child_unwanted(event.at, effect.id, spent)
        return None

    def _waiting(self) -> list[Effect]:
        """Return what the run waits for that can be done here."""
        run = self._recorder.driven
        return self._performer.performable(run.pending.values(), run)

    async def _take(self, event: Event, *, going: bool = False) -> Step[S]:
        """Journal an event and step.

        What is wished for is to do from then on, done or not: so it is known not to have begun.
        """
        taken, cut = await self._recorder.take(event, going=going)
        self._models.counted(event)
        self._hearing.todo += self._performer.performable(taken.effects, taken.run)
        if cut is not None:
            self._recorder.unseen.append(taken)
            raise cut
        return taken

    def _listen(self, effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        if isinstance(effect, CallModel):
            return self._models.ask(effect)
        return self._below.drive(effect, self._recorder.driven)

    def _driver_of(self, child: ChildRun[Any], state: object) -> AsyncDriver[Any]:
        return AsyncDriver(child.graph, child.ports, state, self._caller)
