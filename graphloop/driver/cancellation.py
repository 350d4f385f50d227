"""Cancellation: the end of a driver's wait, and its author: the caller or the driver.

A caller that cancels, and a driver that stops its run (at an abort, or when a turn has taken its
time), both reach what is awaited as the same `CancelledError`. A driver's own stop has to be
journaled, also in child runs, however long that takes; a caller that goes away does not want to
wait for ever. `asyncio.timeout` tells them apart by `Task.cancelling`, and so does this.
"""

from __future__ import annotations

from asyncio import CancelledError, Task, TimerHandle, current_task, get_running_loop, isfuture
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from time import monotonic
from types import TracebackType
from typing import Any, Final, TypeAlias

from ..errors import GraphloopError, ToolError
from ..run import Run
from ..step import ELSEWHERE

__all__ = ["GRACE_S", "INSIDE", "CancelScope", "StepTimer", "cancelled_inside", "started_task"]

Awaiting: TypeAlias = "Task[object]"

GRACE_S: Final = 2.0
"""How long a caller that goes away waits for a store to keep what it is given."""

INSIDE: Final = "cancelled from inside: it awaited something that other code cancelled"


class CancelScope:
    """Counts the cancellations of the task that drives a run, and whose they are.

    As a context it is a wait for the effects of its `run`, which the driver may interrupt.

    Args:
        parent: the scope of the parent run; None for a run at the top.
        timer: the time limit of a turn; None for none.
    """

    def __init__(self, parent: CancelScope | None = None, timer: StepTimer | None = None) -> None:
        self._top: CancelScope = self if parent is None else parent._top
        self.run: Run[Any] | None = None
        self._timer = timer
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

    def __enter__(self) -> None:
        """Let the task that has entered be interrupted, also by the time limit of the turn."""
        if self._timer is not None and self.run is not None:
            self._timer.begin(self.run)
        self._waiter = task = self._task
        self._before_wait = 0 if task is None else task.cancelling()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """End the wait; a cancellation that only the driver has asked for is over with it.

        Raises:
            CancelledError: the caller was cancelled, and what was awaited kept that to itself.
        """
        if self._timer is not None:
            self._timer.end()
        waiter, interrupted, self._waiter = self._waiter, self._interrupted, None
        others = 0 if waiter is None else waiter.cancelling() - self._before_wait
        if interrupted is not None:
            self._interrupted = None
            interrupted.uncancel()
            self._top._interrupts = max(0, self._top._interrupts - (interrupted is self._top._task))
            others -= 1
        if others > 0 and kind is None:
            raise CancelledError
        return interrupted is not None and others <= 0 and isinstance(error, CancelledError)

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
        self._remaining_s = self._began_at = 0.0
        self._handle: TimerHandle | None = None

    def begin(self, run: Run[Any]) -> None:
        """Count from now on, if what the run waits for is this process's work."""
        limit_s, turn = self._limit_s, run.turn.number
        if turn != self._turn:
            self._turn, self._remaining_s = turn, limit_s
        if all(type(effect) in ELSEWHERE for effect in run.pending.values()):
            return
        self._began_at, remaining_s = monotonic(), max(0.0, self._remaining_s)
        reason = f"turn {turn} took more than {limit_s:g} seconds"
        self._handle = get_running_loop().call_later(remaining_s, self._expire, reason)

    def end(self) -> None:
        """Stop counting until `begin`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._remaining_s -= monotonic() - self._began_at


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


class _Entered(Coroutine[Any, Any, None]):
    """The work of a task that takes its first step before the event loop comes to the task.

    A task costs two rounds of the event loop; most tools of tests and examples, and all plain
    functions, end in their first step. (Python 3.12 has this as `eager_start`.) The step is the
    task's own from the beginning: `asyncio.timeout` and cancel scopes hold on to the task that
    they are entered in.
    """

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self._awaited: object = None
        self._waits = self._is_over = False

    def enter(self) -> None:
        """Take the first step."""
        try:
            self._awaited = self._work.send(None)
            self._waits = True
        except StopIteration:
            self._is_over = True

    def send(self, value: object) -> object:
        """Go on; the first time, the event loop is given what the first step waits for."""
        if self._is_over:
            raise StopIteration
        if self._waits:
            self._waits = False
            return self._awaited
        return self._work.send(value)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> object:
        """Be cancelled: what the first step waits for is cancelled first, as a task does."""
        del value, trace
        if self._is_over:
            raise StopIteration
        awaited, waits, self._waits = self._awaited, self._waits, False
        if waits and isfuture(awaited) and awaited.cancel():
            return awaited
        assert isinstance(kind, BaseException), "tasks throw exceptions, not their classes"
        return self._work.throw(kind)

    def close(self) -> None:
        """Give the work up."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        """Be awaited like the work."""
        return self._work.__await__()


def started_task(work: Coroutine[Any, Any, None], name: str) -> Task[None]:
    """Return a task that has run to its first await.

    The two private functions are what asyncio keeps for other event loops to do the same.
    """
    loop, current, context = get_running_loop(), current_task(), copy_context()
    entered = _Entered(work)
    task = Task(entered, loop=loop, name=name, context=context)
    if current is not None:
        _leave_task(loop, current)
    _enter_task(loop, task)
    try:
        context.run(entered.enter)
    finally:
        _leave_task(loop, task)
        if current is not None:
            _enter_task(loop, current)
    return task
