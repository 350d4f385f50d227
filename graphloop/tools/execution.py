"""Call a user's function, inline or in a thread, within a time limit.

Exceptions of the function pass through; `Tool` turns them into outcomes. A call that exceeds its
time limit is cancelled. If it still runs after a grace period, its result is ignored.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

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

T = TypeVar("T")

UNREAD: Final[object] = object()
"""Placeholder for arguments that are not parsed yet, or that the parser has refused."""

GRACE_S: Final = 2.0
"""The seconds that a cancelled tool may take to end; after them its result is ignored."""

LEFT_BEHIND: Final[set[asyncio.Task[object]]] = set()
"""Cancelled tasks that still run: the event loop's weak references would not keep them alive."""


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
        return await within(policy.timeout_s, _outcome(call, policy, value, context), name)
    except TooLate:
        return ToolOutcome(
            f"Tool {name!r} gave no result within {policy.timeout_s:g} seconds and was given up. "
            "What it had begun may have happened.",
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
    work = _called(reconcile, value, context, in_thread=in_thread)
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


async def _outcome(
    call: Caller, policy: ToolPolicy, value: object, context: ToolContext
) -> ToolOutcome:
    result = await _called(call, value, context, in_thread=policy.thread)
    return outcome_of_value(result, policy.result_chars_max)


async def _called(call: Caller, value: object, context: ToolContext, *, in_thread: bool) -> object:
    if in_thread:
        context = context.of_a_thread()
        try:
            result = await asyncio.to_thread(_in_thread, call, value, context)
        except asyncio.CancelledError:
            context.aborted.set()  # A thread cannot be cancelled, but its function may read this.
            raise
    else:
        result = call(value, context)
    if isinstance(result, Awaitable):
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
        return asyncio.run(work)
    work.close()
    raise ConfigError(
        f"an event loop is running in this thread (a notebook, a web server): await {instead} "
        "instead of its synchronous twin"
    )
