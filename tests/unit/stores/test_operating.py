"""The survey of a store, and the end of old runs, in SQLite and in PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeAlias

import pytest

from graphloop import Agent
from graphloop.errors import UnknownRun
from graphloop.events import Resumed, Setup, Started
from graphloop.media import image
from graphloop.stores import (
    PostgresStore,
    QueueState,
    SqliteStore,
    Submission,
    UnfinishedRuns,
    WaitingRuns,
    diagnosed,
)
from graphloop.stores.base import Ask, ReleaseStatus
from graphloop.stores.postgres.schema import opened
from graphloop.testing import ScriptedModel
from graphloop.values import Message, TextPart, UserMessage
from graphloop.workers import Worker
from tests.postgres_server import database, set_clock

Opened: TypeAlias = SqliteStore | PostgresStore
BLOBS = "SELECT count(*) FROM blob"
ASK = Ask("c0.0", "approval", "pay", "{}", "t", expires_at=3500.0)
PICTURE = image(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 80)
SEEN = UserMessage((PICTURE, TextPart("What is it?")))


class Desk:
    """A way to open one store at a time of the test's choice."""

    def __init__(self, open_at: Callable[[float], Opened], blobs: Callable[[], int]) -> None:
        self._open_at = open_at
        self.blobs = blobs

    @asynccontextmanager
    async def at(self, now: float) -> AsyncGenerator[Opened]:
        """Open the store; its clock stands."""
        store = self._open_at(now)
        yield store
        await store.aclose()


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """An empty store."""
    if request.param == "sqlite":
        path = tmp_path / "runs.db"

        def rows() -> int:
            with closing(sqlite3.connect(path)) as connection:
                return int(connection.execute(BLOBS).fetchone()[0])

        return Desk(lambda now: SqliteStore(path, clock=lambda: now), rows)
    dsn = database(request.getfixturevalue("postgres"))

    def open_at(now: float) -> Opened:
        set_clock(dsn, now)
        return PostgresStore(dsn, clock=lambda: now)

    def blobs() -> int:
        with opened(dsn) as link:
            return len(link.execute(b"SELECT digest FROM blob").fetchall())

    return Desk(open_at, blobs)


async def keep(
    store: Opened, run_id: str, status: ReleaseStatus | None, *parts: object, graph: str = "desk"
) -> None:
    """Keep a run of one event; without a status, no driver has driven it."""
    said = (SEEN,) if parts else ()
    first = Started(1.0, run_id, graph, said, Setup())
    if status is None:
        await store.append(run_id, 1, first)
        return
    await store.claim(run_id)
    await store.append(run_id, 1, first)
    await store.release(run_id, status, [ASK] if status == "parked" else [])


async def test_a_survey_counts_what_waits_and_names_what_is_wrong(desk: Desk) -> None:
    """An operator sees all of it without a journal read."""
    async with desk.at(1000) as store:
        await keep(store, "a", "blocked")
        await keep(store, "b", "done")
        await keep(store, "b/c0", "done")
        await keep(store, "gone/c0", "done")
        await keep(store, "d", "parked")
        await keep(store, "e", None, graph="nobody")
    async with desk.at(2000) as store:
        await keep(store, "f", "done")
        await keep(store, "g", None, graph="nobody")
        await store.claim("f")
        survey = await store.survey()
        assert (survey.drivers, survey.lapsed) == (1, 0)
        assert survey.runs["running"] == 1
        await store.release("f", None, [])
    async with desk.at(4000) as store:
        survey = await store.survey()

    assert survey.now == 4000
    assert survey.runs == {"blocked": 1, "done": 4, "parked": 1, "ready": 2}
    assert survey.oldest == {"blocked": 1000, "done": 1000, "parked": 1000, "ready": 1000}
    assert survey.waiting == (WaitingRuns("desk", 1, 3500.0), WaitingRuns("nobody", 2, 1000.0))
    assert survey.blocked == {"a": ""}
    assert survey.orphans == ("gone/c0",)
    assert (survey.drivers, survey.lapsed) == (0, 0)
    assert survey.sizes["bytes"] > 0


async def test_a_survey_counts_queues_and_deadlines_and_who_serves(desk: Desk) -> None:
    """An operator sees which queue is slow, what is late, and whose code is not there any more."""
    async with desk.at(1000) as store:
        for run_id, ends_s in (("a", 500.0), ("b", 5000.0), ("c", None), ("d", None)):
            queue = "default" if run_id == "d" else "bulk"
            first = Started(1.0, run_id, "desk", (), Setup())
            await store.enlist(first, Submission(deadline_s=ends_s, queue=queue))
        for run_id in ("c", "d"):
            await store.claim(run_id)
            await store.append(run_id, 2, Resumed(1.0, f"code of {run_id}"))
            await store.release(run_id, "parked" if run_id == "c" else "done", [])
        assert (await store.survey()).served == {}
        await store.attend("worker", {"desk": "new code", "other": ""})
    async with desk.at(2000) as store:
        await store.attend("worker", {"desk": "newer code"})
        await store.claim("b")
        survey = await store.survey()
        await store.release("b", None, [])

    assert survey.queues == (QueueState("bulk", 1, 1, 1000.0, 1),)
    assert survey.unfinished == (UnfinishedRuns("desk", "code of c", 1),)
    assert survey.served == {"desk": ["newer code"]}
    assert [one.text.partition(" of ")[0] for one in diagnosed(survey, 2000)[1:]] == ["1 run"]


