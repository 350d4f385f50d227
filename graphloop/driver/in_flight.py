"""InFlight: the effects that a driver has started, heard of one thing at a time.

A single effect is awaited in place. In a run that may be stopped, a function of the user's gets a
task as soon as it waits for anything: it may not heed its cancellation, and is left behind then.
Each of several effects has a task. Every task has ended, or is left behind, when `close` has. A
child among several goes on to its next step only while the driver listens, as a lone child does. An
effect that cannot be performed to its end here (a child that waits for an outside answer, a
question that is left open) ends unheard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

from msgspec import Struct, field

from ..effects import CallModel, Effect, StartRun
from ..errors import ToolError
from ..events import Answering
from ..providers import Live
from ..run import Run
from ..tools import leave
from .cancellation import GRACE_S, INSIDE, CancelScope, cancelled_inside, started_task
from .models import DELTAS
from .performer import Performed, Performer
from .ports import ChildStep, LeftOpen, Parked

__all__ = ["SEEN", "InFlight", "Item", "Source"]

S = TypeVar("S")
T = TypeVar("T")

Item: TypeAlias = Live | ChildStep | Answering | Parked
Inbox: TypeAlias = "asyncio.Queue[Item | BaseException]"

INBOX_MAX: Final = 256
"""How much may wait for the driver before sources that talk at the same time wait for it."""

CANCEL_AGAIN_S: Final = 0.5
"""After how long an effect that has not ended is cancelled once more."""

LEAVE_S: Final = GRACE_S + CANCEL_AGAIN_S
"""After how long a tool that does not heed its cancellation is left behind.

It is longer than the grace of a tool with a time limit, which ends by itself then. Only
a caller that goes away leaves models and children behind: children journal how they ended.
"""

IN_FLIGHT: Final[set[asyncio.Task[Any]]] = set()
"""All tasks of all runs, which the event loop itself does not hold.

