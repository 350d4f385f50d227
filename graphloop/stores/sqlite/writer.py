"""The writing thread of a SQLite store: it does all queued writes in one transaction.

Any number of tasks, on any event loop, queue jobs. An append that waits for nothing is committed
in its caller's thread instead (`direct`). The thread takes all queued jobs and does them
in one transaction. With several jobs, each has a savepoint, so that a failed job undoes only its
own changes. Callers get their results after the commit. At intervals, the thread renews the leases
of its holder, and repeats releases that failed before.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias, final

from ...errors import GraphloopError, StoreError
from ..database.claims import Holder, LapsedClaim, give_back
from ..database.jobs import Asking, Job, Statement, deliver, fail_all
from ..file_lock import FileLock
from ..rows import Addition
from . import journal
from .direct import Direct
from .leases import give_up, renew
from .schema import Durability, SqliteLink, commits_need_lock, fix_of, open_writer

__all__ = ["Writer"]

Queued: TypeAlias = Job[SqliteLink, Any]

JOBS_MAX: Final = 1000
BEATS_PER_LEASE: Final = 3
REST_S_MAX: Final = 3600.0
OF_THE_DISK: Final = (sqlite3.Error, OSError, ValueError, OverflowError)


@final
class Writer:
    """Does all writes to a database in one thread, which starts with the first job.

    Args:
        path: the database file; created if it is missing.
        durability: whether a commit must survive a loss of power, or only the end of the process.
        holder: the store object whose leases the thread renews.
    """

    def __init__(self, path: Path, durability: Durability, holder: Holder) -> None:
        self._path = path
        self._durability: Durability = durability
        self._lock_path = f"{path}-lock"
        self._holder = holder
        self._jobs: SimpleQueue[Queued | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._connection: SqliteLink | None = None
        self._lock_file: FileLock | None = None
        self._beat_at = 0.0
        self._direct: Direct | None = None
        self._unfinished = 0

    def append(
        self, additions: Sequence[Addition], committed: Callable[[None], None] | None
    ) -> asyncio.Future[None]:
        """Append events, as `write` does; but media and conversations are queued.

        These are large: their commit may fill the log, so the thread makes it.

        Raises:
            StoreError: the writer is stopped.
        """
        work = partial(journal.append, holder=self._holder, additions=additions)
        if committed is None:
            return self.write(work)
        return self._queued(work, committed)

    def write(self, work: Callable[[SqliteLink], None]) -> asyncio.Future[None]:
        """Commit the work at once if that waits for nothing; otherwise queue it.

        The order of jobs is kept: work is queued as long as an earlier job is unfinished.

        Raises:
            StoreError: the writer is stopped.
        """
        with self._lock:
            if self._direct is None or self._unfinished or self._stopped:
                done = None
            else:
                done = self._direct.write(work)
        return self._queued(work) if done is None else done

    def _queued(
        self,
        work: Callable[[SqliteLink], None],
        committed: Callable[[None], None] | None = None,
    ) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queue(Job(work, committed, None, future))
        return future

    def queue(self, job: Queued) -> None:
        """Queue a job for the writing thread.

        Raises:
            StoreError: the writer is stopped.
        """
        with self._lock:
            if self._stopped:
                raise StoreError(
                    f"the store {self._path} is closed. Fix: open another SqliteStore for this "
                    "path, or close this one later."
                )
            if self._thread is None:
                name = f"graphloop writes {self._path.name}"
                # A daemon, so that the interpreter can exit while a store is not closed.
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            self._unfinished += 1
            self._jobs.put(job)

    @property
    def stopped(self) -> bool:
        """Whether the writer is stopped and accepts no more jobs."""
        return self._stopped

    def stop(self) -> None:
        """Tell the thread to end after the queued jobs, without waiting; may be called again."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._jobs.put(None)

    async def ended(self) -> None:
        """Wait until the thread has ended, and has closed the database."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        jobs: list[Queued] = []
        try:
            more = True
            while more:
                jobs, more = self._take()
                beat = self._beat()
                self._transact(jobs)
                self._transact(beat)  # Apart, because a full disk undoes a whole transaction.
                with self._lock:
                    self._unfinished -= len(jobs)
                deliver(jobs)
                jobs = []  # Otherwise the jobs would keep their callers alive until the next job.
        except Exception as error:  # noqa: BLE001 - every caller gets it
            with self._lock:
                self._stopped = True
            fail_all([*jobs, *self._take_rest()], self._path, error)
        finally:
            self._close()

    def _take_rest(self) -> list[Queued]:
        """Remove and return the jobs that wait, after the last was queued."""
        return [job for _ in range(self._jobs.qsize()) if (job := self._jobs.get()) is not None]

    def _take(self) -> tuple[list[Queued], bool]:
        """Wait for a job or the next renewal; return the queued jobs, and False after `stop`.

        After `stop`, the thread ends with these jobs.
        """
        jobs: list[Queued] = []
        try:
            job = self._jobs.get(timeout=self._rest_s())
            while job is not None:
                jobs.append(job)
                if len(jobs) == JOBS_MAX:
                    return jobs, True
                job = self._jobs.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _rest_s(self) -> float | None:
        if not self._has_claims:
            return None
        return min(max(0.0, self._beat_at - time.monotonic()), REST_S_MAX)

    @property
    def _has_claims(self) -> bool:
        return bool(self._holder.held or self._holder.lapsed)

    def _beat(self) -> list[Queued]:
        """Return jobs that renew leases and repeat failed releases, if a renewal is due now."""
        due = self._has_claims and time.monotonic() >= self._beat_at
        if due or not self._has_claims:
            self._beat_at = time.monotonic() + self._holder.lease_s / BEATS_PER_LEASE
        if not due:
            return []
        jobs: list[Queued] = [Job(partial(renew, holder=self._holder))]
        for run_id, lapsed in self._holder.lapsed.items():
            asks: Callable[[SqliteLink], Asking[bool]]
            asks = partial(give_back, holder=self._holder, run_id=run_id, lapsed=lapsed)
            jobs.append(Job(Statement(asks), partial(self._written, run_id, lapsed)))
        return jobs

    def _written(self, run_id: str, lapsed: LapsedClaim, _: bool) -> None:  # noqa: FBT001 - a result
        self._holder.forget(run_id, lapsed)

    def _transact(self, jobs: Sequence[Queued]) -> None:
        try:
            self._commit(jobs)
        except Exception as error:  # noqa: BLE001 - every caller gets it
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for job in jobs:
                job.fail(_as_store_error(error, self._path))
        for job in jobs:
            job.end()

    def _commit(self, jobs: Sequence[Queued]) -> None:
        if not jobs:
            return
        if self._connection is None:
            with self._locked():
                self._connection = open_writer(self._path, self._durability, self._holder.clock)
                if self._durability == "process":
                    self._direct = Direct(self._path, self._lock_path, self._holder.clock)
        with self._locked() if commits_need_lock() else nullcontext():
            self._connection.execute("BEGIN IMMEDIATE")
            if len(jobs) == 1:
                jobs[0].do(self._connection)  # A single job needs no savepoint.
            else:
                for job in jobs:
                    self._attempt(job, self._connection)
            self._connection.execute("COMMIT")

    def _attempt(self, job: Queued, link: SqliteLink) -> None:
        """Do a job within a savepoint; if it fails, keep the error and undo only its changes."""
        link.execute("SAVEPOINT job")
        try:
            job.do(link)
        except Exception as error:
            if not link.in_transaction:
                raise  # SQLite itself has undone the whole transaction, with all other jobs.
            job.fail(_as_store_error(error, self._path))
            link.execute("ROLLBACK TO job")
        link.execute("RELEASE job")

    def _locked(self) -> FileLock:
        """Return the lock file as a context manager; the file stays open between commits."""
        if self._lock_file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock_file = FileLock(self._lock_path)
        return self._lock_file

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        with self._lock:
            direct, self._direct = self._direct, None
        try:
            if direct is not None:
                direct.close()
            if connection is not None:
                with self._locked():  # Closing the last connection makes a checkpoint.
                    give_up(connection, self._holder)
                    connection.close()
        except (StoreError, OSError, sqlite3.Error):
            if connection is not None:
                connection.close()  # Its leases then end by their time limit.
        finally:
            if self._lock_file is not None:
                self._lock_file.release()


def _as_store_error(error: Exception, path: Path) -> Exception:
    """Convert an error of the database or the disk to a `StoreError`; return others unchanged."""
    if isinstance(error, GraphloopError) or not isinstance(error, OF_THE_DISK):
        return error
    worded = StoreError(f"cannot write to {path}: {error}{fix_of(error)}")
    worded.__cause__ = error
    return worded
