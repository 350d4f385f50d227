"""Call a user's function: inline, in a thread, or in a task; within a time limit.

Exceptions of the function pass through; `Tool` turns them into outcomes. A call that exceeds its
time limit is cancelled. If it still runs after a grace period, its result is ignored.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast, final

from ..errors import ConfigError, ToolDefinitionError, ToolError
from .needs import ToolAsks
from .options import Reconcile, ToolPolicy
from .outcome import ToolOutcome, outcome_of_error, outcome_of_value
from .schema import Parameters
from .signature import accepts, is_async, refuse_generator

if TYPE_CHECKING:
    from .tool import ToolContext

__all__ = [
    "GRACE_S",
    "UNREAD",
    "Caller",
    "FirstSteps",
    "TooLate",
    "awaited",
    "caller",
    "execute_call",
    "leave",
    "look_up",
    "raised",
    "run_sync",
    "within",
    "yes_or_no",
]

LOG: Final = logging.getLogger("graphloop")

Caller: TypeAlias = Callable[[Any, object], object]
"""Calls a tool's function with the parsed arguments and the `ToolContext`.

The arguments are a mapping if `Parameters.keywords` is true, else one value.
"""

Work: TypeAlias = Coroutine[Any, Any, None]

T = TypeVar("T")

UNREAD: Final[object] = object()
"""Placeholder for arguments that are not parsed yet, or that the parser has refused."""

GRACE_S: Final = 2.0
"""The seconds that a cancelled tool may take to end; after them its result is ignored."""

LEFT_BEHIND: Final[set[asyncio.Task[object]]] = set()
"""Cancelled tasks that still run: the event loop's weak references would not keep them alive."""

SPARE: Final[set[asyncio.Task[None]]] = set()
"""Strong references to the spare tasks of all runs, since the event loop holds only weak ones."""


class TooLate(TimeoutError):
    """A user's function exceeded the time limit of graphloop.

    Any other `TimeoutError` was raised by the function itself.
    """


def caller(execute: Callable[..., object], parameters: Parameters, place: str) -> Caller:
    """Return a function of (arguments, context) that calls `execute` as its signature demands.

    The signature is read once here, so that a call costs little.

    Raises:
        ToolDefinitionError: `execute` takes neither the arguments nor the arguments and a context,
            or is a generator.
    """
    refuse_generator(execute, place)
    if parameters.keywords and parameters.context:
        name = parameters.context
        return lambda value, context: execute(**value, **{name: context})
    if parameters.keywords:
        return lambda value, _: execute(**value)
    if accepts(execute, 2):
        return execute
    if accepts(execute, 1):
        return lambda value, _: execute(value)
    raise ToolDefinitionError(
        f"{place}: execute: expected the arguments as one parameter and perhaps the context as a "
        f"second, found {execute!r}. Fix: give it one or two positional parameters."
    )


async def awaited(answer: object) -> object:
    """Return the result of a user's function; await it first if the function is asynchronous."""
    return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer


def yes_or_no(answer: object) -> bool:
    """Return the result of a user's predicate, after a check that it is a bool.

    Raises:
        ConfigError: the result is not a bool, as after a forgotten `return`.
    """
    if answer is True or answer is False:
        return answer
    raise ConfigError(
        f"expected True or False, found {answer!r:.80}. Fix: return one of them on every path."
    )


async def execute_call(
    name: str, call: Caller, policy: ToolPolicy, value: object, context: ToolContext
) -> ToolOutcome:
    """Run a call of the tool `name` and return its outcome, or a timeout outcome if it is late."""
    try:
        return await within(
            policy.timeout_s, _run_within_limits(call, policy, value, context), name
        )
    except TooLate:
        return ToolOutcome(
            f"Tool {name!r} gave no result within {policy.timeout_s:g} seconds and was given up. "
            "Its effects may have happened.",
            "timeout",
        )


