"""The form of chat completions: its messages become values, and a fault is named by its place."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from graphloop.errors import ConfigError
from graphloop.media import FileId, Inline, MediaPart, Url
from graphloop.messages import messages_of
from graphloop.providers.openai_chat.messages import CHAT_REASONING
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import wrong

CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
PDF = "data:application/pdf;base64,AAAA"


def user(*content: object) -> dict[str, object]:
    """Return a user's message of these parts."""
    return {"role": "user", "content": list(content)}


def assistant(**fields: object) -> dict[str, object]:
    """Return an assistant's message."""
    return {"role": "assistant", **fields}


def tool(**fields: object) -> dict[str, object]:
    """Return a tool's message."""
    return {"role": "tool", "tool_call_id": "a", **fields}


def image(**fields: object) -> dict[str, object]:
    """Return an image of a user's message."""
    return {"type": "image_url", "image_url": {"url": "x", **fields}}


def file(**fields: object) -> dict[str, object]:
    """Return a file of a user's message."""
    return {"type": "file", "file": fields}


READ = ToolCall("a", "read", "{}")
NOTHING: dict[str, object] = {}
PARSED: dict[str, object] = {"name": "f", "arguments": {"x": 1}}
SPOKEN: dict[str, object] = {"id": "a", "transcript": "hi", "expires_at": 1}
DETAILS = [{"type": "reasoning.encrypted"}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"role": "system", "content": "s"}, SystemMessage("s")),
        ({"role": "developer", "content": [{"type": "text", "text": "s"}]}, SystemMessage("s")),
        ({"role": "user", "content": "u"}, UserMessage("u")),
        (
            user({"type": "text", "text": "u"}, image()),
            UserMessage((TextPart("u"), MediaPart("image/*", Url("x")))),
        ),
        (user(TextPart("u")), UserMessage((TextPart("u"),))),
        (assistant(content="a", tool_calls=[CALL]), AssistantMessage((TextPart("a"), READ))),
        (assistant(content=None), AssistantMessage(())),
        (
            assistant(content="a", reasoning_content="because"),
            AssistantMessage((ReasoningPart("because"), TextPart("a")), "openai"),
        ),
        (
            assistant(reasoning="because", tool_calls=[CALL]),
            AssistantMessage(
                (ReasoningPart("because", extra=CHAT_REASONING["reasoning"]), READ), "openai"
            ),
        ),
        (
            assistant(reasoning_details=DETAILS),
            AssistantMessage(
                (), "openai", '{"reasoning_details":[{"type":"reasoning.encrypted"}]}'
            ),
        ),
        (
            assistant(content=None, audio={**SPOKEN, "data": "UklGRgAAAABXQVZF"}),
            AssistantMessage((TextPart("hi"), MediaPart("audio/wav", Inline(b"RIFF\0\0\0\0WAVE")))),
        ),
        (assistant(content=None, audio=SPOKEN), AssistantMessage((TextPart("hi"),))),
        (assistant(content="a", audio=None), AssistantMessage((TextPart("a"),))),
        (
            user(image(detail="low")),
            UserMessage((MediaPart("image/*", Url("x"), extra='{"detail":"low"}'),)),
        ),
        (user(image(detail="auto")), UserMessage((MediaPart("image/*", Url("x")),))),
        (
            user(
                file(file_data=PDF, filename="a.pdf"), MediaPart("application/pdf", Inline(b"AA"))
            ),
            UserMessage(
                (
                    MediaPart("application/pdf", Inline(b"\x00\x00\x00"), "a.pdf"),
                    MediaPart("application/pdf", Inline(b"AA")),
                )
            ),
        ),
        (
            user(file(file_id="f")),
            UserMessage((MediaPart("application/octet-stream", FileId("f", "openai")),)),
        ),
        (
            user(
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            ),
            UserMessage(
                (
                    MediaPart("audio/mpeg", Inline(b"\x00\x00\x00")),
                    MediaPart("audio/wav", Inline(b"\x00\x00\x00")),
                )
            ),
        ),
        (
            assistant(content="a", refusal=None, annotations=[], audio=""),
            AssistantMessage((TextPart("a"),)),
        ),
        (assistant(tool_calls=[{**CALL, "index": 1}]), AssistantMessage((READ,))),
        (tool(name=None), ToolResult("", "a", "", "")),
        (tool(content="no", is_error=True), ToolResult("", "a", "", "no", "error")),
        (tool(content="r", is_error=False), ToolResult("", "a", "", "r")),
        (tool(content="r", name="read"), ToolResult("", "a", "read", "r")),
        (UserMessage("u"), UserMessage("u")),
    ],
)
def test_messages_in_the_openai_form_become_values(
    given: Message | Mapping[str, object], message: Message
) -> None:
    assert (message,) == messages_of([given])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"role": "usr", "content": "u"}, "messages[0]: expected `role` to be one of"),
        ({"content": "u"}, "found None"),
        ("hello", "expected a message, found str"),
        ({"role": "user", "content": 5}, "to be a string or a list of parts, found int"),
        ({"role": "user"}, "found NoneType"),
        (user({"type": "audio"}), "messages[0].content[0]: expected"),
        ({"role": "system", "content": [image()]}, "must be text here"),
        ({"role": "tool", "content": "r"}, "`tool_call_id` to be a string"),
        (tool(is_error="no"), "expected True or False, found 'no'"),
        (tool(name=5), "`name` to be a string, found 5"),
        ({"role": "user", "content": "u", "name": "bob"}, "messages[0]: unknown field 'name'"),
        (assistant(refusal="no", tool_call=[CALL]), "Did you mean 'tool_calls'? Known are role"),
        (assistant(reasoning_content=["x"]), "`reasoning_content` to be a string"),
        (
            user({"type": "text", "text": "u", "cache_control": {"a": 1}}),
            "messages[0].content[0]: unknown field 'cache_control'",
        ),
        (user(image(detail=5)), "content[0].image_url: expected `detail` to be a string, found 5"),
        (user(file(file_id=5)), "messages[0].content[0]: expected"),
        (user(file(file_id="f", filename="a")), "content[0].file: unknown field 'filename'"),
        (
            user({"type": "input_audio", "input_audio": {"data": "A", "format": "wav"}}),
            "content[0].input_audio: expected base64, found 'A'",
        ),
        (
            user(file(file_data="AAAA")),
            "messages[0].content[0].file: expected 'data:<type>;base64,…', found 'AAAA'",
        ),
        (assistant(reasoning_details="because"), "`reasoning_details`: expected a list of objects"),
        (user({**image(), "n": 1}), "messages[0].content[0]: unknown field 'n'"),
        (
            assistant(tool_calls=[{**CALL, "extra_content": object()}]),
            "messages[0].tool_calls[0]: expected JSON in 'extra_content'",
        ),
        (
            assistant(
                tool_calls=[{"id": "a", "function": {"name": "f", "arguments": "", "parsed": 1}}]
            ),
            "messages[0].tool_calls[0].function: unknown field 'parsed'",
        ),
        (assistant(audio={"id": "a"}), "messages[0].audio: expected `transcript`"),
        (assistant(audio={**SPOKEN, "format": "wav"}), "messages[0].audio: unknown field"),
        (assistant(tool_calls="x"), "`tool_calls` to be a list"),
        (assistant(tool_calls=[NOTHING]), "messages[0].tool_calls[0]: expected id"),
        (
            assistant(tool_calls=[{"function": PARSED}]),
            "arguments (a JSON string)",
        ),
    ],
)
def test_a_message_of_the_wrong_form_is_named_by_its_place(given: object, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        messages_of([wrong(given)])

    assert found in str(caught.value)


@pytest.mark.parametrize(
    "thought",
    [
        {"reasoning_content": "because"},
        {"reasoning": "because"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "because", "signature": "s"}]},
    ],
)
def test_reasoning_of_a_stored_call_goes_back_as_it_came(thought: dict[str, object]) -> None:
    stored = {"role": "assistant", "content": "", "tool_calls": [{**CALL, "type": "function"}]}
    answer = {"role": "tool", "tool_call_id": "a", "content": "r"}

    request = ModelRequest(messages_of([{**stored, **thought}, answer]))
    body = json.loads(b"".join(OpenAIChat("m").encoder().encode(request)))

    assert [{**stored, **thought}, answer] == body["messages"]
