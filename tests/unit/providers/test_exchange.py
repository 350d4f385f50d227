"""Every way an exchange can break, over real sockets: what is retried, what is said."""

from __future__ import annotations

import asyncio
import gzip

import httpx
import pytest

from graphloop.errors import (
    BadReply,
    ConnectionFailed,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RequestRejected,
)
from graphloop.providers import exchange as module
from graphloop.providers.base import Restarted, TextDelta, UsageSoFar
from graphloop.providers.exchange import HttpExchange
from graphloop.providers.http import Retries, Timeouts
from graphloop.providers.timeouts import Watch
from graphloop.values import Usage
from tests.echo_wire import ASK, HI, KEY, PING, EchoWire, Talk, spoken
from tests.wire_server import Answer, WireServer, json_answer, sse

UNTOLD = UsageSoFar(Usage(untold_attempts=1))


@pytest.mark.parametrize(
    ("failure", "waits"),
    [
        (json_answer(429, "slow down", retry_after="7"), [7.0]),
        (json_answer(429, "slow down", retry_after="Thu, 01 Jan 1970 00:16:45 GMT"), [5.0]),
        (json_answer(429, "slow down", retry_after="tomorrow"), [0.25]),
        (json_answer(529, "overloaded"), [0.25]),
        (Answer(cut="before_answer"), [0.25]),
        (Answer(cut="after_status"), [0.25]),
        (Answer(sse(PING), cut_after=1), [0.25]),
        (Answer(sse(PING)), [0.25]),
        (Answer([*sse(PING), b'data: {"te']), [0.25]),
        (Answer(sse(PING, '{"error": "overloaded"}')), [0.25]),
        (Answer([b": wait\n"]), [0.25]),
        (Answer(), [0.25]),
        (Answer([b"\n\n"]), [0.25]),
        (json_answer(429, "slow down", retry_after_ms="1500", retry_after="2"), [1.5]),
    ],
)
async def test_what_fails_before_content_is_sent_again(failure: Answer, waits: list[float]) -> None:
    """Nobody has seen anything: the second attempt is the first to them."""
    async with WireServer([failure, Answer(HI)]) as server:
        talk = Talk(server)
        assert spoken(await talk.ask()) == "Hi there"
        assert talk.slept.seconds == waits
        assert server.requests[0].body == server.requests[1].body


async def test_a_wait_that_would_outlast_the_total_limit_is_not_begun() -> None:
    """Sleeping only to fail afterwards helps nobody."""
    async with WireServer([json_answer(429, "slow down", retry_after="20")]) as server:
        talk = Talk(server, timeouts=Timeouts(total_s=10))
        with pytest.raises(RateLimited) as caught:
            await talk.ask()
        assert caught.value.retry_after_s == 20.0
        assert talk.slept.seconds == []


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (json_answer(400, f"bad request by {KEY}"), RequestRejected, r"bad request by \*\*\*"),
        (json_answer(301, "moved"), RequestRejected, "moved"),
        (json_answer(308, "", location="https://else.where/v1"), BadReply, "'https://else.where"),
        (json_answer(307, "", location=f"/?key={KEY}"), BadReply, r"'/\?key=\*\*\*'.*base_url"),
        (Answer(headers={"content-type": KEY}), BadReply, r"content-type '\*\*\*'"),
        (json_answer(200, '{"error": {"message": "no"}}'), BadReply, '^{"error": {"message"'),
        (json_answer(200, '{"choices": []}'), BadReply, "application/json.*choices"),
        (json_answer(200, '{"error": '), BadReply, "expected a stream"),
        (Answer([b"<html>"], headers={"content-type": "text/html"}), BadReply, "text/html"),
        (Answer([b"x" * 70_000] * 3, gates={2: asyncio.Event()}), BadReply, "expected a stream"),
        (Answer(headers={"content-type": "text/html"}), BadReply, "expected a stream"),
        (json_answer(429, "slow down", retry_after="31"), RateLimited, "slow down"),
        (json_answer(429, "slow down", retry_after="1e9"), RateLimited, "slow down"),
        (Answer(HI, headers={"content-encoding": "gzip"}), BadReply, "encoding.*'gzip'"),
        (Answer(HI, headers={"content-encoding": "gzip, gzip"}), BadReply, "'gzip, gzip'"),
    ],
)
async def test_what_can_never_succeed_is_sent_once(
    answer: Answer, kind: type[ProviderError], says: str
) -> None:
    """And the key it was sent with is not in what is said about it."""
    async with WireServer([answer, Answer(HI)]) as server:
        with pytest.raises(kind, match=says) as caught:
            await Talk(server).ask()
        assert KEY not in repr(caught.value)
        assert len(server.requests) == 1


