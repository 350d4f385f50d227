"""The items of the Responses API become values; the wire sends them back as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from graphloop.errors import ConfigError
from graphloop.media import FileId, Inline, MediaPart, Url
from graphloop.messages import messages_of
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
    evolve,
)
from tests.responses_talk import ITEMS, RESPONSES, WIRE, body, call, message, reasoning, text
from tests.strategies import wrong
from tests.transcripts import decoded

CALL = call("fc_1", "call_1", "count", {"shop": "Bob"})
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
ASK = {"role": "user", "content": "How many?"}
PNG = "data:image/png;base64,AAAA"
PDF = "data:application/pdf;base64,AAAA"


def user(*parts: Mapping[str, object]) -> dict[str, object]:
    """Return a user's item of these parts."""
    return {"role": "user", "content": list(parts)}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "message", **ASK}, UserMessage("How many?")),
        (user({"type": "input_text", "text": "u"}), UserMessage((TextPart("u"),))),
        ({"type": "message", "role": "developer", "content": "s"}, SystemMessage("s")),
        (
            {"role": "system", "content": [{"type": "input_text", "text": "s"}]},
            SystemMessage("s"),
        ),
        (
            {"type": "message", "role": "assistant", "content": "a", "id": None},
            AssistantMessage((TextPart("a"),)),
        ),
        (
            user({"type": "input_image", "image_url": PNG, "detail": "auto"}),
            UserMessage((MediaPart("image/png", Inline(b"\x00\x00\x00")),)),
        ),
        (
            user({"type": "input_image", "image_url": "https://a.example/b", "detail": "low"}),
            UserMessage(
                (MediaPart("image/*", Url("https://a.example/b"), extra='{"detail":"low"}'),)
            ),
        ),
        (
            user({"type": "input_image", "file_id": "file_1", "image_url": None}),
            UserMessage((MediaPart("image/*", FileId("file_1", "openai-responses")),)),
        ),
        (
            user({"type": "input_file", "file_data": PDF, "filename": "a.pdf"}),
            UserMessage((MediaPart("application/pdf", Inline(b"\x00\x00\x00"), "a.pdf"),)),
        ),
        (OUTPUT, ToolResult("", "call_1", "", "3")),
        (
            {**OUTPUT, "output": [{"type": "input_text", "text": "3"}]},
            ToolResult("", "call_1", "", (TextPart("3"),)),
        ),
        (
            message("msg_1", text("a"), text("b")),
            AssistantMessage((TextPart("a"), TextPart("b"))),
        ),
    ],
)
def test_an_item_becomes_a_value(item: Mapping[str, object], expected: Message) -> None:
    assert (expected,) == messages_of([item])


def test_the_items_of_a_turn_are_one_message() -> None:
    """Its calls have their results behind them, as each other wire needs them."""
    second = call("fc_2", "call_2", "count", {"shop": "Ann"})
    said = message("msg_1", text("I count."))
    items = [ASK, said, CALL, second, OUTPUT, {**OUTPUT, "call_id": "call_2"}]
    items.append(message("msg_2", text("Six.")))

    first, turn, *results, answer = messages_of(items)

    calls = (
        ToolCall("call_1", "count", CALL["arguments"]),
        ToolCall("call_2", "count", second["arguments"]),
    )
    assert first == UserMessage("How many?")
    assert turn == AssistantMessage((TextPart("I count."), *calls))
    assert [each.call_id for each in results if isinstance(each, ToolResult)] == [
        "call_1",
        "call_2",
    ]
    assert answer == AssistantMessage((TextPart("Six."),))


@pytest.mark.parametrize("dumped", [False, True], ids=["as sent", "dumped by the SDK"])
def test_what_only_the_server_reads_goes_back_as_it_came(*, dumped: bool) -> None:
    """Encrypted reasoning, the server's own items, and the ids that bind them together."""
    output: list[Any] = [reasoning("rs_1", "I think.", encrypted="secret"), CALL]
    if dumped:
        known = TypeAdapter[list[ResponseOutputItem]](list[ResponseOutputItem])
        output = [one.model_dump() for one in known.validate_python(output)]

    sent = body(ModelRequest(messages_of([ASK, *output, OUTPUT])))["input"]

    assert [item.get("id") for item in sent] == [None, "rs_1", "fc_1", None]
    assert sent[1]["encrypted_content"] == "secret"
    assert sent[1]["summary"] == [{"type": "summary_text", "text": "I think."}]


def test_reasoning_that_a_server_has_stored_is_not_asked_of_another() -> None:
    """Without its encrypted form, its id means nothing to a server that stores nothing."""
    output = [reasoning("rs_1", "I think."), CALL]

    _, turn, _ = messages = messages_of([ASK, *output, OUTPUT])

    assert turn == AssistantMessage(
        (ReasoningPart("I think."), ToolCall("call_1", "count", CALL["arguments"]))
    )
    sent = body(ModelRequest(messages))["input"]
    assert [item.get("type") for item in sent] == [None, "function_call", "function_call_output"]
    assert "id" not in sent[1]


@pytest.mark.parametrize("name", sorted(ITEMS))
def test_each_item_of_the_reference_is_read(name: str) -> None:
    """A kept reply says what the same reply says as a stream."""
    _, reply = decoded(WIRE, RESPONSES[name])

    (read,) = messages_of(ITEMS[name])

    assert isinstance(read, AssistantMessage)
    assert (read.text, read.reasoning) == (reply.message.text, reply.message.reasoning)
    assert [evolve(one, extra="") for one in read.calls] == [
        evolve(one, extra="") for one in reply.message.calls
    ]


@pytest.mark.parametrize(
    ("items", "facts"),
    [
        ([{"type": "item_reference", "id": "msg_1"}], r"messages\[0\].*'item_reference'"),
        ([ASK, {**CALL, "name": None}], r"messages\[1\]: expected `name`"),
        ([{"type": "message", "role": "user", "content": 3}], r"messages\[0\]\.content.*3"),
        ([user({"type": "input_text", "text": "a"}, {"type": "x"})], r"content\[1\].*'x'"),
        ([{"type": "message", "role": "tool", "content": "a"}], "role 'tool'"),
        ([message("msg_1", {"type": "input_text", "text": "a"})], "output_text.*'input_text'"),
        ([{**OUTPUT, "outputs": "3"}], "'outputs'"),
        ([message("msg_1", *[wrong({"type": "output_text", "text": 3})])], r"messages\[0\]"),
    ],
)
def test_a_faulty_item_is_named(items: Sequence[Mapping[str, object]], facts: str) -> None:
    with pytest.raises(ConfigError, match=facts):
        messages_of(items)
