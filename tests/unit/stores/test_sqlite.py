"""SqliteStore: one file, many tasks, several processes, any of which may die."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from graphloop.errors import ConfigError, Fenced, RunBusy, StoreError
from graphloop.events import Cancelled
from graphloop.stores.base import Ask
from graphloop.stores.sqlite.store import SqliteStore
from tests.sizes import sized
from tests.unit.stores.store_process import RUNS, append_events, hear, process, tell

EVENT = Cancelled(1.0, "…")
ASK = Ask("c1.0", "approval", "deploy", "{}", "t")


class Clock:
    """A clock that two stores may share, and a test may set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Asked(Clock):
    """A clock that tells a task of an event loop each time that a store asks it, as a beat does."""

    def __init__(self, *, stands: bool) -> None:
        super().__init__()
        self._stands = stands
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()

    def __call__(self) -> float:
        self._loop.call_soon_threadsafe(self._asked.set)
        return self.now if self._stands else time.time()

    async def again(self) -> None:
        """Wait until it is asked once more."""
        self._asked.clear()
        await self._asked.wait()


def sound(path: Path) -> bool:
    """Say whether SQLite finds the file whole."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_asking_an_absent_database_makes_none(tmp_path: Path) -> None:
    """`graphloop runs` with a misspelled path must not leave a file there."""

    async def ask() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        assert [] == list(await store.runs())
        assert [] == list(await store.overview())
        with pytest.raises(StoreError, match="no run 'r' in"):
            await store.load("r")
        await store.aclose()

    asyncio.run(ask())

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("lease_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_lease_is_a_positive_time(tmp_path: Path, lease_s: float) -> None:
    """One that never ends would keep a dead driver's run for ever."""
    with pytest.raises(ConfigError, match="lease_s"):
        SqliteStore(tmp_path / "runs.db", lease_s=lease_s)


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    """Else a typing error would cost what it was meant to keep."""
    with pytest.raises(ConfigError, match="found 'full'"):
        SqliteStore(tmp_path / "runs.db", durability="full")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_two_hundred_concurrent_appends_are_all_kept_in_order(tmp_path: Path) -> None:
    """Twenty runs of one process, each with its own journal, share the commits."""

    async def fill(store: SqliteStore, run_id: str) -> None:
        for seq in range(1, 11):
            await store.append(run_id, seq, Cancelled(float(seq), run_id))

    async def run() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(fill(store, f"run {number}"))
        assert 20 == len(await store.runs())
        for run_id in await store.runs():
            kept = [Cancelled(float(seq), run_id) for seq in range(1, 11)]
            assert kept == list(await store.load(run_id))
        await store.aclose()

    asyncio.run(run())


def test_a_claimed_run_is_busy_for_everybody_else(tmp_path: Path) -> None:
    """Until it is released: then it says how it was left, and what it waits for."""
    clock, path = Clock(), tmp_path / "runs.db"

    async def run() -> None:
        first, second = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
        await first.claim("r")
        assert [] == list(await second.overview())
        await first.append("r", 1, EVENT)

        elsewhere = rf"pid {os.getpid()}.*1970-01-01T00:17:10"
        for store, by in ((first, "through this store"), (second, elsewhere)):
            with pytest.raises(RunBusy, match=by):
                await store.claim("r")
        with pytest.raises(Fenced, match="never claimed it"):
            await second.append("r", 2, EVENT)
        with pytest.raises(StoreError, match="expected a claim of this store"):
            await second.release("r", "done", ())
        assert "running" == (await second.overview())[0].status

        await first.release("r", "parked", [ASK])
        (record,) = await second.overview()
        assert ("parked", (ASK,)) == (record.status, record.asks)
        await first.append("r", 2, EVENT)
        await second.claim("r")
        assert ("running", ()) == ((await first.overview())[0].status, record.asks[1:])
        await second.append("r", 3, EVENT)
        await second.release("r", "done", ())
        await first.claim("r")

    asyncio.run(run())


