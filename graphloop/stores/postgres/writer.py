"""The writing thread of a PostgreSQL store, and its connection.

Any number of tasks, on any event loop, queue jobs. The thread writes all appends that wait in one
statement, for all runs of the process, and other jobs in one transaction, each with a savepoint. It
beats for its holder, and hears from other processes that a run waits for a driver.

A connection that breaks is opened again, and the jobs are done again: an append that was committed
without an answer is known by its number and its bytes.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from functools import partial
from selectors import EVENT_READ
from typing import Final, TypeVar, final

import psycopg
from psycopg.errors import LockNotAvailable, ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus

from ...errors import StoreError
from ..database.claims import Holder, give_back
from ..database.jobs import Job, at_once, deliver, fail_all
from ..rows import Addition
from . import journal, leases
from .batches import (
    Queued,
    QueuedAppend,
    append_batch,
    ask_all,
    do,
    singles_first,
    take_appends,
    take_queued,
    with_retry,
)
from .outages import is_of_one_job, persist
from .schema import CHANNEL, PostgresLink, opened, place_of, told

__all__ = ["Writer"]

T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")

SINGLES_MAX: Final = 100
"""The most statements that are sent before the first answer is read."""
BEATS_PER_LEASE: Final = 3
# Not `select` where there is `poll`: it takes no descriptor from 1,024 on.
SELECTOR: Final = selectors.SelectSelector if sys.platform == "win32" else selectors.PollSelector


@final
class Writer:
    """Does all writes to a database in one thread, which starts with the first job.

    Args:
        dsn: the database.
        holder: the store object for which the thread beats.
        patience_s: the seconds to wait for a database that has gone away.
    """

    def __init__(self, dsn: str, holder: Holder, patience_s: float) -> None:
        self._dsn = dsn
        self._holder = holder
        self._patience_s = patience_s
        self._jobs: deque[Queued] = deque()
        self._appends: deque[QueuedAppend] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._bell: socket.socket | None = None
        self._link: PostgresLink | None = None
        self._was_open = False
        self._beat_at = 0.0
        self._waking: list[Future[None]] = []
        self.stopped = False

    def append(
        self, additions: Sequence[Addition], committed: Callable[[None], None] | None
    ) -> asyncio.Future[None]:
        """Queue events, in one statement with all that wait, if they are of one claimed run.

        Raises:
            StoreError: the writer is stopped.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        first, *others = additions

        def work(link: PostgresLink) -> None:
            for addition in additions:
                journal.append_unclaimed(link, self._holder, addition)

        job = Job(work, committed, None, future, run_id=first.run_id)
        if others or (held := self._holder.held.get(first.run_id)) is None:
            self._put(job, self._jobs)
        else:
            self._put(QueuedAppend(first, held, job), self._appends)
        return future

    def queue(self, job: Queued) -> None:
        """Queue a job.

        Raises:
            StoreError: the writer is stopped.
        """
        self._put(job, self._jobs)

    def _put(self, work: T, line: deque[T]) -> None:
        with self._lock:
            if self.stopped:
                raise StoreError(
                    f"the store {place_of(self._dsn)} is closed. Fix: open another, or close this "
                    "one later."
                )
            if self._thread is None:
                self._bell, ear = socket.socketpair()
                self._bell.settimeout(0)
                # A daemon, so that the interpreter can exit while a store is not closed.
                self._thread = threading.Thread(
                    target=self._run, args=(ear,), name="graphloop writes", daemon=True
                )
                self._thread.start()
            line.append(work)
        self._ring()

    def woken(self) -> Future[None]:
        """Return a future that ends when a process tells of a run that may wait."""
        future: Future[None] = Future()
        with self._lock:
            self._waking.append(future)
        return future

    def stop(self) -> None:
        """Tell the thread to end after the queued jobs, without waiting; may be called again."""
        with self._lock:
            self.stopped = True
        self._ring()

    async def ended(self) -> None:
        """Wait until the thread has ended, and has closed the connection."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _ring(self) -> None:
        if self._bell is not None:
            # A full socket wakes the thread already; a closed one has no thread.
            with suppress(OSError):
                self._bell.send(b"\0")

    def _run(self, ear: socket.socket) -> None:
        at_work: list[Queued] = []
        try:
            while self._work(at_work):
                at_work.clear()  # Otherwise they would keep their callers alive.
                if not (self._jobs or self._appends):
                    self._wait(ear)
        except Exception as error:  # noqa: BLE001 - every caller gets it
            with self._lock:
                self.stopped = True
                waiting = [*[one.job for one in self._appends], *self._jobs]
                self._appends.clear()
                self._jobs.clear()
            fail_all([*at_work, *waiting], place_of(self._dsn), error)
        finally:
            self._close()
            ear.close()

    def _work(self, at_work: list[Queued]) -> bool:
        """Do the jobs that wait, and note them in `at_work`; return False after the last of all."""
        with self._lock:
            appends, jobs = take_appends(self._appends), take_queued(self._jobs)
            if not (appends or jobs) and self.stopped:
                return False
        by_job = {one.job: one for one in appends}
        at_work += [*by_job, *jobs]
        self._attempt([*by_job], partial(self._append, by_job))
        while jobs:
            self._attempt(jobs, self._transact)
            self._beat()
            jobs = [job for job in jobs if not job.is_over]
        self._beat()
        return True

    def _wait(self, ear: socket.socket) -> None:
        """Wait for a job, a notification or the next beat."""
        rest_s = None
        if self._holder.is_announced:
            rest_s = max(0.0, self._beat_at - time.monotonic())
        with SELECTOR() as sources:
            sources.register(ear, EVENT_READ)
            if self._link is not None and not self._link.closed:
                sources.register(self._link, EVENT_READ)
            readable = [key.fileobj for key, _ in sources.select(rest_s)]
        if ear in readable:
            ear.recv(4096)
        if self._link in readable:
            self._attempt([], lambda _, link: _hear(link))

    def _attempt(
        self, jobs: Sequence[Queued], work: Callable[[Sequence[Queued], PostgresLink], None]
    ) -> None:
        """Do jobs on an open connection, and again after it broke; fail what is not done.

        An error that may be that of one job undoes them all, so each half is done apart.
        """
        if not jobs and self._link is None:
            return
        # A beat has no caller that waits: the next job or beat does it when the database answers.
        patience_s = self._patience_s if jobs and self._was_open else 0.0
        try:
            persist(self._dsn, patience_s, partial(self._do_once, jobs, work))
        except Exception as error:  # noqa: BLE001 - every caller gets it
            todo = [job for job in jobs if not job.is_over]
            half = len(todo) // 2
            if half and is_of_one_job(error):
                for part in (todo[:half], todo[half:]):
                    self._attempt(part, work)
                    self._beat()
            else:
                for job in todo:
                    job.fail(error)
                    job.end()
        deliver([job for job in jobs if job.is_over])

    def _do_once(
        self,
        jobs: Sequence[Queued],
        work: Callable[[Sequence[Queued], PostgresLink], None],
        is_again: bool,  # noqa: FBT001 - the parameter of a callback
    ) -> None:
        """Do jobs on an open connection; one alone waits for a lock by repetition."""
        if self._link is None or self._link.closed:
            self._link = None
            self._link = self._open_link()
            self._was_open = True
        self._link.is_again = is_again
        try:
            if is_again and self._holder.is_announced:
                leases.beat(self._link, self._holder)
            work(jobs, self._link)
        except psycopg.Error as error:
            # A standby refuses writes, and a new connection may find the primary. And libpq
            # keeps a connection open that broke while it sent a query: no query gets through.
            is_idle = self._link.info.transaction_status is TransactionStatus.IDLE
            if isinstance(error, ReadOnlySqlTransaction) or not is_idle:
                self._link.close()
            if isinstance(error, LockNotAvailable) and sum(not job.is_over for job in jobs) > 1:
                raise StoreError(f"{place_of(self._dsn)}: {told(error)}") from error
            raise

    def _open_link(self) -> PostgresLink:
        link = opened(self._dsn)
        link.add_notify_handler(lambda _: self._wake())
        try:
            # A job that waits for a lock waits by repetition, so that beats come between.
            wait_ms = max(1, int(1000 * self._holder.lease_s / BEATS_PER_LEASE))
            link.execute(f"SET lock_timeout TO {wait_ms}".encode())
            link.execute(f"LISTEN {CHANNEL}")  # pyright: ignore[reportArgumentType]
            if self._holder.is_announced:
                leases.beat(link, self._holder)  # The end of the last session has freed its lock.
        except BaseException:
            link.close()
            raise
        return link

    def _wake(self) -> None:
        with self._lock:
            waking, self._waking = self._waking, []
        for future in waking:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def _append(
        self, appends: Mapping[Queued, QueuedAppend], jobs: Sequence[Queued], link: PostgresLink
    ) -> None:
        """Append all events that wait, by one statement if no two of them are of one run."""
        waiting = [appends[job] for job in jobs if not job.is_over]
        while waiting:
            batch: dict[str, QueuedAppend] = {}
            for one in waiting:
                batch.setdefault(one.job.run_id, one)
            append_batch(link, [*batch.values()])
            waiting = [one for one in waiting if batch[one.job.run_id] is not one]

    def _transact(self, jobs: Sequence[Queued], link: PostgresLink) -> None:
        """Do jobs in one transaction, in the order of their runs: those of one statement first.

        Jobs that would make the next beat late are left: a lease that ends during a transaction
        fences every claim that it makes.
        """
        todo = sorted([job for job in jobs if not job.is_over], key=lambda job: job.run_id)
        singles = singles_first(todo)[:SINGLES_MAX]

        def work() -> Sequence[Queued]:
            end = time.monotonic() + self._holder.lease_s / BEATS_PER_LEASE / 2
            for number, job in enumerate(todo, 1):
                do(job, link)
                if time.monotonic() >= end:
                    return todo[:number]
            return todo

        # A job that is alone has its own transaction: a savepoint costs two more round trips.
        in_one = link.transaction if len(singles or todo) > 1 else nullcontext
        for job in with_retry(partial(ask_all, singles, link) if singles else work, in_one):
            job.end()

    def _beat(self) -> None:
        """Tell the database that this worker is live, if it is time."""
        if not self._holder.is_announced or time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + self._holder.lease_s / BEATS_PER_LEASE
        self._attempt([], lambda _, link: self._beat_on(link))

    def _beat_on(self, link: PostgresLink) -> None:
        holder = self._holder
        gone = {run: held for run, held in holder.held.items() if not holder.claims.is_live(run)}
        over = sorted(holder.lapsed.items())

        def give_back_all() -> None:
            leases.interrupt(link, holder, gone.values())
            for run_id, lapsed in over:
                at_once(give_back(link, holder, run_id, lapsed))

        if gone or over:
            with_retry(give_back_all, link.transaction)
        for run_id in gone:
            del holder.held[run_id]
        for run_id, lapsed in over:
            holder.forget(run_id, lapsed)
        if leases.beat(link, holder):
            holder.is_registered = True
            return
        if holder.is_registered:
            LOG.warning("%s was declared dead, and its runs go on elsewhere", holder.name)
        holder.rename()  # Without a warning, a refused claim has undone the row.
        if holder.serves:
            with_retry(partial(leases.take_row, link, holder), link.transaction)

    def _close(self) -> None:
        self._wake()
        if self._link is not None:
            with suppress(psycopg.Error), self._link.transaction():
                if self._holder.is_announced:
                    leases.end_row(self._link, self._holder)
            self._link.close()
        if self._bell is not None:
            self._bell.close()


def _hear(link: PostgresLink) -> None:
    """Let the connection take in its notifications, which come with any answer."""
    link.execute("SELECT")
