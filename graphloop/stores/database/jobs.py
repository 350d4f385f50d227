"""Jobs: the work that tasks queue for a store's writing thread, and its results.

The work of a job is a function, or a `Statement`: a generator that sends one statement, yields, and
reads the answer when it goes on. So a thread may send the statements of many jobs before it waits
for the first answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

from ...errors import StoreError

__all__ = ["Asking", "Job", "Statement", "Work", "at_once", "deliver", "fail_all", "later"]

LOG: Final = logging.getLogger("graphloop")

L = TypeVar("L")
T = TypeVar("T")

Asking: TypeAlias = Generator[None, None, T]


@final
class Statement(Generic[L, T]):
    """Work of one statement, which the writing thread may send before it reads other answers.

    Args:
        asks: sends the statement, yields, and returns the result. If it needs more statements, it
            opens a transaction itself.
    """

    def __init__(self, asks: Callable[[L], Asking[T]]) -> None:
        self._asks = asks
        self._asking: Asking[T] | None = None

    def __call__(self, link: L) -> T:
        """Send the statement, and return the result."""
        self.send(link)
        return self.receive()

    def send(self, link: L) -> None:
        """Send the statement."""
        self._asking = self._asks(link)
        next(self._asking)

    def receive(self) -> T:
        """Read the answer to the statement that was sent, and return the result."""
        assert self._asking is not None, "the statement was sent"
        return at_once(self._asking)


Work: TypeAlias = Callable[[L], T] | Statement[L, T]
"""The work of a job; a function has a transaction that the writing thread begins and ends."""


@final
class Job(Generic[L, T]):
    """A queued piece of work, with its result or error, and the future of its caller, if any.

    The work is done even if the caller is cancelled.

    Args:
        work: does it, with a connection.
        committed: is called in the writing thread with the result, before any later job.
        failed: is called there with the error.
        future: the future of the caller; None if no caller waits.
        run_id: the run whose row the work locks.
    """

    def __init__(
        self,
        work: Work[L, T],
        committed: Callable[[T], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        future: asyncio.Future[T] | None = None,
        *,
        run_id: str = "",
    ) -> None:
        self._work: Callable[[L], T] = work
        self.statement: Statement[L, T] | None = work if isinstance(work, Statement) else None
        self.loop = None if future is None else future.get_loop()
        self.run_id = run_id
        self.is_over = False
        self._committed = committed
        self._failed = failed
        self._future = future
        self._outcome: tuple[T] | Exception = StoreError("nothing was written")

    def do(self, link: L) -> None:
        """Do the work, and keep its result."""
        self.keep(self._work(link))

    def keep(self, result: T) -> None:
        """Keep the result of the work, which may have been done together with that of others."""
        self._outcome = (result,)

    def fail(self, error: Exception) -> None:
        """Keep an error in place of a result."""
        self._outcome = error

    def end(self) -> None:
        """Tell `committed` or `failed`, after the transaction."""
        self.is_over = True
        if not isinstance(self._outcome, tuple):
            if self._failed is not None:
                self._failed(self._outcome)
        elif self._committed is not None:
            self._committed(self._outcome[0])

    def deliver(self) -> None:
        """Set the result or the error of the caller's future; runs in the caller's event loop."""
        if self._future is None or self._future.done():
            return
        if isinstance(self._outcome, tuple):
            self._future.set_result(self._outcome[0])
        else:
            self._future.set_exception(self._outcome)


def at_once(asking: Asking[T]) -> T:
    """Return the result of a job of one statement, without a wait for others."""
    while True:
        try:
            next(asking)
        except StopIteration as end:
            result: T = end.value
            return result


def later(work: Callable[[], T]) -> Asking[T]:
    """Do the work when the statements of other jobs have their answers."""
    yield
    return work()


def deliver(jobs: Iterable[Job[Any, Any]]) -> None:
    """Schedule the results of jobs on their callers' loops, with one callback for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any, Any]]] = {}
    for job in jobs:
        if job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_here, waiting)
        except RuntimeError:
            continue  # A closed loop raises this error, and has no caller that waits.


def fail_all(jobs: Sequence[Job[Any, Any]], place: object, error: Exception) -> None:
    """Fail the jobs that an unexpected error of the writing thread leaves undone, and log it."""
    LOG.error("the writing thread of the store %s has ended", place, exc_info=error)
    for job in [job for job in jobs if not job.is_over]:
        lost = StoreError(
            f"the store {place}: expected a thread that writes, found that an error has ended it: "
            f"{error!r}. Fix: open another store, and report this error."
        )
        lost.__cause__ = error
        job.fail(lost)
        job.end()
    deliver(jobs)


def _deliver_here(jobs: Iterable[Job[Any, Any]]) -> None:
    for job in jobs:
        job.deliver()
