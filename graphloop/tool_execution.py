"""How a user's function is called: inline, awaited or in a thread, and for how long.

What the function raises passes through: `Tool` is the boundary.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, cast

from .callables import Caller, is_async
from .tool_effects import Reconcile
from .tool_options import Policy
from .tool_outcome import ToolOutcome, error_text, result_content

__all__ = ["execute_call", "look_up", "raised"]

LOG: Final = logging.getLogger("graphloop")


async def execute_call(
    name: str, call: Caller, policy: Policy, value: object, context: object
) -> ToolOutcome:
    """Run one call of the tool `name` and return its outcome, or that it took too long."""
    if policy.timeout_s is None:
        return await _outcome(call, policy, value, context)
    limit = asyncio.timeout(policy.timeout_s)
    try:
        async with limit:
            outcome = await _outcome(call, policy, value, context)
    except Exception:
        if not limit.expired():
            raise  # The tool's own error, be it its own time limit.
    else:
        if not limit.expired():
            return outcome
    # A tool that swallows its cancellation comes to an end of its own, too late for anybody.
    return ToolOutcome(
        f"Tool {name!r} gave no result within {policy.timeout_s:g} seconds and was given up. "
        "What it had begun may have happened.",
        "timeout",
    )


def raised(name: str, error: Exception) -> ToolOutcome:
    """Return what the model reads of an exception; the log keeps its traceback, at level INFO."""
    LOG.info("tool %r raised", name, exc_info=error)
    return ToolOutcome(error_text(error), "error")


async def look_up(reconcile: Reconcile, policy: Policy, value: object, context: object) -> object:
    """Return what `reconcile` says of a call, within the tool's own time limit.

    Raises:
        TimeoutError: it took longer.
    """
    in_thread = policy.thread and not is_async(reconcile)
    async with asyncio.timeout(policy.timeout_s):
        return await _called(reconcile, value, context, in_thread=in_thread)


async def _outcome(call: Caller, policy: Policy, value: object, context: object) -> ToolOutcome:
    result = await _called(call, value, context, in_thread=policy.thread)
    return ToolOutcome(result_content(result, policy.result_chars_max), "ok")


async def _called(call: Caller, value: object, context: object, *, in_thread: bool) -> object:
    if in_thread:
        result = await asyncio.to_thread(_in_thread, call, value, context)
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
