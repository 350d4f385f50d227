"""Whether a failed model call is sent again, and after how long.

Pure arithmetic: time and randomness are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import inf
from typing import final

from ..errors import ConfigError, ProviderError, ProviderTimeout

__all__ = ["Retries", "retry_after_s"]


@final
@dataclass(frozen=True, slots=True)
class Retries:
    """How often a model call is sent, and the waits between.

    The wait is the server's own, or a random part (full jitter, so that many clients do not come
    back together) of `delay_s` doubled with every attempt; never above `delay_max_s`. A server
    that asks for a longer wait gets no retry: its error has `retry_after_s`.
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
        """Whether to send again after `attempt` (from 1) failed with `error`.

        Of the time-outs only a failed connection is retried: after the others the server still has
        the request, and the caller has waited its limit.
        """
        if isinstance(error, ProviderTimeout) and error.layer != "connect":
            return False
        if error.retry_after_s is not None and error.retry_after_s > self.delay_max_s:
            return False
        return error.retryable and attempt < self.attempts_max

    def wait_s(self, attempt: int, error: ProviderError, jitter: float) -> float:
        """Return the wait after `attempt` (from 1); `jitter` is in [0, 1]."""
        if error.retry_after_s is not None:
            return max(error.retry_after_s, 0.0)
        doubled = self.delay_s * 2.0 ** min(attempt - 1, 64)
        return min(doubled, self.delay_max_s) * jitter


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the wait that the headers ask for, or None.

    `now` is Unix time. `Retry-After` holds seconds or a date (RFC 9110, section 10.2.3); any other
    value counts as absent. `retry-after-ms`, the finer field of OpenAI and Azure, wins.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    return _until(text, now) if seconds is None else seconds


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < inf else None


def _until(date: str, now: float) -> float | None:
    try:
        return max(parsedate_to_datetime(date).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None
