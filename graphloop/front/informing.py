"""Telling the user's listeners what happened, which cannot fail a run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from ..drivers.cancellation import cancelled_inside

__all__ = ["inform"]

T = TypeVar("T")


async def inform(name: str, listener: Callable[[T], object], told: T) -> str:
    """Tell a listener, and return a warning if it failed.

    Args:
        name: what the listener is called in warnings.
        listener: a function, which may be asynchronous.
        told: what it is told.
    """
    try:
        answer = listener(told)
        if inspect.isawaitable(answer):
            await cast("Awaitable[object]", answer)
    except asyncio.CancelledError as error:
        return f"{name} was {cancelled_inside(error)}"
    except Exception as error:  # noqa: BLE001 - a listener cannot fail a run
        return f"{name} raised {type(error).__name__}: {error}"
    return ""
