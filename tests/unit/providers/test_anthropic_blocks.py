"""Messages as Anthropic content blocks: what goes back, and what must not."""

import pytest

from graphloop.errors import ConfigError
from graphloop.values import (
    FilePart,
    ImagePart,
    Message,
    ModelRequest,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.anthropic_talk import HELLO, WIRE, content, result, sent, turn


def test_a_failed_result_says_so_and_an_empty_one_has_no_content() -> None:
    """The flag lets the model tell an error from an answer that looks like one."""
    messages = sent(
        HELLO,
        turn(ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")),
        result("no", status="denied"),
        result(""),
    )

    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b"},
    ]


def test_parts_of_users_and_tools_have_their_blocks() -> None:
    """Images by data or address, documents, and fields of the user's own."""
    parts = (
        TextPart("look", '{"cache_control":{"type":"ephemeral"},"type":"x"}'),
        ImagePart("aGk=", "image/png"),
        ImagePart("https://example.com/a.png"),
        FilePart("eA==", "application/pdf", "a.pdf"),
        FilePart("eA==", "application/pdf"),
        TextPart(" \n"),
    )
    blocks = [
        {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="},
        },
    ]

    messages = sent(
        UserMessage(parts), turn(ToolCall("a", "f", "{}")), ToolResult("k", "a", "f", parts)
    )

    assert messages[0]["content"] == blocks
    assert messages[2]["content"][0]["content"] == blocks


def test_a_turn_of_this_wire_goes_back_as_it_came() -> None:
    """Thinking is signed, server blocks are checked; order and every field count."""
    search = '{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":1.50}}'

    blocks = content(
        ReasoningPart("Hm.", "sig"),
        ReasoningPart("", ""),
        ReasoningPart("", data="EmwK"),
        TextPart("So", '{"citations":[{"n":1}]}'),
        OpaquePart(search),
        ToolCall("a", "f", '{"x": 1}', '{"caller":{"type":"direct"}}'),
    )

    assert blocks == [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "redacted_thinking", "data": "EmwK"},
        {"type": "text", "text": "So", "citations": [{"n": 1}]},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": 1.5}},
        {
            "type": "tool_use",
            "id": "a",
            "name": "f",
            "input": {"x": 1},
            "caller": {"type": "direct"},
        },
    ]


def test_arguments_are_spliced_in_verbatim() -> None:
    """Spelling them anew would change the bytes the server has cached."""
    request = ModelRequest((HELLO, turn(ToolCall("a", "f", '{"x":  1.50,\n "y":"\\u00e9"}'))))

    assert rb'"input":{"x":  1.50,' in b"".join(WIRE.encoder().encode(request))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (UserMessage((FilePart("eA==", "text/csv", "t.csv"),)), "t.csv"),
        (UserMessage((TextPart("a", "{"),)), "extra"),
        (turn(OpaquePart("{")), "OpaquePart"),
    ],
)
def test_a_part_this_wire_cannot_say_is_refused_by_name(message: Message, words: str) -> None:
    """A part that is dropped in silence is worse than an error."""
    with pytest.raises(ConfigError, match=words):
        sent(HELLO, message)


def test_later_instructions_stand_where_they_were_given() -> None:
    """Hoisting them would change the beginning of every later request."""
    messages = sent(HELLO, turn(TextPart("a")), SystemMessage("Hurry."), SystemMessage(" "))

    assert messages[2]["content"] == [{"type": "text", "text": "<system>\nHurry.\n</system>"}]


def test_thinking_without_its_signature_does_not_go_back() -> None:
    """The API answers 400 to thinking without a signature, for as long as the history holds it."""
    cut = turn(ReasoningPart("Whole.", "sig"), TextPart("So"), ReasoningPart("And th"))
    only = turn(ReasoningPart("Hm, I th"))

    messages = sent(HELLO, cut, UserMessage("Go on."), only, UserMessage("Well?"))

    blocks = [block for one in messages for block in one["content"]]
    thinking = [one for one in blocks if one["type"] == "thinking"]
    assert [("Whole.", "sig")] == [(one["thinking"], one["signature"]) for one in thinking]
