"""The asynchronous driver: performs effects, journals what happened, steps.

The driver is an async generator. What it yields is all there is to see: every `Step`, and between
two steps the deltas of a model that is talking. Whoever iterates it drives it; nobody needs a
queue, a callback or a task to watch. A single pending effect is awaited in place; only where two
or more are pending are there tasks, and every one of them has ended when the generator has.
(A `TaskGroup` cannot span a generator's yields: left early, it would be closed by another task.)

Order is durability: an event is journaled, then stepped, then its effects are performed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from time import monotonic
from typing import Final, Generic, TypeAlias, TypeVar

from ..effects import CallModel, Effect
from ..errors import BadReply, ConfigError, IllegalEvent
from ..events import Cancelled, Event, ModelReplied, Started
from ..graph import Graph
from ..providers.base import Delta, ModelSession, ReasoningDelta, TextDelta, ToolCallDelta
from ..run import Run
from ..step import Step, begin, step
from ..values import Reply
from .perform import Performer, cancelled_inside
from .ports import Ports

__all__ = ["DELTAS", "AsyncDriver", "Seen"]

S = TypeVar("S")

Seen: TypeAlias = Step[S] | Delta

DELTAS: Final = (TextDelta, ReasoningDelta, ToolCallDelta)

INBOX_MAX: Final = 256
"""How many deltas and events of parallel effects may wait for the driver."""


TURN_S: Final = 0.005
"""After how much time of its own a run lets the event loop's other tasks have a turn.

