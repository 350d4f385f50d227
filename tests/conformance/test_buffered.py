"""A reply in one piece comes to what the same reply in a stream comes to, on every wire.

The whole replies are those that the vendors' SDKs make of the recorded streams.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, final

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from graphloop import Agent, tool
from graphloop.errors import (
    BadReply,
    ConfigError,
    ConnectionFailed,
    ContextOverflow,
    ProviderError,
    ProviderTimeout,
    StreamTruncated,
)
from graphloop.providers import connect
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import BufferedWire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpProvider, Retries, Timeouts
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.values import ModelRequest, Reply, UserMessage
from tests import google_talk
from tests.google_talk import GOOGLE
from tests.property.test_request_bytes import on_anthropic, on_openai
from tests.responses_talk import RESPONSES, call, message, recorded, response, stream
from tests.responses_talk import text as text_of
from tests.transcripts import ANTHROPIC, OPENAI, decoded
from tests.wire_server import Answer, WireServer

ASK = ModelRequest((UserMessage("Begin."),))
JSON = {"content-type": "application/json"}
# What the SDKs do not put together: see `test_anthropic_sdk` and `test_openai_sdk`.
LEFT_OUT = {
    *("started_over", "noise", "halves", "fallback", "truncated_call"),
    *("no_index", "index_one", "index_zero", "cut_call"),
    # The SDK refuses two calls of one id; arguments that are no JSON cannot be compared as JSON.
    *("same call ids", "bad arguments"),
}


def in_json(body: Mapping[str, Any]) -> Answer:
    return Answer([json.dumps(body).encode()], headers=JSON)


@final
@dataclass(frozen=True)
class Case:
    """A wire in both forms, its recorded streams, and how its turns are streamed in tests."""

    streamed: BufferedWire
    whole: BufferedWire
    recorded: Mapping[str, bytes]

    def turn(self, said: str, *calls: tuple[str, str], whole: bool) -> Answer:
        """Return a turn as this wire streams it, or in one piece."""
        if not whole:
            if self.whole.name == "openai-responses":
                return Answer([recorded(stream(self.items(said, *calls)))])
            if self.whole.name == "google":
                return Answer([google_talk.recorded(google_talk.stream(parts_of(said, *calls)))])
            answer = {"anthropic": on_anthropic, "openai": on_openai}[self.whole.name]
            return answer(said, calls, 0)
        if self.whole.name == "openai-responses":
            return in_json(response(self.items(said, *calls), "completed"))
        if self.whole.name == "google":
            return in_json(google_talk.chunk(parts_of(said, *calls), "STOP"))
        numbered = [*enumerate(calls)]
        if self.whole.name == "anthropic":
            blocks: list[object] = [{"type": "text", "text": said}]
            blocks += [
                {"type": "tool_use", "id": f"t{at}", "name": name, "input": {"text": text}}
                for at, (name, text) in numbered
            ]
            reason = "tool_use" if calls else "end_turn"
            return in_json({"content": blocks, "stop_reason": reason, "usage": {}})
        functions = [
            {
                "id": f"t{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps({"text": text})},
            }
            for at, (name, text) in numbered
        ]
        message = {"role": "assistant", "content": said, "tool_calls": functions or None}
        reason = "tool_calls" if calls else "stop"
        return in_json({"choices": [{"index": 0, "message": message, "finish_reason": reason}]})

    def items(self, said: str, *calls: tuple[str, str]) -> list[dict[str, Any]]:
        """Return the output items of such a turn."""
        called = [
            call(f"fc_{at}", f"t{at}", name, {"text": text})
            for at, (name, text) in enumerate(calls)
        ]
        return [message("msg_1", text_of(said)), *called]

    async def in_one_piece(self, stream: bytes) -> bytes:
        """Return the whole reply that the vendor's SDK makes of a stream.

        Google's SDK leaves the chunks apart, so the recorded parts are the reply there.
        """
        if self.whole.name == "google":
            names = [name for name, chunks in GOOGLE.items() if chunks == stream]
            (reply,) = google_talk.stream(google_talk.ITEMS[names[0]], "one chunk")
            return json.dumps(reply).encode()
        async with WireServer([Answer([stream])]) as server:
            if self.whole.name == "anthropic":
                async with (
                    AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as claude,
                    claude.beta.messages.stream(
                        model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
                    ) as events,
                ):
                    return (await events.get_final_message()).model_dump_json().encode()
            if self.whole.name == "openai-responses":
                async with (
                    AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as gpt,
                    gpt.responses.stream(model="m", input="Hi") as said,
                ):
                    return (await said.get_final_response()).model_dump_json().encode()
            async with (
                AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as gpt,
                gpt.chat.completions.stream(
                    model="m", messages=[{"role": "user", "content": "Hi"}]
                ) as chunks,
            ):
                return (await chunks.get_final_completion()).model_dump_json().encode()


def parts_of(said: str, *calls: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the parts of a turn on the Gemini wire."""
    called = [google_talk.call(name, {"text": text}) for name, text in calls]
    return [{"text": said}, *called]


