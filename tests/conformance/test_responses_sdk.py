"""The official SDK reads Responses as our decoder does, and takes what our encoder sends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai import (
    AsyncOpenAI,
)
from openai.types.responses import (
    Response,
    ResponseInputParam,
    ResponseStreamEvent,
    ToolParam,
)
from pydantic import TypeAdapter

from graphloop.providers.openai_responses.server_tools import (
    openai_code_interpreter,
    openai_file_search,
    openai_image_generation,
    openai_web_search,
)
from graphloop.values import ModelRequest, ToolResult, ToolSpec, UserMessage
from tests.responses_talk import ITEMS, RESPONSES, WIRE, body, stream
from tests.transcripts import decoded
from tests.wire_server import Answer, WireServer

EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
INPUT: TypeAdapter[Any] = TypeAdapter(ResponseInputParam)
TOOLS: TypeAdapter[Any] = TypeAdapter(list[ToolParam])


async def theirs(answer: Answer) -> Response:
    """Return what the SDK's own accumulator makes of `answer`."""
    async with (
        WireServer([answer]) as server,
        AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        client.responses.stream(model="m", input="Hi") as events,
    ):
        return await events.get_final_response()


# The SDK refuses two calls of one id, which some servers send.
REGULAR = [name for name in ITEMS if name != "same call ids"]


@pytest.mark.parametrize("name", REGULAR)
def test_the_official_sdk_reads_the_same_reply(name: str) -> None:
    """What we make of a stream is what its inventor makes of it."""
    _, reply = decoded(WIRE, RESPONSES[name])

    response = asyncio.run(theirs(Answer([RESPONSES[name]])))

    said = response.output_text
    for item in response.output:
        for part in item.content if item.type == "message" else ():
            said += part.refusal if part.type == "refusal" else ""
    calls = [item for item in response.output if item.type == "function_call"]
    assert said == reply.message.text
    if name != "made-up parallel call":
        assert [(call.call_id, call.name, call.arguments) for call in calls] == [
            (call.id, call.name, call.arguments) for call in reply.message.calls
        ]
    used = response.usage
    assert used is not None
    ours = reply.usage
    cached = ours.cache_read_tokens + ours.cache_write_tokens
    assert used.input_tokens == ours.input_tokens + cached
    assert used.output_tokens == ours.output_tokens


@pytest.mark.parametrize("name", ITEMS)
def test_every_regular_event_is_one_of_the_wire(name: str) -> None:
    """The SDK reads events without checking them; a wrong fixture would prove nothing."""
    for event in stream(ITEMS[name]):
        assert EVENTS.validate_python(event).type == event["type"]


@pytest.mark.parametrize("name", ITEMS)
def test_a_reply_and_its_results_are_input_that_the_sdk_takes(name: str) -> None:
    """The next request is valid for the server, by its vendor's own types."""
    _, reply = decoded(WIRE, RESPONSES[name])
    results = [
        ToolResult(f"k{at}", call.id, call.name, "done")
        for at, call in enumerate(reply.message.calls)
    ]

    sent = body(ModelRequest((UserMessage("Go."), reply.message, *results)))["input"]

    # The vendor's types check lists while they are read, so the input is written again.
    assert INPUT.dump_json(INPUT.validate_python(sent))
    answered = {item["call_id"] for item in sent if item.get("type") == "function_call_output"}
    assert answered == {item["call_id"] for item in sent if item.get("type") == "function_call"}
    # The server's program goes on with the results that name it.
    called = {item["call_id"]: item.get("caller") for item in sent if "arguments" in item}
    assert called == {item["call_id"]: item.get("caller") for item in sent if "output" in item}


def test_the_tools_are_those_of_the_sdk() -> None:
    """Functions and the server's own."""
    own = [openai_web_search(), openai_file_search(["vs_1"]), openai_code_interpreter()]
    specs = [tool.spec for tool in (*own, openai_image_generation())]
    fields = (
        '{"allowed_callers":["direct","programmatic"],"defer_loading":true,"strict":false,'
        '"output_schema":{"type":"object"}}'
    )
    function = ToolSpec("pay", "Pay.", '{"type":"object","properties":{}}', definition=fields)

    sent = body(ModelRequest((UserMessage("Go."),), (function, *specs)))["tools"]

    assert TOOLS.dump_json(TOOLS.validate_python(sent))
