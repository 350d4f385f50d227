"""The writing thread of a PostgreSQL store, and its connection.

Any number of tasks, on any event loop, queue jobs. The thread writes all appends that wait in one
statement, for all runs of the process, and other jobs in one transaction, each with a savepoint. It
beats for its holder, and hears from other processes that a run waits for a driver.

A connection that breaks is opened again, and the jobs are done again: an append that was committed
without an answer is known by its number and its bytes.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

import psycopg
from psycopg.errors import DeadlockDetected, ReadOnlySqlTransaction, UniqueViolation
from psycopg.pq import TransactionStatus

from ...errors import GraphloopError, StoreError
from ..rows import Addition
from . import journal, leases
from .leases import HeldRun, Holder
from .schema import CHANNEL, Link, opened, place_of, told

__all__ = ["Job", "QueuedAppend", "Writer", "persist"]

T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")

JOBS_MAX: Final = 1000
BEATS_PER_LEASE: Final = 3
AWAY: Final = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnlySqlTransaction)
"""The errors of a server that may be back soon: stopped, full, or a standby after a failover."""
ATTEMPTS_MAX: Final = 50
"""How often a transaction is done again that met another writer of the same row."""
PAUSE_S: Final = 0.05
PAUSE_S_MAX: Final = 1.0


@final
class Job(Generic[T]):
    """A queued piece of work on one run, and the future of its result.

    Args:
        run_id: the run whose row it locks; jobs lock rows in the order of the ids.
        work: does it; its second argument tells whether an attempt before may have been committed.
        committed: is called in the writing thread with the result, before any later job.
        is_single: whether the work is one statement, or opens a transaction itself.
    """

    def __init__(
        self,
        run_id: str,
        work: Callable[[Link, bool], T],
        committed: Callable[[T], None] | None = None,
        *,
        is_single: bool = False,
    ) -> None:
        self.run_id = run_id
        self.future: Future[T] = Future()
        self._is_single = is_single
        self._work = work
        self._committed = committed
        self._outcome: tuple[T] | GraphloopError | None = None

    def do(self, link: Link, *, is_again: bool) -> None:
        """Do the work in a transaction, or in a savepoint of one; keep the result or refusal.

        A single statement needs neither, and so waits less for answers of the database.
        """
        try:
            with nullcontext() if self._is_single else link.transaction():
                self._outcome = (self._work(link, is_again),)
        except GraphloopError as error:
            self._outcome = error

    def end(self) -> None:
        """Set the future's result, after the commit."""
        match self._outcome:
            case (result,):
                if self._committed is not None:
                    self._committed(result)
                self.future.set_result(result)
            case None:
                raise AssertionError("a job ends after it was done")
            case error:
                self.future.set_exception(error)


@final
class QueuedAppend:
    """Queued events for a claimed run, and the future of their commit."""

    def __init__(self, addition: Addition, held: HeldRun) -> None:
        self.run_id = addition.run_id
        self.pair = addition, held
        self.future: Future[None] = Future()


Queued: TypeAlias = "QueuedAppend | Job[Any]"


