"""One run that each wire continues in turn: what a wire knows alone goes back to this wire only."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

from graphloop import Agent, ToolError, tool
from graphloop.media import image
from graphloop.providers import connect
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpProvider, Retries
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from tests import google_talk
from tests.responses_talk import SEARCH, call, message, reasoning, recorded, stream, text
from tests.wire_server import Answer, WireServer, json_answer, sse

PNG: Final = b"\x89PNG\r\n\x1a\n rest"
ROUNDS: Final = 2
BUSY: Final = json_answer(529, '{"error":{"message":"busy"}}')


def only(wire: str) -> str:
    """Return a text that only one wire may send back, such as a signature or an item's id."""
    return f"only-{wire}-may-know"


def on_anthropic(at: int) -> Answer:
    own = only("anthropic")
    found = {
        "type": "web_search_result",
        "url": "https://example.com/",
        "title": "T",
        "encrypted_content": own,
    }
    blocks: Sequence[tuple[dict[str, Any], dict[str, Any] | None]] = (
        (
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "signature_delta", "signature": own},
        ),
        ({"type": "redacted_thinking", "data": own}, None),
        (
            {
                "type": "server_tool_use",
                "id": f"srvtoolu_{own}",
                "name": "web_search",
                "input": {"query": "tides"},
            },
            None,
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": f"srvtoolu_{own}",
                "content": [found],
            },
            None,
        ),
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": f"Said {at}."}),
        (
            {"type": "tool_use", "id": f"toolu_{at}", "name": "look", "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps({"at": at})},
        ),
    )
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        }
    ]
    for index, (start, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        if delta is not None:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return Answer(sse(*((one["type"], json.dumps(one)) for one in events)))


def on_chat(at: int) -> Answer:
    own = only("openai")
    asked = {
        "index": 0,
        "id": f"call_{at}",
        "type": "function",
        "function": {"name": "look", "arguments": json.dumps({"at": at})},
        "extra_content": {"google": {"thought_signature": own}},
    }
    thought = {"type": "reasoning.encrypted", "data": own, "index": 0}
    said = {
        "role": "assistant",
        "content": f"Said {at}.",
        "reasoning_details": [thought],
        "tool_calls": [asked],
    }
    deltas: list[dict[str, Any]] = [
        {"index": 0, "delta": said},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    ]
    return Answer(sse(*[json.dumps({"choices": [one]}) for one in deltas], "[DONE]"))


def on_google(at: int) -> Answer:
    own = {"thoughtSignature": only("google")}
    parts: tuple[dict[str, Any], ...] = (
        {"text": "Hm.", "thought": True},
        {"toolCall": {"id": only("google"), "toolType": "GOOGLE_SEARCH_WEB"}, **own},
        {"text": f"Said {at}.", **own},
        google_talk.call("look", {"at": at}, **own),
    )
    return Answer([google_talk.recorded(google_talk.stream(parts))])


def on_responses(at: int) -> Answer:
    own = only("openai-responses")
    if at == len(WIRES) * ROUNDS - 1:
        return Answer([recorded(stream([message("msg_1", text("Done."))]))])
    picture = {
        "type": "image_generation_call",
        "id": f"ig_{own}",
        "status": "completed",
        "output_format": "png",
        "result": b64encode(PNG + own.encode()).decode(),
    }
    items = (
        reasoning(f"rs_{own}", "Hm.", encrypted=own),
        {**SEARCH, "id": f"ws_{own}"},
        picture,
        message(f"msg_{own}", text(f"Said {at}.")),
        call(f"fc_{own}", f"call_{at}", "look", {"at": at}),
    )
    return Answer([recorded(stream(items))])


@final
@dataclass(frozen=True)
class Speaker:
    """A wire, how its server answers, and the SDK's own type of its messages."""

    wire: Wire
    answer: Any
    published: TypeAdapter[Any]
    field: str = "messages"

    def said(self, body: bytes) -> str:
        """Return the messages of a request as JSON; the SDK's own types accept them."""
        messages = json.loads(body)[self.field]
        # The vendors' types check lists while they are read, so the messages are written again.
        assert self.published.dump_json(self.published.validate_python(messages))
        return json.dumps(messages)


WIRES: Final[Mapping[str, Speaker]] = {
    "anthropic": Speaker(AnthropicMessages("m"), on_anthropic, TypeAdapter(list[MessageParam])),
    "google": Speaker(GoogleGemini("m"), on_google, TypeAdapter(list[Content]), "contents"),
    "openai": Speaker(OpenAIChat("m"), on_chat, TypeAdapter(list[ChatCompletionMessageParam])),
    "openai-responses": Speaker(
        OpenAIResponses("gpt-5"), on_responses, TypeAdapter(ResponseInputParam), "input"
    ),
}


@tool
def look(at: int) -> list[Any]:
    """Look, and fail at times."""
    if at % 2:
        raise ToolError(f"Failed {at}.", content=[image(PNG)])
    return [f"Seen {at}.", image(PNG)]


def answers(place: int) -> list[Answer]:
    """Return what the server of a wire answers: the first wires are busy for a while."""
    speaker = [*WIRES.values()][place]
    turns = range(len(WIRES) * ROUNDS)
    return [
        speaker.answer(at) if at % len(WIRES) == place else BUSY
        for at in turns
        if at % len(WIRES) >= place
    ]


async def test_what_one_wire_knows_reaches_no_other() -> None:
    """A signature or an item of another wire is an error 400, and an answer that is lost."""
    async with (
        WireServer(answers(0)) as first,
        WireServer(answers(1)) as second,
        WireServer(answers(2)) as third,
        WireServer(answers(3)) as fourth,
    ):
        servers = (first, second, third, fourth)
        models = [
            HttpProvider(one.wire, Endpoint(server.url, "k"), retries=Retries(attempts_max=1))
            for one, server in zip(WIRES.values(), servers, strict=True)
        ]
        agent = Agent(
            models[0], fallback_models=models[1:], tools=[look], max_consecutive_tool_errors=9
        )

        result = await agent.generate(["What is it?", image(PNG)])
        for model in models:
            await model.aclose()

    assert result.text == "Done."
    for (name, speaker), server in zip(WIRES.items(), servers, strict=True):
        every = [speaker.said(request.body) for request in server.requests]
        for other in WIRES.keys() - {name}:
            assert not [said for said in every if only(other) in said]
        said = every[-1]
        assert only(name) in said
        before = len(WIRES) * (ROUNDS - 1)
        assert all(f"Said {at}." in said for at in range(before))
        assert all(f"{'Failed' if at % 2 else 'Seen'} {at}." in said for at in range(before))
        assert said.count(b64encode(PNG).decode()) >= before + 1


@pytest.mark.parametrize("name", WIRES)
async def test_what_one_service_has_encrypted_reaches_no_other_on_its_wire(name: str) -> None:
    """Only the service that wrote a signature can read it; another one answers 400."""
    speaker = WIRES[name]
    turns = [speaker.answer(0), BUSY, speaker.answer(2)]
    async with WireServer(turns) as first, WireServer([speaker.answer(1)]) as second:
        models = [
            HttpProvider(
                speaker.wire,
                Endpoint(server.url, "k"),
                label=label,
                retries=Retries(attempts_max=1),
            )
            for label, server in (("one", first), ("two", second))
        ]
        agent = Agent(models[0], fallback_models=models[1:], tools=[look])

        await agent.generate("What is it?", max_steps=3)
        for model in models:
            await model.aclose()

    (foreign,) = [speaker.said(request.body) for request in second.requests]
    _, _, own = [speaker.said(request.body) for request in first.requests]
    assert only(name) not in foreign
    assert "Said 0." in foreign
    assert "Seen 0." in foreign
    assert only(name) in own
    assert "Said 1." in own


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_in_plain_text_reaches_no_other_service(field: str) -> None:
    """DeepSeek demands its own back; Groq and Cerebras answer 400 to that of DeepSeek."""
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}
    thought = {"choices": [{"index": 0, "delta": {field: "Hm.", "tool_calls": [call]}}]}
    called = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}'
    turn = Answer(sse(json.dumps(thought), called, "[DONE]"))
    async with WireServer([turn, BUSY]) as first, WireServer([turn]) as second:
        models = [
            connect(label, base_url=server.url, api_key="k", retries=Retries(attempts_max=1))
            for label, server in (("deepseek:m", first), ("groq:m", second))
        ]
        agent = Agent(models[0], fallback_models=models[1:], tools=[look])

        await agent.generate("What is it?", max_steps=2)
        for model in models:
            await model.aclose()

    (_, own), (foreign,) = first.requests, second.requests
    assert json.loads(own.body)["messages"][1][field] == "Hm."
    assert "Hm." not in foreign.body.decode()


