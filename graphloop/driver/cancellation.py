"""Cancellation: distinguishes a caller's cancellation from the driver's own.

The awaited code gets the same `CancelledError` from both. The driver cancels its own wait at an
abort, or at the time limit of a turn. It then journals the end of the run and its child runs,
without a time limit. A caller that cancels is kept waiting for a limited time only.
`Task.cancelling` tells the two apart, as in `asyncio.timeout`.
"""

from __future__ import annotations

from asyncio import (
    AbstractEventLoop,
    CancelledError,
    Task,
    TimerHandle,
    current_task,
    ensure_future,
    get_running_loop,
    wait,
)
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Final, TypeAlias
from weakref import WeakSet

from ..errors import GraphloopError, StoreError, ToolError
from ..events import Event
from ..run import Run
from ..step import NOT_WORKING
from ..stores import Store
from ..tools import leave

__all__ = [
    "CANCEL_AGAIN_S",
    "GRACE_S",
    "INSIDE",
    "LISTENERS",
    "CancelScope",
    "StepTimer",
    "cancelled_inside",
    "end_tasks",
    "journaled",
]

Awaiting: TypeAlias = "Task[object]"

GRACE_S: Final = 2.0
"""Seconds that a caller that leaves a run waits for the store to finish an append."""

CANCEL_AGAIN_S: Final = 0.5
"""Seconds after which an effect that has not ended is cancelled again."""

LEAVE_S: Final = GRACE_S + CANCEL_AGAIN_S
"""Seconds after which a tool that ignores its cancellation is left behind.

A tool with its own time limit has a shorter grace period, and ends before. Model calls and child
runs are left behind only if the caller leaves, because child runs have to journal their ends.
"""

LISTENERS: Final[WeakSet[Task[Any]]] = WeakSet()
"""The tasks of model calls and child runs, which deliver items before their answer."""

INSIDE: Final = "cancelled from inside: it awaited something that other code cancelled"


class CancelScope:
    """Counts the cancellations of the driving task, the driver's own apart from the caller's.

    As a context manager, it encloses a wait for the effects of `run`, which `interrupt` can cancel.

    Args:
        parent: the scope of the parent run; None if the run has no parent.
        timer: the time limit of a turn; None for no limit.
    """

    __slots__ = (
        "_before",
        "_interrupted",
        "_interrupts",
        "_loop",
        "_outer",
        "_task",
        "_timer",
        "_waiter",
        "run",
    )

    def __init__(self, parent: CancelScope | None = None, timer: StepTimer | None = None) -> None:
        self._outer: CancelScope | None = None if parent is None else parent._outermost
        self.run: Run[Any] | None = None
        self._timer = timer
        self._task: Awaiting | None = None
        self._before = 0
        self._interrupts = 0
        self._waiter: Awaiting | None = None
        self._interrupted: Awaiting | None = None
        self._loop: AbstractEventLoop | None = None

    @property
    def _outermost(self) -> CancelScope:
        return self._outer or self  # Not an attribute: a scope in a cycle would keep its run.

    @property
    def is_left(self) -> bool:
        """Whether the caller has cancelled the topmost run's driving task since `enter`."""
        top, task = self._outermost, self._outermost._task
        return task is not None and task.cancelling() > top._before + top._interrupts

    @property
    def is_interrupted(self) -> bool:
        """Whether the driver has cancelled its own wait, and the wait has not ended yet."""
        return self._interrupted is not None

    @property
    def is_timed(self) -> bool:
        """Whether the run has a `step_timeout_s`, so each wait must pass through this scope."""
        return self._timer is not None

    def enter(self, loop: AbstractEventLoop | None = None) -> None:
        """Set the running task as the driving task, and ignore its earlier cancellations.

        `loop` is the event loop of a new drive; all tasks of the drive run on this loop.
        """
        if loop is not None:
            self._loop = loop
        self._task = task = current_task(self._loop)
        self._interrupts, self._before = 0, 0 if task is None else task.cancelling()

    def enter_again(self) -> None:
        """Call `enter` again if the running task is not the driving task."""
        if self._task is not current_task():
            self.enter()

    def __enter__(self) -> None:
        """Enter, begin a wait that `interrupt` can cancel, and start the turn's time limit."""
        self._task = self._waiter = task = current_task(self._loop)
        self._interrupts, self._before = 0, 0 if task is None else task.cancelling()
        if self._timer is not None and self.run is not None:
            self._timer.begin(self.run)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """End the wait, and suppress its `CancelledError` if only the driver has cancelled it.

        Raises:
            CancelledError: the caller was cancelled, but the awaited code suppressed the error.
        """
        waiter, self._waiter = self._waiter, None
        if self._timer is not None:
            self._timer.end()
        if (interrupted := self._interrupted) is None:
            if kind is None and waiter is not None and waiter.cancelling() > self._before:
                raise CancelledError
            return False
        others = 0 if waiter is None else waiter.cancelling() - self._before
        self._interrupted = None
        interrupted.uncancel()
        self._outermost._interrupts = max(
            0, self._outermost._interrupts - (interrupted is self._outermost._task)
        )
        if others > 1 and kind is None:
            raise CancelledError
        return others <= 1 and isinstance(error, CancelledError)

    def interrupt(self) -> None:
        """Cancel the current wait, if there is one that is not cancelled by the driver already.

        A tool that aborts its own run may finish, because it runs inside the waiting task.
        """
        waiter, top = self._waiter, self._outermost
        if waiter is None or waiter is current_task() or self._interrupted is not None:
            return
        if not waiter.cancel():
            return
        self._interrupted = waiter
        top._interrupts += waiter is top._task


