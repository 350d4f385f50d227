"""How a user's function is called: inline, awaited or in a thread, and for how long.

What the function raises passes through: `Tool` is the boundary. What is given up is cancelled, has
a grace to end in, and is left behind then: nothing that it answers is heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Iterable
from threading import Event
from typing import Final, Protocol, TypeVar, cast

from .callables import Caller, is_async
from .tool_effects import Reconcile
from .tool_options import Policy
from .tool_outcome import ToolOutcome, error_text, result_content

__all__ = ["GRACE_S", "UNREAD", "TooLate", "execute_call", "leave", "look_up", "raised", "within"]

LOG: Final = logging.getLogger("graphloop")

T = TypeVar("T")

UNREAD: Final[object] = object()
"""Stands for arguments that no parser has read, or that it has refused."""

GRACE_S: Final = 2.0
"""How long a tool may take to end once it is cancelled, before it is left behind."""

LEFT_BEHIND: Final[set[asyncio.Task[object]]] = set()
"""What the event loop itself does not hold, and the garbage collector must not end half-way."""


class _Context(Protocol):
    """The part of a `ToolContext` that is needed here."""

    @property
    def aborted(self) -> Event: ...

    def of_a_thread(self) -> _Context: ...


class TooLate(TimeoutError):
    """A function has been given up: another `TimeoutError` is its own."""


async def execute_call(
    name: str, call: Caller, policy: Policy, value: object, context: _Context
) -> ToolOutcome:
    """Run one call of the tool `name` and return its outcome, or that it took too long."""
    try:
        return await within(policy.timeout_s, _outcome(call, policy, value, context), name)
    except TooLate:
        return ToolOutcome(
            f"Tool {name!r} gave no result within {policy.timeout_s:g} seconds and was given up. "
            "What it had begun may have happened.",
            "timeout",
        )


def raised(name: str, error: Exception) -> ToolOutcome:
    """Return what the model reads of an exception; the log keeps its traceback, at level INFO."""
    LOG.info("tool %r raised", name, exc_info=error)
    return ToolOutcome(error_text(error), "error")


async def look_up(reconcile: Reconcile, policy: Policy, value: object, context: _Context) -> object:
    """Return what `reconcile` says of a call, within the tool's own time limit.

    Raises:
        TimeoutError: it took longer.
    """
    in_thread = policy.thread and not is_async(reconcile)
    work = _called(reconcile, value, context, in_thread=in_thread)
    return await within(policy.timeout_s, work, "reconcile")


def leave(tasks: Iterable[asyncio.Task[T]]) -> None:
    """Leave tasks behind that have not ended within their grace, with a warning for each."""
    for task in tasks:
        LEFT_BEHIND.add(task)
        task.add_done_callback(_forget)
        LOG.warning(
            "%s: expected to end within %g s of being cancelled, found it running. It is left "
            "behind, and nothing that it answers is heard. Fix: let it raise CancelledError.",
            task.get_name(),
            GRACE_S,
        )


def _forget(task: asyncio.Task[T]) -> None:
    LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # Else asyncio would tell that nobody has asked.


async def within(timeout_s: float | None, work: Coroutine[object, object, T], name: str) -> T:
    """Await work for the time that there is, in a task of its own that can be left behind.

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
            raise  # Else it has kept the cancellation to itself, and answers all the same.
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


async def _outcome(call: Caller, policy: Policy, value: object, context: _Context) -> ToolOutcome:
    result = await _called(call, value, context, in_thread=policy.thread)
    return ToolOutcome(result_content(result, policy.result_chars_max), "ok")


async def _called(call: Caller, value: object, context: _Context, *, in_thread: bool) -> object:
    if in_thread:
        context = context.of_a_thread()
        try:
            result = await asyncio.to_thread(_in_thread, call, value, context)
        except asyncio.CancelledError:
            context.aborted.set()  # The thread runs on, and may ask.
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
