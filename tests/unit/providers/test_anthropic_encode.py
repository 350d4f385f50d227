"""The Anthropic encoder: one conversation, each message encoded once."""

import pytest

from graphloop.errors import (
    ConfigError,
)
from graphloop.values import (
    ModelRequest,
    SystemMessage,
    TextPart,
    ToolCall,
    UserMessage,
)
from tests.anthropic_talk import HELLO, WIRE, content, result, sent, turn


def test_the_smallest_request_is_exactly_this() -> None:
    """Messages stand last, so that a longer conversation has this as its beginning."""
    whole = b"".join(WIRE.encoder().encode(ModelRequest((HELLO,))))

    assert whole == (
        b'{"model":"claude-test-1","max_tokens":8192,"stream":true,"messages":'
        b'[{"role":"user","content":[{"type":"text","text":"hello"}]}]}'
    )


def test_results_come_first_in_their_user_message() -> None:
    """The API wants results at once after the calls, and text only after them."""
    messages = sent(
        HELLO,
        turn(ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")),
        result("one", "a"),
        UserMessage("and?"),
        SystemMessage("Hurry."),
        result("two", "b"),
    )

    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "content": "two"},
        {"type": "text", "text": "and?"},
        {"type": "text", "text": "<system>\nHurry.\n</system>"},
    ]


def test_results_are_paired_by_position_whatever_the_ids_say() -> None:
    """Servers repeat ids within a turn and over turns; the API refuses that."""
    messages = sent(
        HELLO,
        turn(ToolCall("0", "f", "{}"), ToolCall("0", "f", "{}"), ToolCall("", "f", "{}")),
        result("first", "0"),
        result("second", "0"),
        result("third"),
        turn(ToolCall("0", "f", "{}"), ToolCall("a b", "f", "{}"), ToolCall("x" * 65, "f", "{}")),
        result("fourth", "zzz"),
    )

    ids = [[block["id"] for block in messages[at]["content"]] for at in (1, 3)]
    assert ids == [["0", "call_1_1", "call_1_2"], ["call_5_0", "call_5_1", "call_5_2"]]
    answered = [block["tool_use_id"] for at in (2, 4) for block in messages[at]["content"]]
    assert answered == ["0", "call_1_1", "call_1_2", "call_5_0"]


def test_a_made_up_id_never_meets_a_real_one() -> None:
    """A server may happen to use the very form that is made up here."""
    calls = (ToolCall("call_1_1", "f", "{}"), ToolCall("", "f", "{}"))

    assert [block["id"] for block in content(*calls)] == ["call_1_1", "call_1_1_"]


def test_blank_text_and_empty_turns_are_left_out() -> None:
    """The API answers 400 to text without a visible character, even to its own."""
    messages = sent(
        HELLO,
        turn(TextPart("\n\n"), ToolCall("a", "f", "{}")),
        result("r"),
        turn(),
        turn(TextPart("")),
        UserMessage("go on"),
    )

    assert [len(message["content"]) for message in messages] == [1, 1, 2]


def test_turns_in_a_row_stay_apart() -> None:
    """A paused turn was sent as it was; gluing the next to it would change what is cached."""
    messages = sent(HELLO, turn(TextPart("a")), turn(TextPart("b")))

    assert [message["role"] for message in messages] == ["user", "assistant", "assistant"]


def test_a_result_without_its_call_is_refused_by_its_place() -> None:
    """The API answers 400 to it; here the message is named that is too much."""
    with pytest.raises(ConfigError, match=r"messages\[2\]"):
        sent(HELLO, turn(TextPart("a")), result("r"))
