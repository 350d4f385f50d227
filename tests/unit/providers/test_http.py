"""Whole exchanges over real sockets, and what is refused before any."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx
import pytest

from graphloop.errors import (
    ConnectionFailed,
    ProviderError,
    StreamTruncated,
)
from graphloop.providers.base import Restarted, StreamItem, TextDelta, UsageSoFar
from graphloop.providers.http import Endpoint, HttpEnvironment, HttpProvider, Retries, Timeouts
from graphloop.spending import Spent
from graphloop.values import Reply, Usage
from tests.echo_wire import ASK, HI, KEY, PING, EchoWire, Talk, spoken
from tests.wire_server import Answer, WireServer, json_answer, sse


async def test_a_delta_is_seen_before_the_next_one_is_sent() -> None:
    """Streaming is the only path, so it had better stream."""
    second, third = asyncio.Event(), asyncio.Event()
    body = sse(PING, '{"text": "a"}', '{"text": "b"}', "[DONE]")
    answer = Answer(body, gates={2: second, 3: third})
    async with WireServer([answer]) as server:
        provider = Talk(server).provider()
        async with aclosing(provider.session().stream(ASK)) as stream:
            assert await anext(stream) == TextDelta("a")
            second.set()
            assert await anext(stream) == TextDelta("b")
            third.set()
            last = await anext(stream)
            assert isinstance(last, Reply)
            assert last.message.text == "ab"
            assert [part async for part in stream] == []
        await provider.aclose()
        (request,) = server.requests
        assert (request.method, request.path) == ("POST", "/v1/echo")
        assert request.body == b'{"ask": "Hello"}'
        assert request.headers["content-type"] == "application/json"
        assert request.headers["accept-encoding"] == "identity"
        assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_the_connection_is_used_again_after_a_whole_answer() -> None:
    """A new TLS handshake for every turn would cost more than the engine ever could."""
    async with WireServer([Answer(HI), Answer(HI), Answer(HI)]) as server:
        provider = Talk(server).provider()
        for _ in range(3):
            assert spoken([part async for part in provider.session().stream(ASK)])
        assert server.connections == 1
        await provider.aclose()


async def test_a_server_that_never_hangs_up_delays_no_reply() -> None:
    """The terminal marker ends an answer, not the end of the body."""
    answer = Answer(HI, gates={len(HI): asyncio.Event()})
    async with WireServer([answer]) as server:
        assert spoken(await Talk(server).ask()) == "Hi there"
        await server.client_left.wait()


async def test_a_provider_serves_one_event_loop_after_another() -> None:
    """A synchronous front makes a loop for every call."""

    async def serve(provider: HttpProvider) -> str:
        parts = [part async for part in provider.session().stream(ASK)]
        await provider.aclose()
        await provider.aclose()
        return spoken(parts)

    async with WireServer([Answer(HI), Answer(HI)]) as server:
        provider = Talk(server).provider()
        assert await serve(provider) == "Hi there"
        assert await asyncio.to_thread(asyncio.run, serve(provider)) == "Hi there"


async def test_a_loop_that_ends_takes_its_connections_along() -> None:
    """Many call `asyncio.run` for each question, and close nothing."""

    async def ask(provider: HttpProvider) -> weakref.ref[asyncio.AbstractEventLoop]:
        assert spoken([part async for part in provider.session().stream(ASK)]) == "Hi there"
        return weakref.ref(asyncio.get_running_loop())

    async with WireServer([Answer(HI)] * 4) as server:
        provider = Talk(server).provider()
        loops = [await asyncio.to_thread(asyncio.run, ask(provider)) for _ in range(3)]
        await server.until(lambda: server.connections_open == 0)
        await ask(provider)
        gc.collect()  # A socket left open would complain now.
        assert [loop() for loop in loops] == [None] * 3
        assert server.connections == 4
        await provider.aclose()


async def test_no_request_waits_for_another() -> None:
    """A queue of ours would look like a slow server."""
    count = 101  # httpx's own limit is 100

    gate = asyncio.Event()
    async with WireServer([Answer(HI, gates={0: gate})] * count) as server:
        provider = Talk(server, Timeouts(first_content_s=10)).provider()

        async def ask() -> str:
            return spoken([part async for part in provider.session().stream(ASK)])

        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(ask()) for _ in range(count)]
            await server.until(lambda: len(server.requests) == count)
            gate.set()
        assert {task.result() for task in asking} == {"Hi there"}
        await provider.aclose()


async def test_cookies_of_one_run_are_not_sent_with_another() -> None:
    """They may pin a session, or somebody's account."""
    cookie = {"set-cookie": "session=mine; Path=/"}
    async with WireServer([Answer(HI, headers=cookie), Answer(HI)]) as server:
        provider = Talk(server).provider()
        for _ in range(2):
            assert spoken([part async for part in provider.session().stream(ASK)])
        assert "cookie" not in server.requests[1].headers
        await provider.aclose()