@pytest.mark.parametrize("filler", [b": processing\n\n", b"\n", b"\r\n: x\r\n"])
async def test_any_amount_of_nothing_may_come_before_the_first_event(filler: bytes) -> None:
    """Proxies keep a line alive with comments while a model thinks."""
    chunk = filler * (70_000 // len(filler))
    async with WireServer([Answer([chunk, chunk, chunk, *HI])]) as server:
        assert spoken(await Talk(server).ask()) == "Hi there"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(HI, cut_after=1),
        Answer(HI[:1]),
        Answer([HI[0] + b'data: {"text": "a']),
    ],
)
async def test_a_stream_cut_after_content_is_asked_again_and_says_so(answer: Answer) -> None:
    """Half an answer is no answer; a listener, who has seen that half, is told that it is void."""
    async with WireServer([answer, Answer(HI)]) as server:
        talk = Talk(server)
        heard = await talk.ask()
        again = heard.index(Restarted())
        assert heard[0] == TextDelta("Hi")
        assert spoken(heard[again + 1 :]) == "Hi there"
        assert talk.slept.seconds == [0.25]
        assert len(server.requests) == 2


async def test_what_came_before_an_error_in_the_same_chunk_is_shown() -> None:
    """And is void once the model is asked again."""
    chunk = b"".join(sse('{"text": "Hi"}', '{"error": "overloaded"}'))
    async with WireServer([Answer([chunk]), Answer(HI)]) as server:
        provider = Talk(server).provider()
        stream = provider.session().stream(ASK)
        assert await anext(stream) == TextDelta("Hi")
        assert await anext(stream) == UNTOLD
        assert await anext(stream) == Restarted()
        assert await anext(stream) == TextDelta("Hi")
        await stream.aclose()
        await provider.aclose()


async def test_a_port_nobody_listens_on_is_a_failed_connection() -> None:
    """The most frequent mistake with a local model: it is not running."""
    async with WireServer() as server:
        talk = Talk(server)
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1.*ConnectError"):
        await talk.ask()
    assert len(talk.slept.seconds) == 2


async def test_a_connection_that_does_not_stand_in_time_is_tried_again() -> None:
    """Nothing has reached the server; httpx keeps this limit, its error becomes ours."""

    def timed_out(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("too slow", request=request)

    watch = Watch(asyncio.get_running_loop(), Timeouts())
    exchange = HttpExchange(EchoWire(), watch)
    async with httpx.AsyncClient(transport=httpx.MockTransport(timed_out)) as client:

        async def request() -> httpx.Request:
            return client.build_request("POST", "http://far.away/v1")

        with pytest.raises(ProviderTimeout, match=r"far\.away.*connect_s") as caught:
            await exchange.open(client, request, 0.0)
        await exchange.close()
    assert caught.value.layer == "connect"
    assert Retries().allows(1, caught.value)


async def test_only_so_much_of_an_error_is_read() -> None:
    """An error page without end must not fill the memory."""
    endless = Answer([b"x" * 50_000] * 3, 400, gates={2: asyncio.Event()})
    async with WireServer([endless]) as server:
        with pytest.raises(RequestRejected) as caught:
            await Talk(server).ask()
        assert str(caught.value) == "x" * 65_536
        await server.client_left.wait()


async def test_a_wait_that_is_too_long_is_told_with_the_error() -> None:
    """To ask earlier than the server wishes is to be refused again, or to be shut out."""
    async with WireServer([json_answer(429, "slow down", retry_after="60")]) as server:
        talk = Talk(server)
        with pytest.raises(RateLimited) as caught:
            await talk.ask()
        assert 60.0 == caught.value.retry_after_s
        assert [] == talk.slept.seconds


@pytest.mark.parametrize("encoding", ["", "Identity", " IDENTITY"])
async def test_an_encoding_that_changes_nothing_is_read(encoding: str) -> None:
    """Names of encodings have no case, and some proxies send the header empty."""
    async with WireServer([Answer(HI, headers={"content-encoding": encoding})]) as server:
        assert "Hi there" == spoken(await Talk(server).ask())


async def test_an_event_without_end_is_refused_once_it_is_too_long() -> None:
    """It would fill the memory of the process, and with it every other run."""
    mebibyte = b"x" * 2**20

    endless = Answer([b"data: ", *[mebibyte] * 40])
    async with WireServer([endless]) as server:
        with pytest.raises(BadReply, match=r"16777216 \(EVENT_BYTES_MAX"):
            await Talk(server).ask()
        await server.client_left.wait()


async def test_a_reply_without_end_is_refused_once_it_is_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that repeats itself for ever is stopped by bytes, not by a person."""
    monkeypatch.setattr(module, "REPLY_BYTES_MAX", 10_000)

    endless = Answer([*sse('{"text": "Ha"}') * 600])
    async with WireServer([endless]) as server:
        with pytest.raises(BadReply, match="REPLY_BYTES_MAX"):
            await Talk(server).ask()


async def test_a_refusal_in_an_encoding_keeps_its_status() -> None:
    """A proxy that compresses its error page is still overloaded."""
    busy = Answer([gzip.compress(b"busy")], 529, {"content-encoding": "gzip"})
    async with WireServer([busy, Answer(HI)]) as server:
        assert "Hi there" == spoken(await Talk(server).ask())