class StepTimer:
    """The time limit of a turn, counted only while the driver waits for effects.

    Waits for people or child runs alone do not count, nor does the caller's time between steps.

    Args:
        limit_s: the number of seconds that a turn may take.
        expire: called by the event loop with the reason when a turn reaches the limit.
    """

    def __init__(self, limit_s: float, expire: Callable[[str], None]) -> None:
        self._limit_s = limit_s
        self._expire = expire
        self._turn: int | None = None
        self._remaining_s = self._began_at = 0.0
        self._handle: TimerHandle | None = None

    def begin(self, run: Run[Any]) -> None:
        """Start counting, unless the run waits only for people or child runs."""
        limit_s, turn = self._limit_s, run.turn.number
        if turn != self._turn:
            self._turn, self._remaining_s = turn, limit_s
        if all(type(effect) in NOT_WORKING for effect in run.pending.values()):
            return
        self._began_at, remaining_s = monotonic(), max(0.0, self._remaining_s)
        reason = f"turn {turn} took more than {limit_s:g} seconds"
        self._handle = get_running_loop().call_later(remaining_s, self._expire, reason)

    def end(self) -> None:
        """Stop counting until the next `begin`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._remaining_s -= monotonic() - self._began_at


async def journaled(
    store: Store,
    place: tuple[str, int],
    events: Sequence[Event],
    scope: CancelScope,
    *,
    leaving: bool = False,
) -> CancelledError | None:
    """Append events to a run's journal, and finish the append even if this task is cancelled.

    An abort may cancel a child run during an append, and then journals `Cancelled` after it. So the
    append has to finish first. A caller that leaves waits at most `GRACE_S` seconds, or until it
    cancels again; then the store may or may not have kept the events.

    Args:
        store: the store of the journal.
        place: the run's id, and the number of the first event.
        events: the events to append, of which the store keeps all or none.
        scope: the driver's cancel scope, which tells whether the caller has left.
        leaving: whether the caller is leaving the run already.

    Returns:
        The cancellation that came during the append, or None. `keep` raises it after updating the
        run.

    Raises:
        CancelledError: this task was cancelled, and the append failed or was given up.
        StoreError: the append failed or was given up.
    """
    cut: CancelledError | None = None
    task = ensure_future(store.append(*place, *events))
    while not task.done():
        try:
            await wait((task,), timeout=GRACE_S if leaving else None)
        except CancelledError as error:
            given_up, leaving = leaving, leaving or scope.is_left
            cut = error
        else:
            given_up = not task.done()
        if given_up:
            task.cancel()
            break
    if cut is not None and (not task.done() or task.cancelled() or task.exception() is not None):
        raise cut
    if not task.done():
        raise StoreError(
            f"the store has not kept event {place[1]} of run {place[0]!r} within {GRACE_S} s, and "
            "its driver waits no longer"
        )
    if task.cancelled():
        raise StoreError(
            f"event {place[1]} of run {place[0]!r} may not have been kept: the store was cancelled "
            "by something that it awaited. Fix: resume the run; its journal shows what was kept."
        )
    task.result()
    return cut


def cancelled_inside(
    error: CancelledError, kind: type[GraphloopError] = ToolError
) -> GraphloopError:
    """Return an error of type `kind` for awaited work that other code has cancelled.

    Raises:
        CancelledError: the current task itself was cancelled, which is not a failure.
    """
    task = current_task()
    if task is not None and task.cancelling():
        raise error
    return kind(INSIDE)


async def end_tasks(tasks: set[Task[None]]) -> None:
    """Cancel tasks, and wait for their ends; only `LISTENERS` may take more than `LEAVE_S`.

    If this task is cancelled meanwhile, it cancels all tasks again, and the limit holds for all of
    them. Tasks beyond the limit are left behind.
    """
    cut, until = None, monotonic() + LEAVE_S
    for task in tasks:
        task.cancel()
    while tasks:
        late = {task for task in tasks if cut is not None or task not in LISTENERS}
        try:
            timeout_s = max(0.0, until - monotonic()) if late else None
            _, tasks = await wait(tasks, timeout=timeout_s)
        except CancelledError as error:
            until = monotonic() + LEAVE_S if cut is None else until
            cut, tasks = error, {task for task in tasks if not task.done()}
            for task in tasks:
                task.cancel()
        if monotonic() >= until:
            leave(tasks & late)
            tasks -= late
    if cut is not None:
        raise cut