Of a run that is forgotten where no caller listens, the garbage collector would else end everything
at once, in any order, instead of having the driver end what it has started.
"""

SEEN: Final = (*DELTAS, ChildStep)
"""What is shown and then forgotten; everything else answers an effect."""


WATCHED: Final = (CallModel, StartRun)
"""Effects with something to see on the way."""


class Source(Protocol):
    """An effect with something to see on the way: iterated up to its answer, and then closed."""

    def __anext__(self) -> Awaitable[Item]: ...

    def aclose(self) -> Awaitable[None]:
        """End the effect, if it has not ended."""
        ...


class InFlight(Struct, Generic[S], eq=False):
    """Starts effects, and hears what comes of them.

    Args:
        performer: performs the effects that come to an answer at once.
        listen: starts the others: models and child runs.
        scope: tells whether the caller was cancelled.
        stoppable: whether the run may be stopped on its way.
        todo: the effects that start with the next wait.
        source: the only effect in flight, if it is a model or a child run.
    """

    _performer: Performer[S]
    _listen: Callable[[CallModel | StartRun], Source]
    _scope: CancelScope
    _stoppable: bool = False
    todo: list[Effect] = field(default_factory=list[Effect])
    source: Source | None = None
    _tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, Any])
    _inbox: Inbox = field(default_factory=asyncio.Queue[Any])
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: WeakSet[asyncio.Task[None]] = field(default_factory=WeakSet[Any])
    _watched: WeakSet[asyncio.Task[None]] = field(default_factory=WeakSet[Any])
    _closing: bool = False
    _unheard: list[Answering] = field(default_factory=list[Answering])

    async def next(self, run: Run[S]) -> Live | ChildStep | Answering | None:
        """Start what is to do, and return what is heard first; None when nothing will be.

        It is also None when the driver has interrupted its own wait.

        What is awaited in place may have cancelled this task itself, for a time limit of its own
        (`async_timeout` before 4.0.3 does), and not have called `uncancel`. That cannot be told
        from a caller that is gone, so it counts as one, as for `asyncio.timeout`.

        Raises:
            CancelledError: the caller was cancelled, also if a tool kept that to itself.
        """
        heard: Item | None = None
        self._scope.run = run
        try:
            with self._scope:
                if self.source is None:
                    heard = await self._start_lone(run)
                if (source := self.source) is not None:
                    item = await source.__anext__()
                    if not isinstance(item, SEEN):
                        await self._end_of(source, item)
                    heard = item
                elif heard is None:
                    heard = await self._next_of_tasks(run)
        except LeftOpen:
            return None
        except asyncio.CancelledError as error:
            if self.source is not None:
                raise cancelled_inside(error) from error
            self._unheard += [heard] if isinstance(heard, Answering) else []
            raise
        return None if isinstance(heard, Parked) else heard

    async def _start_lone(self, run: Run[S]) -> Answering | None:
        """Start the effect that is to do, if it is the only one; return its answer if it has one.

        A function of the user's that may not heed its cancellation gets a task.
        """
        if len(self.todo) != 1 or self._tasks:
            return None
        effect = self.todo.pop()
        if isinstance(effect, WATCHED):
            self.source = self._listen(effect)
            return None
        if self._stoppable and self._performer.calls_user(effect, run):
            await self._start_alone(effect, run)
            return None
        return await self._performer.perform(effect, run)

    async def drop(self, effect: Effect) -> None:
        """End one of several effects; nothing more is heard of it."""
        self.todo = [other for other in self.todo if other.id != effect.id]
        task = self._tasks.get(effect.id)
        if task is not None:
            self._ended.add(task)
        while task is not None and not task.done():
            # Again, for a task that did not heed it and waits for a reader now.
            task.cancel()
            await asyncio.wait((task,), timeout=CANCEL_AGAIN_S)
        self._tasks.pop(effect.id, None)

    async def close(self) -> list[Answering]:
        """End everything that is in flight; return the answers that the driver has not heard."""
        source, self.source = self.source, None
        if source is not None:
            await source.aclose()
        if not (self._tasks or self._unheard or self._inbox.qsize()):
            return []
        tasks, self._tasks = self._tasks, {}
        inbox, self._inbox = self._inbox, asyncio.Queue()  # A task left behind fills the old one.
        if tasks:
            self._ended.update(tasks.values())
            # What ends late, because it did not heed its cancellation, must not wait for a reader.
            self._closing = True
            try:
                await _end({*tasks.values()}, {*self._watched})
            finally:
                self._closing = False
        unheard, self._unheard = self._unheard, []
        # What was dropped may have been on its way.
        return [*unheard, *[answer for answer in _answers(inbox) if answer.effect in tasks]]

    async def _end_of(self, source: Source, answer: Answering | Parked) -> None:
        """Close the source of the only effect in flight, whose answer is here.

        The answer is kept, though the task may be cancelled while the source closes.
        """
        self.source = None
        kept = [answer] if isinstance(answer, Answering) else []
        self._unheard += kept
        await source.aclose()
        del self._unheard[len(self._unheard) - len(kept) :]

    async def _next_of_tasks(self, run: Run[S]) -> Item | None:
        """Start a task for each effect, and return the first item of any."""
        todo, self.todo = self.todo, []
        for effect in todo:
            task = asyncio.create_task(self._work(effect, run, self._inbox), name=_name(effect))
            self._add(effect, task)
        while self._tasks:
            if self._inbox.empty():
                self._wanted.set()
                item = await self._inbox.get()
            else:
                item = self._inbox.get_nowait()
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, SEEN):
                return item
            # What was dropped may have been on its way.
            if self._tasks.pop(item.effect, None) and not isinstance(item, Parked):
                return item
        return None

    async def _start_alone(self, effect: Performed, run: Run[S]) -> None:
        """Start a task that calls the caller's function; return after its first await."""
        task = started_task(self._work(effect, run, self._inbox), _name(effect))
        if self._inbox.empty():
            self._add(effect, task)
        else:
            self._tasks[effect.id] = task  # It has its answer, and never waited.
        if self._scope.is_interrupted:
            await asyncio.sleep(0)  # The function has stopped its own run, which is heard here.

    def _add(self, effect: Effect, task: asyncio.Task[None]) -> None:
        self._tasks[effect.id] = task
        if isinstance(effect, WATCHED):
            self._watched.add(task)
        IN_FLIGHT.add(task)
        task.add_done_callback(IN_FLIGHT.discard)

    async def _work(self, effect: Effect, run: Run[S], inbox: Inbox) -> None:
        try:
            if isinstance(effect, WATCHED):
                await self._watch(self._listen(effect), inbox)
            else:
                inbox.put_nowait(await self._performer.perform(effect, run))
        except asyncio.CancelledError:
            if asyncio.current_task() in self._ended:
                raise
            # What it awaits, or it itself, has cancelled its task: as some time limits do.
            inside, watched = ToolError(INSIDE), isinstance(effect, WATCHED)
            inbox.put_nowait(inside if watched else self._performer.fail(effect, inside))
        except LeftOpen:
            inbox.put_nowait(Parked(effect.id))
        except BaseException as error:  # noqa: BLE001 - raised again where the driver listens
            inbox.put_nowait(error)

    async def _watch(self, source: Source, inbox: Inbox) -> None:
        """Hand over what a source says, up to its answer.

        A source that is ahead waits until the driver has heard all of it and wants more. A model's
        deltas are on their way already; after a step a child would start something new.
        """
        async with aclosing(source):
            is_seen = True
            while is_seen:
                item = await source.__anext__()
                inbox.put_nowait(item)
                is_seen = isinstance(item, SEEN)
                ahead = is_seen and (_is_step(item) or inbox.qsize() >= INBOX_MAX)
                if ahead and not self._closing:
                    self._wanted.clear()
                    await self._wanted.wait()


def _name(effect: Effect) -> str:
    return f"{type(effect).__name__} {effect.id}"


async def _end(left: set[asyncio.Task[None]], watched: set[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait until they have ended; for those that are not watched, for a while.

    A caller that is cancelled meanwhile passes that on, and waits for no task longer than that.
    """
    cut, until = None, monotonic() + LEAVE_S
    for task in left:
        task.cancel()
    while left:
        late = left if cut is not None else left - watched
        try:
            timeout_s = max(0.0, until - monotonic()) if late else None
            _, left = await asyncio.wait(left, timeout=timeout_s)
        except asyncio.CancelledError as error:
            until = monotonic() + LEAVE_S if cut is None else until
            cut, left = error, {task for task in left if not task.done()}
            for task in left:
                task.cancel()
        if monotonic() >= until:
            leave(left & late)
            left -= late
    if cut is not None:
        raise cut


def _is_step(item: object) -> bool:
    while isinstance(item, ChildStep):
        item = item.seen
    return not isinstance(item, DELTAS)


def _answers(inbox: Inbox) -> list[Answering]:
    """Empty an inbox, and return the answers that were in it."""
    items = [inbox.get_nowait() for _ in range(inbox.qsize())]
    return [item for item in items if isinstance(item, Answering)]
