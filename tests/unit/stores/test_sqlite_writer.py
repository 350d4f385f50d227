"""Writer: many pieces of work in one transaction, each of which stands or falls alone."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from graphloop.errors import StoreError
from graphloop.stores.database.claims import HeldRun, Holder
from graphloop.stores.database.jobs import Job, at_once
from graphloop.stores.sqlite.leases import claim
from graphloop.stores.sqlite.schema import SqliteLink
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.stores.sqlite.writer import Writer

T = TypeVar("T")


def writer_of(path: Path, holder: Holder | None = None) -> Writer:
    return Writer(path / "runs.db", "process", holder or Holder(30.0, lambda: 1.0))


async def done(
    writer: Writer,
    work: Callable[[SqliteLink], T],
    committed: Callable[[T], None] | None = None,
) -> T:
    """Queue work, and return its result."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    writer.queue(Job(work, committed, None, future))
    return await future


def insert(run_id: str) -> Callable[[SqliteLink], None]:
    """Return work that can be seen afterwards, and be done once only."""

    def work(connection: SqliteLink) -> None:
        connection.execute(
            "INSERT INTO run(run_id, created, updated, next_seq) VALUES(?, 0, 0, 2)", (run_id,)
        )

    return work


def names(connection: SqliteLink) -> list[str]:
    return [name for (name,) in connection.execute("SELECT run_id FROM run ORDER BY number")]


