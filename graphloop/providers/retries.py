"""Decide whether a failed model call is sent again, and after how long.

The functions are pure: time and randomness are arguments, which `HttpEnvironment` gives a provider.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import inf
from typing import final

from ..errors import ConfigError, ProviderError, ProviderTimeout

__all__ = ["HttpEnvironment", "Retries", "retry_after_s"]


@final
@dataclass(frozen=True, slots=True)
class HttpEnvironment:
    """The sleep function, random source and clock of a provider; tests replace them.

    Attributes:
        sleep: waits for a number of seconds before a retry.
        jitter: returns a random factor in [0, 1) for the wait.
        now: returns the Unix time, which a `Retry-After` header with a date needs.
    """

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    now: Callable[[], float] = time.time


@final
@dataclass(frozen=True, slots=True)
class Retries:
    """The maximum number of attempts at a model call, and the waits between attempts.

    If the server asks for a wait, that wait is used. Otherwise `delay_s` doubles with every attempt
    up to `delay_max_s`, and the wait is a random part of it (full jitter), so that many clients do
    not retry together. If the server asks for more than `delay_max_s`, there is no retry, and the
    error has `retry_after_s`.
    """

    attempts_max: int = 3
    delay_s: float = 0.5
    delay_max_s: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts_max < 1:
            raise ConfigError(
                f"Retries.attempts_max: expected 1 (no retry) or more, found {self.attempts_max!r}."
            )
        if not (0 <= self.delay_s < inf and 0 <= self.delay_max_s < inf):
            raise ConfigError(
                "Retries: expected delays of 0 s or more, "
                f"found delay_s={self.delay_s!r}, delay_max_s={self.delay_max_s!r}."
            )

    def allows(self, attempt: int, error: ProviderError) -> bool:
        """Whether to retry after attempt number `attempt` (from 1) failed with `error`.

        Of the time-outs, only a connection time-out is retried. After other time-outs, the server
        still has the request, and the caller has already waited for the whole limit.
        """
        if isinstance(error, ProviderTimeout) and error.layer != "connect":
            return False
        if error.retry_after_s is not None and error.retry_after_s > self.delay_max_s:
            return False
        return error.retryable and attempt < self.attempts_max

    def wait_s(self, attempt: int, error: ProviderError, jitter: float) -> float:
        """Return the seconds to wait after attempt number `attempt` (from 1).

        `jitter`, from 0 to 1, is the random part of the delay; a wait from the server ignores it.
        """
        if error.retry_after_s is not None:
            return max(error.retry_after_s, 0.0)
        doubled = self.delay_s * 2.0 ** min(attempt - 1, 64)
        return min(doubled, self.delay_max_s) * jitter


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that the response headers ask for, or None.

    `now` is the Unix time. `Retry-After` holds seconds or a date (RFC 9110, section 10.2.3); any
    other value counts as absent. `retry-after-ms` of OpenAI and Azure takes precedence.
    """
    milliseconds = _seconds_or_none(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    text = headers.get("retry-after", "").strip()
    seconds = _seconds_or_none(text)
    return _seconds_until(text, now) if seconds is None else seconds


def _seconds_or_none(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < inf else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        return max(parsedate_to_datetime(date).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None
