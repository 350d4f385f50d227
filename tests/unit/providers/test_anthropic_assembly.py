"""Blocks of a streamed Anthropic turn: each line of what real servers send."""

import json

import pytest

from graphloop.errors import BadReply
from graphloop.providers.base import (
    TextDelta,
    ToolCallDelta,
)
from graphloop.values import (
    FinishReason,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
)
from tests.anthropic_talk import (
    START,
    STOP,
    WIRE,
    block_delta,
    block_start,
    block_stop,
    message_delta,
    recorded,
    reply_to,
)
from tests.transcripts import event


def test_arguments_are_the_pieces_verbatim_and_default_to_the_start_or_an_empty_object() -> None:
    """Pieces split escapes and start empty; parsing them early, or again, would change them."""
    deltas, reply = recorded("tools")

    assert reply.message.parts == (
        TextPart("Looking up both cities."),
        ToolCall("toolu_01", "get_weather", '{"city": "Z\\u00fcrich", "days": 1.50}'),
        ToolCall("toolu_02", "get_time", "{}"),
        ToolCall("toolu_03", "get_weather", '{"city":"Oslo"}'),
    )
    assert deltas[1] == ToolCallDelta(0, "toolu_01", "get_weather", "")
    assert reply.finish_reason == FinishReason.TOOL_CALLS


def test_the_deltas_of_a_call_join_to_its_arguments() -> None:
    """A listener that shows a call live must end with what will be run."""
    deltas, reply = recorded("tools")

    calls = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    for index, call in enumerate(reply.message.calls):
        mine = [delta for delta in calls if delta.index == index]
        assert (mine[0].id, mine[0].name) == (call.id, call.name)
        assert {(delta.id, delta.name) for delta in mine[1:]} == {("", "")}
        assert "".join(delta.arguments_delta for delta in mine) == call.arguments


def test_server_blocks_are_kept_as_json_and_are_no_calls() -> None:
    """They belong to the server: not to be run here, not to be lost."""
    deltas, reply = recorded("server_tools")

    search, results, answer, second = reply.message.parts
    assert isinstance(search, OpaquePart)
    assert json.loads(search.data) == {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "tides"},
    }
    assert isinstance(results, OpaquePart)
    assert json.loads(results.data)["content"][0]["encrypted_content"] == "AbC="
    assert isinstance(answer, TextPart)
    assert json.loads(answer.extra)["citations"][0]["cited_text"] == "high at noon"
    assert isinstance(second, OpaquePart)
    assert reply.message.calls == ()
    assert deltas == [TextDelta("High tide is at noon.")]


def test_a_server_call_cut_in_its_input_never_holds_broken_json() -> None:
    """It goes back as it is, and broken JSON in a history fails every later request."""
    reply = reply_to(
        block_start(0, type="server_tool_use", id="s", name="web_search", input={}),
        block_delta(0, type="input_json_delta", partial_json='{"query": "mo'),
        message_delta(stop_reason="max_tokens"),
    )

    (part,) = reply.message.parts
    assert isinstance(part, OpaquePart)
    assert json.loads(part.data)["input"] == {}


def test_signatures_and_redacted_thinking_are_kept_in_order() -> None:
    """The server checks them; an edit or a gap makes it refuse the conversation."""
    _, reply = recorded("redacted")

    thought, hidden, summary = reply.message.parts
    assert thought == ReasoningPart("Hm.", "EqQB")
    assert hidden == ReasoningPart("", data="EmwKAh")
    assert isinstance(summary, OpaquePart)
    assert json.loads(summary.data) == {"type": "compaction", "content": "So far: nothing."}


def test_unknown_fields_of_known_blocks_are_kept() -> None:
    """Tomorrow's fields must survive the round trip through today's library."""
    reply = reply_to(
        block_start(0, type="tool_use", id="a", name="f", input={}, caller={"type": "direct"}),
        block_stop(0),
        block_start(1, type="thinking", thinking="", signature="", depth=2),
    )

    call, thought = reply.message.parts
    assert isinstance(call, ToolCall)
    assert isinstance(thought, ReasoningPart)
    assert (call.extra, thought.extra) == ('{"caller":{"type":"direct"}}', '{"depth":2}')


