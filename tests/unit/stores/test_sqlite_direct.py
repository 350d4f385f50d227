"""Commits in the caller's thread: only those that wait for nothing, and never out of order."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from graphloop.errors import StoreError
from graphloop.stores.database.claims import Holder
from graphloop.stores.database.jobs import Job
from graphloop.stores.sqlite.direct import COMMITS_MAX, THREAD_COMMITS
from graphloop.stores.sqlite.schema import Durability, SqliteLink, commits_need_lock
from graphloop.stores.sqlite.writer import Writer


def writer_of(path: Path, durability: Durability = "process") -> Writer:
    return Writer(path / "runs.db", durability, Holder(30.0, lambda: 1.0))


def insert(number: int, threads: list[int]) -> Callable[[SqliteLink], None]:
    """Return work that notes its thread, and can be done once only."""

    def work(connection: SqliteLink) -> None:
        connection.execute(
            "INSERT INTO run(number, run_id, created, updated) VALUES(?, ?, 0, 0)",
            (number, f"run {number}"),
        )
        threads.append(threading.get_ident())

    return work


async def in_turn(writer: Writer, count: int, first: int = 1) -> list[bool]:
    """Write so many rows one after the other; return for each whether this thread committed it."""
    threads: list[int] = []
    for number in range(first, first + count):
        await writer.write(insert(number, threads))
    return [thread == threading.get_ident() for thread in threads]


async def ended(writer: Writer) -> None:
    writer.stop()
    await writer.ended()


def rows_in(path: Path) -> int:
    with closing(sqlite3.connect(path / "runs.db")) as connection:
        (count,) = connection.execute("SELECT count(*) FROM run").fetchone()
    return int(count)


def test_a_commit_that_waits_for_nothing_is_made_at_once(tmp_path: Path) -> None:
    """Handing it to a thread and back would cost more than the commit."""

    async def run() -> list[bool]:
        writer = writer_of(tmp_path)
        try:
            return await in_turn(writer, 3)
        finally:
            await ended(writer)

    assert asyncio.run(run()) == [False, True, True]  # The first one creates the file.
    assert rows_in(tmp_path) == 3


def test_a_commit_that_waits_for_the_disk_is_the_threads(tmp_path: Path) -> None:
    """No sync of the disk may stop the event loop."""

    async def run() -> list[bool]:
        writer = writer_of(tmp_path, "power")
        try:
            return await in_turn(writer, 3)
        finally:
            await ended(writer)

    assert asyncio.run(run()) == [False, False, False]


def test_checkpoints_are_left_to_the_thread(tmp_path: Path) -> None:
    """A checkpoint, and the first commit after it, sync the disk."""

    async def run() -> list[bool]:
        writer = writer_of(tmp_path)
        try:
            return await in_turn(writer, 2 + COMMITS_MAX + THREAD_COMMITS)
        finally:
            await ended(writer)

    direct = asyncio.run(run())

    assert direct == [False, *[True] * COMMITS_MAX, *[False] * THREAD_COMMITS, True]


def test_no_commit_overtakes_a_job_of_the_thread(tmp_path: Path) -> None:
    """Events of a run stand in the order in which they were appended."""
    go_on, threads = threading.Event(), list[int]()

    async def run() -> None:
        writer = writer_of(tmp_path)
        await in_turn(writer, 1)
        held: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        writer.queue(Job(lambda _: go_on.wait(30), None, None, held))
        later = [writer.write(insert(number, threads)) for number in (2, 3)]
        assert [one.done() for one in later] == [False, False]
        go_on.set()
        await asyncio.gather(held, *later)
        await ended(writer)

    asyncio.run(run())

    assert threading.get_ident() not in threads
    assert rows_in(tmp_path) == 3


def test_another_writer_is_waited_for_by_the_thread(tmp_path: Path) -> None:
    """The event loop goes on while another program holds the database."""
    threads: list[int] = []

    async def run() -> None:
        writer = writer_of(tmp_path)
        await in_turn(writer, 2)
        with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = writer.write(insert(3, threads))
            assert not waiting.done()
            other.execute("ROLLBACK")
        await waiting
        await ended(writer)

    asyncio.run(run())

    assert threading.get_ident() not in threads
    assert rows_in(tmp_path) == 3


@pytest.mark.skipif(not commits_need_lock(), reason="this SQLite needs no file lock for a commit")
def test_a_held_file_lock_is_waited_for_by_the_thread(tmp_path: Path) -> None:
    """Another process holds it during a checkpoint, which takes as long as the disk does."""
    threads: list[int] = []

    async def run() -> None:
        writer = writer_of(tmp_path)
        await in_turn(writer, 2)
        with (tmp_path / "runs.db-lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = writer.write(insert(3, threads))
            assert not waiting.done()
        await waiting
        await ended(writer)

    asyncio.run(run())

    assert threading.get_ident() not in threads


def test_work_that_fails_changes_nothing_and_tells_its_caller(tmp_path: Path) -> None:
    """A refused append must not leave half of itself."""

    def refused(connection: SqliteLink) -> None:
        insert(7, [])(connection)
        raise StoreError("out of order")

    async def run() -> None:
        writer = writer_of(tmp_path)
        await in_turn(writer, 2)
        with pytest.raises(StoreError, match="out of order"):
            await writer.write(refused)
        with pytest.raises(StoreError, match="UNIQUE"):  # The thread repeats it, and words it.
            await writer.write(insert(2, []))
        assert await in_turn(writer, 1, first=3) == [True]
        await ended(writer)

    asyncio.run(run())

    assert rows_in(tmp_path) == 3


def test_a_stopped_writer_commits_nothing(tmp_path: Path) -> None:
    """A closed store's connection is closed, too."""

    async def run() -> None:
        writer = writer_of(tmp_path)
        await in_turn(writer, 2)
        await ended(writer)
        with pytest.raises(StoreError, match="is closed"):
            writer.write(insert(3, []))

    asyncio.run(run())

    assert rows_in(tmp_path) == 2
