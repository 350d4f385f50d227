"""A worker hears news of runs from its store, whatever the store does, and ends what it began."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from graphloop import Agent
from graphloop.stores import MemoryStore, Wakes
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker


class Telling:
    """The news of a store, which reach those that wait when they are told."""

    def __init__(self) -> None:
        self.asked = 0
        self.waiting: list[asyncio.Event] = []

    async def woken(self) -> None:
        """Wait for news."""
        self.asked += 1
        self.waiting.append(asyncio.Event())
        await self.waiting[-1].wait()

    def tell(self) -> None:
        """Tell all that wait."""
        for one in self.waiting:
            one.set()


class Looking:
    """An engine that only looks."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look

    async def look(self) -> None:
        """Look."""
        await self._look()

    async def open(self) -> None:
        """Do nothing."""

    async def drain(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


async def looked(
    news: Wakes, looks: int, *, poll_s: float, at_first: Callable[[], None] = lambda: None
) -> None:
    """Let a worker look so often, and do something at the end of its first look."""
    store, count = MemoryStore(), 0
    vars(store)["woken"] = news.woken  # A store in memory tells nothing by itself.

    async def look() -> None:
        nonlocal count
        count += 1
        for _ in range(3):
            await asyncio.sleep(0)
        if count == 1:
            at_first()
        if count == looks:
            worker.stop()

    agent = Agent(ScriptedModel(["Done."]))
    worker = Worker([agent], store, poll_s=poll_s, engine=lambda _: Looking(look))
    async with asyncio.timeout(20):
        await worker.serve()


async def test_a_worker_asks_for_news_once_however_often_it_looks() -> None:
    """A store keeps each request until there are news: a quiet day has 400,000 looks."""
    news = Telling()

    await looked(news, 5, poll_s=0.001)

    assert news.asked == 1


async def test_news_that_come_during_a_look_are_not_lost() -> None:
    """The look may have passed the run's place already; the next one is an hour away."""
    news = Telling()

    await looked(news, 2, poll_s=3600, at_first=news.tell)


class Rushing:
    """News that are there whenever they are asked for."""

    async def woken(self) -> None:
        """Return at once."""


async def test_news_without_an_end_leave_room_for_all_else() -> None:
    """An event loop that one task holds cannot even end the worker."""
    await looked(Rushing(), 3, poll_s=3600)


async def test_news_in_a_row_ask_for_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first are looked into at once; others drive runs there, a thousand each second."""
    monkeypatch.setattr("graphloop.workers.worker.NEWS_PAUSE_S", 3600.0)
    store, looks = MemoryStore(), 0
    vars(store)["woken"] = partial(asyncio.sleep, 0)

    async def look() -> None:
        nonlocal looks
        looks += 1

    serving = Worker(
        [Agent(ScriptedModel(["Done."]))], store, poll_s=3600, engine=lambda _: Looking(look)
    )
    task = asyncio.create_task(serving.serve())
    for _ in range(200):
        await asyncio.sleep(0)
    assert looks == 2
    serving.stop()
    await task


async def test_news_that_fail_are_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    """The worker says so once, and hears the next news; its next look is an hour away."""
    news, asked = Telling(), 0
    woken = news.woken

    async def fail_twice() -> None:
        nonlocal asked
        asked += 1
        if asked <= 2:
            raise ConnectionError("gone")
        await woken()

    vars(news)["woken"] = fail_twice
    with caplog.at_level(logging.WARNING, "graphloop"):
        await looked(news, 5, poll_s=0.001)

    assert asked == 3
    assert [one.message for one in caplog.records] == [
        "a worker hears no news of runs, and asks again: ConnectionError('gone')"
    ]


async def test_a_worker_that_is_cancelled_twice_leaves_no_task() -> None:
    """Its engine waits for something at the end, and the caller has no patience."""
    store, begun = MemoryStore(), asyncio.Event()
    vars(store)["woken"] = Telling().woken
    before = asyncio.all_tasks()

    class Lasting(Looking):
        """An engine that does not come to an end."""

        async def drain(self) -> None:
            """Wait for ever."""
            begun.set()
            await asyncio.Event().wait()

    async def look() -> None:
        """Find nothing."""

    serving = Worker([Agent(ScriptedModel(["Done."]))], store, engine=lambda _: Lasting(look))
    task = asyncio.create_task(serving.serve())
    await asyncio.sleep(0)
    task.cancel()
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])

    assert asyncio.all_tasks() == before
