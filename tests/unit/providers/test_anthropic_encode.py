"""The Anthropic encoder: one conversation, each message encoded once as content blocks."""

import pytest

from graphloop.errors import ConfigError
from graphloop.media import Inline, MediaPart, Url
from graphloop.values import (
    Message,
    ModelRequest,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    evolve,
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
    assert ids == [["0", "call00001", "call00002"], ["call00003", "call00004", "call00005"]]
    answered = [block["tool_use_id"] for at in (2, 4) for block in messages[at]["content"]]
    assert answered == ["0", "call00001", "call00002", "call00003"]


def test_a_made_up_id_never_meets_a_real_one() -> None:
    """A server may happen to use the very form that is made up here."""
    calls = (ToolCall("call00001", "f", "{}"), ToolCall("", "f", "{}"))

    assert [block["id"] for block in content(*calls)] == ["call00001", "call00002"]


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
        MediaPart("image/png", Inline(b"hi")),
        MediaPart("image/*", Url("https://example.com/a.png")),
        MediaPart("application/pdf", Inline(b"x"), "a.pdf"),
        MediaPart("application/pdf", Inline(b"x")),
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


def test_text_files_are_documents_with_their_name() -> None:
    """The name is all that tells the model that a text is a table."""
    table = MediaPart("text/csv", Inline("ä,b".encode()), "t.csv", '{"citations":{"enabled":true}}')

    assert sent(UserMessage((table,)))[0]["content"] == [
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "ä,b"},
            "title": "t.csv",
            "citations": {"enabled": True},
        }
    ]
    with pytest.raises(ConfigError, match=r"'t.csv' .*: expected text in UTF-8, found .* Fix: "):
        sent(UserMessage((evolve(table, source=Inline(b"\xe4,b")),)))


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
        (UserMessage((MediaPart("video/mp4", Inline(b"x"), "t.mp4"),)), "t.mp4"),
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