@pytest.mark.parametrize(
    ("wire", "one", "two", "same"),
    [
        ("anthropic", "https://api.anthropic.com", "https://mantle.eu.api.aws/anthropic", True),
        ("anthropic", "https://api.anthropic.com", "http://localhost:8080", False),
        ("openai", "https://openrouter.ai/api/v1", "https://openrouter.ai/v2", True),
        ("openai", "http://localhost:8080/v1", "http://localhost:8081/v1", False),
        ("openai-responses", "https://a.openai.azure.com/x", "https://b.openai.azure.com/x", False),
        ("openai-responses", "https://api.openai.com/v1", "https://api.openai.com/v2", True),
    ],
)
def test_services_that_read_the_same_data(wire: str, one: str, two: str, *, same: bool) -> None:
    """The vendors' pages say so of Claude's signatures; the others read only their own."""
    assert same is (Endpoint(one, "k").service(wire) == Endpoint(two, "k").service(wire))


@settings(deadline=None)
@given(*[st.text("abcdefXYZ0123456789-_", min_size=20, max_size=60) for _ in range(2)])
def test_an_account_has_a_name_without_its_key(key: str, other: str) -> None:
    """Encrypted reasoning is of one account; a journal that names it must not hold its key."""
    url = "https://api.openai.com/v1"
    name = Endpoint(url, key).service("openai-responses")

    assert name == Endpoint(url, key).service("openai-responses")
    assert (key == other) is (name == Endpoint(url, other).service("openai-responses"))
    assert not any(key[at : at + 8] in name for at in range(len(key) - 7))
    elsewhere = Endpoint(url, key, {"OpenAI-Organization": "org-2"})
    assert name != elsewhere.service("openai-responses")
    assert Endpoint(url, lambda: key).service("openai-responses") == "api.openai.com"