def test_an_expired_lease_can_be_taken_and_fences_its_old_owner(tmp_path: Path) -> None:
    """The old driver is not asked: it may be dead, or only slow. If slow, it must not write."""
    clock, path = Clock(), tmp_path / "runs.db"

    async def run() -> None:
        slow, quick = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
        await slow.claim("r")
        await slow.append("r", 1, EVENT)
        clock.now += 29
        await slow.append("r", 2, EVENT)
        clock.now += 29
        with pytest.raises(RunBusy):
            await quick.claim("r")
        clock.now += 1
        assert "interrupted" == (await quick.overview())[0].status
        await quick.claim("r")

        with pytest.raises(Fenced, match="in epoch 2; this driver claimed it in epoch 1"):
            await slow.append("r", 3, EVENT)
        with pytest.raises(Fenced):
            await slow.release("r", "done", ())
        await quick.append("r", 3, EVENT)
        await quick.release("r", "parked", ())
        with pytest.raises(Fenced, match="has no driver"):
            await slow.append("r", 4, EVENT)
        assert 3 == len(await slow.load("r"))
        await slow.claim("r")
        await slow.append("r", 4, EVENT)

    asyncio.run(run())


def test_a_claim_without_events_leaves_nothing(tmp_path: Path) -> None:
    """A run that failed before it began can be begun again, by whoever."""

    async def run() -> None:
        first, second = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        await first.claim("r")
        await first.release("r", "failed", ())
        await second.append("r", 1, EVENT)
        assert ["ready"] == [each.status for each in await first.overview()]

    asyncio.run(run())


def test_a_cancelled_claim_is_no_claim(tmp_path: Path) -> None:
    """Nobody would ever release it."""

    async def run() -> None:
        first, second = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        claiming = asyncio.create_task(first.claim("r"))
        await asyncio.sleep(0)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        await first.append("s", 1, EVENT)  # What is put in later is written later.
        await second.claim("r")

    asyncio.run(run())


def test_a_cancelled_claim_that_was_refused_undoes_no_other(tmp_path: Path) -> None:
    """The claim that stands was somebody else's."""

    async def run() -> None:
        store, other = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        await store.claim("r")
        claiming = asyncio.create_task(other.claim("r"))
        await asyncio.sleep(0)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        await store.append("r", 1, EVENT)
        assert "running" == (await store.overview())[0].status

    asyncio.run(run())


class FullDisk:
    """A database that nothing can be taken out of hand in, as if its disk were full, until freed.

    It is a trigger of the database itself: the statement fails, and undoes the whole transaction,
    or (ABORT) itself only.
    """

    def __init__(self, path: Path, undoes: str = "ROLLBACK") -> None:
        self._path = path
        self._do(
            "CREATE TRIGGER full BEFORE UPDATE OF owner ON run WHEN new.owner IS NULL "
            f"BEGIN SELECT RAISE({undoes}, 'database or disk is full'); END"
        )

    def free(self) -> None:
        """Make room."""
        self._do("DROP TRIGGER full")

    def _do(self, statement: str) -> None:
        with closing(sqlite3.connect(self._path)) as connection:
            connection.execute(statement)


async def left_on_a_full_disk(store: SqliteStore, path: Path) -> FullDisk:
    """Have a driver come and go, whose release cannot be written."""
    await store.claim("r")
    await store.append("r", 1, EVENT)
    disk = FullDisk(path)
    with pytest.raises(StoreError, match="disk is full"):
        await store.release("r", "parked", [ASK])
    return disk


