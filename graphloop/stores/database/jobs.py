"""Jobs: the work that tasks queue for a store's writing thread, and its results.

A job of one statement is a generator (`Asking`). It sends the statement, yields, and reads the
answer when it goes on. So a thread may send the statements of many jobs before it waits for the
first answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, TypeAlias, TypeVar, final

from ...errors import StoreError

__all__ = ["Asking", "Job", "at_once", "later", "settle"]

L = TypeVar("L")
T = TypeVar("T")

Asking: TypeAlias = Generator[None, None, T]


@final
class Job(Generic[L, T]):
    """A queued piece of work, with its result or error, and the future of its caller, if any.

    The work is done even if the caller is cancelled.

    Args:
        work: does it, with a connection, in a transaction that the writing thread begins and ends.
        committed: is called in the writing thread with the result, before any later job.
        failed: is called there with the error.
        future: the future of the caller; None if no caller waits.
        run_id: the run whose row the work locks.
        asks: does the work of a job of one statement, in place of `work`; if it needs more, it
            opens a transaction itself.
    """

    def __init__(
        self,
        work: Callable[[L], T] | None = None,
        committed: Callable[[T], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        future: asyncio.Future[T] | None = None,
        *,
        run_id: str = "",
        asks: Callable[[L], Asking[T]] | None = None,
    ) -> None:
        self.loop = None if future is None else future.get_loop()
        self.run_id = run_id
        self.is_over = False
        self._work = work
        self._asks = asks
        self._asking: Asking[T] | None = None
        self._committed = committed
        self._failed = failed
        self._future = future
        self._outcome: tuple[T] | Exception = StoreError("nothing was written")

    @property
    def is_single(self) -> bool:
        """Whether the job is one statement."""
        return self._asks is not None

    def do(self, link: L) -> None:
        """Do the work, and keep its result."""
        if self._work is None:
            self.send(link)
            self.receive()
        else:
            self.keep(self._work(link))

    def send(self, link: L) -> None:
        """Send the statement of a job of one."""
        assert self._asks is not None, "a job has work, or it asks"
        self._asking = self._asks(link)
        next(self._asking)

    def receive(self) -> None:
        """Read the answer to the statement that was sent, and keep the result."""
        assert self._asking is not None, "the statement was sent"
        self.keep(at_once(self._asking))

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

    def settle(self) -> None:
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


def settle(jobs: Iterable[Job[Any, Any]]) -> None:
    """Schedule the results of jobs on their callers' loops, with one callback for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any, Any]]] = {}
    for job in jobs:
        if job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle_here, waiting)
        except RuntimeError:
            continue  # A closed loop raises this error, and has no caller that waits.


def _settle_here(jobs: Iterable[Job[Any, Any]]) -> None:
    for job in jobs:
        job.settle()
