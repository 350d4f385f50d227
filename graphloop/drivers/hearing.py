"""What a driver has under way: effects are begun, and heard of one thing at a time.

A single effect is awaited in place, but for a function of the user's in a run that may be stopped:
that, and each of several effects, has a task. Every task has ended when `close` has, or is left
behind, as a function that does not heed its cancellation is. A child among several goes on to its
next step only while somebody listens, as one alone does. What cannot be performed to its end here,
a child run that waits for somebody, or a question that is left open, ends unheard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from time import monotonic
from typing import Final, Generic, TypeAlias, TypeVar
from weakref import WeakSet

from msgspec import Struct

from ..effects import AskHuman, CallModel, CallTool, CheckCalls, Effect, Invoke, StartRun
from ..errors import ToolError
from ..events import Answering
from ..providers.base import Live
from ..run import Run
from ..tool_execution import leave
from .caller import INSIDE, Caller, cancelled_inside
from .children import GRACE_S, Nested
from .models import DELTAS
from .perform import Performer
from .ports import LeftOpen

__all__ = ["SEEN", "Hearing", "Item", "Parked"]

S = TypeVar("S")


class Parked(Struct, frozen=True):
    """A child run waits for somebody outside, or a question was left open."""

    effect: int


Item: TypeAlias = Live | Nested | Answering | Parked
Inbox: TypeAlias = "asyncio.Queue[Item | BaseException]"
Listen: TypeAlias = Callable[[CallModel | StartRun], AsyncGenerator[Item, None]]

INBOX_MAX: Final = 256
"""How much may wait for the driver before those who talk at the same time wait for it."""

CANCEL_AGAIN_S: Final = 0.5
"""After how long an effect that has not ended is cancelled once more."""

LEAVE_S: Final = GRACE_S + CANCEL_AGAIN_S
"""After how long what does not heed its cancellation is left behind.

It is longer than the grace of a tool with a time limit, which ends by itself then. Models and
children are left behind by a caller who goes away only: children journal how they ended.
"""

UNDER_WAY: Final[set[asyncio.Task[None]]] = set()
"""All tasks of all runs, which the event loop itself does not hold.