CASES: Mapping[str, Case] = {
    "anthropic": Case(AnthropicMessages("m"), AnthropicMessages("m", stream=False), ANTHROPIC),
    "google": Case(GoogleGemini("m"), GoogleGemini("m", stream=False), GOOGLE),
    "openai": Case(OpenAIChat("m"), OpenAIChat("m", stream=False), OPENAI),
    "openai-responses": Case(OpenAIResponses("m"), OpenAIResponses("m", stream=False), RESPONSES),
}
on_every_wire = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
RECORDED = [
    pytest.param(case, name, id=f"{wire} {name}")
    for wire, case in CASES.items()
    for name in case.recorded
    if name not in LEFT_OUT
]


@asynccontextmanager
async def provider(
    case: Case, *answers: Answer, timeouts: Timeouts | None = None
) -> AsyncGenerator[tuple[HttpProvider, WireServer]]:
    """Give a provider of whole replies, and the server with these answers."""
    async with WireServer(answers) as server:
        model = HttpProvider(
            case.whole,
            Endpoint(server.url, "k"),
            timeouts=timeouts,
            retries=Retries(attempts_max=2, delay_s=0),
        )
        yield model, server
        await model.aclose()


async def reply_to(case: Case, *answers: Answer, timeouts: Timeouts | None = None) -> Reply:
    """Return the reply of a server with these answers."""
    async with provider(case, *answers, timeouts=timeouts) as (model, _):
        items = [item async for item in model.session().stream(ASK)]
    reply = items[-1]
    assert isinstance(reply, Reply)
    return reply


def compared(reply: Reply) -> dict[str, Any]:
    """Return what both forms of a reply have in common; JSON texts may be spaced differently."""
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in reply.message.calls]
    return {
        "text": reply.message.text,
        "reasoning": reply.message.reasoning,
        "calls": calls,
        "parts": [type(part) for part in reply.message.parts],
        "finish": (reply.finish_reason, reply.raw_finish_reason),
        "usage": reply.usage,
    }


@pytest.mark.parametrize(("case", "name"), RECORDED)
async def test_a_whole_reply_is_read_as_its_stream_is(case: Case, name: str) -> None:
    """One decoder reads both, so no quirk is mended in one form only."""
    _, streamed = decoded(case.streamed, case.recorded[name])
    body = await case.in_one_piece(case.recorded[name])

    whole = await reply_to(case, Answer([body[:40], body[40:]], headers=JSON))

    left_out = {"reasoning", "parts"} if "reasoning" not in body.decode() else set[str]()
    kept = compared(streamed).keys() - (left_out if case.whole.name == "openai" else set[str]())
    assert {key: compared(whole)[key] for key in kept} == {
        key: compared(streamed)[key] for key in kept
    }