async def test_only_https_reads_the_trust_store_and_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes longer than a hundred turns of the engine."""
    made: list[ssl.SSLContext] = []

    def counted() -> ssl.SSLContext:
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", counted)

    async def refused(base_url: str) -> None:
        quick = Retries(attempts_max=1)
        provider = HttpProvider(EchoWire(), Endpoint(base_url), retries=quick)
        with pytest.raises(ConnectionFailed):
            await anext(provider.session().stream(ASK))
        await provider.aclose()

    async with WireServer() as server:
        pass
    await refused(server.url)
    assert made == []
    await refused(server.url.replace("http", "https"))
    await refused(server.url.replace("http", "https"))
    assert len(made) == 1


SPENT = '{"spent": 5}'
DOWN = '{"error": "overloaded"}'


def asked(*answers: Answer) -> tuple[list[StreamItem], ProviderError | None]:
    """Return all that a session yields, and the error it ends with, if it does."""
    items: list[StreamItem] = []

    async def main() -> ProviderError | None:
        async with WireServer(answers) as server:
            talk = Talk(server, retries=Retries(attempts_max=3))
            provider = talk.provider()
            try:
                async for item in provider.session().stream(ASK):
                    items.append(item)  # noqa: PERF401 - what came before an error counts, too
            except ProviderError as error:
                return error
            finally:
                await provider.aclose()
            return None

    return items, asyncio.run(main())


async def test_what_is_spent_is_told_before_any_content() -> None:
    """A run that is aborted while the model thinks pays for the prompt all the same."""
    body = sse(SPENT, '{"text": "a"}', "[DONE]")
    async with WireServer([Answer(body, gates={1: asyncio.Event()})]) as server:
        provider = Talk(server).provider()
        async with aclosing(provider.session().stream(ASK)) as stream:
            assert await anext(stream) == UsageSoFar(Usage(5))
        await server.client_left.wait()
        await provider.aclose()


@pytest.mark.parametrize("last", [SPENT, "{}"])
@pytest.mark.parametrize("first", [SPENT, "{}"])
def test_an_attempt_without_usage_is_counted_as_untold(first: str, last: str) -> None:
    """Its server bills it like the others: nothing is not what it has cost."""
    items, error = asked(
        Answer(sse(first, '{"text": "a"}')), Answer(sse(last, '{"text": "b"}', "[DONE]"))
    )

    reply = items[-1]
    assert error is None
    assert isinstance(reply, Reply)
    told = [first, last].count(SPENT)
    assert reply.usage == Usage(5 * told, untold_attempts=2 - told)
    bill = Spent.on(reply.usage, 0.1)
    assert (bill.unreported_calls, bill.unpriced_calls) == (int(told < 2), int(told < 2))
    assert (bill.told_usage is None) is (told == 0)


A, B, DONE = '{"text": "a"}', '{"text": "b"}', "[DONE]"
BUSY = json_answer(529, "overloaded")
BROKEN = Answer(sse(A))


def spent(tokens: int, untold: int = 0) -> UsageSoFar:
    return UsageSoFar(Usage(tokens, untold_attempts=untold))


# The answers of a server, the items of the session before its reply, and the reply's usage; None
# where the call fails for good.
CALLS: dict[str, tuple[tuple[Answer, ...], list[StreamItem], Usage | None]] = {
    "two attempts fail before content": (
        (Answer(sse(SPENT, DOWN)), BUSY, Answer(sse(SPENT, A, '{"spent": 9}', B, DONE))),
        [spent(5), spent(10), TextDelta("a"), spent(14), TextDelta("b")],
        Usage(14),
    ),
    "the same, in one chunk": (
        (Answer([b"".join(sse(SPENT, DOWN))]), BUSY, Answer(sse(SPENT, A, DONE))),
        [spent(5), spent(10), TextDelta("a")],
        Usage(10),
    ),
    "an attempt breaks off after content": (
        (Answer(sse(SPENT, A, '{"spent": 8}')), Answer(sse(SPENT, B, DONE))),
        [spent(5), TextDelta("a"), spent(8), Restarted(), spent(13), TextDelta("b")],
        Usage(13),
    ),
    "a call fails for good, and a later failure hides no earlier one": (
        (BROKEN, Answer(sse(SPENT, DOWN)), BROKEN),
        [TextDelta("a"), spent(0, 1), Restarted(), spent(5, 1), TextDelta("a"), spent(5, 2)],
        None,
    ),
    "an answer without content": (
        (Answer([b"".join(sse(SPENT, PING, DONE))]),),
        [spent(5)],
        Usage(5),
    ),
}


@pytest.mark.parametrize(("answers", "live", "usage"), CALLS.values(), ids=list(CALLS))
def test_failed_attempts_are_paid_for_as_well(
    answers: tuple[Answer, ...], live: list[StreamItem], usage: Usage | None
) -> None:
    """The server has read the prompt each time, whatever became of the attempt."""
    items, error = asked(*answers)

    if usage is None:
        assert isinstance(error, StreamTruncated)
        assert items == live
    else:
        *before, reply = items
        assert (before, error) == (live, None)
        assert isinstance(reply, Reply)
        assert reply.usage == usage


async def test_a_call_given_up_between_attempts_leaves_nothing_open() -> None:
    """The wait may be long, and whoever asked may not want to wait."""
    waiting = asyncio.Event()

    async def forever(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with WireServer([Answer(sse(SPENT, DOWN))]) as server:
        provider = HttpProvider(
            EchoWire(), Endpoint(server.url, KEY), environment=HttpEnvironment(sleep=forever)
        )
        stream = provider.session().stream(ASK)
        assert await anext(stream) == UsageSoFar(Usage(5))
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(anext_of(stream))
            await waiting.wait()
            asking.cancel()
        assert asking.cancelled()
        await provider.aclose()
        await server.until(lambda: server.connections_open == 0)
        assert len(server.requests) == 1


async def anext_of(stream: AsyncGenerator[StreamItem, None]) -> StreamItem:
    return await anext(stream)


def test_a_retry_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A server that fails each second request makes an agent slow, and nothing else shows it."""
    items, error = asked(json_answer(529, DOWN), Answer(HI))

    assert error is None
    assert isinstance(items[-1], Reply)
    (line,) = [one for one in caplog.messages if "attempt 1 failed" in one]
    assert line.startswith("model ")
    assert "overloaded" not in line
