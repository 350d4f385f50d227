"""A reply that is cut at the model's own maximum, on every wire, over real sockets."""

from __future__ import annotations

import asyncio
import json

import pytest

from graphloop import Agent, RunResult, tool
from graphloop.parts.kinds import Finish
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.run import EndReason
from graphloop.values import FinishReason
from tests.wire_server import Answer, WireServer, json_answer, sse

MOST = 64_000
TOO_MUCH = "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens"
REFUSED = json_answer(400, json.dumps({"error": {"message": TOO_MUCH}}))
FULL = "This model's maximum context length is 65536 tokens. However, you requested 128009 tokens"
OVERFLOW = json_answer(400, json.dumps({"error": {"message": FULL}}))


def cut_on_chat(*, told: bool = True) -> Answer:
    """Return a text and a call that is cut, on the chat wire."""
    call = {"index": 0, "id": "a", "function": {"name": "write", "arguments": '{"text":"on'}}
    chunks: list[object] = [
        {"model": "m", "choices": [{"delta": {"content": "So:", "tool_calls": [call]}}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
        *([{"usage": {"prompt_tokens": 9, "completion_tokens": MOST}}] if told else []),
    ]
    return Answer(sse(*map(json.dumps, chunks), "[DONE]"))


def cut_on_messages() -> Answer:
    """Return a text and a call that is cut, on the Anthropic wire."""
    text, use = {"type": "text", "text": "So:"}, {"type": "tool_use", "id": "a", "name": "write"}
    piece = {"type": "input_json_delta", "partial_json": '{"text":"on'}
    events: list[object] = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": text},
        {"type": "content_block_start", "index": 1, "content_block": use},
        {"type": "content_block_delta", "index": 1, "delta": piece},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens"},
            "usage": {"output_tokens": MOST},
        },
        {"type": "message_stop"},
    ]
    return Answer(sse(*map(json.dumps, events)))


def told_by(
    wire: Wire, answers: list[Answer], *, limit: int | None = None, streamed: bool = False
) -> tuple[RunResult, list[int | None]]:
    """Return the result of a run whose server gives these answers, and the limits it was sent."""

    @tool
    def write(text: str) -> str:
        """Write."""
        raise AssertionError(text)

    async def main() -> tuple[RunResult, list[int | None]]:
        async with WireServer(answers) as server:
            model = HttpProvider(wire, Endpoint(server.url))
            agent = Agent(model, tools=[write], max_tokens=limit)
            try:
                stream = agent.stream("Go.")
                if streamed:
                    parts = [part async for part in stream.full_stream]
                    assert isinstance(parts[-1], Finish)
                result = await stream.result() if streamed else await agent.generate("Go.")
            finally:
                await model.aclose()
            bodies = [json.loads(one.body) for one in server.requests]
            return result, [one.get("max_tokens") for one in bodies]

    return asyncio.run(main())


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "buffered"])
@pytest.mark.parametrize("limit", [MOST, None])
@pytest.mark.parametrize("refusal", [REFUSED, OVERFLOW], ids=["refused", "overflow"])
@pytest.mark.parametrize(
    "wire", [OpenAIChat("m"), AnthropicMessages("m")], ids=lambda one: one.name
)
def test_a_larger_limit_that_the_server_refuses_ends_by_length(
    wire: Wire, refusal: Answer, limit: int | None, streamed: bool
) -> None:
    """The model has no more room, and what it said until then was paid for."""
    cut = cut_on_chat() if wire.name == "openai" else cut_on_messages()

    result, limits = told_by(wire, [cut, refusal], limit=limit, streamed=streamed)

    assert EndReason.LENGTH is result.end_reason
    assert 2 * MOST == limits[1]
    (step,) = result.steps
    assert ("So:", FinishReason.LENGTH) == (step.text, step.finish_reason)
    assert ["not_run"] == [one.status for one in step.tool_results]
    assert MOST == step.usage.output_tokens


def test_a_limit_that_nobody_knows_is_not_asked_for_twice() -> None:
    """With neither a limit nor a usage, twice what there was may be the same, or less."""
    result, limits = told_by(OpenAIChat("m"), [cut_on_chat(told=False)])

    assert (EndReason.LENGTH, [None]) == (result.end_reason, limits)