Effects that never really wait (a plain function, a scripted model) would otherwise keep timers,
signals and other runs out for as long as the run lasts.
"""


class AsyncDriver(Generic[S]):
    """Drives one run of a graph.

    When the generator of `start` or `resume` is exhausted, `run` is the run's last state: it has
    ended, or is parked with pending effects that nobody in this process can perform.

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
        self._sessions: dict[str, ModelSession] = {}
        self._todo: list[Effect] = []
        self._source: AsyncGenerator[Delta | Event, None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._inbox: asyncio.Queue[Delta | Event | BaseException] = asyncio.Queue(INBOX_MAX)
        self._waiter: asyncio.Task[object] | None = None
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

    def abort(self, reason: str = "") -> None:
        """Stop the run now: what is pending is cancelled, the history stays paired.

        Call it from the event loop that the run is driven in.
        """
        if self._abort is not None:
            return
        self._abort = Cancelled(self._ports.clock(), reason)
        # A tool that aborts its own run is let finish: it runs inside the waiting task.
        if self._waiter is not None and self._waiter is not asyncio.current_task():
            self._interrupted = self._waiter.cancel()

    def leave(self) -> None:
        """Stop driving: nothing is journaled, and the run can be resumed from where it is."""
        self._left = True
        if self._waiter is not None and self._waiter is not asyncio.current_task():
            self._interrupted = self._waiter.cancel()

    def start(self, started: Started) -> AsyncGenerator[Seen[S], None]:
        """Begin a run and drive it until it ends or parks."""
        return self._drive((started,))

    def resume(self, run: Run[S], answers: Iterable[Event] = ()) -> AsyncGenerator[Seen[S], None]:
        """Take up a run where its journal stops, first with the answers that came meanwhile."""
        self._run = run
        return self._drive(answers)

    async def _drive(self, first: Iterable[Event]) -> AsyncGenerator[Seen[S], None]:
        for event in first:
            yield await self._take(event)
        run = self._driven()
        self._todo = self._performable(run.pending.values())
        others_ran_at = monotonic()
        try:
            while run.node != "END" and (item := await self._next(run)) is not None:
                if isinstance(item, DELTAS):
                    yield item
                    continue
                taken = await self._take(item)
                run = taken.run
                self._todo = self._performable(taken.effects)
                yield taken
                if monotonic() - others_ran_at > TURN_S:
                    await asyncio.sleep(0)
                    others_ran_at = monotonic()
        finally:
            await self._close()

    async def _next(self, run: Run[S]) -> Delta | Event | None:
        """Return what happens next: a delta or an event; None when the run parks.

        An abort cancels what is awaited here, and nothing else: never a journal being written.
        Any other cancellation passes through, even one that comes together with an abort.
        """
        if self._left or self._abort is not None:
            return await self._stopped()
        waiter = self._waiter = asyncio.current_task()
        cancelled_before = 0 if waiter is None else waiter.cancelling()
        try:
            return await self._hear(run)
        except asyncio.CancelledError:
            if not self._interrupted or (waiter and waiter.cancelling() > cancelled_before + 1):
                raise
            return await self._stopped()
        finally:
            self._waiter = None
            if self._interrupted and waiter is not None:
                self._interrupted = False
                waiter.uncancel()

    async def _stopped(self) -> Event | None:
        await self._close()
        return None if self._left else self._abort

    async def _hear(self, run: Run[S]) -> Delta | Event | None:
        """Begin what is to do, and return what is heard first."""
        todo, source = self._todo, self._source
        if source is None and len(todo) == 1 and not self._tasks:
            effect = todo.pop()
            if not isinstance(effect, CallModel):
                return await self._performer.perform(effect, run)
            source = self._source = self._ask(effect)
        if source is not None:
            item = await anext(source)
            if not isinstance(item, DELTAS):
                self._source = None
                await source.aclose()
            return item
        self._begin_tasks()
        if not self._tasks:
            return None
        heard = await self._inbox.get()
        if isinstance(heard, BaseException):
            raise heard
        if not isinstance(heard, (*DELTAS, Started, Cancelled)):
            del self._tasks[heard.effect]
        return heard

    def _begin_tasks(self) -> None:
        todo, self._todo = self._todo, []
        for effect in todo:
            name = f"{type(effect).__name__} {effect.id}"
            self._tasks[effect.id] = asyncio.create_task(self._work(effect), name=name)

    def _driven(self) -> Run[S]:
        if self._run is None:
            raise IllegalEvent("a driver starts with Started, or resumes a run")
        return self._run

    async def _take(self, event: Event) -> Step[S]:
        """Journal an event, then step: the order that makes a run survive its process."""
        if isinstance(event, Started):
            await self._ports.store.append(event.run_id, 1, event)
            taken = begin(self._graph, event, self._state)
        else:
            run = self._driven()
            await self._ports.store.append(run.id, run.seq + 1, event)
            taken = step(self._graph, run, event)
        self._run = taken.run
        return taken

    def _performable(self, effects: Iterable[Effect]) -> list[Effect]:
        return [effect for effect in effects if self._performer.can_perform(effect)]

    async def _work(self, effect: Effect) -> None:
        try:
            if isinstance(effect, CallModel):
                async with aclosing(self._ask(effect)) as items:
                    async for item in items:
                        await self._inbox.put(item)
            else:
                await self._inbox.put(await self._performer.perform(effect, self._driven()))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again where the driver listens
            await self._inbox.put(error)

    async def _ask(self, effect: CallModel) -> AsyncGenerator[Delta | Event, None]:
        """Yield a model's deltas and, last, the event that it replied or failed."""
        try:
            async with aclosing(self._session(effect.model).stream(effect.request)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        cost_usd = self._performer.price(item)
                        yield ModelReplied(self._ports.clock(), effect.id, item, cost_usd)
                        return
                    if not isinstance(item, DELTAS):  # pyright: ignore[reportUnnecessaryIsInstance]
                        raise BadReply(  # noqa: TRY301 - as below
                            f"model {effect.model!r} said {item!r:.80}: neither a delta nor a reply"
                        )
                    yield item
            raise BadReply(  # noqa: TRY301 - one boundary for what the provider and we find
                f"model {effect.model!r} ended its stream without a reply"
            )
        except asyncio.CancelledError as error:
            yield self._performer.fail(effect, cancelled_inside(error))
        except Exception as error:  # noqa: BLE001 - the effect boundary
            yield self._performer.fail(effect, error)

    def _session(self, label: str) -> ModelSession:
        session = self._sessions.get(label)
        if session is None:
            provider = self._ports.models.get(label)
            if provider is None:
                raise ConfigError(
                    f"the graph asks model {label!r}, which this driver was not given; "
                    f"it has {', '.join(map(repr, self._ports.models)) or 'no models'}"
                )
            session = self._sessions[label] = provider.session()
        return session

    async def _close(self) -> None:
        """End everything that is under way."""
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()
        tasks, self._tasks = tuple(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        while not self._inbox.empty():
            self._inbox.get_nowait()
