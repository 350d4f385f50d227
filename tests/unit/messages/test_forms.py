"""Forms: a conversation survives a file, and lists of other libraries are read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop import dump_messages, load_messages
from graphloop.errors import ConfigError
from graphloop.messages import messages_of
from graphloop.values import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import messages as any_message
from tests.strategies import wrong

TALK: tuple[Message, ...] = (
    SystemMessage("Be kind."),
    UserMessage("Grüße", origin="verify"),
    AssistantMessage(
        (ReasoningPart("so", signature="s"), OpaquePart("{}"), ToolCall("a", "read", "{}")),
        wire="anthropic",
        extra='{"container":"c"}',
    ),
    ToolResult("c0.0", "a", "read", (TextPart("r", extra='{"x":1}'),), "error"),
)


@given(st.lists(any_message, max_size=6))
@example([UserMessage("half a pair \ud800")])
def test_a_dumped_conversation_loads_as_it_was(talk: list[Message]) -> None:
    """Whatever a provider put into a message goes back to it after a restart."""
    assert tuple(talk) == load_messages(dump_messages(talk))
    assert tuple(talk) == load_messages(dump_messages(talk).encode())


def test_a_dump_is_plain_json_with_its_version() -> None:
    saved = json.loads(dump_messages(TALK))

    assert ("graphloop.messages", 1) == (saved["type"], saved["version"])
    assert ["system", "user", "assistant", "tool"] == [one["role"] for one in saved["messages"]]
    assert "Grüße" in dump_messages(TALK)
    assert TALK == load_messages(saved)


@given(st.lists(any_message, max_size=6))
@example([*TALK])
def test_the_obvious_road_through_json_is_read_too(talk: Sequence[Message]) -> None:
    """`json.loads(msgspec.json.encode(result.messages))` is what people try first."""
    plain = msgspec.to_builtins(talk)

    assert tuple(talk) == load_messages(plain)


def test_one_list_may_mix_forms() -> None:
    mixed = [
        UserMessage("one"),
        {"role": "assistant", "content": "two"},
        {"role": "user", "parts": [{"type": "text", "text": "three"}]},
        msgspec.to_builtins(TALK[2]),
        {"role": "tool", "tool_call_id": "a", "content": "five"},
    ]

    assert (
        UserMessage("one"),
        AssistantMessage((TextPart("two"),)),
        UserMessage("three"),
        TALK[2],
        ToolResult("", "a", "", "five"),
    ) == messages_of(mixed)


def head(**fields: object) -> dict[str, object]:
    """Return a dump of no messages with other fields."""
    return {"type": "graphloop.messages", "version": 1, "messages": [], **fields}


@pytest.mark.parametrize(
    ("saved", "found"),
    [
        ("{", "the saved messages: expected JSON, found"),
        (b"\xff", "the saved messages: expected JSON, found"),
        ("[" * 100_000, "the saved messages: expected JSON, found"),
        ("5", "`messages` to be a list of messages, found int"),
        ('"hi"', "`messages` to be a list of messages, found str"),
        ({"role": "user", "content": "u"}, "of type None. Fix: pass a list of messages."),
        ({"id": "chat", "messages": []}, "of type None. Fix: pass its `messages`."),
        (head(version=2), "found 2: a newer graphloop wrote the messages. Fix: upgrade"),
        (head(version=True), "`version`: expected 1, found True"),
        (head(version="1"), "`version`: expected 1, found '1'"),
        (head(messages={}), "`messages`: expected a list, found dict"),
        (head(more=1), "unknown field 'more'"),
        (head(messages=["u"]), "messages[0]: expected a message, found str"),
        (head(messages=[{"role": "user"}]), "messages[0]: expected a message as `dump_messages`"),
        (
            head(
                messages=[{"role": "assistant", "parts": [{"type": "text", "text": "a", "b": 1}]}]
            ),
            "messages[0].parts[0].b: unknown field",
        ),
        ([{"role": "assistant", "wire": "", "parts": 5}], "messages[0]: expected a message as"),
        ([{"role": "user", "content": "u", "origin": "", "n": 0}], "messages[0].n: unknown field"),
    ],
)
def test_what_is_no_dump_is_refused_with_its_place(saved: object, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_messages(wrong(saved))

    assert found in str(caught.value)


def test_an_empty_conversation_can_be_saved_and_loaded() -> None:
    """A chat is saved before its first question, too; only a run needs a message."""
    assert () == load_messages(dump_messages([])) == load_messages([])
