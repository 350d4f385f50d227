"""The Anthropic wire in tests: what a server streams, and what is sent to it."""

from __future__ import annotations

import json
from typing import Any

from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Delta, Encoder, ServerEvent
from graphloop.values import (
    AssistantMessage,
    AssistantPart,
    Message,
    ModelRequest,
    Reply,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.transcripts import ANTHROPIC, decoded, event, heard

__all__ = [
    "HELLO",
    "START",
    "STOP",
    "WEATHER",
    "WIRE",
    "block_delta",
    "block_start",
    "block_stop",
    "body",
    "content",
    "message_delta",
    "recorded",
    "reply_to",
    "result",
    "sent",
    "turn",
]

WIRE = AnthropicMessages("claude-test-1")
HELLO = UserMessage("hello")
WEATHER = ToolSpec("get_weather", "Weather now.", '{"type":"object", "properties":{}}')
START = event({"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}})
STOP = event({"type": "message_stop"})


def recorded(name: str) -> tuple[list[Delta], Reply]:
    """Return what a recorded stream shows, and the answer it ends with."""
    return decoded(WIRE, ANTHROPIC[name])


def reply_to(*events: ServerEvent) -> Reply:
    """Return the answer of a stream with these events between its first and its last.

    It stops for `end_turn`, if the events say no other reason.
    """
    return heard(WIRE, (START, message_delta(stop_reason="end_turn"), *events, STOP))[1]


def block_start(index: int, **block: object) -> ServerEvent:
    return event({"type": "content_block_start", "index": index, "content_block": block})


def block_delta(index: int, **delta: object) -> ServerEvent:
    return event({"type": "content_block_delta", "index": index, "delta": delta})


def block_stop(index: int) -> ServerEvent:
    return event({"type": "content_block_stop", "index": index})


def message_delta(usage: object = None, **delta: object) -> ServerEvent:
    return event({"type": "message_delta", "delta": delta, "usage": usage})


def body(request: ModelRequest, encoder: Encoder | None = None) -> dict[str, Any]:
    """Return what is sent for `request`."""
    whole = b"".join((encoder or WIRE.encoder()).encode(request))
    fields: dict[str, Any] = json.loads(whole)
    return fields


def sent(*messages: Message) -> list[dict[str, Any]]:
    messages_sent: list[dict[str, Any]] = body(ModelRequest(messages))["messages"]
    return messages_sent


def turn(*parts: AssistantPart, wire: str = "anthropic") -> AssistantMessage:
    return AssistantMessage(parts, wire)


def content(*parts: AssistantPart, wire: str = "anthropic") -> list[dict[str, Any]]:
    """Return the blocks that a turn of these parts is sent as."""
    blocks: list[dict[str, Any]] = sent(HELLO, turn(*parts, wire=wire))[1]["content"]
    return blocks


def result(text: str, call_id: str = "", **more: Any) -> ToolResult:
    return ToolResult("c0.0", call_id, "f", text, **more)
