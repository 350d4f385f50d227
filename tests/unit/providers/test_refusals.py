"""What servers mean when they refuse: the class decides who can mend it, and on retries.

Both wires are held to everything, for servers mix the dialects: llama.cpp says on each wire what
it says on all of them.
"""

from __future__ import annotations

import json

import pytest

from graphloop.errors import (
    AuthenticationFailed,
    BadReply,
    ContextOverflow,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
)
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.refusals import is_report
from tests.transcripts import event

WIRES: tuple[Wire, ...] = (AnthropicMessages("m"), OpenAIChat("m"))
on_both_wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


def report(**error: object) -> bytes:
    return json.dumps({"error": {"message": "bad key", **error}}).encode()


@on_both_wires
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # Proxies report the failure of the host behind them as 200; only the report tells.
        (200, report(type="overloaded_error"), Overloaded),
        (200, report(type="rate_limit_error"), RateLimited),
        (200, report(code="rate_limit_exceeded"), RateLimited),
        (200, report(code=503), Overloaded),
        (200, report(code="429"), RateLimited),
        (200, report(type="authentication_error"), AuthenticationFailed),
        (200, report(type="invalid_request_error"), RequestRejected),
        (200, report(type="odd"), BadReply),
        # An empty account comes as 429 like a rate limit, but no waiting brings money.
        (429, report(code="insufficient_quota", type="insufficient_quota"), RequestRejected),
        (402, report(type="billing_error"), RequestRejected),
        (200, report(code="insufficient_quota"), RequestRejected),
        (401, b'{"error":{"message":"bad key","code":"invalid_api_key"}}', AuthenticationFailed),
        (401, b'{"detail":"bad key"}', AuthenticationFailed),
        (403, b"<html>bad key</html>", AuthenticationFailed),
        (429, b'{"error":"bad key"}', RateLimited),
        (429, b'{"error":{"message":"bad key: context window"}}', RateLimited),
        (400, b'{"error":{"message":"bad key","type":"invalid_request_error"}}', RequestRejected),
        (404, b'{"error":"bad key"}', RequestRejected),
        (422, b'{"detail":[{"loc":["body"],"msg":"bad key"}]}', RequestRejected),
        (500, b'{"error":{"code":500,"message":"bad key"}}', Overloaded),
        (503, b'[{"error":{"message":"bad key","status":"UNAVAILABLE"}}]', Overloaded),
        (
            529,
            b'{"type":"error","error":{"type":"api_error","message":"bad key"}}',
            Overloaded,
        ),
        (529, b"bad key", Overloaded),
        (302, b"bad key", BadReply),
        (302, b'{"error":{"message":"bad key","type":"server_error"}}', BadReply),
        (200, b"bad key", BadReply),
        (400, b'{"message":"bad key","code":"context_length_exceeded"}', ContextOverflow),
        (400, b'{"type":"exceed_context_size_error","message":"bad key"}', ContextOverflow),
        (400, b'{"message":"bad key: maximum context length is 9"}', ContextOverflow),
        (400, b'{"error":{"message":"bad key: prompt is too long: 2 > 1"}}', ContextOverflow),
        (400, b'{"error":{"message":"bad key: max_tokens exceed context limit"}}', ContextOverflow),
        (
            502,
            b'{"error":{"message":"bad key","metadata":{"raw":"Maximum context length"}}}',
            ContextOverflow,
        ),
    ],
)
def test_a_refusal_is_classed_by_its_status_and_quoted(
    wire: Wire, status: int, body: bytes, kind: type[ProviderError]
) -> None:
    """Who can mend it decides the class; what the server said is in the message."""
    found = wire.error(status, body)

    assert type(found) is kind
    assert found.status == status
    assert "bad key" in str(found)
    assert ("Add credit" in str(found)) is (b"insufficient" in body or b"billing" in body)


@on_both_wires
@pytest.mark.parametrize("status", [404, 405])
def test_an_address_that_the_server_does_not_know_is_named(wire: Wire, status: int) -> None:
    """Most often `base_url` has a part of the path twice, or lacks one."""
    found = str(wire.error(status, b'{"detail":"Not Found"}'))

    assert f"base_url, to which graphloop adds {wire.path!r}" in found
    assert "base_url" not in str(wire.error(400, b'{"detail":"No"}'))


@pytest.mark.parametrize("secret", ["sk-proj-abcdef123456", "Bearer abcdef123456"])
def test_a_key_that_the_server_repeats_is_not_quoted(secret: str) -> None:
    """Messages end in logs and journals."""
    found = str(OpenAIChat("m").error(401, report(message=f"Incorrect key {secret}")))

    assert "abcdef" not in found
    assert "[key]" in found


