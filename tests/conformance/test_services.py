"""Each service of the table, asked by its name: a recorded answer, its key, its path, its words.

The answers are in the form that each service's own pages show, shortened: with its comments, its
further fields and its way to report usage. A new service is a row of `services.py` and one here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final
from urllib.parse import unquote

import pytest

from graphloop.providers import SERVICES, price, resolve
from graphloop.providers.http import HttpProvider
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    Reply,
    Settings,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests import google_talk
from tests.responses_talk import message, text
from tests.responses_talk import stream as events_of
from tests.wire_server import Answer, WireServer

Chunk = Mapping[str, Any]

ASK = ModelRequest((UserMessage("Hi"),), settings=Settings(max_tokens=7))
PLACES = {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com", "AWS_REGION": "us-east-1"}


@final
@dataclass(frozen=True)
class Recorded:
    """An answer of a service, and what is read of it.

    Attributes:
        lines: the events, each the text of one line or the fields of its data.
        usage: the usage of the answer.
        finish: why the answer ended.
        reasoning: the readable reasoning.
        field: the request field for the most tokens.
    """

    lines: tuple[str | Chunk, ...]
    usage: Usage = Usage(5, 2)
    finish: FinishReason = FinishReason.STOP
    reasoning: str = ""
    field: str = "max_tokens"


HEAD: Chunk = {
    "id": "c1",
    "object": "chat.completion.chunk",
    "created": 1_795_910_400,
    "model": "m",
    "system_fingerprint": "fp_1",
}


def chunk(delta: Chunk, finish: str | None = None, **more: object) -> Chunk:
    """Return a chunk of chat completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {**HEAD, "choices": [choice], **more}


def usage(**more: object) -> Chunk:
    return {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, **more}


def told(**more: object) -> Chunk:
    """Return the last chunk, which has the usage and no choice."""
    return {**HEAD, "choices": [], "usage": usage(**more)}


