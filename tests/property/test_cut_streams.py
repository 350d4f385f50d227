"""Contract 7: real wires over real sockets, their last bytes lost one by one; refusals."""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError, ProviderError, RequestRejected, StreamTruncated
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpEnvironment, HttpProvider, Retries
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.values import AssistantMessage, ModelRequest, Reply, Settings, evolve
from tests.echo_wire import ASK, Sleeps
from tests.google_talk import GOOGLE
from tests.responses_talk import RESPONSES
from tests.transcripts import ANTHROPIC, OPENAI, decoded
from tests.wire_server import Answer, WireServer, json_answer

WIRES: dict[str, tuple[Wire, bytes, bytes]] = {
    "anthropic": (AnthropicMessages("m"), ANTHROPIC["tools"], b"event: message_delta"),
    "google": (GoogleGemini("m"), GOOGLE["calls"], b'"finishReason": "'),
    "openai": (OpenAIChat("m"), OPENAI["tools"], b'"finish_reason":"'),
    "openai-responses": (OpenAIResponses("m"), RESPONSES["calls"], b"event: response.completed"),
}
on_both_wires = pytest.mark.parametrize("name", WIRES)


async def answer(provider: HttpProvider) -> Reply:
    *_, last = [part async for part in provider.session().stream(ASK)]
    assert isinstance(last, Reply)
    # The decoder, which is the measure, does not know the service.
    assert last.message.service in ("", provider.service)
    return evolve(last, message=evolve(last.message, service=""))


@on_both_wires
async def test_a_stream_cut_near_its_end_is_the_answer_or_truncated(name: str) -> None:
    """Half a terminal marker is no marker, and no nonsense either: asking again may help.

    From some byte on all has been said. Up to there the stream is truncated, wherever it ends.
    """
    wire, whole, ending = WIRES[name]
    cuts = range(whole.rindex(ending), len(whole) + 1)

    found: list[AssistantMessage | None] = []
    async with WireServer([Answer([whole[:cut]]) for cut in cuts]) as server:
        provider = HttpProvider(wire, Endpoint(server.url), retries=Retries(attempts_max=1))
        for _ in cuts:
            try:
                found.append((await answer(provider)).message)
            except StreamTruncated:
                found.append(None)
        await provider.aclose()

    truncated = found.count(None)
    assert 0 < truncated < len(found)
    expected = decoded(wire, whole)[1].message
    assert found == [None] * truncated + [expected] * (len(found) - truncated)


@on_both_wires
@pytest.mark.parametrize(
    ("refusal", "waits"),
    [
        (json_answer(429, '{"error":{"message":"m"}}', retry_after="7"), [7.0]),
        (json_answer(503, "<html>", retry_after="Thu, 01 Jan 1970 00:16:45 GMT"), [5.0]),
        (json_answer(408, "<html>"), [0.25]),
        (json_answer(409, '{"error":{"message":"m"}}'), [0.25]),
        (json_answer(200, '{"error":{"type":"overloaded_error"}}', retry_after="7"), [7.0]),
        (Answer([b'event: error\ndata: {"error":{"type":"overloaded_error"}}\n\n']), [0.25]),
    ],
)
async def test_a_passing_trouble_is_waited_out(
    name: str, refusal: Answer, waits: list[float]
) -> None:
    """Who waits, and how long, is the transport's business on every wire."""
    wire, whole, _ = WIRES[name]

    slept = Sleeps()
    environment = HttpEnvironment(sleep=slept, jitter=lambda: 0.5, now=lambda: 1_000.0)
    async with WireServer([refusal, Answer([whole])]) as server:
        provider = HttpProvider(wire, Endpoint(server.url), environment=environment)
        reply = await answer(provider)
        await provider.aclose()
    assert (reply, slept.seconds) == (decoded(wire, whole)[1], waits)


@on_both_wires
async def test_an_empty_account_fails_at_once(name: str) -> None:
    """Three attempts at a wall cost a minute and end at the wall."""
    body = '{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"m"}}'

    async with WireServer([json_answer(429, body, retry_after="60")]) as server:
        provider = HttpProvider(WIRES[name][0], Endpoint(server.url))
        with pytest.raises(RequestRejected, match="Add credit"):
            await answer(provider)
        await provider.aclose()
    assert len(server.requests) == 1


@on_both_wires
async def test_an_option_that_is_refused_sends_nothing(name: str) -> None:
    """A mistake of the caller's costs no request, and is no provider's error."""

    asked = ModelRequest(ASK.messages, settings=Settings(options='{"model":"x"}'))
    async with WireServer() as server:
        provider = HttpProvider(WIRES[name][0], Endpoint(server.url))
        with pytest.raises(ConfigError) as caught:
            await anext(provider.session().stream(asked))
        await provider.aclose()
    assert not isinstance(caught.value, ProviderError)
    assert len(server.requests) == 0
