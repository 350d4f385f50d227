"""Enforce the time limits of one model call with a single timer.

`asyncio.timeout` around every read would cost as much as reading itself, and around the whole
stream it would have to yield inside its scope. So a `Watch` sets a single timer, and cancels only a
read that the exchange has announced. Between reads, it only records the time-out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, fields
from math import inf
from typing import Literal, TypeAlias, final

from ..errors import ConfigError, ProviderTimeout

__all__ = ["Timeouts", "Watch"]

Layer: TypeAlias = Literal["connect", "first_content", "silence", "total"]


@final
@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time limits of a model call in seconds; 0 means no limit.

    Attributes:
        connect_s: the limit for establishing the connection.
        first_content_s: the limit from the request to the first text, reasoning or tool call.
        silence_s: the limit between two arrivals of bytes, after content has started.
        total_s: the limit for the whole model call, including retries and waits between them.
    """

    connect_s: float = 10.0
    first_content_s: float = 60.0
    silence_s: float = 60.0
    total_s: float = 300.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value: float = getattr(self, field.name)
            if not 0 <= value < inf:
                raise ConfigError(
                    f"Timeouts.{field.name}: expected seconds, or 0 for no limit, found {value!r}."
                )


@final
class Watch:
    """Enforces the time limits of one model call with at most one timer.

    The exchange calls `begin` before and `end` after every awaited read. If the read raises
    `CancelledError`, `verdict` tells whether this watch cancelled it.
    """

    __slots__ = (
        "_cancellations",
        "_first_content_at",
        "_handle",
        "_interrupted",
        "_layer",
        "_loop",
        "_quiet_s",
        "_since",
        "_task",
        "_timeouts",
        "_total_at",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, timeouts: Timeouts) -> None:
        self._loop = loop
        self._timeouts = timeouts
        self._total_at = loop.time() + (timeouts.total_s or inf)
        self._first_content_at = inf
        self._quiet_s = inf
        self._since = 0.0
        self._task: asyncio.Task[object] | None = None
        self._cancellations = 0
        self._interrupted = False
        self._layer: Layer | None = None
        self._handle: asyncio.TimerHandle | None = None

    def attempt(self) -> None:
        """Start a new attempt: restart the limit for the first content, not the total limit."""
        if self._layer != "total":
            self._layer = None
        self._first_content_at = self._loop.time() + (self._timeouts.first_content_s or inf)
        self._quiet_s = inf
        self._arm()

    def content_started(self) -> None:
        """Replace the limit for the first content by the limit for silence."""
        self._first_content_at = inf
        self._quiet_s = self._timeouts.silence_s or inf
        self._arm()

    def at_most(self, seconds: float) -> None:
        """Limit this attempt to `seconds` from now."""
        self._first_content_at = min(self._first_content_at, self._loop.time() + seconds)
        self._arm()

    def allows(self, seconds: float) -> bool:
        """Whether the total limit still allows a wait of `seconds`."""
        return self._loop.time() + seconds < self._total_at

    def stop(self) -> None:
        """Cancel the timer, if any."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def begin(self) -> None:
        """Record that the current task is about to await the server.

        Raises:
            ProviderTimeout: a limit ran out since the last read.
        """
        if self._layer is not None:
            raise self._timeout(self._layer)
        task = asyncio.current_task(self._loop)
        if task is not None:
            self._cancellations = task.cancelling()
            self._since = self._loop.time()
            self._task = task

    def end(self) -> None:
        """Record that the current task's read has ended."""
        self._task = None

    def verdict(self) -> ProviderTimeout | None:
        """Return the time-out error if only this watch cancelled the task, else None.

        This method also takes back the watch's own cancellation. Call it while handling a
        `CancelledError`, before `end`. If the result is None, raise the `CancelledError` again.
        """
        task, layer = self._task, self._layer
        if not self._interrupted or task is None or layer is None:
            return None
        self._interrupted = False
        return self._timeout(layer) if task.uncancel() <= self._cancellations else None

    def _arm(self) -> None:
        self.stop()
        when = min(self._total_at, self._first_content_at, self._silent_at())
        if when < inf:
            self._handle = self._loop.call_at(when, self._tick)

    def _silent_at(self) -> float:
        """Return the event loop's time at which the limit for silence runs out.

        Only awaited reads count, because a slow reader is not a silent server.
        """
        return (self._loop.time() if self._task is None else self._since) + self._quiet_s

    def _tick(self) -> None:
        self._handle = None
        now = self._loop.time()
        if now >= self._total_at:
            self._expire("total")
        elif now >= self._first_content_at:
            self._expire("first_content")
        elif now >= self._silent_at():
            self._expire("silence")
        else:
            self._arm()

    def _expire(self, layer: Layer) -> None:
        task = self._task
        self._layer = layer
        if task is not None:
            self._interrupted = True
            task.cancel()

    def _timeout(self, layer: Layer) -> ProviderTimeout:
        limit_s: float = getattr(self._timeouts, f"{layer}_s")
        return ProviderTimeout(
            f"the model's server exceeded the time limit {layer!r} of {limit_s:g} s. "
            f"Raise Timeouts({layer}_s=...), or set it to 0 for no limit.",
            layer=layer,
        )
