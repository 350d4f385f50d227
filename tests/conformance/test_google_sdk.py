"""The official SDK reads Gemini's streams as our decoder does, and takes what our encoder sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from google.genai import Client
from google.genai.errors import APIError, ClientError, ServerError
from google.genai.types import (
    Content,
    FunctionCallingConfigMode,
    FunctionDeclaration,
    GenerateContentConfig,
    GenerateContentResponse,
    GenerationConfig,
    HttpOptions,
    HttpRetryOptions,
    Tool,
    ToolConfig,
)
from google.genai.types import FinishReason as Word
from pydantic import BaseModel

from graphloop.errors import AuthenticationFailed, Overloaded, ProviderError, RateLimited
from graphloop.media import Inline, MediaPart, Url
from graphloop.providers import google_code_execution, google_search, google_url_context
from graphloop.providers.google.wire import GOOGLE_WORDS
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    Reply,
    Settings,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.for_each import for_each
from tests.google_talk import FORMS, GOOGLE, ITEMS, WIRE, Form, body, recorded, stream
from tests.transcripts import decoded
from tests.wire_server import Answer, Request, WireServer, json_answer

PAY = ToolSpec("pay", "Pay.", '{"type":"object","properties":{"to":{"type":"string"}}}')


async def theirs(
    *answers: Answer, config: GenerateContentConfig | None = None
) -> list[tuple[list[GenerateContentResponse], Request]]:
    """Return what the SDK's own client reads of each answer, and what it asked."""
    async with WireServer(answers) as server:
        once = HttpRetryOptions(attempts=1)
        options = HttpOptions(base_url=server.url, api_version="v1beta", retry_options=once)
        async with Client(api_key="k", vertexai=False, http_options=options).aio as client:
            read: list[tuple[list[GenerateContentResponse], Request]] = []
            for _ in answers:
                chunks = await client.models.generate_content_stream(
                    model="gemini-3-flash", contents="Hi", config=config
                )
                read.append(([chunk async for chunk in chunks], server.requests[-1]))
            return read


# The SDK leaves partial arguments to its caller.
WHOLE: tuple[Form, ...] = tuple(
    form for form in FORMS if form not in {"partial arguments", "no last call"}
)


@pytest.mark.parametrize("form", WHOLE)
def test_the_official_sdk_reads_the_same_replies(form: Form) -> None:
    """What we make of a stream is what its inventor makes of it."""
    streams = {name: recorded(stream(items, form)) for name, items in ITEMS.items()}

    read = asyncio.run(theirs(*[Answer([whole]) for whole in streams.values()]))

    for (name, whole), (chunks, request) in zip(streams.items(), read, strict=True):
        _, reply = decoded(WIRE, whole)
        assert request.path == WIRE.path
        assert request.headers["x-goog-api-key"] == WIRE.headers("k")["x-goog-api-key"]
        assert_same(chunks, reply, name)


def assert_same(chunks: Sequence[GenerateContentResponse], reply: Reply, name: str) -> None:
    """Assert that the SDK has read what our reply holds."""
    parts = [
        part
        for chunk in chunks
        for candidate in chunk.candidates or ()
        for part in (candidate.content.parts if candidate.content else None) or ()
    ]
    said = "".join(part.text for part in parts if part.text and not part.thought)
    thought = "".join(part.text for part in parts if part.text and part.thought)
    assert said == reply.message.text, name
    assert thought == "".join(part.text for part in reply.message.parts if part.type == "reasoning")
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.id or "", call.name, call.args or {}) for call in calls] == [
        (call.id, call.name, json.loads(call.arguments)) for call in reply.message.calls
    ]
    used = chunks[-1].usage_metadata
    assert used is not None
    ours = reply.usage
    prompt = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
    assert prompt == ours.input_tokens + ours.cache_read_tokens
    output = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
    assert output == ours.output_tokens
    assert used.total_token_count == ours.total_tokens
    assert chunks[-1].model_version == reply.model


@pytest.mark.parametrize("form", FORMS)
@for_each("name", ITEMS)
def test_every_chunk_is_one_of_the_wire(name: str, form: Form) -> None:
    """The SDK's types refuse fields that they do not know; a wrong fixture would prove nothing."""
    for chunk in stream(ITEMS[name], form):
        assert GenerateContentResponse.model_validate(chunk).candidates


@pytest.mark.parametrize("name", ITEMS)
def test_a_reply_and_its_results_are_contents_that_the_sdk_takes(name: str) -> None:
    """The next request is valid for the server, by its vendor's own types."""
    _, reply = decoded(WIRE, GOOGLE[name])
    picture = MediaPart("image/png", Inline(b"hi"))
    results = [
        ToolResult(f"k{at}", call.id, call.name, (TextPart("done"), picture))
        for at, call in enumerate(reply.message.calls)
    ]
    foreign = AssistantMessage((TextPart("Yes."), ToolCall("toolu_1", "pay", "{}")), "anthropic")
    history: tuple[Message, ...] = (
        UserMessage((TextPart("Go."), MediaPart("video/mp4", Url("https://a.b/c")))),
        foreign,
        ToolResult("k", "toolu_1", "pay", "no", status="error"),
        reply.message,
        *results,
        UserMessage("And?"),
    )

    sent = body(ModelRequest(history))["contents"]

    contents = [Content.model_validate(content) for content in sent]
    assert [content.role for content in contents] == [
        ("user", "model")[at % 2] for at in range(len(contents))
    ]
    found = [part for content in contents for part in content.parts or ()]
    called = [part.function_call.id for part in found if part.function_call]
    answered = [part.function_response.id for part in found if part.function_response]
    assert called == answered