STOP = "stop"
FIRST = chunk({"role": "assistant", "content": ""})
HELLO = chunk({"content": "Hello"})
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Greet."}]}
PROMPT_FILTER: Chunk = {
    "choices": [],
    "model": "",
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
}
CLAUDE: tuple[Chunk, ...] = (
    {
        "type": "message_start",
        "message": {"id": "m1", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Hello"},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 2},
    },
    {"type": "message_stop"},
)

HELLO_ITEM = message("msg_1", text("Hello"))
RESPONSES = tuple(
    {**event, "response": {**event["response"], "usage": {"input_tokens": 5, "output_tokens": 2}}}
    if event["type"] == "response.completed"
    else event
    for event in events_of([HELLO_ITEM])
)
GEMINI: tuple[Chunk, ...] = (
    google_talk.chunk([{"text": "Hel"}], usage={"promptTokenCount": 5, "candidatesTokenCount": 1}),
    google_talk.chunk([{"text": "lo"}], "STOP", {"promptTokenCount": 5, "candidatesTokenCount": 2}),
)
RECORDED: Mapping[str, Recorded] = {
    "anthropic": Recorded(CLAUDE),
    "bedrock-anthropic": Recorded(CLAUDE),
    "bedrock": Recorded(RESPONSES, Usage(5, 2), field="max_output_tokens"),
    "openai-responses": Recorded(RESPONSES, Usage(5, 2), field="max_output_tokens"),
    "openai": Recorded(
        (
            chunk({"role": "assistant", "content": "", "refusal": None}, obfuscation="x1"),
            chunk({"content": "Hello"}, obfuscation="Zq"),
            chunk({}, STOP),
            told(prompt_tokens_details={"cached_tokens": 0}),
        )
    ),
    "azure": Recorded(
        (
            PROMPT_FILTER,
            FIRST,
            {
                **HELLO,
                "choices": [{**HELLO["choices"][0], "content_filter_results": {"hate": {}}}],
            },
            chunk({}, STOP),
            told(),
        ),
        field="max_completion_tokens",
    ),
    "cerebras": Recorded(
        (
            chunk({"role": "assistant"}),
            chunk({"reasoning": "Greet."}),
            HELLO,
            chunk({}, STOP, usage=usage(), time_info={"total_time": 0.1}),
        ),
        reasoning="Greet.",
        field="max_completion_tokens",
    ),
    "deepseek": Recorded(
        (
            ": keep-alive",
            chunk({"role": "assistant", "content": None, "reasoning_content": "Greet."}),
            chunk({"content": "Hello", "reasoning_content": None}),
            chunk(
                {"content": "", "reasoning_content": None},
                STOP,
                usage=usage(prompt_cache_hit_tokens=4, prompt_cache_miss_tokens=1),
            ),
        ),
        Usage(1, 2, cache_read_tokens=4),
        reasoning="Greet.",
    ),
    "fireworks": Recorded(
        (FIRST, HELLO, chunk({}, STOP, usage=None), {**told(), "perf_metrics": {"x": "1"}})
    ),
    "github": Recorded((PROMPT_FILTER, FIRST, HELLO, chunk({}, STOP), told())),
    "google": Recorded(GEMINI, field="maxOutputTokens"),
    "groq": Recorded(
        (
            chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
            chunk({"reasoning": "Greet."}),
            HELLO,
            chunk({}, STOP, x_groq={"id": "req_1", "usage": usage(queue_time=0.01)}),
            told(queue_time=0.01, total_time=0.2),
        ),
        reasoning="Greet.",
        field="max_completion_tokens",
    ),
    "mistral": Recorded(
        (
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": [THOUGHT]}),
            chunk({"content": [{"type": "text", "text": "Hello"}]}),
            chunk({"content": ""}, "model_length", usage=usage()),
        ),
        finish=FinishReason.LENGTH,
        reasoning="Greet.",
    ),
    "openrouter": Recorded(
        (
            ": OPENROUTER PROCESSING",
            chunk({"role": "assistant", "content": "", "reasoning": "Greet."}, provider="Azure"),
            chunk({"content": "Hello"}, provider="Azure"),
            {
                **chunk({"content": ""}),
                "choices": [
                    {
                        "index": 0,
                        "delta": {"content": ""},
                        "finish_reason": STOP,
                        "native_finish_reason": "completed",
                    }
                ],
            },
            told(cost=0.00014, is_byok=False),
        ),
        reasoning="Greet.",
    ),
    "together": Recorded(
        (
            chunk({"token_id": 9906, "role": "assistant", "content": "Hello"}),
            chunk({"token_id": 0, "role": "assistant", "content": ""}, "eos", usage=usage()),
        )
    ),
    "xai": Recorded(
        (
            chunk({"role": "assistant", "reasoning_content": "Greet."}),
            HELLO,
            chunk({}, STOP),
            told(completion_tokens_details={"reasoning_tokens": 1}, num_sources_used=0),
        ),
        Usage(5, 2, reasoning_tokens=1),
        reasoning="Greet.",
    ),
    "xai-responses": Recorded(RESPONSES, Usage(5, 2), field="max_output_tokens"),
    "llamacpp": Recorded(
        (
            ":",
            chunk({"role": "assistant", "content": None}),
            HELLO,
            chunk({}, STOP, timings={"prompt_n": 5}),
            {**told(), "timings": {"prompt_n": 5}},
        )
    ),
    "lmstudio": Recorded((FIRST, HELLO, chunk({}, STOP, stats={}), told())),
    "ollama": Recorded(
        (
            chunk({"role": "assistant", "content": "", "reasoning": "Greet."}),
            chunk({"role": "assistant", "content": "Hello"}, system_fingerprint="fp_ollama"),
            chunk({"role": "assistant", "content": ""}, STOP),
            told(),
        ),
        reasoning="Greet.",
    ),
    "vllm": Recorded(
        (
            FIRST,
            {**HELLO, "choices": [{**HELLO["choices"][0], "stop_reason": None}]},
            chunk({"content": ""}, STOP),
            told(),
        )
    ),
}


def stream(name: str) -> Answer:
    """Return the recorded answer as its server sends it."""
    lines = [
        one if isinstance(one, str) else f"data: {json.dumps(one)}" for one in RECORDED[name].lines
    ]
    end = [] if SERVICES[name].wire.startswith((".anthropic", ".google")) else ["data: [DONE]"]
    return Answer([f"{line}\n\n".encode() for line in (*lines, *end)])


def test_each_service_has_a_recorded_answer() -> None:
    """A row without one is a guess."""
    assert set(SERVICES) == set(RECORDED)


@pytest.mark.parametrize("name", sorted(RECORDED))
async def test_a_service_answers_by_its_name(name: str) -> None:
    """Its key goes where the service wants it, and its answer is read whole."""
    service, recorded = SERVICES[name], RECORDED[name]
    environ = {service.key_variable: "key-1", **PLACES}
    async with WireServer([stream(name)]) as server:
        provider = resolve(f"{name}:vendor/m:free", base_url=server.url, environ=environ)
        items = [item async for item in provider.session().stream(ASK)]
        await provider.aclose()
        (request,) = server.requests

    reply = items[-1]
    assert isinstance(reply, Reply)
    assert reply.message.text == "Hello"
    assert reply.message.reasoning == recorded.reasoning
    assert (reply.finish_reason, reply.usage) == (recorded.finish, recorded.usage)
    body = json.loads(request.body)
    asked = body.get("model") or unquote(request.path).removeprefix("/v1beta/").rpartition(":")[0]
    settings = body.get("generationConfig", body)
    assert (asked, settings[recorded.field]) == ("vendor/m:free", 7)
    assert "key-1" in {*request.headers.values()} | {
        request.headers.get("authorization", "").removeprefix("Bearer ")
    }


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_asked_at_its_own_address(name: str) -> None:
    """With the values of its variables; a key is needed unless the server is on this machine."""
    service = SERVICES[name]

    provider = resolve(f"{name}:m", environ={service.key_variable: "key-1", **PLACES})

    assert isinstance(provider, HttpProvider)
    assert provider.label == f"{name}:m"
    url = provider.endpoint.base_url
    assert "{" not in url
    assert url.startswith("http://localhost:" if not service.needs_key else "https://")
    assert service.needs_key == (service.prices is not None)


def test_mistral_is_sent_only_fields_that_it_knows() -> None:
    """Its API answers 422 to all others."""
    provider = resolve("mistral:m", environ={"MISTRAL_API_KEY": "k"})
    assert isinstance(provider, HttpProvider)
    tool = ToolSpec("f", "Does f.", '{"type":"object"}')
    settings = Settings(max_tokens=7, seed=3, temperature=0.5, parallel_tool_calls=False)
    request = ModelRequest((UserMessage("Hi"),), (tool,), settings=settings)

    body = json.loads(b"".join(provider.wire.encoder().encode(request)))

    assert body.keys() == {
        *("model", "stream", "max_tokens", "temperature", "random_seed"),
        *("parallel_tool_calls", "tools", "messages"),
    }


@pytest.mark.parametrize(
    ("service", "goes_back"),
    [("cerebras", False), ("groq", False), ("mistral", False), ("openrouter", True)],
)
def test_a_strict_service_is_not_sent_its_own_fields_back(service: str, goes_back: bool) -> None:
    """Groq's replies have `executed_tools`, and its API answers 400 to a message with them."""
    provider = resolve(f"{service}:m", environ={SERVICES[service].key_variable: "k"})
    assert isinstance(provider, HttpProvider)
    call = ToolCall("D681PevKs", "f", "{}", '{"mood":"good"}')
    turn = AssistantMessage((TextPart("Hm."), call), "openai", '{"executed_tools":[]}')

    body = provider.wire.encoder().encode(ModelRequest((UserMessage("Hi"), turn)))

    sent = json.loads(b"".join(body))["messages"][1]
    assert ("executed_tools" in sent) is goes_back
    assert ("mood" in sent["tool_calls"][0]) is goes_back
    assert sent["content"] == "Hm."


def test_mistral_is_sent_only_call_ids_that_it_takes() -> None:
    """Its API answers 400 to ids that are not nine letters and digits, such as OpenAI's."""
    provider = resolve("mistral:m", environ={"MISTRAL_API_KEY": "k"})
    assert isinstance(provider, HttpProvider)
    ids = ("call_abcdefghijklmnopqrst", "D681PevKs", "", "0", "D681PevKs")
    turn = AssistantMessage(tuple(ToolCall(each, "f", "{}") for each in ids), "openai")
    results = [ToolResult("k", each, "f", "done") for each in ids]

    body = provider.wire.encoder().encode(ModelRequest((UserMessage("Hi"), turn, *results)))

    _, called, *answered = json.loads(b"".join(body))["messages"]
    sent = [call["id"] for call in called["tool_calls"]]
    assert sent == ["call00000", "D681PevKs", "call00002", "call00003", "call00004"]
    assert sent == [result["tool_call_id"] for result in answered]


@pytest.mark.parametrize(
    ("service", "model", "is_known"),
    [
        ("groq", "llama-3.3-70b-versatile", True),
        ("mistral", "mistral-large-latest", True),
        ("groq", "claude-opus-4-8", False),
        ("", "gpt-4o", True),
    ],
)
def test_a_price_is_the_service_s_own(service: str, model: str, is_known: bool) -> None:
    """The same open model costs another price elsewhere; unknown is better than wrong."""
    message = AssistantMessage((TextPart("Hello"),))
    reply = Reply(message, FinishReason.STOP, Usage(1_000, 1_000), model=model)

    cost = price(reply, service=service)

    assert (cost is not None and cost > 0) == is_known
