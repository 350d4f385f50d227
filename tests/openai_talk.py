"""The OpenAI chat wire in tests: what a server streams, and what is sent to it."""

from __future__ import annotations

import json
import re
from typing import Any

from graphloop.providers.base import Delta, ServerEvent
from graphloop.providers.openai_chat.decode import ChatDecoder
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.values import (
    AssistantMessage,
    AssistantPart,
    Message,
    ModelRequest,
    Reply,
    Settings,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from tests.transcripts import event, heard

__all__ = [
    "DONE",
    "LONDON",
    "NYC",
    "QUESTION",
    "SYSTEM",
    "WIRE",
    "body",
    "calls",
    "chunk",
    "fed",
    "fragment",
    "heard_from",
    "reply",
    "result",
    "said",
    "sent",
    "with_settings",
]

WIRE = OpenAIChat("m")
DONE = ServerEvent("", b"[DONE]")
SYSTEM = SystemMessage("You are a helpful weather assistant.")
QUESTION = UserMessage("What's the weather in NYC and London?")
NYC = ToolCall("call_a", "get_weather", '{"city":"NYC"}')
LONDON = ToolCall("call_b", "get_weather", '{"city":"London"}')


def chunk(delta: object, finish: str | None = None, **choice: object) -> ServerEvent:
    return event({"choices": [{"delta": delta, "finish_reason": finish, **choice}]})


def fragment(
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    arguments: object = None,
    **extra: object,
) -> dict[str, object]:
    """Return a piece of a call, without the fields that are None."""
    about = {"index": index, "id": call_id, **extra}
    function = {"name": name, "arguments": arguments}
    return {
        **{key: value for key, value in about.items() if value is not None},
        "function": {key: value for key, value in function.items() if value is not None},
    }


def calls(*fragments: dict[str, object]) -> ServerEvent:
    return chunk({"tool_calls": list(fragments)})


def heard_from(*events: ServerEvent) -> tuple[list[Delta], Reply]:
    """Return what a stream of `events` shows, and the answer it ends with.

    A stream that says no finish reason of its own ends by `stop`.
    """
    said = any(re.search(rb'"finish_reason": ?"', one.data) for one in events)
    if not said and DONE in events:
        at = events.index(DONE)
        events = (*events[:at], chunk({}, "stop"), *events[at:])
    return heard(WIRE, events)


def reply(*events: ServerEvent) -> Reply:
    return heard_from(*events)[1]


def fed(*events: ServerEvent) -> ChatDecoder:
    """Return a decoder in the middle of a stream."""
    decoder = WIRE.decoder()
    for one in events:
        decoder.feed(one)
    return decoder


def said(*parts: AssistantPart, **own: str) -> AssistantMessage:
    return AssistantMessage(parts, wire=own.get("wire", "openai"), extra=own.get("extra", ""))


def result(content: str | tuple[UserPart, ...], call_id: str = "") -> ToolResult:
    return ToolResult("c0.0", call_id, "get_weather", content)


def body(request: ModelRequest, model: str = "gpt-4o") -> dict[str, Any]:
    """Return what is sent for `request`."""
    parsed: dict[str, Any] = json.loads(b"".join(OpenAIChat(model).encoder().encode(request)))
    return parsed


def sent(*messages: Message) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = body(ModelRequest(messages))["messages"]
    return entries


def with_settings(settings: Settings, model: str = "gpt-4o", **fields: Any) -> dict[str, Any]:
    return body(ModelRequest((QUESTION,), settings=settings, **fields), model)