def test_a_run_whose_release_failed_is_driven_by_nobody(tmp_path: Path) -> None:
    """The disk was full for a moment: the same store can take the run up, as its only driver."""
    path = tmp_path / "runs.db"

    async def run() -> None:
        store, other = SqliteStore(path), SqliteStore(path)
        disk = await left_on_a_full_disk(store, path)
        with pytest.raises(StoreError, match="expected a claim of this store"):
            await store.release("r", "parked", [ASK])
        disk.free()
        await store.claim("r")
        for one in (store, other):
            with pytest.raises(RunBusy):
                await one.claim("r")
        await store.append("r", 2, EVENT)
        await store.release("r", "done", ())
        assert "done" == (await other.overview())[0].status

    asyncio.run(run())


def test_a_release_that_failed_is_made_good_at_a_later_beat(tmp_path: Path) -> None:
    """No lease is prolonged that nobody drives by; and what the run waits for is known again."""
    path = tmp_path / "runs.db"

    async def run() -> None:
        clock = Asked(stands=False)
        store, other = SqliteStore(path, lease_s=0.03, clock=clock), SqliteStore(path)
        disk = await left_on_a_full_disk(store, path)
        await store.claim("another")
        while "interrupted" != (await other.overview())[0].status:
            await clock.again()
        disk.free()
        while "parked" != (await other.overview())[0].status:
            await clock.again()
        assert (ASK,) == (await other.overview())[0].asks
        await other.claim("r")
        with pytest.raises(RunBusy):
            await store.claim("r")

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_late_release_touches_no_later_claim(tmp_path: Path) -> None:
    """Nor the next one of the same store."""
    path = tmp_path / "runs.db"

    async def run() -> None:
        clock = Asked(stands=True)
        store, other = SqliteStore(path, lease_s=0.03, clock=clock), SqliteStore(path, clock=clock)
        disk = await left_on_a_full_disk(store, path)
        clock.now += 1
        await other.claim("r")
        disk.free()
        await store.claim("later")  # It is put in before some beat, and released after it.
        await clock.again()
        await clock.again()  # The first beat is over.
        await store.release("later", "done", ())
        await other.append("r", 2, EVENT)
        assert "running" == (await other.overview())[0].status

    asyncio.run(run())


def test_a_cancelled_claim_that_stands_has_no_driver(tmp_path: Path) -> None:
    """Nobody knows that it is theirs, so nobody would ever release it."""
    path = tmp_path / "runs.db"

    async def run() -> None:
        store = SqliteStore(path)
        await store.append("r", 1, EVENT)
        disk = FullDisk(path, "ABORT")
        claiming = asyncio.create_task(store.claim("r"))
        await asyncio.sleep(0)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        await store.append("s", 1, EVENT)  # What is put in later is written later.
        disk.free()
        await store.claim("r")
        await store.release("r", "done", ())
        assert "done" == (await store.overview())[0].status

    asyncio.run(run())


def test_what_could_not_be_released_is_released_by_closing(tmp_path: Path) -> None:
    """It stands as it was left, and not as interrupted."""
    path = tmp_path / "runs.db"

    async def run() -> None:
        store = SqliteStore(path)
        (await left_on_a_full_disk(store, path)).free()
        await store.aclose()
        (record,) = await SqliteStore(path).overview()
        assert ("parked", (ASK,)) == (record.status, record.asks)

    asyncio.run(run())


def test_a_closed_store_gives_its_runs_up_and_refuses_work(tmp_path: Path) -> None:
    """Waiting for the lease of a driver that has said goodbye helps nobody."""

    async def run() -> None:
        first, second = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        await first.claim("r")
        await first.append("r", 1, EVENT)
        assert not first.closed
        await first.aclose()
        await first.aclose()

        assert first.closed
        assert "interrupted" == (await second.overview())[0].status
        await second.claim("r")
        with pytest.raises(StoreError, match="is closed"):
            await first.append("r", 2, EVENT)

    asyncio.run(run())


