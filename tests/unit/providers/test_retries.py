"""The arithmetic of trying again."""

from __future__ import annotations

import pytest

from graphloop.errors import (
    BadReply,
    ConfigError,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
)
from graphloop.providers.retries import Retries, retry_after_s

DOWN = Overloaded("down")


@pytest.mark.parametrize(("wish", "wait"), [(7.0, 7.0), (0.0, 0.0), (-3.0, 0.0), (30.0, 30.0)])
def test_the_servers_wish_is_granted_within_reason(wish: float, wait: float) -> None:
    """Without jitter: the server knows when it will be ready."""
    error = RateLimited("slow down", retry_after_s=wish)

    assert Retries().wait_s(1, error, 0.5) == wait
    assert Retries().allows(1, error)


@pytest.mark.parametrize("wish", [30.001, 60.0, 1e9])
def test_a_wish_beyond_reason_is_the_callers_to_grant(wish: float) -> None:
    """Asked again too early, a server counts the request against the limit once more."""
    assert not Retries().allows(1, RateLimited("slow down", retry_after_s=wish))


@pytest.mark.parametrize(
    ("error", "attempt", "allowed"),
    [
        (DOWN, 1, True),
        (DOWN, 2, True),
        (DOWN, 3, False),
        (BadReply("nonsense"), 1, False),
        (ProviderTimeout("", layer="connect"), 1, True),
        (ProviderTimeout("", layer="first_content"), 1, False),
        (ProviderTimeout("", layer="total"), 1, False),
    ],
)
def test_only_what_may_succeed_is_tried_again(
    error: ProviderError, attempt: int, *, allowed: bool
) -> None:
    """Three attempts are two retries."""
    assert Retries(attempts_max=3).allows(attempt, error) is allowed


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("Thu, 01 Jan 1970 00:16:45 GMT", 5.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("-1", None),
        ("inf", None),
        ("nan", None),
        ("tomorrow", None),
        ("Thu, 99 Jan 1970 00:16:45 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_nothing(header: str, seconds: float | None) -> None:
    """What is neither must not stop a retry."""
    assert retry_after_s({"retry-after": header}, 1_000.0) == seconds
    assert retry_after_s({}, 1_000.0) is None


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [("1500", 1.5), ("0", 0.0), ("-1", 7.0), ("nan", 7.0), ("x", 7.0)]
)
def test_a_wait_in_milliseconds_is_the_finer_word(milliseconds: str, seconds: float) -> None:
    """OpenAI sends both, the seconds rounded up."""
    headers = {"retry-after-ms": milliseconds, "retry-after": "7"}

    assert retry_after_s(headers, 1_000.0) == seconds


def test_retries_that_make_no_sense_are_refused() -> None:
    """No attempt at all is not a way to disable retries."""
    with pytest.raises(
        ConfigError, match=r"attempts_max: expected 1 \(no retry\) or more, found 0"
    ):
        Retries(attempts_max=0)
    with pytest.raises(ConfigError, match="found delay_s=-1"):
        Retries(delay_s=-1)
    with pytest.raises(ConfigError, match="delay_max_s=inf"):
        Retries(delay_max_s=float("inf"))