def raised(run_id: str, name: str, error: Exception, chars_max: int) -> ToolOutcome:
    """Return the error outcome of an exception; log its traceback, since the model hides the bug.

    A `ToolError` is written for the model on purpose, so it is no bug of the tool.

    Raises:
        ToolAsks: the exception is a question, and no error.
    """
    if isinstance(error, ToolAsks):
        raise error
    level = logging.DEBUG if isinstance(error, ToolError) else logging.WARNING
    LOG.log(level, "run %s: tool %r raised", run_id, name, exc_info=error)
    return outcome_of_error(error, chars_max)


async def look_up(
    reconcile: Reconcile, policy: ToolPolicy, value: object, context: ToolContext
) -> object:
    """Call the user's `reconcile` function and return its result, within the tool's time limit.

    Raises:
        TimeoutError: the function exceeded the time limit.
    """
    in_thread = policy.thread and not is_async(reconcile)
    work = _call_function(reconcile, value, context, in_thread=in_thread)
    return await within(policy.timeout_s, work, "reconcile")


def leave(tasks: Iterable[asyncio.Task[T]]) -> None:
    """Stop waiting for tasks that still run after their grace period; log a warning for each."""
    for task in tasks:
        LEFT_BEHIND.add(task)
        task.add_done_callback(_forget)
        LOG.warning(
            "%s: expected to end within %g s of being cancelled, found it running. It is left "
            "behind, and its answer is ignored. Fix: let it raise CancelledError.",
            task.get_name(),
            GRACE_S,
        )


def _forget(task: asyncio.Task[T]) -> None:
    LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # Otherwise asyncio would log an unretrieved exception.


async def within(timeout_s: float | None, work: Coroutine[object, object, T], name: str) -> T:
    """Await a coroutine and return its result; cancel it at the time limit.

    With a limit, the coroutine runs in a task of this `name`.

    Raises:
        TooLate: the coroutine exceeded the time limit.
    """
    if timeout_s is None:
        return await work
    task = asyncio.create_task(work, name=name)
    try:
        await asyncio.wait((task,), timeout=timeout_s)
    except asyncio.CancelledError:
        await _give_up(task)
        if not task.done() or task.cancelled():
            raise  # Otherwise the work ignored the cancellation and ended; its result counts.
    else:
        if not task.done():
            await _give_up(task)
            raise TooLate
    return task.result()


async def _give_up(task: asyncio.Task[T]) -> None:
    task.cancel()
    try:
        await asyncio.wait((task,), timeout=GRACE_S)
    finally:
        if not task.done():
            leave((task,))


async def _run_within_limits(
    call: Caller, policy: ToolPolicy, value: object, context: ToolContext
) -> ToolOutcome:
    result = await _call_function(call, value, context, in_thread=policy.thread)
    return outcome_of_value(result, policy.result_chars_max)


async def _call_function(
    call: Caller, value: object, context: ToolContext, *, in_thread: bool
) -> object:
    if in_thread:
        context = context.of_a_thread()
        try:
            result = await asyncio.to_thread(_in_thread, call, value, context)
        except asyncio.CancelledError:
            context.aborted.set()  # A thread cannot be cancelled, but its function may read this.
            raise
    else:
        result = call(value, context)
    if inspect.isawaitable(result):
        result = await cast("Awaitable[object]", result)  # isinstance knows no result type.
    return result


def _in_thread(call: Caller, value: object, context: object) -> object:
    try:
        return call(value, context)
    except StopIteration as error:
        # An asyncio future cannot hold a StopIteration: the waiting run would never wake.
        raise RuntimeError(f"the tool raised {error!r}") from error