def test_a_forgotten_store_leaves_no_thread(tmp_path: Path) -> None:
    """Not everybody closes what they open."""
    before = set(threading.enumerate())
    store = SqliteStore(tmp_path / "runs.db")
    asyncio.run(append_events(store, "r", 1, EVENT))
    (writer,) = [each for each in threading.enumerate() if each not in before and each.daemon]

    del store
    gc.collect()
    writer.join(30)

    assert not writer.is_alive()


def test_every_acknowledged_append_survives_kill_9(tmp_path: Path) -> None:
    """Processes in turn go on where the last one was killed, in the middle of three runs."""
    path = tmp_path / "runs.db"
    for round_ in range(sized(5, 10)):
        acknowledged: Counter[str] = Counter()
        with process("append", path) as other:
            for _ in range(1 + 7 * round_):
                run_id, seq = hear(other).split()
                acknowledged[run_id] = int(seq)
            other.kill()
            assert other.stdout is not None
            for line in other.stdout:
                if line.endswith("\n"):
                    run_id, seq = line.split()
                    acknowledged[run_id] = int(seq)

        assert sound(path)
        store = SqliteStore(path)
        for run_id in RUNS:
            if acknowledged[run_id]:
                kept = list(asyncio.run(store.load(run_id)))
                assert len(kept) >= acknowledged[run_id]
                assert kept == [Cancelled(seq, run_id) for seq in range(1, len(kept) + 1)]


def test_the_run_of_a_killed_process_is_listed_as_interrupted_at_once(tmp_path: Path) -> None:
    """A service that restarts resumes what the list says; it does not wait for a lease."""
    path, time = tmp_path / "runs.db", tmp_path / "time"
    time.write_text("1000", encoding="utf-8")
    store = SqliteStore(path, clock=lambda: 1000.0)

    with process("drive", path, time) as other:
        assert "driving" == hear(other)
        alive = asyncio.run(store.overview())
        other.kill()
        other.wait()
        dead = asyncio.run(store.overview())

    assert ["running"] == [record.status for record in alive]
    assert ["interrupted"] == [record.status for record in dead]


def test_a_driver_stopped_past_its_lease_is_refused_when_it_wakes(tmp_path: Path) -> None:
    """A laptop's lid, a paused container: the process is as sure of its run as ever."""
    path, time = tmp_path / "runs.db", tmp_path / "time"
    time.write_text("1000", encoding="utf-8")

    async def take_over() -> SqliteStore:
        store = SqliteStore(path, clock=lambda: float(time.read_text(encoding="utf-8")))
        with pytest.raises(RunBusy, match=f"pid {zombie.pid}"):
            await store.claim("r")
        time.write_text("1031", encoding="utf-8")
        await store.claim("r")
        return store

    with process("drive", path, time) as zombie:
        assert "driving" == hear(zombie)
        zombie.send_signal(signal.SIGSTOP)
        os.waitpid(zombie.pid, os.WUNTRACED)
        store = asyncio.run(take_over())
        zombie.send_signal(signal.SIGCONT)
        tell(zombie)

        assert "Fenced" == hear(zombie)

    asyncio.run(append_events(store, "r", 2, Cancelled(2.0, "mine")))
    assert [Cancelled(1.0, "first"), Cancelled(2.0, "mine")] == list(asyncio.run(store.load("r")))


def test_of_two_processes_that_answer_at_once_one_is_accepted(tmp_path: Path) -> None:
    """For each of a hundred questions, and what was accepted is what the run will read."""
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    asyncio.run(append_events(store, "r", 1, EVENT))

    with process("post", path, "one") as one, process("post", path, "two") as two:
        assert ["ready", "ready"] == [hear(one), hear(two)]
        tell(one)
        tell(two)
        answers = [(hear(one), hear(two)) for _ in range(100)]

    assert {("accepted", "answered"), ("answered", "accepted")} >= set(answers)
    winners = {
        str(key): "one" if one == "accepted" else "two" for key, (one, _) in enumerate(answers)
    }
    assert winners == asyncio.run(store.posted("r"))