@on_every_wire
@pytest.mark.parametrize("form", ["streamed", "whole"])
async def test_a_tool_turn_is_the_same_in_both_forms(case: Case, form: str) -> None:
    """The loop does not know how the reply came; the request says which form it wants."""

    @tool
    def look(text: str) -> str:
        """Look."""
        return f"seen {text}"

    whole = form == "whole"
    turns = [
        case.turn("So:", ("look", "a"), ("look", "b"), whole=whole),
        case.turn("Done.", whole=whole),
    ]
    async with WireServer(turns) as server:
        wire = case.whole if form == "whole" else case.streamed
        model = HttpProvider(wire, Endpoint(server.url, "k"))
        result = await Agent(model, tools=[look]).generate("Look.")
        await model.aclose()
        asked = [json.loads(request.body) for request in server.requests]
        paths = [request.path for request in server.requests]
        accepted = [request.headers["accept"] for request in server.requests]

    assert result.text == "Done."
    assert ["seen a", "seen b"] == [one.content for one in result.steps[0].tool_results]
    if case.whole.name == "google":  # There the address says it.
        assert [path.partition(":")[2] for path in paths] == [
            "streamGenerateContent?alt=sse" if form == "streamed" else "generateContent"
        ] * 2
    else:
        assert [body["stream"] for body in asked] == [form == "streamed"] * 2
    assert ("stream_options" in asked[0]) == (form == "streamed" and case.whole.name == "openai")
    wanted = "text/event-stream" if form == "streamed" else "application/json"
    assert [wanted] * 2 == accepted


OVERFLOW = b'{"error":{"type":"exceed_context_size_error","message":"too long"}}'


@on_every_wire
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer([b"<html>busy</html>"], headers=JSON), BadReply),
        (Answer([OVERFLOW], headers=JSON), ContextOverflow),
        (Answer([OVERFLOW], 400, JSON), ContextOverflow),
        (Answer([b'{"id":"x"}'], headers=JSON), ProviderError),
        (Answer([], headers=JSON), StreamTruncated),
        (Answer([b'{"choices":', b"[]}"], headers=JSON, cut_after=1), ConnectionFailed),
    ],
    ids=["no JSON", "an error in a 200", "an error", "no reply", "nothing", "cut"],
)
async def test_what_is_no_whole_reply_is_an_error(
    case: Case, answer: Answer, kind: type[Exception]
) -> None:
    """Half a piece is never an answer."""
    with pytest.raises(kind):
        await reply_to(case, answer, answer)


@on_every_wire
async def test_a_reply_in_the_other_form_is_refused_with_the_option_that_mends_it(
    case: Case,
) -> None:
    """A server may not stream, or may stream without being asked."""
    other = Case(case.whole, case.streamed, case.recorded)

    with pytest.raises(BadReply, match="leave stream=False out"):
        await reply_to(case, case.turn("Hi", whole=False))
    with pytest.raises(BadReply, match=r"connect\(…, stream=False\)"):
        await reply_to(other, case.turn("Hi", whole=True))


@on_every_wire
async def test_a_reply_without_its_finish_is_cut(case: Case) -> None:
    """A gateway that gave up leaves the reason out."""
    message = {"role": "assistant", "content": "Half an"}
    bodies: Mapping[str, Mapping[str, object]] = {
        "anthropic": {"content": [{"type": "text", "text": "Half an"}], "usage": {}},
        "google": google_talk.chunk([{"text": "Half an"}]),
        "openai": {"choices": [{"index": 0, "message": message, "finish_reason": None}]},
        "openai-responses": response(case.items("Half an"), "in_progress"),
    }

    with pytest.raises(StreamTruncated):
        await reply_to(case, *[in_json(bodies[case.whole.name])] * 2)


@on_every_wire
async def test_only_the_total_limit_holds_for_a_whole_reply(case: Case) -> None:
    """The first content comes with the last, which takes as long as the answer is."""
    body, never = await case.in_one_piece(case.recorded["text"]), asyncio.Event()
    slow = Answer([body], headers=JSON, gates={0: never})

    with pytest.raises(ProviderTimeout, match="'total'"):
        await reply_to(case, slow, timeouts=Timeouts(first_content_s=0.01, total_s=0.2))


async def test_a_model_by_name_may_be_asked_without_streaming() -> None:
    """`connect` takes the option; a wire that always streams says so."""
    case = CASES["openai"]
    body = await case.in_one_piece(case.recorded["text"])
    async with WireServer([Answer([body], headers=JSON)]) as server:
        model = connect("openai:m", base_url=server.url, api_key="k", stream=False)
        stream = Agent(model).stream("Hello")
        kinds = [part.type async for part in stream.full_stream]
        await model.aclose()

    assert "text-delta" in kinds
    assert kinds[-1] == "finish"
    with pytest.raises(ConfigError, match="stream would have no effect"):
        connect("script:replies.yaml", stream=False)
