"""Where each wire keeps the sources of an answer: the table of `docs/wires/index.md`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from graphloop import Agent
from graphloop.agent import RunResult
from graphloop.values import AssistantMessage, TextPart
from tests import google_talk
from tests.responses_talk import message, text
from tests.responses_talk import stream as events_of
from tests.wire_server import Answer, WireServer, sse

SOURCE = {"url": "https://example.org/may", "title": "May"}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
GOOGLE = google_talk.chunk([{"text": "May."}], "STOP")
GOOGLE["candidates"][0]["groundingMetadata"] = [SOURCE]
STREAMS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *[
            {"type": "content_block_delta", "index": 0, "delta": delta}
            for delta in (
                {"type": "text_delta", "text": "May."},
                {"type": "citations_delta", "citation": SOURCE},
            )
        ],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ],
    "google": [GOOGLE],
    "openai-responses": [
        dict(event)
        for event in events_of([message("msg_1", {**text("May."), "annotations": [SOURCE]})])
    ],
    "openai": [
        {**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in (
            ({"content": "May."}, None),
            ({"annotations": [SOURCE]}, None),
            ({}, "stop"),
        )
    ],
}


def last(result: RunResult[str]) -> AssistantMessage:
    """Return the answer's message."""
    answer = result.messages[-1]
    assert isinstance(answer, AssistantMessage)
    return answer


def extra_of_text(result: RunResult[str]) -> Any:
    """Return what only the wire knows of the answer's text."""
    (part,) = last(result).parts
    assert isinstance(part, TextPart)
    return json.loads(part.extra)


FOUND: dict[str, Callable[[RunResult[str]], object]] = {
    "anthropic": lambda result: extra_of_text(result)["citations"],
    "google": lambda result: json.loads(result.provider_metadata)["groundingMetadata"],
    "openai-responses": lambda result: extra_of_text(result)["content"]["annotations"],
    "openai": lambda result: json.loads(last(result).extra)["annotations"],
}


@pytest.mark.parametrize("service", sorted(FOUND))
async def test_the_sources_of_an_answer_are_kept(service: str) -> None:
    """A page that shows an answer of a search has to show its sources."""
    lines = [json.dumps(event) for event in STREAMS[service]]
    end = ["[DONE]"] if service == "openai" else []
    async with (
        WireServer([Answer(sse(*lines, *end))]) as server,
        Agent(f"{service}:m", base_url=server.url, api_key="key-1") as agent,
    ):
        result = await agent.generate("When?")

    assert FOUND[service](result) == [SOURCE]
