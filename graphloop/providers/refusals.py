"""Convert servers' error reports to `ProviderError` subclasses.

Servers use many formats: a report is `{"error": {...}}`, with or without a `type` beside it,
`{"error": "text"}`, `{"detail": ...}`, the bare error object, an HTML page, or nothing; `code` is a
number or a word. Reading a report must never raise an error itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import (
    AuthenticationFailed,
    BadReply,
    ContextOverflow,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
)
from .wire_json import is_list, is_object, json_text, parse_json, quoted

__all__ = ["http_error", "is_report", "stream_error"]

_KINDS: Final[Mapping[type[ProviderError], str]] = {
    AuthenticationFailed: "authentication_error invalid_api_key permission_error permission_denied",
    RateLimited: "rate_limit_error rate_limit_exceeded resource_exhausted too_many_requests",
    RequestRejected: "invalid_request_error invalid_argument badrequesterror not_found_error "
    "not_supported_error request_too_large",
    Overloaded: "api_error internal_error internal_server_error internalservererror "
    "overloaded_error server_error service_unavailable timeout timeout_error unavailable "
    "unavailable_error",
}
_KIND_OF_WORD: Final = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_OVERFLOW_WORDS: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"}
)
# Servers send these words with status 429, like a rate limit, but a retry cannot add credit.
_UNPAID_WORDS: Final = frozenset(
    {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"}
)
# Statuses below 500 that permit a retry: time-out, conflict, too early.
_STATUSES_TO_RETRY: Final = frozenset({408, 409, 425})

_ADVICE: Final[Mapping[type[ProviderError], str]] = {
    AuthenticationFailed: "Check the API key and what it may use.",
    ContextOverflow: "Shorten or compact the conversation, or use a larger context window.",
    RateLimited: "Send fewer requests, or ask again later.",
    RequestRejected: "Change the request; the same one will be refused again.",
    Overloaded: "Ask again later.",
    BadReply: "Check that the base URL speaks this wire.",
}

_says_overflow = re.compile(
    r"prompt is too long|maximum context length|context length exceeded|available context size|"
    r"context window|exceeds? (the |your )?(available |maximum )?context",
    re.IGNORECASE,
).search
_is_word = re.compile(r"(?!error$)(?!\d+$)[\w. -]{1,80}", re.ASCII).fullmatch
_delay = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII).fullmatch
# Some servers quote the refused API key, and error messages are stored in logs and journals.
_hide_keys = re.compile(r"(?:\b(?:sk|gsk|xai|hf|pk)[-_]|\bBearer\s+)[\w.*-]{6,}").sub


@dataclass(frozen=True, slots=True)
class _Report:
    """A server's error report: message, words that classify it, status, and seconds to wait."""

    message: str
    words: frozenset[str] = frozenset()
    status: int = 0
    retry_after_s: float | None = None


def http_error(wire: str, status: int, body: bytes) -> ProviderError:
    """Return the `ProviderError` for an HTTP error response; never raises."""
    report = _read_report(body)
    # A proxy may send an error report with status 200; then the report's own status counts.
    kind, advice = _error_type_and_advice(status if status >= 300 else report.status, report)
    text = f"{wire}: the server answered {status} with {_quote(report)}. {advice}"
    return kind(text, status=status, retry_after_s=report.retry_after_s)


def stream_error(wire: str, data: bytes) -> ProviderError:
    """Return the `ProviderError` for an error event in a stream; never raises."""
    report = _read_report(data)
    kind, advice = _error_type_and_advice(report.status, report)
    text = f"{wire}: the server broke off the stream with {_quote(report)}. {advice}"
    return kind(text, retry_after_s=report.retry_after_s)


def is_report(body: bytes) -> bool:
    """Whether the body of a response with a success status is an error report."""
    try:
        report = _unwrap(parse_json(body))
    except ValueError:
        return False
    if not is_object(report) or "choices" in report or "content" in report:
        return False
    return bool(
        report.get("error") or report.get("detail") or isinstance(report.get("message"), str)
    )


def _error_type_and_advice(status: int, report: _Report) -> tuple[type[ProviderError], str]:
    if report.words & _UNPAID_WORDS:
        return RequestRejected, "Add credit to the account, or raise its limit; waiting won't help."
    kind = _error_type(status, report.words)
    if report.words & _OVERFLOW_WORDS or (
        kind not in {AuthenticationFailed, RateLimited} and _says_overflow(report.message)
    ):
        kind = ContextOverflow
    return kind, _ADVICE[kind]


def _error_type(status: int, words: frozenset[str]) -> type[ProviderError]:
    if status in {401, 403}:
        return AuthenticationFailed
    if status == 429:
        return RateLimited
    if status >= 500 or status in _STATUSES_TO_RETRY:
        return Overloaded
    if status >= 400:
        return RequestRejected
    known = (_KIND_OF_WORD[word] for word in sorted(words) if word in _KIND_OF_WORD)
    return BadReply if status >= 300 else next(known, BadReply)


def _quote(report: _Report) -> str:
    words = "/".join(sorted(report.words))
    if not report.message:
        return words or "an empty body"
    message = quoted(_hide_keys("[key]", report.message))
    return f"{message} ({words})" if words else message


def _read_report(body: bytes) -> _Report:
    try:
        parsed = parse_json(body)
    except ValueError:
        return _Report(body.decode(errors="replace").strip())
    parsed = _unwrap(parsed)
    if not is_object(parsed):
        return _Report(_text(parsed))
    error = parsed.get("error")
    error = error if is_object(error) else parsed
    named = (error.get(key) for key in ("message", "detail", "error"))
    message = next((_text(value) for value in named if value), "")
    details = error.get("metadata")
    if is_object(details) and isinstance(details.get("raw"), str):
        message = f"{message}: {details['raw']}"  # The message of OpenRouter's upstream.
    kinds = (error.get(key) for key in ("type", "code", "status"))
    words = frozenset(kind.lower() for kind in kinds if isinstance(kind, str) and _is_word(kind))
    wait_s = _retry_delay_s(error.get("details"))
    return _Report(message or _text(error), words, _status_or_zero(error.get("code")), wait_s)


def _unwrap(parsed: object) -> object:
    """Return the error report without the array in which Gemini's endpoint wraps it."""
    return parsed[0] if is_list(parsed) and parsed else parsed


def _retry_delay_s(details: object) -> float | None:
    """Return the seconds to wait from a `google.rpc.RetryInfo` in `details`, or None."""
    for detail in details if is_list(details) else ():
        delay = detail.get("retryDelay") if is_object(detail) else None
        seconds = _delay(delay) if isinstance(delay, str) else None
        if seconds:
            return float(seconds[1])
    return None


def _status_or_zero(code: object) -> int:
    if isinstance(code, str) and code.isascii() and code.isdecimal() and len(code) == 3:
        return int(code)
    return code if isinstance(code, int) and 300 <= code <= 599 else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)
