"""The official SDK reads the same transcripts and finds the same text and calls.

It is the second opinion on this wire: where our decoder and the provider's own disagree, one of
them is wrong. Where the SDK is known to mix things up, the transcript is left out by name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest
from anthropic import AsyncAnthropic, transform_schema
from pydantic import BaseModel

from graphloop.values import (
    ModelRequest,
    OutputSpec,
    Settings,
    TextPart,
    ToolSpec,
    UserMessage,
)
from tests.anthropic_talk import WIRE, recorded
from tests.transcripts import ANTHROPIC
from tests.wire_server import Answer, WireServer

WHOLE_ARGUMENTS = {"truncated_call"}
LEFT_OUT: Mapping[str, str] = {
    "started_over": "a second message_start is not understood",
    "noise": "events before message_start end the stream",
    "halves": "halves of a character stay halves",
    "fallback": "calls of the model that gave way are kept, their cut arguments completed",
}


@pytest.mark.parametrize("name", [name for name in ANTHROPIC if name not in LEFT_OUT])
def test_the_official_sdk_reads_the_same_turn(name: str) -> None:
    """Two independent readers of one transcript."""
    theirs = asyncio.run(_read_by_sdk(ANTHROPIC[name]))

    _, reply = recorded(name)
    assert theirs["text"] == reply.message.text
    assert theirs["stop_reason"] == reply.raw_finish_reason
    assert theirs["output_tokens"] == reply.usage.output_tokens
    assert theirs["searches"] == reply.usage.server_tool_calls
    calls = [(call.id, call.name) for call in reply.message.calls]
    assert theirs["calls"] == calls
    if name not in WHOLE_ARGUMENTS:
        assert theirs["inputs"] == [json.loads(call.arguments) for call in reply.message.calls]


async def _read_by_sdk(data: bytes) -> dict[str, object]:
    async with (
        WireServer([Answer([data[:100], data[100:]])]) as server,
        AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client,
        client.beta.messages.stream(
            model="claude-test-1", max_tokens=9, messages=[{"role": "user", "content": "Begin."}]
        ) as stream,
    ):
        message = await stream.get_final_message()
    calls = [block for block in message.content if block.type == "tool_use"]
    searched = message.usage.server_tool_use
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "calls": [(call.id, call.name) for call in calls],
        "inputs": [call.input for call in calls],
        "stop_reason": message.stop_reason,
        "output_tokens": message.usage.output_tokens,
        "searches": searched.web_search_requests if searched else 0,
    }


class Answered(BaseModel):
    """An answer."""

    city: str
    degrees: list[float]


def test_our_request_says_what_the_sdk_would_say() -> None:
    """The same conversation through the SDK is the same JSON, field for field."""
    request = ModelRequest(
        (UserMessage((TextPart("hello"),)),),
        (
            ToolSpec("f", "Does f.", '{"type":"object","properties":{}}'),
            ToolSpec(
                "web_search",
                "",
                "",
                kind="provider",
                definition='{"type":"web_search_20250305","name":"web_search","max_uses":5}',
            ),
        ),
        settings=Settings(
            max_tokens=9, stop_sequences=("END",), options='{"output_config":{"effort":"low"}}'
        ),
        output=OutputSpec("answer", json.dumps(Answered.model_json_schema())),
    )

    theirs, path = asyncio.run(_sent_by_sdk())

    assert theirs == json.loads(b"".join(WIRE.encoder().encode(request)))
    assert path.partition("?")[0] == WIRE.path


async def _sent_by_sdk() -> tuple[object, str]:
    answer = Answer([ANTHROPIC["text"]])
    async with (
        WireServer([answer]) as server,
        AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        stream = await client.messages.create(
            model="claude-test-1",
            max_tokens=9,
            stream=True,
            stop_sequences=["END"],
            tools=[
                {
                    "name": "f",
                    "description": "Does f.",
                    "input_schema": {"type": "object", "properties": {}},
                },
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
            ],
            output_config={
                "effort": "low",
                "format": {"type": "json_schema", "schema": transform_schema(Answered)},
            },
            messages=[{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        )
        async for _ in stream:
            pass
    request = server.requests[0]
    return json.loads(request.body), request.path