def persist(dsn: str, patience_s: float, attempt: Callable[[bool], T]) -> T:
    """Return what `attempt` returns, and wait for a database that has gone away.

    Args:
        dsn: the database.
        patience_s: the seconds to wait; 0 for a database that has never answered.
        attempt: does the work; its argument tells whether it is done again.

    Raises:
        StoreError: the database does not answer, or refuses the work.
    """
    end, pause, is_again, said = time.monotonic() + patience_s, PAUSE_S, False, ""
    while True:
        try:
            return attempt(is_again)
        except AWAY as error:
            if time.monotonic() >= end:
                raise StoreError(
                    f"{place_of(dsn)}: expected a PostgreSQL server that answers and takes writes, "
                    f"found: {told(error)}. Fix: start it, give it room, or mend the address."
                ) from error
            if (news := told(error)) != said:  # Else a line each second tells nothing new.
                line = "%s does not answer, and is asked again for %.0f s: %s"
                LOG.warning(line, place_of(dsn), patience_s, news)
            said = news
        except psycopg.Error as error:
            raise StoreError(f"{place_of(dsn)} refuses the work: {told(error)}") from error
        time.sleep(pause)
        pause, is_again = min(PAUSE_S_MAX, pause * 2), True


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
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._bell: socket.socket | None = None
        self._link: Link | None = None
        self._was_open = False
        self._beat_at = 0.0
        self._waking: list[Future[None]] = []
        self.stopped = False

    def put(self, job: Queued) -> None:
        """Queue a job.

        Raises:
            StoreError: the writer is stopped.
        """
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
            self._jobs.append(job)
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

    def join(self) -> None:
        """Wait until the thread has ended, and has closed the connection."""
        if self._thread is not None:
            self._thread.join()

    def _ring(self) -> None:
        if self._bell is not None:
            with suppress(OSError):  # A full bell rings already; a closed one has no thread.
                self._bell.send(b"\0")

    def _run(self, ear: socket.socket) -> None:
        try:
            while True:
                with self._lock:
                    jobs = [self._jobs.popleft() for _ in range(min(len(self._jobs), JOBS_MAX))]
                    if not jobs and self.stopped:
                        return
                appends, rest = _split(
                    [job for job in jobs if job.future.set_running_or_notify_cancel()]
                )
                self._attempt(appends, self._append)
                while rest:
                    self._attempt(rest, self._transact)
                    self._beat()
                    rest = [job for job in rest if not job.future.done()]
                self._beat()
                jobs.clear()
                if not self._jobs:
                    self._wait(ear)
        finally:
            self._close()
            ear.close()

    def _wait(self, ear: socket.socket) -> None:
        """Wait for a job, a notification or the next beat."""
        rest_s = None
        sources: list[socket.socket | Link] = [ear]
        if self._link is not None and not self._link.closed:
            sources.append(self._link)
        if self._holder.is_registered:
            rest_s = max(0.0, self._beat_at - time.monotonic())
        readable, _, _ = select.select(sources, [], [], rest_s)
        if ear in readable:
            ear.recv(4096)
        if self._link in readable:
            self._attempt([], _hear)

    def _attempt(
        self, jobs: Sequence[Queued], work: Callable[[Link, Sequence[Queued], bool], None]
    ) -> None:
        """Do the work on an open connection, and again after it broke; fail the jobs at last."""

        def attempt(is_again: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            if self._link is None or self._link.closed:
                self._link = None
                self._link = self._opened()
                self._was_open = True
            try:
                work(self._link, jobs, is_again)
            except psycopg.Error as error:
                # A standby refuses writes, and a new connection may find the primary. And libpq
                # keeps a connection open that broke while it sent a query: no query gets through.
                is_idle = self._link.info.transaction_status is TransactionStatus.IDLE
                if isinstance(error, ReadOnlySqlTransaction) or not is_idle:
                    self._link.close()
                raise

        if not jobs and self._link is None:
            return
        # A beat has no caller that waits: the next job or beat does it when the database answers.
        patience_s = self._patience_s if jobs and self._was_open else 0.0
        try:
            persist(self._dsn, patience_s, attempt)
        except Exception as error:  # noqa: BLE001 - every caller gets it
            for job in jobs:
                if not job.future.done():
                    job.future.set_exception(error)

    def _opened(self) -> Link:
        link = opened(self._dsn)
        link.add_notify_handler(lambda _: self._wake())
        try:
            link.execute(f"LISTEN {CHANNEL}")  # pyright: ignore[reportArgumentType]
            if self._holder.is_registered:
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

    def _append(self, link: Link, jobs: Sequence[Queued], is_again: bool) -> None:  # noqa: FBT001
        """Append all events that wait, by one statement if no two of them are of one run."""
        waiting = [job for job in jobs if isinstance(job, QueuedAppend) and not job.future.done()]
        while waiting:
            batch: dict[str, QueuedAppend] = {}
            for job in waiting:
                batch.setdefault(job.run_id, job)
            self._append_batch(link, [*batch.values()], is_again=is_again)
            waiting = [job for job in waiting if batch[job.run_id] is not job]

    def _append_batch(self, link: Link, batch: Sequence[QueuedAppend], *, is_again: bool) -> None:
        pairs = [job.pair for job in batch]
        is_single = all(addition.is_only_entries for addition, _ in pairs)
        in_one = nullcontext if is_single else link.transaction
        written = _again(lambda: journal.append_claimed(link, pairs), in_one)
        for job, (addition, claim) in zip(batch, pairs, strict=True):
            error = None
            if job.run_id not in written:
                error = journal.why_refused(link, addition, claim, is_again=is_again)
            if error is None:
                job.future.set_result(None)
            else:
                job.future.set_exception(error)

    def _transact(self, link: Link, jobs: Sequence[Queued], is_again: bool) -> None:  # noqa: FBT001
        """Do other jobs in one transaction, in the order of their runs; then tell the results.

        Jobs that would make the next beat late are left: a lease that ends during a transaction
        fences every claim that it makes.
        """
        todo = sorted(
            [job for job in jobs if isinstance(job, Job) and not job.future.done()],
            key=lambda job: job.run_id,
        )

        def work() -> Sequence[Job[Any]]:
            end = time.monotonic() + self._holder.lease_s / BEATS_PER_LEASE / 2
            for number, job in enumerate(todo, 1):
                job.do(link, is_again=is_again)
                if time.monotonic() >= end:
                    return todo[:number]
            return todo

        # A job that is alone has its own transaction: a savepoint costs two more round trips.
        in_one = link.transaction if len(todo) > 1 else nullcontext
        for job in _again(work, in_one) if todo else ():
            job.end()

    def _beat(self) -> None:
        """Tell the database that this worker is live, if it is time."""
        if not self._holder.is_registered or time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + self._holder.lease_s / BEATS_PER_LEASE
        self._attempt([], self._beat_on)

    def _beat_on(self, link: Link, _: Sequence[Queued], __: bool) -> None:  # noqa: FBT001
        left = {
            run_id: held
            for run_id, held in self._holder.held.items()
            if not self._holder.claims.is_live(run_id)
        }
        if left:
            freed = partial(leases.interrupt, link, self._holder, left.values())
            _again(freed, link.transaction)
        for run_id in left:
            del self._holder.held[run_id]
        if not leases.beat(link, self._holder):
            LOG.warning("%s was declared dead, and its runs go on elsewhere", self._holder.name)
            self._holder.rename()

    def _close(self) -> None:
        self._wake()
        if self._link is not None:
            with suppress(psycopg.Error), self._link.transaction():
                if self._holder.is_registered:
                    leases.end_row(self._link, self._holder)
            self._link.close()
        if self._bell is not None:
            self._bell.close()


def _hear(link: Link, _: Sequence[Queued], __: bool) -> None:  # noqa: FBT001
    """Let the connection take in its notifications, which come with any answer."""
    link.execute("SELECT")


def _split(jobs: Sequence[Queued]) -> tuple[list[QueuedAppend], list[Job[Any]]]:
    appends = [job for job in jobs if isinstance(job, QueuedAppend)]
    return appends, [job for job in jobs if isinstance(job, Job)]


def _again(work: Callable[[], T], in_one: Callable[[], AbstractContextManager[object]]) -> T:
    """Do work within a context, and again if another writer came first to a row."""
    for _ in range(ATTEMPTS_MAX):
        with suppress(UniqueViolation, DeadlockDetected), in_one():
            return work()
    with in_one():
        return work()
