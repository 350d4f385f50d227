"""How a user's function is called, and for how long.

Exceptions of the function pass through: `Tool` is the boundary. A call that is given up is
cancelled, has a grace period to end in, and is then left behind: its answer is ignored.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from ..errors import ConfigError, ToolDefinitionError
from .options import Reconcile, ToolPolicy
from .outcome import ToolOutcome, error_text, result_content
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
    "within",
    "yes_or_no",
]

LOG: Final = logging.getLogger("graphloop")

Caller: TypeAlias = Callable[[Any, object], object]
"""Takes the parsed arguments, a mapping where `Parameters.keywords` says so, and the context."""

T = TypeVar("T")

UNREAD: Final[object] = object()
"""Stands for arguments that no parser has read, or that it has refused."""

GRACE_S: Final = 2.0
"""How long a cancelled tool may take to end before it is left behind."""

LEFT_BEHIND: Final[set[asyncio.Task[object]]] = set()
"""Tasks left behind: the event loop holds them weakly, and they must not be collected half-way."""


class TooLate(TimeoutError):
    """A function was given up; any other `TimeoutError` is its own."""


def caller(execute: Callable[..., object], parameters: Parameters, place: str) -> Caller:
    """Return how to call `execute`, decided once instead of at each call.

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
    """Return the answer of a user's function, plain or asynchronous."""
    return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer


def yes_or_no(answer: object) -> bool:
    """Return the answer of a predicate, which must be a bool.

    Raises:
        ConfigError: it is anything else; a forgotten `return` must not pass for a no.
    """
    if answer is True or answer is False:
        return answer
    raise ConfigError(
        f"expected True or False, found {answer!r:.80}. Fix: return one of them on every path."
    )


async def execute_call(
    name: str, call: Caller, policy: ToolPolicy, value: object, context: ToolContext
) -> ToolOutcome:
    """Run a call of the tool `name` within its time limit."""
    try:
        return await within(policy.timeout_s, _outcome(call, policy, value, context), name)
    except TooLate:
        return ToolOutcome(
            f"Tool {name!r} gave no result within {policy.timeout_s:g} seconds and was given up. "
            "What it had begun may have happened.",
            "timeout",
        )


def raised(run_id: str, name: str, error: Exception) -> ToolOutcome:
    """Return the outcome of an exception; log its traceback, since the model hides the bug."""
    LOG.warning("run %s: tool %r raised", run_id, name, exc_info=error)
    return ToolOutcome(error_text(error), "error")


async def look_up(
    reconcile: Reconcile, policy: ToolPolicy, value: object, context: ToolContext
) -> object:
    """Return the answer of `reconcile` within the tool's time limit.

    Raises:
        TimeoutError: it took longer.
    """
    in_thread = policy.thread and not is_async(reconcile)
    work = _called(reconcile, value, context, in_thread=in_thread)
    return await within(policy.timeout_s, work, "reconcile")


def leave(tasks: Iterable[asyncio.Task[T]]) -> None:
    """Leave tasks behind that outlived their grace period; warn of each."""
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
        task.exception()  # Else asyncio would log an exception that was never retrieved.


async def within(timeout_s: float | None, work: Coroutine[object, object, T], name: str) -> T:
    """Await work within its time limit, in its own task.

    Raises:
        TooLate: it took longer.
    """
    if timeout_s is None:
        return await work
    task = asyncio.create_task(work, name=name)
    try:
        await asyncio.wait((task,), timeout=timeout_s)
    except asyncio.CancelledError:
        await _give_up(task)
        if not task.done() or task.cancelled():
            raise  # Else the work has swallowed the cancellation, and its answer counts.
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
    return ToolOutcome(result_content(result, policy.result_chars_max), "ok")


async def _called(call: Caller, value: object, context: ToolContext, *, in_thread: bool) -> object:
    if in_thread:
        context = context.of_a_thread()
        try:
            result = await asyncio.to_thread(_in_thread, call, value, context)
        except asyncio.CancelledError:
            context.aborted.set()  # The thread runs on, and may look at it.
            raise
    else:
        result = call(value, context)
    if isinstance(result, Awaitable):
        result = await cast("Awaitable[object]", result)  # isinstance cannot tell of what.
    return result


def _in_thread(call: Caller, value: object, context: object) -> object:
    try:
        return call(value, context)
    except StopIteration as error:
        # asyncio futures refuse this one exception, and the waiting run would never wake.
        raise RuntimeError(f"the tool raised {error!r}") from error
