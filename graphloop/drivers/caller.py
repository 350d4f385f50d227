"""Whoever awaits a run: have they gone away, or does a driver end what it has begun itself?

Both reach what is awaited as the same `CancelledError`. A driver's own stop has to be journaled,
also in the runs below, however long that takes; a caller who goes away does not want to wait for
ever.
"""

from __future__ import annotations

from asyncio import CancelledError, Task, current_task
from typing import Final, TypeAlias

from ..errors import GraphloopError, ToolError

__all__ = ["INSIDE", "Caller", "cancelled_inside"]

Awaiting: TypeAlias = "Task[object]"

INSIDE: Final = "cancelled from inside: it awaited something that somebody else cancelled"


class Caller:
    """Tells a caller's cancellations from those that a driver makes in the same task.

    Args:
        above: whoever awaits the run above; None for a run at the top.
    """

    def __init__(self, above: Caller | None = None) -> None:
        self._top: Caller = self if above is None else above._top
        self._task: Awaiting | None = None
        self._before = 0
        self._interrupts = 0
        self._waiter: Awaiting | None = None
        self._before_wait = 0
        self._interrupted: Awaiting | None = None

    @property
    def has_left(self) -> bool:
        """Whether whoever awaits the run at the top has cancelled since they entered."""
        task = self._top._task
        return task is not None and _cancelled(task) > self._top._before + self._top._interrupts

    def enters(self) -> None:
        """Take the task that runs now to be the caller's; what was cancelled before is over."""
        if self is self._top:
            self._task, self._interrupts = current_task(), 0
            self._before = _cancelled(self._task)

    def leaves(self) -> None:
        """Take the task that closes the run to be the caller's, if it is another one."""
        if self._task is not current_task():
            self.enters()

    def waits(self) -> None:
        """Let the task that runs now be interrupted."""
        self._waiter = current_task()
        self._before_wait = _cancelled(self._waiter)

    def interrupt(self) -> None:
        """Cancel what is awaited, if anything is: once, for the waiter counts what others cancel.

        A tool that aborts its own run is let finish: it runs inside the waiting task.
        """
        waiter, top = self._waiter, self._top
        if waiter is None or waiter is current_task() or self._interrupted is not None:
            return
        if not waiter.cancel():
            return
        self._interrupted = waiter
        top._interrupts += waiter is top._task

    def heeds(self) -> bool:
        """Tell whether what was awaited has been interrupted, and nothing else; then it is over."""
        waiter = self._interrupted
        if waiter is None or _cancelled(waiter) > self._before_wait + 1:
            return False
        self._waiter = None  # Stopping is not interrupted by a second wish to stop.
        return True

    @property
    def is_unheeded(self) -> bool:
        """Whether somebody else has cancelled the wait, and what is awaited goes on all the same.

        It kept the cancellation to itself; who waits must not.
        """
        return _cancelled(self._waiter) > self._before_wait + (self._interrupted is not None)

    def goes_on(self) -> None:
        """End the wait, and its interruption."""
        waiter, top = self._interrupted, self._top
        self._waiter = self._interrupted = None
        if waiter is not None:
            waiter.uncancel()
            top._interrupts = max(0, top._interrupts - (waiter is top._task))


def cancelled_inside(
    error: CancelledError, kind: type[GraphloopError] = ToolError
) -> GraphloopError:
    """Return the failure of what was cancelled without anybody cancelling this task.

    Raises:
        CancelledError: somebody did: then it is no failure, and passes through.
    """
    if _cancelled(current_task()):
        raise error
    return kind(INSIDE)


def _cancelled(task: Awaiting | None) -> int:
    return 0 if task is None else task.cancelling()