def test_deltas_of_an_unknown_kind_change_no_known_block() -> None:
    """Tomorrow's deltas must not end today's answer."""
    reply = reply_to(
        block_start(0, type="text", text="a"),
        block_start(1, type="thinking", thinking="b", signature="s"),
        block_start(2, type="redacted_thinking", data="c"),
        block_start(3, type="tool_use", id="d", name="f", input={}),
        *(block_delta(index, type="glitter_delta", glitter=1) for index in range(4)),
        block_stop(3),
    )

    assert reply.message.parts == (
        TextPart("a"),
        ReasoningPart("b", "s"),
        ReasoningPart("", data="c"),
        ToolCall("d", "f", "{}"),
    )


def test_deltas_of_an_unknown_block_are_merged_into_it() -> None:
    """It goes back to its server, which must find in it what it sent."""
    reply = reply_to(
        block_start(0, type="scroll", text="a", items=[1], size=1),
        block_delta(0, type="scroll_delta", text="b", items=[2], size=2, seal=None, ink="red"),
    )

    (part,) = reply.message.parts
    assert isinstance(part, OpaquePart)
    assert json.loads(part.data) == {
        "type": "scroll",
        "text": "ab",
        "items": [1, 2],
        "size": 2,
        "ink": "red",
    }


def test_redacted_thinking_without_data_stays_the_block_it_is() -> None:
    """As reasoning without data it would go back as another kind of block."""
    assert reply_to(block_start(0, type="redacted_thinking", data="")).message.parts == (
        OpaquePart('{"type":"redacted_thinking","data":""}'),
    )


def test_citations_of_the_start_and_of_deltas_are_all_kept() -> None:
    """They are part of what was said."""
    reply = reply_to(
        block_start(0, type="text", text="a", citations=[{"n": 1}]),
        block_delta(0, type="citations_delta", citation={"n": 2}),
    )

    assert reply.message.parts == (TextPart("a", '{"citations":[{"n":1},{"n":2}]}'),)


def test_halves_of_characters_are_joined_wherever_they_stand() -> None:
    """Half a character in one part makes the journal of the whole run fail."""
    reply = reply_to(
        block_start(0, type="compaction", content=""),
        block_delta(0, type="compaction_delta", content="a\ud83d"),
        block_delta(0, type="compaction_delta", content="\udc69b"),
        block_start(1, type="tool_use", id="i\ud83d", name="\udc69n", caller="\ud83d"),
        block_stop(1),
        block_start(2, type="thinking", thinking="", signature="s\ud83d"),
        block_start(3, type="redacted_thinking", data="\ud83dd"),
        block_start(4, type="text", text="t"),
        block_delta(4, type="citations_delta", citation="\ud83d\udc69"),
    )

    assert reply.message.parts == (
        OpaquePart('{"type":"compaction","content":"a\U0001f469b"}'),
        ToolCall("i\ufffd", "\ufffdn", "{}", '{"caller":"\ufffd"}'),
        ReasoningPart("", "s\ufffd"),
        ReasoningPart("", data="\ufffdd"),
        TextPart("t", '{"citations":["\U0001f469"]}'),
    )


def test_numbers_that_are_none_are_kept_as_null() -> None:
    """Servers send NaN and take no NaN."""
    nan, far = float("nan"), float("inf")
    reply = reply_to(
        block_start(0, type="text", text="a", score=nan, big=far),
        block_start(1, type="scroll", score=[nan, -far]),
    )

    assert reply.message.parts == (
        TextPart("a", '{"score":null,"big":null}'),
        OpaquePart('{"type":"scroll","score":[null,null]}'),
    )


def test_a_call_that_stops_twice_is_shown_once() -> None:
    """The stop of the block and the stop of the message both end it."""
    decoder = WIRE.decoder()
    stop = event({"type": "content_block_stop", "index": 0})
    events = (START, block_start(0, type="tool_use", id="a", name="f"), stop, stop, STOP)

    deltas = [delta for one in events for delta in decoder.feed(one)]

    assert deltas == [ToolCallDelta(0, "a", "f", ""), ToolCallDelta(0, "", "", "{}")]


def test_a_name_that_is_no_string_is_no_call() -> None:
    """A value of the wrong type would fail later, where nobody knows where it came from."""
    with pytest.raises(BadReply, match="name"):
        reply_to(block_start(0, type="tool_use", id="a", name=7))