async def test_workers_of_one_store_object_are_counted_each(desk: Desk) -> None:
    """A process has one store for all its workers, and some of them end before it."""
    async with desk.at(1000) as store:
        workers = [
            Worker([Agent(ScriptedModel([""]), name=name)], store, pinned=pinned, poll_s=3600)
            for name, pinned in (("desk", True), ("desk", False), ("other", False))
        ]
        await store.attend("none", {})  # Creates the tables.
        serving = [asyncio.create_task(worker.serve()) for worker in workers]
        while sum(map(len, (await store.survey()).served.values())) < len(workers):
            pass
        served = (await store.survey()).served
        for worker in workers:
            worker.stop()
        await asyncio.gather(*serving)
        left = (await store.survey()).served

    assert sorted(map(bool, served["desk"])) == [False, True]
    assert served["other"] == [""]
    assert left == {}


async def test_an_empty_store_is_surveyed(desk: Desk) -> None:
    """Before the first run."""
    async with desk.at(10) as store:
        assert await store.prune(0, 1) == 0
        survey = await store.survey()

    assert (survey.runs, survey.waiting, survey.drivers) == ({}, (), 0)


async def test_only_families_that_are_over_and_old_are_pruned(desk: Desk) -> None:
    """A parked, blocked or recent run keeps its whole family, and its chat."""
    async with desk.at(1000) as store:
        for run_id in ("old", "old/c0", "old/c0/c1", "chat.1", "chat.2", "half", "talk.1"):
            await keep(store, run_id, "done")
        await keep(store, "half/c0", "parked")
        await keep(store, "failed", "failed")
        await keep(store, "blocked", "blocked")
        await keep(store, "waits", None)
    async with desk.at(2000) as store:
        await keep(store, "talk.2", "done")
        await keep(store, "new", "cancelled")
        assert await store.prune(1001, 500) == 0
        assert await store.prune(1000, 2) > 0
        while await store.prune(1000, 2):
            pass
        assert await store.runs() == [
            *("blocked", "half", "half/c0", "new", "talk.1", "talk.2", "waits")
        ]
        with pytest.raises(UnknownRun):
            await store.load("old")


async def test_media_go_with_the_last_run_that_shows_them(desk: Desk) -> None:
    """A picture in two runs is kept once, and stays as long as one of them."""
    async with desk.at(1000) as store:
        await keep(store, "old", "done", PICTURE)
    async with desk.at(2000) as store:
        await keep(store, "new", "done", PICTURE)
        assert await store.prune(1000, 500) == 1
        (first,) = await store.load("new")
        assert isinstance(first, Started)
        assert first.messages == (SEEN,)
        assert desk.blobs() == 1
    async with desk.at(3000) as store:
        assert await store.prune(1000, 500) == 1
        assert desk.blobs() == 0
        await keep(store, "again", "done", PICTURE)
        (first,) = await store.load("again")
        assert isinstance(first, Started)
        assert first.messages == (SEEN,)


async def begin(store: Opened, run_id: str, messages: Sequence[Message]) -> None:
    """Keep a run that began with this conversation, and is over."""
    await store.append(run_id, 1, Started(1.0, run_id, "desk", tuple(messages), Setup()))
    await store.claim(run_id)
    await store.release(run_id, "done", [])


async def test_a_conversation_goes_with_the_last_run_that_began_with_it(desk: Desk) -> None:
    """Otherwise the pictures of a chat would stay for ever, and what was said about them."""
    said = (SEEN, *[UserMessage(f"{number} {'x' * 3000}") for number in range(4)])
    async with desk.at(1000) as store:
        await begin(store, "desk.1", said[:3])
        await begin(store, "desk.2", said)
        await begin(store, "other", said[:3])
    async with desk.at(2000) as store:
        await begin(store, "new", said[:4])
        assert await store.prune(1000, 500) == 3
        (first,) = await store.load("new")
        assert isinstance(first, Started)
        assert first.messages == said[:4]
        assert desk.blobs() > 1
    async with desk.at(3000) as store:
        assert await store.prune(1000, 500) == 1
        assert desk.blobs() == 0


async def test_a_store_writes_a_conversation_again_that_was_pruned(desk: Desk) -> None:
    """It remembers the parts that it has saved, and another process may prune them."""
    said = (SEEN, *[UserMessage(f"{number} {'x' * 3000}") for number in range(6)])
    async with desk.at(1000) as store:
        await begin(store, "talk.1", said[:4])
        async with desk.at(2000) as other:
            assert await other.prune(0, 500) == 1
        assert desk.blobs() == 0
        await begin(store, "again", said[:4])
        await begin(store, "more", said)
    async with desk.at(3000) as store:
        for run_id, messages in (("again", said[:4]), ("more", said)):
            (first,) = await store.load(run_id)
            assert isinstance(first, Started)
            assert first.messages == messages


async def test_the_conversation_of_a_later_question_stays(desk: Desk) -> None:
    """A conversation is kept once for many runs, with the media that it shows."""
    said = tuple(UserMessage(f"{number} {'x' * 3000}") for number in range(4))
    async with desk.at(1000) as store:
        await store.append("old", 1, Started(1.0, "old", "desk", (SEEN, *said), Setup()))
        await store.claim("old")
        await store.release("old", "done", [])
    async with desk.at(2000) as store:
        await store.append("new", 1, Started(1.0, "new", "desk", (SEEN, *said), Setup()))
        assert await store.prune(1000, 500) == 1
        (first,) = await store.load("new")

    assert isinstance(first, Started)
    assert first.messages == (SEEN, *said)