class Gate:
    """Work that holds the writer's thread up, until the rest is put in."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.statements: list[str] = []

    def __call__(self, connection: SqliteLink) -> None:
        self.go_on.wait(30)
        connection.set_trace_callback(self.statements.append)


async def put_in_at_once(
    writer: Writer, works: list[Callable[[SqliteLink], None]], gate: Gate
) -> list[Exception | None]:
    """Have all works done in one go, and return how each one failed."""

    async def one(work: Callable[[SqliteLink], None]) -> Exception | None:
        try:
            await done(writer, work)
        except StoreError as error:
            return error
        return None

    async with asyncio.TaskGroup() as group:
        group.create_task(one(gate))
        await asyncio.sleep(0)
        tasks = [group.create_task(one(work)) for work in works]
        await asyncio.sleep(0)
        gate.go_on.set()
    return [task.result() for task in tasks]


def test_what_waits_is_committed_at_once(tmp_path: Path) -> None:
    """Two hundred appends cost one sync of the disk, not two hundred."""
    gate = Gate()

    async def run() -> None:
        writer = writer_of(tmp_path)
        works = [insert(f"run {number}") for number in range(200)]
        assert {None} == set(await put_in_at_once(writer, works, gate))
        assert 200 == len(await done(writer, names))
        writer.stop()
        await writer.ended()

    asyncio.run(run())

    # The gate's own commit may be seen, and that of the last look is.
    assert gate.statements.count("COMMIT") <= 3


def test_what_is_refused_undoes_itself_only(tmp_path: Path) -> None:
    """Its neighbours in the transaction belong to other runs."""

    def half(connection: SqliteLink) -> None:
        insert("half")(connection)
        raise StoreError("refused")

    async def run() -> None:
        writer = writer_of(tmp_path)
        works = [insert("a"), half, insert("a"), insert("b"), insert("\ud800")]
        failed = await put_in_at_once(writer, works, Gate())
        assert [None, "refused", None] == [failed[0], str(failed[1]), failed[3]]
        assert "UNIQUE" in str(failed[2])
        assert "surrogates" in str(failed[4])
        assert ["a", "b"] == await done(writer, names)

    asyncio.run(run())


def test_a_lost_transaction_is_told_to_all_in_it(tmp_path: Path) -> None:
    """A full disk makes SQLite undo everything: nobody may think theirs was kept."""

    def ruin(connection: SqliteLink) -> None:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    async def run() -> None:
        writer = writer_of(tmp_path)
        failed = await put_in_at_once(writer, [insert("a"), ruin, insert("b")], Gate())
        assert ["disk is full"] * 3 == [str(each)[-12:] for each in failed]
        await done(writer, insert("c"))
        assert ["c"] == await done(writer, names)

    asyncio.run(run())


def test_a_commit_that_fails_is_rolled_back(tmp_path: Path) -> None:
    """And the next one succeeds."""

    def dangle(connection: SqliteLink) -> None:
        connection.execute("PRAGMA defer_foreign_keys=ON")
        connection.execute("INSERT INTO signal VALUES(7, 'k', 's', 'd', 0)")

    async def run() -> None:
        writer = writer_of(tmp_path)
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            await done(writer, dangle)
        await done(writer, insert("c"))
        assert ["c"] == await done(writer, names)

    asyncio.run(run())


def test_work_whose_waiter_is_cancelled_does_no_harm(tmp_path: Path) -> None:
    """It is done or not; its neighbours hear their own results, and only theirs."""
    gate = Gate()

    async def run() -> None:
        writer = writer_of(tmp_path)
        holding = asyncio.create_task(done(writer, gate))
        lapsed = asyncio.create_task(done(writer, insert("a")))
        stays = asyncio.create_task(done(writer, names))
        await asyncio.sleep(0)
        lapsed.cancel()
        gate.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await lapsed
        await holding
        assert await stays in (["a"], [])

    asyncio.run(run())


def test_an_event_loop_that_ended_meanwhile_does_no_harm(tmp_path: Path) -> None:
    """A store may serve many of them, one after the other."""
    writer, gate = writer_of(tmp_path), Gate()

    async def leave() -> None:
        lapsed = asyncio.create_task(done(writer, gate))
        await asyncio.sleep(0)
        lapsed.cancel()

    asyncio.run(leave())
    gate.go_on.set()

    assert [] == asyncio.run(done(writer, names))


def test_a_database_that_cannot_be_opened_is_told_and_tried_again(tmp_path: Path) -> None:
    """The disk may be mounted a second later."""
    (tmp_path / "runs.db").mkdir()
    writer = writer_of(tmp_path)

    with pytest.raises(StoreError, match="cannot open"):
        asyncio.run(done(writer, names))
    (tmp_path / "runs.db").rmdir()

    assert [] == asyncio.run(done(writer, names))


def test_a_stopped_writer_takes_nothing(tmp_path: Path) -> None:
    """Also one that never began."""
    writer = writer_of(tmp_path)
    writer.stop()

    with pytest.raises(StoreError, match="is closed"):
        asyncio.run(done(writer, names))
    asyncio.run(writer.ended())

    assert [] == list(tmp_path.iterdir())


def test_an_error_that_ends_the_thread_is_told_to_all_that_wait(tmp_path: Path) -> None:
    """Otherwise they would wait for ever, and later callers, too."""
    gate = Gate()

    def refuse(_: None) -> None:
        raise ValueError("unexpected")

    async def run() -> None:
        writer = writer_of(tmp_path)
        waiting = [asyncio.ensure_future(done(writer, gate, refuse))]
        await asyncio.sleep(0)
        waiting += [asyncio.ensure_future(done(writer, insert(name))) for name in "ab"]
        await asyncio.sleep(0)
        gate.go_on.set()
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert ["unexpected" in str(one) for one in told] == [False, True, True]
        assert [type(one) for one in told[1:]] == [StoreError] * 2
        with pytest.raises(StoreError, match="is closed"):
            await done(writer, names)
        await writer.ended()

    asyncio.run(run())


def test_an_idle_claim_is_renewed(tmp_path: Path) -> None:
    """A tool may run for an hour between two events."""
    now, renewed = [100.0], threading.Event()

    def clock() -> float:
        if now[0] == 200.0:
            renewed.set()
        return now[0]

    holder = Holder(0.03, clock)
    holder.claims.take("r")
    writer = writer_of(tmp_path, holder)

    def claimed(held: HeldRun) -> None:
        holder.held["r"] = held

    def until(connection: SqliteLink) -> float:
        return float(connection.execute("SELECT lease_until FROM run").fetchone()[0])

    asyncio.run(done(writer, lambda connection: at_once(claim(connection, holder, "r")), claimed))
    now[0] = 200.0
    assert renewed.wait(30)

    assert 200.03 == asyncio.run(done(writer, until))
    writer.stop()
    asyncio.run(writer.ended())


def test_an_idle_writer_rests_between_two_beats(tmp_path: Path) -> None:
    """A run that waits for a person for a day must not keep a core busy."""
    asked, busy = [0], threading.Event()

    def clock() -> float:
        asked[0] += 1
        if asked[0] > 20:
            busy.set()
        return 100.0

    holder = Holder(30.0, clock)
    holder.claims.take("r")
    writer = writer_of(tmp_path, holder)

    def claimed(held: HeldRun) -> None:
        holder.held["r"] = held

    asyncio.run(done(writer, lambda connection: at_once(claim(connection, holder, "r")), claimed))

    assert not busy.wait(0.3)
    writer.stop()
    asyncio.run(writer.ended())


def test_a_file_system_without_locks_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems: whoever uses a store knows one kind of error."""

    def refuse(_: int, __: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(StoreError, match=r"cannot write to .*expected a local disk"):
        asyncio.run(SqliteStore(tmp_path / "runs.db").claim("r"))
