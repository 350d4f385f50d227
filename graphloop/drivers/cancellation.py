"""Cancellation: what ends a wait of a driver, and whose wish that was.

A caller that cancels, and a driver that stops its run (at an abort, or when a turn has taken its
time), both reach what is awaited as the same `CancelledError`. A driver's own stop has to be
journaled, also in child runs, however long that takes; a caller that goes away does not want to
wait for ever. `asyncio.timeout` tells them apart by `Task.cancelling`, and so does this.
"""

from __future__ import annotations

from asyncio import CancelledError, Task, current_task, get_running_loop
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, TypeAlias

from ..errors import GraphloopError, ToolError
from ..run import Run
from ..step import ELSEWHERE

__all__ = ["GRACE_S", "INSIDE", "CancelScope", "StepTimer", "cancelled_inside"]

Awaiting: TypeAlias = "Task[object]"

GRACE_S: Final = 2.0
"""How long a caller that goes away waits for a store to keep what it is given."""

INSIDE: Final = "cancelled from inside: it awaited something that somebody else cancelled"


class CancelScope:
    """Counts the cancellations of the task that drives a run, and whose they are.

    Args:
        parent: the scope of the parent run; None for a run at the top.
    """

    def __init__(self, parent: CancelScope | None = None) -> None:
        self._top: CancelScope = self if parent is None else parent._top
        self._task: Awaiting | None = None
        self._before = 0
        self._interrupts = 0
        self._waiter: Awaiting | None = None
        self._before_wait = 0
        self._interrupted: Awaiting | None = None

    @property
    def is_left(self) -> bool:
        """Whether the caller of the run at the top has cancelled it since it entered."""
        top, task = self._top, self._top._task
        return task is not None and task.cancelling() > top._before + top._interrupts

    @property
    def is_interrupted(self) -> bool:
        """Whether the driver has cancelled its own wait, which has not ended yet."""
        return self._interrupted is not None

    def enter(self) -> None:
        """Take the running task as the caller's; its earlier cancellations are over."""
        self._task = task = current_task()
        self._interrupts, self._before = 0, 0 if task is None else task.cancelling()

    def enter_again(self) -> None:
        """Enter if another task than the caller's closes the run."""
        if self._task is not current_task():
            self.enter()

    def wait(self) -> None:
        """Let the task that has entered be interrupted."""
        self._waiter = task = self._task
        self._before_wait = 0 if task is None else task.cancelling()

    def interrupt(self) -> None:
        """Cancel what is awaited, if anything is, and once: the task counts others' cancellations.

        A tool that aborts its own run is let finish: it runs inside the waiting task.
        """
        waiter, top = self._waiter, self._top
        if waiter is None or waiter is current_task() or self._interrupted is not None:
            return
        if not waiter.cancel():
            return
        self._interrupted = waiter
        top._interrupts += waiter is top._task

    def take_interrupt(self) -> bool:
        """Tell whether the driver, and no other, has cancelled the wait; then the wait is over."""
        waiter = self._interrupted
        if waiter is None or waiter.cancelling() > self._before_wait + 1:
            return False
        self._waiter = None  # A second stop does not interrupt the first.
        return True

    def resume(self) -> bool:
        """End the wait and its interruption; tell whether a caller's cancellation was swallowed.

        What was awaited kept that to itself; the driver must not.
        """
        waiter, interrupted, top = self._waiter, self._interrupted, self._top
        self._waiter = None
        swallowed = waiter is not None and (
            waiter.cancelling() > self._before_wait + (interrupted is not None)
        )
        if interrupted is not None:
            self._interrupted = None
            interrupted.uncancel()
            top._interrupts = max(0, top._interrupts - (interrupted is top._task))
        return swallowed


class StepTimer:
    """The time limit of a turn: counted while effects of this process are awaited.

    Neither the people that a run asks nor the one who looks at it spend the time of its turn.

    Args:
        limit_s: how many seconds a turn may take.
        expire: called with the reason, from the event loop, once a turn has taken its time.
    """

    def __init__(self, limit_s: float, expire: Callable[[str], None]) -> None:
        self._limit_s = limit_s
        self._expire = expire
        self._turn: int | None = None
        self._remaining_s = 0.0

    @contextmanager
    def counting(self, run: Run[Any]) -> Generator[None, None, None]:
        """Count, if what the run waits for is this process's work."""
        limit_s, turn = self._limit_s, run.turn.number
        if turn != self._turn:
            self._turn, self._remaining_s = turn, limit_s
        if all(type(effect) in ELSEWHERE for effect in run.pending.values()):
            yield
            return
        began_at = monotonic()
        reason = f"turn {turn} took more than {limit_s:g} seconds"
        remaining_s = max(0.0, self._remaining_s)
        handle = get_running_loop().call_later(remaining_s, self._expire, reason)
        try:
            yield
        finally:
            handle.cancel()
            self._remaining_s -= monotonic() - began_at


def cancelled_inside(
    error: CancelledError, kind: type[GraphloopError] = ToolError
) -> GraphloopError:
    """Return the failure of work that was cancelled though its own task was not.

    Raises:
        CancelledError: the task was cancelled: that is no failure, and passes through.
    """
    task = current_task()
    if task is not None and task.cancelling():
        raise error
    return kind(INSIDE)