def test_a_request_has_the_fields_of_the_sdk() -> None:
    """Each in camel case, and each of the type that the vendor published."""
    hosted = [tool.spec for tool in (google_search(), google_url_context())]
    settings = Settings(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        seed=1,
        stop_sequences=("x",),
        options='{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}',
    )

    sent = body(
        ModelRequest(
            (SystemMessage("Be brief."), UserMessage("Go.")),
            (PAY, *hosted, google_code_execution().spec),
            ToolChoice("tool", "pay"),
            settings,
            OutputSpec("a", '{"type":"object"}'),
        )
    )

    system = Content.model_validate(sent["systemInstruction"])
    config = GenerationConfig.model_validate(sent["generationConfig"])
    tools = [Tool.model_validate(tool) for tool in sent["tools"]]
    choice = ToolConfig.model_validate(sent["toolConfig"]).function_calling_config
    assert system.parts is not None
    assert (config.max_output_tokens, config.response_json_schema) == (9, {"type": "object"})
    assert choice is not None
    assert choice.mode is FunctionCallingConfigMode.ANY
    schema = json.loads(PAY.parameters)
    assert tools[0].function_declarations == [
        FunctionDeclaration(name="pay", description="Pay.", parameters_json_schema=schema)
    ]
    assert all((tools[1].google_search, tools[2].url_context, tools[3].code_execution))
    for part in (sent["generationConfig"], sent["toolConfig"], *sent["tools"]):
        assert not [key for key in part if "_" in key]


class Answered(BaseModel):
    """An answer."""

    city: str
    degrees: list[float]


def test_a_request_is_what_the_official_sdk_sends() -> None:
    """Field for field: the tools, the choice, the form of the answer, and the contents."""
    schema = Answered.model_json_schema()
    config = GenerateContentConfig(
        system_instruction="Be brief.",
        max_output_tokens=9,
        stop_sequences=["x"],
        tools=[
            Tool(
                function_declarations=[
                    FunctionDeclaration(
                        name="pay",
                        description="Pay.",
                        parameters_json_schema=json.loads(PAY.parameters),
                    )
                ]
            )
        ],
        tool_config=ToolConfig.model_validate({"functionCallingConfig": {"mode": "NONE"}}),
        response_mime_type="application/json",
        response_json_schema=schema,
    )

    ((_, request),) = asyncio.run(theirs(Answer([GOOGLE["text"]]), config=config))

    ours = body(
        ModelRequest(
            (SystemMessage("Be brief."), UserMessage("Hi")),
            (PAY,),
            ToolChoice("none"),
            Settings(max_tokens=9, stop_sequences=("x",)),
            OutputSpec("Answered", json.dumps(schema)),
        )
    )
    assert ours == without_roles(json.loads(request.body))


def without_roles(sent: dict[str, Any]) -> dict[str, Any]:
    """Return the SDK's body without the role of its system instruction, which has no meaning.

    The SDK writes one field in the other spelling that the server takes.
    """
    sent["systemInstruction"].pop("role", None)
    for function in sent["tools"][0]["functionDeclarations"]:
        function["parametersJsonSchema"] = function.pop("parameters_json_schema")
    return sent


def test_the_table_has_each_finish_word_of_the_sdk() -> None:
    """A word that the vendor publishes must not be unknown to us."""
    published = {word.value.lower() for word in Word} - {"finish_reason_unspecified"}

    assert published == set(GOOGLE_WORDS)


@pytest.mark.parametrize(
    ("status", "kind", "their_error", "our_error"),
    [
        (403, "PERMISSION_DENIED", ClientError, AuthenticationFailed),
        (429, "RESOURCE_EXHAUSTED", ClientError, RateLimited),
        (503, "UNAVAILABLE", ServerError, Overloaded),
    ],
)
def test_the_official_sdk_takes_a_refusal_for_the_same(
    status: int, kind: str, their_error: type[APIError], our_error: type[ProviderError]
) -> None:
    """What our own tests send as an error is one to the wire's inventor, too."""
    refusal = f'{{"error":{{"code":{status},"message":"No.","status":"{kind}"}}}}'

    with pytest.raises(their_error) as raised:
        asyncio.run(theirs(json_answer(status, refusal)))

    ours = WIRE.error(status, refusal.encode())
    assert (raised.value.code, raised.value.status, type(ours)) == (status, kind, our_error)