Of a run that is forgotten where nobody listens, the garbage collector would else end everything at
once, in any order, instead of having the driver end what it has begun.
"""

SEEN: Final = (*DELTAS, Nested)
"""What is shown and then forgotten; everything else answers an effect."""

WATCHED: Final = (CallModel, StartRun)
"""What there is something to see of on the way."""

OF_THE_USER: Final = (CallTool, AskHuman, Invoke)
"""What always calls functions that may not heed their cancellation; a check of calls may."""


class Hearing(Generic[S]):
    """Performs effects, and hears what comes of them.

    Args:
        performer: performs what comes to one answer.
        listen: performs what is to be watched on the way: models and child runs.
        caller: tells whether whoever listens was cancelled.
        stoppable: whether the run may be stopped on its way, by anything but that.
    """

    def __init__(
        self, performer: Performer[S], listen: Listen, caller: Caller, *, stoppable: bool = False
    ) -> None:
        self.todo: list[Effect] = []
        self._performer = performer
        self._listen = listen
        self._caller = caller
        self._stoppable = stoppable
        self._source: AsyncGenerator[Item, None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._inbox: Inbox = asyncio.Queue()
        self._wanted = asyncio.Event()
        self._ended = WeakSet[asyncio.Task[None]]()
        self._watched = WeakSet[asyncio.Task[None]]()
        self._closing = False
        self._unheard: list[Answering] = []

    async def hear(self, run: Run[S]) -> Live | Nested | Answering | None:
        """Begin what is to do, and return what is heard first; None when nothing will be.

        What is awaited in place may have cancelled this task itself, for a time limit of its own
        (`async_timeout` before 4.0.3 does), and not have said `uncancel`. Nobody can tell that from
        a listener who is gone, so it counts as one, as for `asyncio.timeout`.

        Raises:
            CancelledError: whoever listens was cancelled, be it that a tool kept that to itself.
        """
        heard = await self._hear(run)
        if self._caller.is_unheeded:
            if isinstance(heard, Answering):
                self._unheard.append(heard)
            raise asyncio.CancelledError
        return heard

    async def _hear(self, run: Run[S]) -> Live | Nested | Answering | None:
        alone = self._source is None and len(self.todo) == 1 and not self._tasks
        if alone and not (self._stoppable and self._calls_user(self.todo[0], run)):
            effect = self.todo.pop()
            if not isinstance(effect, WATCHED):
                try:
                    return await self._performer.perform(effect, run)
                except LeftOpen:
                    return None
            self._source = self._listen(effect)
        if self._source is not None:
            return await self._hear_source(self._source)
        self._begin_tasks(run)
        while self._tasks:
            if self._inbox.empty():
                self._wanted.set()
            heard = await self._inbox.get()
            if isinstance(heard, BaseException):
                raise heard
            if isinstance(heard, SEEN):
                return heard
            # What was dropped may have been on its way.
            if self._tasks.pop(heard.effect, None) and not isinstance(heard, Parked):
                return heard
        return None

    def _calls_user(self, effect: Effect, run: Run[S]) -> bool:
        """Whether an effect calls a function that may not heed its cancellation."""
        if isinstance(effect, CheckCalls):
            return self._performer.asks_user(effect, run)
        return isinstance(effect, OF_THE_USER)

    async def drop(self, effect: Effect) -> None:
        """End one of several effects; nothing more is heard of it."""
        self.todo = [one for one in self.todo if one.id != effect.id]
        task = self._tasks.get(effect.id)
        if task is not None:
            self._ended.add(task)
        while task is not None and not task.done():
            # Again, for one that did not heed it and waits for a reader now.
            task.cancel()
            await asyncio.wait((task,), timeout=CANCEL_AGAIN_S)
        self._tasks.pop(effect.id, None)

    async def _hear_source(
        self, source: AsyncGenerator[Item, None]
    ) -> Live | Nested | Answering | None:
        try:
            item = await anext(source)
        except asyncio.CancelledError as error:
            raise cancelled_inside(error) from error
        if isinstance(item, SEEN):
            return item
        self._source = None
        if isinstance(item, Parked):
            await source.aclose()
            return None
        # Who is cancelled while the source closes has the answer all the same.
        self._unheard.append(item)
        await source.aclose()
        return self._unheard.pop()

    async def close(self) -> list[Answering]:
        """End everything that is under way; return the answers that nobody has heard."""
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()
        tasks, self._tasks = self._tasks, {}
        inbox, self._inbox = self._inbox, asyncio.Queue()  # A task left behind tells the old one.
        self._ended.update(tasks.values())
        # What ends late, because it did not heed its cancellation, must not wait for a reader.
        self._closing = True
        try:
            await _end({*tasks.values()}, {*self._watched})
        finally:
            self._closing = False
        unheard, self._unheard = self._unheard, []
        # What was dropped may have been on its way.
        return [*unheard, *[one for one in _answers(inbox) if one.effect in tasks]]

    def _begin_tasks(self, run: Run[S]) -> None:
        todo, self.todo = self.todo, []
        for effect in todo:
            name = f"{type(effect).__name__} {effect.id}"
            task = asyncio.create_task(self._work(effect, run, self._inbox), name=name)
            self._tasks[effect.id] = task
            if isinstance(effect, WATCHED):
                self._watched.add(task)
            UNDER_WAY.add(task)
            task.add_done_callback(UNDER_WAY.discard)

    async def _work(self, effect: Effect, run: Run[S], inbox: Inbox) -> None:
        try:
            if isinstance(effect, WATCHED):
                async with aclosing(self._listen(effect)) as items:
                    async for item in items:
                        inbox.put_nowait(item)
                        if self._is_ahead(item):
                            self._wanted.clear()
                            await self._wanted.wait()
            else:
                inbox.put_nowait(await self._performer.perform(effect, run))
        except asyncio.CancelledError:
            if asyncio.current_task() in self._ended:
                raise
            # What it awaits, or it itself, has cancelled its task: as some time limits do.
            inside = ToolError(INSIDE)
            watched = isinstance(effect, WATCHED)
            inbox.put_nowait(inside if watched else self._performer.fail(effect, inside))
        except LeftOpen:
            inbox.put_nowait(Parked(effect.id))
        except BaseException as error:  # noqa: BLE001 - raised again where the driver listens
            inbox.put_nowait(error)

    def _is_ahead(self, item: Item) -> bool:
        """Whether what has told this waits until all that was told is heard, and more is wanted.

        What a model still says is on its way already; after a step something new would begin.
        """
        if self._closing or not isinstance(item, SEEN):
            return False
        return _is_step(item) or self._inbox.qsize() >= INBOX_MAX


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
            cut, left = error, {one for one in left if not one.done()}
            for task in left:
                task.cancel()
        if monotonic() >= until:
            leave(left & late)
            left -= late
    if cut is not None:
        raise cut


def _is_step(item: object) -> bool:
    while isinstance(item, Nested):
        item = item.seen
    return not isinstance(item, DELTAS)


def _answers(inbox: Inbox) -> list[Answering]:
    """Empty an inbox, and return the answers that were in it."""
    items = [inbox.get_nowait() for _ in range(inbox.qsize())]
    return [one for one in items if isinstance(one, Answering)]
