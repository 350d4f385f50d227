"""A run that its caller awaits, and stops by a signal: the drained stream, aborted."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from .result import RunResult
from .stream import RunStream

__all__ = ["result_of"]

S = TypeVar("S")


async def result_of(stream: RunStream[S], signal: asyncio.Event | None) -> RunResult[S]:
    """Return a run's result, which is of an abort once the signal is set.

    Raises:
        Exception: what `RunStream.result` raises.
    """
    if signal is None:
        return await stream.result()
    watching = asyncio.create_task(_abort(stream, signal))
    await asyncio.sleep(0)  # A signal that is set already is heeded before the run begins.
    try:
        return await stream.result()
    finally:
        watching.cancel()


async def _abort(stream: RunStream[S], signal: asyncio.Event) -> None:
    await signal.wait()
    stream.abort("the signal was set")
