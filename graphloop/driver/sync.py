"""Run a coroutine for a caller that has no event loop: a wrapper, never a second loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from ..errors import ConfigError
from ..stores import running_loop

__all__ = ["run_sync"]

T = TypeVar("T")


def run_sync(work: Coroutine[object, object, T], instead: str) -> T:
    """Run `work` to its end and return its result.

    Args:
        work: the coroutine.
        instead: what to call where an event loop is running already.

    Raises:
        ConfigError: an event loop is running in this thread.
    """
    if running_loop() is not None:
        work.close()
        raise ConfigError(
            f"an event loop is running in this thread (a notebook, a web server): await {instead} "
            "instead of its synchronous twin"
        )
    return asyncio.run(work)
