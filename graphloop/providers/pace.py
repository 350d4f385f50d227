"""Pace: how many requests a model may be sent, over all runs that share the model.

A provider with `Limits` has one gate, which each attempt at a model call passes. After a refusal
for too many requests (429), the gate is closed for all runs until the server's time. Then one
request goes first; the others follow when the server has accepted it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Final, NamedTuple, final

from ..errors import ConfigError, RateLimited
from .base import Waiting, WaitReason

__all__ = ["Limits", "PaceGate"]

MINUTE_S: Final = 60.0


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """The most that all runs of one provider together send to its model; None for no limit.

        model = connect("openai:gpt-5", limits=Limits(requests_per_minute=500, concurrent=20))

    A request that would exceed a limit waits, and the run's stream shows a `waiting` part. After a
    429, all requests wait until the time that the server has named. Such a refusal does not count
    as an attempt of `Retries`; `Timeouts.total_s` still ends the call.

    Attributes:
        requests_per_minute: the most requests within any 60 seconds, retries included.
        tokens_per_minute: the tokens of ended requests within the last 60 seconds at which the next
            request waits.
        concurrent: the most requests that are open at once.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent: int | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "concurrent"):
            value: object = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if value is not None and not whole:
                raise ConfigError(
                    f"Limits.{name}: expected a whole number of at least 1, or None for no limit, "
                    f"found {value!r}."
                )


class _Wait(NamedTuple):
    """Why a request has to wait, and for how many seconds; None until another request ends."""

    reason: WaitReason
    seconds: float | None


@final
@dataclass(eq=False, slots=True)
class PaceGate:
    """The gate of one provider; any thread and event loop may use it.

    The times are those of an event loop's clock, which is the same clock for all loops.
    """

    limits: Limits
    _lock: Lock = field(default_factory=Lock)
    _open: int = 0
    _requests: deque[float] = field(default_factory=deque[float])
    _tokens: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _closed_until: float = -inf
    _is_tried: bool = True
    _trying: object = None
    """The call whose request goes first after a refusal; None if none does."""
    _waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])

    async def enter(
        self, call: object, model: str, wait_max_s: float
    ) -> AsyncGenerator[Waiting, None]:
        """Yield a `Waiting` for each wait, and end when the request may be sent.

        Args:
            call: the model call, for which `accepted`, `refused` and `leave` are called later.
            model: the label of the model.
            wait_max_s: the longest wait that a server may ask for.

        Raises:
            RateLimited: the server has asked for a longer wait; nothing was sent.
        """
        loop = asyncio.get_running_loop()
        told: WaitReason | None = None
        while (found := self._try_to_enter(loop, call)) is not None:
            wait, changed = found
            if wait.reason == "rate_limited" and (wait.seconds or 0.0) > wait_max_s:
                raise RateLimited(
                    f"model {model!r}: its server has asked all requests to wait; "
                    f"{wait.seconds:.0f} s remain, more than Retries.delay_max_s. Nothing was "
                    "sent. Fix: ask again later.",
                    retry_after_s=wait.seconds,
                )
            if wait.reason != told:
                told = wait.reason
                yield Waiting(model, wait.reason, wait.seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait.seconds):
                    await changed

    def accepted(self, call: object) -> None:
        """Record that the server has accepted a request; others follow if it went first."""
        with self._lock:
            # A request from before the refusal shows nothing of the time after it.
            if self._trying is call:
                self._is_tried, self._trying = True, None
                self._wake()

    def refused(self, call: object, seconds: float) -> None:
        """Close the gate for `seconds`, after a refusal for too many requests."""
        with self._lock:
            now = asyncio.get_running_loop().time()
            self._closed_until = max(self._closed_until, now + seconds)
            self._is_tried = False
            self._end_trial(call)

    def leave(self, call: object, tokens: int) -> None:
        """Record that a request has ended, and how many tokens it has used."""
        with self._lock:
            self._open -= 1
            self._end_trial(call)
            if tokens and self.limits.tokens_per_minute is not None:
                self._tokens.append((asyncio.get_running_loop().time(), tokens))
            self._wake()

    def _end_trial(self, call: object) -> None:
        if self._trying is call:
            self._trying = None

    def _try_to_enter(
        self, loop: asyncio.AbstractEventLoop, call: object
    ) -> tuple[_Wait, asyncio.Future[None]] | None:
        """Enter, or return why not and a future that is done when this may have changed."""
        with self._lock:
            now = loop.time()
            wait = self._wait_at(now)
            if wait is None:
                self._open += 1
                self._trying = None if self._is_tried else call
                if self.limits.requests_per_minute is not None:
                    self._requests.append(now)
                return None
            changed: asyncio.Future[None] = loop.create_future()
            self._waiting = [one for one in self._waiting if not one.done()]
            self._waiting.append(changed)
            return wait, changed

    def _wait_at(self, now: float) -> _Wait | None:
        limits, requests, tokens = self.limits, self._requests, self._tokens
        if now < self._closed_until:
            return _Wait("rate_limited", self._closed_until - now)
        if self._trying is not None:
            return _Wait("rate_limited", None)
        if limits.concurrent is not None and self._open >= limits.concurrent:
            return _Wait("concurrent", None)
        while requests and requests[0] <= now - MINUTE_S:
            requests.popleft()
        if limits.requests_per_minute is not None and len(requests) >= limits.requests_per_minute:
            return _Wait("requests_per_minute", requests[0] + MINUTE_S - now)
        while tokens and tokens[0][0] <= now - MINUTE_S:
            tokens.popleft()
        spent = sum(count for _, count in tokens)
        if limits.tokens_per_minute is not None and spent >= limits.tokens_per_minute:
            return _Wait("tokens_per_minute", tokens[0][0] + MINUTE_S - now)
        return None

    def _wake(self) -> None:
        """Let all waiting requests try again, in the order of their arrival."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            with suppress(RuntimeError):  # Its event loop has ended.
                one.get_loop().call_soon_threadsafe(_set_done, one)


def _set_done(changed: asyncio.Future[None]) -> None:
    if not changed.done():
        changed.set_result(None)
