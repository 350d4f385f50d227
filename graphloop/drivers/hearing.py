"""What a driver has under way: effects are begun, and heard of one thing at a time.

A single effect is awaited in place; only where two or more are pending are there tasks, and every
one of them has ended when `close` has. What cannot be performed to its end here, a child run that
waits for somebody, ends unheard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ..effects import CallModel, Effect, StartRun
from ..events import Answering
from ..providers.base import Delta
from ..run import Run
from .children import Nested
from .models import DELTAS
from .perform import Performer

__all__ = ["SEEN", "Hearing", "Item", "Parked"]

S = TypeVar("S")


class Parked(Struct, frozen=True):
    """A child run waits for somebody outside."""

    effect: int


Item: TypeAlias = Delta | Nested | Answering | Parked
Listen: TypeAlias = Callable[[CallModel | StartRun], AsyncGenerator[Item, None]]

INBOX_MAX: Final = 256
"""How many deltas and events of parallel effects may wait for the driver."""

CANCEL_AGAIN_S: Final = 0.5
"""After how long an effect that has not ended is cancelled once more."""

SEEN: Final = (*DELTAS, Nested)
"""What is shown and then forgotten; everything else answers an effect."""

WATCHED: Final = (CallModel, StartRun)
"""What there is something to see of on the way."""


class Hearing(Generic[S]):
    """Performs effects, and hears what comes of them.

    Args:
        performer: performs what comes to one answer.
        listen: performs what is to be watched on the way: models and child runs.
    """

    def __init__(self, performer: Performer[S], listen: Listen) -> None:
        self.todo: list[Effect] = []
        self._performer = performer
        self._listen = listen
        self._source: AsyncGenerator[Item, None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._inbox: asyncio.Queue[Item | BaseException] = asyncio.Queue(INBOX_MAX)
        self._unheard: list[Answering] = []

    async def hear(self, run: Run[S]) -> Delta | Nested | Answering | None:
        """Begin what is to do, and return what is heard first; None when nothing will be."""
        if self._source is None and len(self.todo) == 1 and not self._tasks:
            effect = self.todo.pop()
            if not isinstance(effect, WATCHED):
                return await self._performer.perform(effect, run)
            self._source = self._listen(effect)
        if self._source is not None:
            return await self._hear_source(self._source)
        self._begin_tasks(run)
        while self._tasks:
            heard = await self._inbox.get()
            if isinstance(heard, BaseException):
                raise heard
            if isinstance(heard, SEEN):
                return heard
            # What was dropped may have been on its way.
            if self._tasks.pop(heard.effect, None) and not isinstance(heard, Parked):
                return heard
        return None

    async def drop(self, effect: Effect) -> None:
        """End one of several effects; nothing more is heard of it."""
        self.todo = [one for one in self.todo if one.id != effect.id]
        task = self._tasks.pop(effect.id, None)
        while task is not None and not task.done():
            # Again, for one that did not heed it and waits for a reader now.
            task.cancel()
            await asyncio.wait((task,), timeout=CANCEL_AGAIN_S)

    async def _hear_source(
        self, source: AsyncGenerator[Item, None]
    ) -> Delta | Nested | Answering | None:
        item = await anext(source)
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
        # What ends late, because it did not heed its cancellation, must not wait for a reader.
        full, self._inbox = self._inbox, asyncio.Queue()
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values())
        late, self._inbox = self._inbox, asyncio.Queue(INBOX_MAX)
        unheard, self._unheard = self._unheard, []
        # What was dropped may have been on its way.
        known = [one for one in (*_answers(full), *_answers(late)) if one.effect in tasks]
        return [*unheard, *known]

    def _begin_tasks(self, run: Run[S]) -> None:
        todo, self.todo = self.todo, []
        for effect in todo:
            name = f"{type(effect).__name__} {effect.id}"
            self._tasks[effect.id] = asyncio.create_task(self._work(effect, run), name=name)

    async def _work(self, effect: Effect, run: Run[S]) -> None:
        try:
            if isinstance(effect, WATCHED):
                async with aclosing(self._listen(effect)) as items:
                    async for item in items:
                        await self._inbox.put(item)
            else:
                answer = await self._performer.perform(effect, run)
                await self._inbox.put(answer)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again where the driver listens
            await self._inbox.put(error)


def _answers(inbox: asyncio.Queue[Item | BaseException]) -> list[Answering]:
    """Empty an inbox, and return the answers that were in it."""
    items = [inbox.get_nowait() for _ in range(inbox.qsize())]
    return [one for one in items if isinstance(one, Answering)]