def run_sync(work: Coroutine[object, object, T], instead: str) -> T:
    """Run a coroutine to its end in a new event loop, and return its result.

    Args:
        work: the coroutine.
        instead: the asynchronous call that the error message suggests.

    Raises:
        ConfigError: an event loop is running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # Not run here: an error of the work would show this one as its context.
    else:
        work.close()
        raise ConfigError(
            f"an event loop is running in this thread (a notebook, a web server): await {instead} "
            "instead of its synchronous twin"
        )
    return asyncio.run(work)


@final
class FirstSteps:
    """Begins coroutines in a spare task, and gives the task to the first one that waits.

    A function that may ignore its cancellation must run in a task, so that it can be left behind.
    But a task costs rounds of the event loop, and most short tools end before their first await
    (docs/decisions/2026-11-23-the-first-step-of-a-task.md). Each coroutine takes its first step at
    once, as the task: `asyncio.timeout` and other cancel scopes keep the task that enters them.
    """

    __slots__ = ("_spare", "_turns")

    def __init__(self) -> None:
        self._spare: asyncio.Task[None] | None = None
        self._turns: _Turns | None = None

    def begin(self, work: Work) -> tuple[asyncio.Task[None], bool]:
        """Run a coroutine to its first await, in a context of its own.

        Returns:
            The task in which it runs, and whether it waits there; if not, it has ended.
        """
        loop, task, turns = asyncio.get_running_loop(), self._spare, self._turns
        if task is None or turns is None or task.cancelling() or task.done():
            self.end()
            turns = self._turns = _Turns(loop)
            task = self._spare = asyncio.Task(turns, loop=loop)
            SPARE.add(task)
        current = asyncio.current_task(loop)
        # asyncio offers these two, private by name, to other event loops for the same use.
        if current is not None:
            _leave_task(loop, current)
        _enter_task(loop, task)
        try:
            waits = turns.enter(work)
        finally:
            _leave_task(loop, task)
            if current is not None:
                _enter_task(loop, current)
        if waits:
            SPARE.discard(task)
            self._spare = self._turns = None
        return task, waits

    def end(self) -> None:
        """End the spare task, if there is one; the event loop removes it in its next round."""
        task, turns, self._spare, self._turns = self._spare, self._turns, None, None
        if task is not None and turns is not None:
            SPARE.discard(task)
            turns.end()


@final
class _Turns(Coroutine[Any, Any, None]):
    """The coroutine of a task: idle until a coroutine waits that `enter` began, and then that.

    Each coroutine runs in the context that `enter` has copied for it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._work: Work | None = None
        self._context: Context | None = None
        self._awaited: object = None
        self._idle: asyncio.Future[None] | None = None
        self._is_over = False

    def enter(self, work: Work) -> bool:
        """Run a coroutine to its first await, or to its end; return whether it waits."""
        context = copy_context()
        try:
            self._awaited = context.run(work.send, None)
        except StopIteration:
            return False
        self._work, self._context = work, context
        self._wake()
        return True

    def end(self) -> None:
        """Let the task end."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def send(self, value: object) -> object:
        """Resume the coroutine; the first call returns the future that `enter` stopped at."""
        work, context, awaited = self._work, self._context, self._awaited
        self._awaited = self._idle = None
        if work is not None and context is not None:
            return context.run(work.send, value) if awaited is None else awaited
        if self._is_over:
            raise StopIteration
        self._idle = self._loop.create_future()
        return self._idle.__await__().send(None)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> object:
        """Cancel the future that `enter` stopped at, if any; else throw into the coroutine."""
        del value, trace
        assert isinstance(kind, BaseException), "tasks throw exceptions, not their classes"
        work, context, awaited = self._work, self._context, self._awaited
        self._awaited = self._idle = None
        if work is None or context is None:
            raise kind
        if asyncio.isfuture(awaited) and awaited.cancel():
            return awaited
        return context.run(work.throw, kind)

    def close(self) -> None:
        """Close the coroutine that waits."""
        if self._work is not None:
            self._work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        """Return the iterator of the `__await__` of the coroutine that waits."""
        assert self._work is not None, "a task sends, and does not iterate"
        return self._work.__await__()
