"""Every wire, recorded streams, real sockets: what comes whole, what is retried, what is told.

The transport's own tests speak a wire of their own, and a wire's own tests know no transport. Here
both meet; a new wire joins by one line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import pytest

from graphloop.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigError,
    ContextOverflow,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RequestRejected,
    StreamTruncated,
)
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Live, Restarted, UsageSoFar, Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpEnvironment, HttpProvider, Retries, Timeouts
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.providers.sse import SseDecoder
from graphloop.values import (
    AssistantMessage,
    ModelRequest,
    Reply,
    Settings,
    Usage,
    UserMessage,
    evolve,
)
from tests.echo_wire import KEY, Sleeps
from tests.google_talk import GOOGLE
from tests.responses_talk import RESPONSES
from tests.still_loop import StillLoop, on_still_loop
from tests.transcripts import ANTHROPIC, OPENAI, decoded
from tests.wire_server import Answer, WireServer, json_answer

ASK = ModelRequest((UserMessage("Begin."),))
KEY_HEADERS = {
    "anthropic": ("x-api-key", KEY),
    "google": ("x-goog-api-key", KEY),
    "openai": ("authorization", f"Bearer {KEY}"),
    "openai-responses": ("authorization", f"Bearer {KEY}"),
}


@final
@dataclass(frozen=True)
class Case:
    """A wire and the streams recorded on it: one with calls, and where the end of that begins."""

    wire: Wire
    recorded: Mapping[str, bytes]
    calls: str
    ending: bytes

    @property
    def events(self) -> list[bytes]:
        """The recorded text, one chunk for each event."""
        return [event + b"\n\n" for event in self.recorded["text"].split(b"\n\n") if event]

    @property
    def first(self) -> int:
        """How many events it takes until something is shown."""
        decoder, lines = self.wire.decoder(), SseDecoder()
        for count, chunk in enumerate(self.events, 1):
            items = [item for event in lines.feed(chunk) for item in decoder.feed(event)]
            if any(not isinstance(item, UsageSoFar) for item in items):
                return count
        raise AssertionError("the recorded text shows nothing")


CASES = (
    Case(AnthropicMessages("m"), ANTHROPIC, "tools", b"event: message_delta"),
    Case(GoogleGemini("m"), GOOGLE, "calls", b'"finishReason": "'),
    Case(OpenAIChat("m"), OPENAI, "tools", b'"finish_reason":"'),
    Case(OpenAIResponses("m"), RESPONSES, "calls", b"event: response.completed"),
)
on_every_wire = pytest.mark.parametrize("case", CASES, ids=lambda case: case.wire.name)


@final
class Heard:
    """One question over the network: what was shown and spent, how it ended, what was waited."""

    def __init__(self, case: Case, timeouts: Timeouts | None = None) -> None:
        self.deltas: list[Live] = []
        self.spent: list[Usage] = []
        self.slept = Sleeps()
        self._case = case
        self._timeouts = timeouts

    async def ask(self, server: WireServer) -> Reply:
        provider = HttpProvider(
            self._case.wire,
            Endpoint(server.url, KEY),
            timeouts=self._timeouts,
            retries=Retries(attempts_max=2),
            environment=HttpEnvironment(sleep=self.slept, jitter=lambda: 0.5, now=lambda: 1_000.0),
        )
        try:
            async for part in provider.session().stream(ASK):
                if isinstance(part, Reply):
                    # The decoder, which is the measure, does not know the service.
                    assert part.message.service in ("", provider.service)
                    return evolve(part, message=evolve(part.message, service=""))
                if isinstance(part, UsageSoFar):
                    self.spent.append(part.usage)
                else:
                    self.deltas.append(part)
        finally:
            await provider.aclose()
        raise AssertionError("a stream ended without a reply")


def replied(case: Case, *answers: Answer) -> tuple[Reply, list[float]]:
    """Return what the answers of a server amount to, and what was waited in between."""

    async def main() -> Reply:
        async with WireServer(answers) as server:
            reply = await heard.ask(server)
            assert len(server.requests) == len(answers)
            return reply

    heard = Heard(case)
    return asyncio.run(main()), heard.slept.seconds


def failed(case: Case, answer: Answer) -> tuple[ProviderError, int]:
    """Return the error an answer amounts to and how many deltas came before; it is asked once."""

    async def main() -> ProviderError:
        async with WireServer([answer, Answer([case.recorded["text"]])]) as server:
            with pytest.raises(ProviderError) as caught:
                await heard.ask(server)
            # On a machine at load a time limit may end before the server has read the request.
            assert len(server.requests) <= 1
            return caught.value

    heard = Heard(case)
    return asyncio.run(main()), len(heard.deltas)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        pytest.param(case, name, id=f"{case.wire.name}-{name}")
        for case in CASES
        for name in case.recorded
    ],
)
async def test_a_recorded_stream_crosses_a_socket_unharmed(case: Case, name: str) -> None:
    """However it is cut; the decoder fed by hand is the measure."""
    whole = case.recorded[name]
    deltas, reply = decoded(case.wire, whole)

    pieces = [whole[at : at + 50] for at in range(0, len(whole), 50)]
    async with WireServer([Answer([whole]), Answer(pieces)]) as server:
        for _ in range(2):
            heard = Heard(case)
            assert await heard.ask(server) == reply
            assert [one for one in heard.deltas if not isinstance(one, Restarted)] == deltas
            assert heard.spent[-1:] == ([reply.usage] if reply.usage != Usage() else [])
        (request, _) = server.requests
        name_of_header, value = KEY_HEADERS[case.wire.name]
        assert request.path == case.wire.path
        assert request.headers[name_of_header] == value
        assert request.body == b"".join(case.wire.encoder().encode(ASK))


OVERLOADED = (
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n'
)


@on_every_wire
@pytest.mark.parametrize(
    ("failure", "wait_s"),
    [
        (
            json_answer(
                429, '{"error":{"type":"rate_limit_error","message":"m"}}', retry_after="7"
            ),
            7.0,
        ),
        (json_answer(429, '[{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}]'), 3.0),
        (json_answer(529, '{"type":"error","error":{"type":"overloaded_error"}}'), 0.25),
        (json_answer(503, "<html>"), 0.25),
        (json_answer(503, "<html>", retry_after="Thu, 01 Jan 1970 00:16:45 GMT"), 5.0),
        (json_answer(408, "<html>"), 0.25),
        (json_answer(409, '{"error":{"message":"m"}}'), 0.25),
        (json_answer(200, '{"error":{"type":"overloaded_error","message":"m"}}'), 0.25),
        (json_answer(200, '{"error":{"type":"overloaded_error"}}', retry_after="7"), 7.0),
        (json_answer(200, '{"type":"overloaded_error","message":"m"}'), 0.25),
        (json_answer(200, '{"code":503,"message":"m"}'), 0.25),
        (json_answer(200, '{"error":{"code":429,"message":"m"}}', retry_after="7"), 7.0),
        (Answer([OVERLOADED]), 0.25),
        (Answer(cut="before_answer"), 0.25),
        (Answer(cut="after_status"), 0.25),
        (Answer([b": wait\n\n", b"x"], cut_after=1), 0.25),
    ],
)
def test_what_fails_before_content_is_asked_again(
    case: Case, failure: Answer, wait_s: float
) -> None:
    """Whichever way a server says that it is busy."""
    whole = case.recorded["text"]

    reply, slept = replied(case, failure, Answer([whole]))

    assert reply == decoded(case.wire, whole)[1]
    assert slept == [wait_s]


EMPTY_ACCOUNT = '{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}'


@on_every_wire
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (json_answer(401, f'{{"error":{{"message":"{KEY}"}}}}'), AuthenticationFailed),
        (json_answer(400, '{"error":{"message":"prompt is too long"}}'), ContextOverflow),
        (json_answer(404, '{"error":{"message":"no model"}}'), RequestRejected),
        (json_answer(429, EMPTY_ACCOUNT, retry_after="60"), RequestRejected),
        (json_answer(200, '{"error":{"message":"no"}}'), BadReply),
        (json_answer(200, '{"detail":"no"}'), BadReply),
        (json_answer(200, '{"choices":[{"message":{"content":"context window"}}]}'), BadReply),
        (json_answer(200, '{"content":[{"text":"context window"}]}'), BadReply),
        (json_answer(302, "", location="https://else.where"), BadReply),
        (Answer([b"<html>"]), BadReply),
    ],
)
def test_what_will_not_succeed_is_asked_once(
    case: Case, answer: Answer, kind: type[ProviderError]
) -> None:
    """The class of the error is the same on every wire."""
    error, shown = failed(case, answer)

    assert type(error) is kind
    assert shown == 0


@on_every_wire
def test_an_error_in_the_middle_is_asked_again(case: Case) -> None:
    """A server may find out late that it is overloaded."""
    whole = case.recorded["text"]
    broken = Answer([*case.events[: case.first], OVERLOADED])

    reply, slept = replied(case, broken, Answer([whole]))

    assert reply.message == decoded(case.wire, whole)[1].message
    assert slept == [0.25]


@on_every_wire
@pytest.mark.parametrize("cut", [True, False])
async def test_half_an_answer_is_no_answer(case: Case, cut: bool) -> None:
    """Whether the line broke or the server merely ended early."""
    events = case.events[: case.first]
    answer = Answer([*events, b"x"], cut_after=len(events)) if cut else Answer(events)

    async with WireServer([answer] * 2) as server:
        with pytest.raises(StreamTruncated):
            await Heard(case).ask(server)
        assert len(server.requests) == 2


@on_every_wire
async def test_a_stream_cut_near_its_end_is_the_answer_or_truncated(case: Case) -> None:
    """Half a terminal marker is no marker, and no nonsense either: asking again may help.

    From some byte on all has been said. Up to there the stream is truncated, wherever it ends.
    """
    whole = case.recorded[case.calls]
    cuts = range(whole.rindex(case.ending), len(whole) + 1)
    found: list[AssistantMessage | None] = []
    async with WireServer([Answer([whole[:cut]]) for cut in cuts]) as server:
        provider = HttpProvider(case.wire, Endpoint(server.url), retries=Retries(attempts_max=1))
        for _ in cuts:
            try:
                *_, last = [part async for part in provider.session().stream(ASK)]
            except StreamTruncated:
                found.append(None)
            else:
                assert isinstance(last, Reply)
                found.append(evolve(last.message, service=""))
        await provider.aclose()

    truncated = found.count(None)
    assert 0 < truncated < len(found)
    expected = decoded(case.wire, whole)[1].message
    assert found == [None] * truncated + [expected] * (len(found) - truncated)


@on_every_wire
async def test_an_option_that_is_refused_sends_nothing(case: Case) -> None:
    """A mistake of the caller's costs no request, and is no provider's error."""
    asked = ModelRequest(ASK.messages, settings=Settings(options='{"model":"x"}'))
    async with WireServer() as server:
        provider = HttpProvider(case.wire, Endpoint(server.url))
        with pytest.raises(ConfigError) as caught:
            await anext(provider.session().stream(asked))
        await provider.aclose()

    assert not isinstance(caught.value, ProviderError)
    assert [] == server.requests


@on_every_wire
def test_a_server_that_does_not_begin_in_time_is_left(case: Case) -> None:
    """Whatever it says before it begins with the content."""
    before = case.events[: case.first - 1]
    answer = Answer([*before, b": wait\n\n"], gates={len(before): asyncio.Event()})
    heard = Heard(case, Timeouts(first_content_s=60))

    async def asked(server: WireServer) -> ProviderTimeout:
        with pytest.raises(ProviderTimeout) as caught:
            await heard.ask(server)
        return caught.value

    async def main(loop: StillLoop) -> ProviderTimeout:
        async with WireServer([answer]) as server, asyncio.TaskGroup() as group:
            asking = group.create_task(asked(server))
            await server.waiting.wait()
            await loop.leap(61)
            error = await asking
            assert len(server.requests) == 1
            return error

    assert on_still_loop(main).layer == "first_content"
    assert heard.deltas == []


@on_every_wire
@pytest.mark.parametrize("report", ["%s", "it was %s that failed", "x" * 280 + " %s"])
def test_no_error_holds_the_key(case: Case, report: str) -> None:
    """Not of an error's body, not of a stream, not where a quotation ends."""
    said = '{"error":{"message":"%s","type":"authentication_error"}}' % (report % KEY)
    stream = [*case.events[: case.first], f"event: error\ndata: {said}\n\n".encode()]

    for answer in (json_answer(401, said), json_answer(200, said), Answer(stream)):
        error, _ = failed(case, answer)
        assert type(error) is AuthenticationFailed
        assert KEY not in str(error)
        assert KEY[:8] not in str(error)


@on_every_wire
async def test_a_rate_limit_that_stays_is_told_with_its_wait(case: Case) -> None:
    """The caller may know better what to do meanwhile."""
    refusal = json_answer(429, '{"error":{"message":"slow down"}}', retry_after="9")
    async with WireServer([refusal, refusal]) as server:
        with pytest.raises(RateLimited, match="slow down") as caught:
            await Heard(case).ask(server)
        assert caught.value.retry_after_s == 9.0
        assert len(server.requests) == 2