@on_both_wires
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 500, "message": "m", "type": "server_error"}, Overloaded),
        ({"code": 429, "message": "m"}, RateLimited),
        ({"code": "401", "message": "m"}, AuthenticationFailed),
        ({"code": 400, "message": "m"}, RequestRejected),
        ({"code": 400, "message": "m", "type": "odd"}, RequestRejected),
        ({"code": "rate_limit_exceeded", "message": "m"}, RateLimited),
        ({"code": "insufficient_quota", "message": "m"}, RequestRejected),
        ({"code": None, "type": "server_error", "message": "m"}, Overloaded),
        ({"code": 503, "status": "UNAVAILABLE", "message": "m"}, Overloaded),
        ({"type": "overloaded_error", "message": "m"}, Overloaded),
        ({"type": "api_error", "message": "m"}, Overloaded),
        ({"type": "rate_limit_error", "message": "m"}, RateLimited),
        ({"type": "authentication_error", "message": "m"}, AuthenticationFailed),
        ({"type": "permission_error", "message": "m"}, AuthenticationFailed),
        ({"type": "invalid_request_error", "message": "m"}, RequestRejected),
        ({"type": "invalid_request_error", "message": "prompt is too long: m"}, ContextOverflow),
        ({"type": "exceed_context_size_error", "code": 400, "message": "m"}, ContextOverflow),
        ({"code": "context_length_exceeded", "message": "m"}, ContextOverflow),
        ({"type": "new_error", "message": "m"}, BadReply),
        ({"message": "m"}, BadReply),
        ("m", BadReply),
        ({"code": 200}, BadReply),
    ],
)
def test_an_error_inside_a_stream_is_raised_as_its_kind(
    wire: Wire, error: object, kind: type[ProviderError]
) -> None:
    """A status of 200 does not make it an answer, whichever form it has."""
    for sent in (
        event({"error": error}),
        event({"type": "error", "error": error}, "error"),
        event(error, "error"),
    ):
        with pytest.raises(ProviderError) as caught:
            list(wire.decoder().feed(sent))

        assert type(caught.value) is kind
        assert caught.value.status == 0


@on_both_wires
@pytest.mark.parametrize(
    ("details", "wait_s"),
    [
        ([{"@type": "x.QuotaFailure"}, {"@type": "x.RetryInfo", "retryDelay": "14.4s"}], 14.4),
        ([{"retryDelay": "7s"}], 7.0),
        ([{"retryDelay": "soon"}, {"retryDelay": 7}, 7], None),
        ({"retryDelay": "7s"}, None),
        (None, None),
    ],
)
def test_a_wait_that_the_report_names_is_found(
    wire: Wire, details: object, wait_s: float | None
) -> None:
    """Gemini's compatible endpoint has no header for it."""
    refusal = {"error": {"code": 429, "message": "m", "details": details}}

    found = wire.error(429, json.dumps([refusal]).encode())

    assert type(found) is RateLimited
    assert found.retry_after_s == wait_s
    with pytest.raises(RateLimited) as caught:
        list(wire.decoder().feed(event(refusal)))
    assert caught.value.retry_after_s == wait_s


@pytest.mark.parametrize(
    ("body", "reports"),
    [
        (b'{"error":{"message":"no"}}', True),
        (b' {"error":"no"}', True),
        (b'[{"error":{"message":"no"}}]', True),
        (b'{"type":"overloaded_error","message":"no"}', True),
        (b'{"code":503,"message":"no"}', True),
        (b'{"detail":"no"}', True),
        (b'{"error":null,"choices":[]}', False),
        (b'{"choices":[],"message":"m"}', False),
        (b'{"content":[],"message":"m"}', False),
        (b'{"message":{"content":"context window"}}', False),
        (b'{"error":', False),
        (b"[]", False),
        (b"error", False),
    ],
)
def test_a_report_is_told_from_an_answer_in_one_piece(body: bytes, *, reports: bool) -> None:
    """An answer that was not streamed may speak of anything; it is no error of any kind."""
    assert is_report(body) is reports


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "an empty body"),
        (b" ", "an empty body"),
        (b"[]", "'[]'"),
        (b"[[", "'[['"),
        (b"{}", "'{}'"),
        (b"null", "'null'"),
        (b"\xff\xfe", "\ufffd"),
        (b'"gone"', "'gone'"),
        (b"<html>", "'<html>'"),
        (b'{"error":[]}', "error"),
        (b'{"error":{"type":5}}', "type"),
        (b'{"detail":"no"}', "'no'"),
        (b'{"error":{"type":"odd","message":"no"}}', r"'no' (odd)"),
        (rb'{"error":{"type":"\ud83d","message":"\ud83d"}}', r"\ud83d"),
    ],
)
def test_a_refusal_of_no_known_form_is_quoted(body: bytes, says: str) -> None:
    """Gateways have words of their own; a person can read them."""
    found = OpenAIChat("m").error(400, body)

    assert type(found) is RequestRejected
    assert says in str(found)
