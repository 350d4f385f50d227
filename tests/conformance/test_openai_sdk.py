"""The official SDK reads the regular transcripts as our decoder does, over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest
from openai import (
    APIStatusError,
    AsyncOpenAI,
    AuthenticationError,
    InternalServerError,
    LengthFinishReasonError,
    RateLimitError,
)
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam
from pydantic import BaseModel, ConfigDict

from graphloop.errors import AuthenticationFailed, Overloaded, ProviderError, RateLimited
from graphloop.providers.base import Wire
from graphloop.providers.sse import SseDecoder
from graphloop.values import ModelRequest, OutputSpec, UserMessage
from tests import responses_talk
from tests.openai_talk import WIRE
from tests.transcripts import OPENAI, decoded
from tests.wire_server import Answer, WireServer, json_answer

# Those without irregular indexes or halves of characters, which the SDK does not put together.
REGULAR = ("text", "tools", "refusal", "cut_call", "reasoning", "details")


async def theirs(answer: Answer) -> ChatCompletion:
    """Return what the SDK's own accumulator makes of `answer`."""
    async with (
        WireServer([answer]) as server,
        AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "Hi"}]
        ) as stream,
    ):
        try:
            return await stream.get_final_completion()
        except LengthFinishReasonError as error:
            return error.completion


@pytest.mark.parametrize("name", REGULAR)
def test_the_official_sdk_reads_the_same_answer(name: str) -> None:
    """What we make of a stream is what its inventor makes of it."""
    _, reply = decoded(WIRE, OPENAI[name])

    completion = asyncio.run(theirs(Answer([OPENAI[name]])))

    choice, said = completion.choices[0], completion.choices[0].message
    calls: list[tuple[str, str, str]] = []
    for call in said.tool_calls or ():
        assert call.type == "function"
        calls.append((call.id, call.function.name, call.function.arguments))
    assert (said.content or "") + (said.refusal or "") == reply.message.text
    assert calls == [(call.id, call.name, call.arguments) for call in reply.message.calls]
    assert choice.finish_reason == reply.raw_finish_reason
    usage, used = completion.usage, reply.usage
    counts = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
    assert counts == (used.input_tokens + used.cache_read_tokens, used.output_tokens)


@pytest.mark.parametrize("name", REGULAR)
def test_every_regular_chunk_is_one_of_the_wire(name: str) -> None:
    """The SDK reads chunks without checking them; a wrong fixture would prove nothing."""
    lines = SseDecoder()
    events = [*lines.feed(OPENAI[name]), *lines.close()]
    chunks = [event.data for event in events if event.data != b"[DONE]"]

    assert [ChatCompletionChunk.model_validate_json(data).id for data in chunks]


async def asked(answer: Answer, form: type[BaseModel], api: str) -> bytes:
    """Return what the SDK sends for an answer of a form, once it has read an event."""
    async with (
        WireServer([answer]) as server,
        AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        if api == "chat":
            messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
            async with client.chat.completions.stream(
                model="m", messages=messages, response_format=form
            ) as chunks:
                await anext(aiter(chunks))
        else:
            async with client.responses.stream(model="m", input="Hi", text_format=form) as events:
                await anext(aiter(events))
        return server.requests[0].body


class Answered(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")

    city: str
    degrees: list[float]


APIS: dict[str, tuple[Wire, Mapping[str, bytes]]] = {
    "chat": (WIRE, OPENAI),
    "responses": (responses_talk.WIRE, responses_talk.RESPONSES),
}
on_both_apis = pytest.mark.parametrize("api", APIS)


@on_both_apis
@pytest.mark.parametrize(
    ("status", "kind", "their_error", "our_error"),
    [
        (401, "invalid_api_key", AuthenticationError, AuthenticationFailed),
        (429, "rate_limit_exceeded", RateLimitError, RateLimited),
        (500, "server_error", InternalServerError, Overloaded),
    ],
)
async def test_the_official_sdk_takes_a_refusal_for_the_same(
    status: int,
    kind: str,
    their_error: type[APIStatusError],
    our_error: type[ProviderError],
    api: str,
) -> None:
    """What our own tests send as an error is one to the wire's inventor, of the same class."""
    refusal = f'{{"error":{{"message":"No.","type":"{kind}","param":null,"code":"{kind}"}}}}'

    with pytest.raises(their_error) as raised:
        await asked(json_answer(status, refusal), Answered, api)

    ours = APIS[api][0].error(status, refusal.encode())
    assert (raised.value.status_code, raised.value.code) == (status, kind)
    assert (type(ours), ours.status) == (our_error, status)


@on_both_apis
async def test_the_form_of_an_answer_is_what_the_official_sdk_sends(api: str) -> None:
    """A pydantic model as the SDK's own helper sends it, strict, field for field."""
    wire, recorded = APIS[api]
    output = OutputSpec("Answered", json.dumps(Answered.model_json_schema()))
    request = ModelRequest((UserMessage("Hi"),), output=output)

    ours = json.loads(b"".join(wire.encoder().encode(request)))

    expected = json.loads(await asked(Answer([recorded["text"]]), Answered, api))
    (field,) = {"response_format", "text"} & {*ours}
    assert ours[field] == expected[field]
