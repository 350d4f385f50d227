"""The AI SDK's messages, in the words of its own type definitions, become values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphloop import load_messages
from graphloop.conversation import repaired
from graphloop.errors import ConfigError
from graphloop.media import Inline, MediaPart, Url
from graphloop.values import (
    AssistantMessage,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import wrong

Given = Mapping[str, object]


def ui(role: str, *parts: object) -> Given:
    """Return a `UIMessage`, as `useChat` posts it."""
    return {"id": "m1", "role": role, "metadata": {"at": 5}, "parts": list(parts)}


def text(said: str) -> Given:
    """Return a text part of a browser."""
    return {"type": "text", "text": said, "state": "done"}


def tool(state: str, **fields: object) -> Given:
    """Return a call of the tool `read` in a state."""
    given = {"type": "tool-read", "toolCallId": "a", "state": state, "input": {"x": 1}}
    return {**given, **fields}


def model(role: str, *parts: object) -> Given:
    """Return a `ModelMessage`."""
    return {"role": role, "content": list(parts)}


def result(kind: str, **fields: object) -> Given:
    """Return a message of role tool with the result of a call."""
    output = {"type": kind, **fields}
    part = {"type": "tool-result", "toolCallId": "a", "toolName": "read", "output": output}
    return model("tool", part)


STEP = {"type": "step-start"}
READ = ToolCall("a", "read", '{"x":1}')
CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "read", "input": {"x": 1}}
SIGNED = {"anthropic": {"signature": "s"}}
PNG = "data:image/png;base64,AAAA"
PDF = "data:application/pdf;base64,AAAA"
DENIED = "Tool call denied."


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (ui("system", text("s"), text("t")), [SystemMessage("st")]),
        (ui("user", text("u")), [UserMessage("u")]),
        (
            ui("user", text("u"), {"type": "file", "mediaType": "image/png", "url": PNG}),
            [UserMessage((TextPart("u"), MediaPart("image/png", Inline(b"\x00\x00\x00"))))],
        ),
        (
            ui(
                "user",
                {"type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "url": PDF},
                {"type": "file", "mediaType": "image/png", "url": "https://x/y.png"},
                {"type": "data-place", "data": {"x": 1}},
            ),
            [
                UserMessage(
                    (
                        MediaPart("application/pdf", Inline(b"\x00\x00\x00"), "a.pdf"),
                        MediaPart("image/png", Url("https://x/y.png")),
                    )
                )
            ],
        ),
        (
            ui("assistant", STEP, text("a"), {"type": "source-url", "sourceId": "1", "url": "x"}),
            [AssistantMessage((TextPart("a"),))],
        ),
        (
            ui(
                "assistant",
                *(STEP, {"type": "reasoning", "text": "so", "providerMetadata": SIGNED}),
                *(text("I read."), tool("output-available", output={"n": 2})),
                *(STEP, text("Done.")),
            ),
            [
                AssistantMessage(
                    (ReasoningPart("so", "s"), TextPart("I read."), READ), "anthropic"
                ),
                ToolResult("", "a", "read", '{"n":2}'),
                AssistantMessage((TextPart("Done."),)),
            ],
        ),
        (
            ui("assistant", tool("output-error", errorText="no")),
            [AssistantMessage((READ,)), ToolResult("", "a", "read", "no", "error")],
        ),
        (
            ui("assistant", tool("output-error", input=None, rawInput="{x", errorText="no")),
            [
                AssistantMessage((ToolCall("a", "read", "{x"),)),
                ToolResult("", "a", "read", "no", "error"),
            ],
        ),
        (
            ui("assistant", tool("output-denied", approval={"id": "1", "reason": "Too much."})),
            [
                AssistantMessage((READ,)),
                ToolResult("", "a", "read", f"{DENIED} Too much.", "denied"),
            ],
        ),
        (ui("assistant", tool("approval-requested")), [AssistantMessage((READ,))]),
        (ui("assistant", text("a"), tool("input-streaming")), [AssistantMessage((TextPart("a"),))]),
        (ui("assistant"), []),
        (
            ui("assistant", {**tool("input-available"), "type": "dynamic-tool", "toolName": "f"}),
            [AssistantMessage((ToolCall("a", "f", '{"x":1}'),))],
        ),
        (
            model("user", {"type": "text", "text": "u"}, {"type": "image", "image": "https://x"}),
            [UserMessage((TextPart("u"), MediaPart("image/*", Url("https://x"))))],
        ),
        (
            model("user", {"type": "image", "image": "AAAA", "mediaType": "image/png"}),
            [UserMessage((MediaPart("image/png", Inline(b"\x00\x00\x00")),))],
        ),
        (
            model("user", {"type": "file", "data": "AAAA", "mediaType": "application/pdf"}),
            [UserMessage((MediaPart("application/pdf", Inline(b"\x00\x00\x00")),))],
        ),
        (
            ui("user", {"type": "file", "mediaType": "text/csv", "url": "https://x"}),
            [UserMessage((MediaPart("text/csv", Url("https://x")),))],
        ),
        (
            ui("assistant", {"type": "file", "mediaType": "image/png", "url": PNG}),
            [AssistantMessage((MediaPart("image/png", Inline(b"\x00\x00\x00")),))],
        ),
        (
            {"role": "system", "content": "s", "providerOptions": {"anthropic": {}}},
            [SystemMessage("s")],
        ),
        (
            model("assistant", {"type": "reasoning", "text": "so"}, text("a"), CALL),
            [AssistantMessage((ReasoningPart("so"), TextPart("a"), READ))],
        ),
        (
            model("assistant", CALL, {"type": "tool-approval-request", "approvalId": "1"}),
            [AssistantMessage((READ,))],
        ),
        (
            model(
                "assistant",
                {
                    "type": "reasoning",
                    "text": "",
                    "providerOptions": {"anthropic": {"redactedData": "d"}},
                },
            ),
            [AssistantMessage((ReasoningPart("", data="d"),), "anthropic")],
        ),
        (result("text", value="r"), [ToolResult("", "a", "read", "r")]),
        (result("json", value=[1]), [ToolResult("", "a", "read", "[1]")]),
        (result("error-text", value="r"), [ToolResult("", "a", "read", "r", "error")]),
        (result("error-json", value=1), [ToolResult("", "a", "read", "1", "error")]),
        (result("execution-denied"), [ToolResult("", "a", "read", DENIED, "denied")]),
        (
            result(
                "content",
                value=[
                    {"type": "text", "text": "r"},
                    {"type": "image-data", "data": "AAAA", "mediaType": "image/png"},
                    {"type": "image-url", "url": "https://x"},
                    {"type": "media", "data": "BBBB", "mediaType": "image/png"},
                ],
            ),
            [
                ToolResult(
                    *("", "a", "read"),
                    (
                        TextPart("r"),
                        MediaPart("image/png", Inline(b"\x00\x00\x00")),
                        MediaPart("image/*", Url("https://x")),
                        MediaPart("image/png", Inline(b"\x04\x10A")),
                    ),
                )
            ],
        ),
        (
            model("tool", {"type": "tool-approval-response", "approvalId": "1", "approved": True}),
            [],
        ),
    ],
)
def test_messages_of_the_ai_sdk_become_values(given: Given, messages: list[Message]) -> None:
    assert tuple(messages) == load_messages([given])


def test_a_talk_from_a_browser_needs_no_repair() -> None:
    """Each call is followed by its own result, in the order of the calls."""
    talk = load_messages(
        [
            ui("user", text("go")),
            ui(
                "assistant",
                *(STEP, tool("output-available", output="1")),
                {**tool("output-available", output="2"), "toolCallId": "b"},
                *(STEP, text("Done.")),
            ),
        ]
    )

    assert () == repaired(talk).findings
    assert ["a", "b"] == [one.call_id for one in talk if isinstance(one, ToolResult)]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            ui("tool"),
            "messages[0]: expected `role` to be one of system, user, assistant, found 'tool'",
        ),
        ({"role": "user", "parts": "x"}, "messages[0].parts: expected a list of parts, found str"),
        (ui("user", 5), "messages[0].parts[0]: expected a part with a `type`, found 5"),
        (ui("user", {"type": "text"}), "`text` to be a string, found None"),
        (ui("user", STEP), "expected text, image or file, found a part of type 'step-start'"),
        (
            ui("system", {"type": "file", "mediaType": "image/png", "url": PNG}),
            "expected only text in a system message",
        ),
        (
            model("user", {"type": "image", "image": "AAAA"}),
            "messages[0].content[0]: expected the media type of data given as base64, found",
        ),
        (
            model("user", {"type": "file", "mediaType": "image/png", "data": "A A"}),
            "messages[0].content[0]: expected base64, found 'A A'",
        ),
        (
            ui("user", {"type": "file", "mediaType": "image/png", "url": "data:image/png,x"}),
            "messages[0].parts[0]: expected 'data:<type>;base64,…', found 'data:image/png,x'",
        ),
        (
            ui("assistant", {"type": "step-end"}),
            "messages[0].parts[0]: expected text, reasoning, file or a call, found a part of type",
        ),
        (
            ui("assistant", tool("output-available", providerExecuted=True)),
            "expected a tool that your own process runs, found 'read'",
        ),
        (
            ui("assistant", tool("done")),
            "messages[0].parts[0]: expected `state` to be one of input-streaming",
        ),
        (
            ui("assistant", {**tool("input-available"), "type": "dynamic-tool"}),
            "`toolName` to be a string, found None",
        ),
        (ui("assistant", tool("input-available", toolCallId=5)), "`toolCallId` to be a string"),
        (
            ui("assistant", tool("output-available", output=object())),
            "messages[0].parts[0]: expected JSON, found",
        ),
        (
            model("wizard", CALL),
            "`role` to be one of system, user, assistant, tool, found 'wizard'",
        ),
        (model("tool", CALL, result("text")), "expected a tool-result, found a part of type"),
        (result("jsonl"), "the type of `output` to be one of text, json"),
        (
            model("tool", {"type": "tool-result", "toolCallId": "a", "result": "r"}),
            "as of AI SDK 5, found None",
        ),
        (result("content", value="x"), "output.value: expected a list of parts, found str"),
    ],
)
def test_what_no_model_can_take_is_refused_with_its_place(given: object, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_messages([wrong(given)])

    assert found in str(caught.value)
