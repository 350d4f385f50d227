"""Blocks of a streamed Anthropic turn: each line of what real servers send."""

import json
from typing import Any

import pytest

from graphloop.errors import BadReply
from graphloop.providers.base import (
    ProviderToolDelta,
    ServerEvent,
    TextDelta,
    ToolCallDelta,
)
from graphloop.values import FinishReason, OpaquePart, ReasoningPart, TextPart, ToolCall
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
from tests.transcripts import heard


def test_the_deltas_of_a_call_join_to_its_arguments() -> None:
    """Pieces split escapes and start empty; a listener must end with the text that will be run."""
    deltas, reply = recorded("tools")

    assert reply.message.parts == (
        TextPart("Looking up both cities."),
        ToolCall("toolu_01", "get_weather", '{"city": "Z\\u00fcrich", "days": 1.50}'),
        ToolCall("toolu_02", "get_time", "{}"),
        ToolCall("toolu_03", "get_weather", '{"city":"Oslo"}'),
    )
    assert reply.finish_reason == FinishReason.TOOL_CALLS
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
    assert deltas == [
        ProviderToolDelta(0, "web_search", "started"),
        ProviderToolDelta(0, "web_search", "running", '{"query": "tides"}'),
        ProviderToolDelta(0, "web_search", "done"),
        TextDelta("High tide is at noon."),
        ProviderToolDelta(1, "web_search", "started"),
        ProviderToolDelta(1, "web_search", "running", '{"query":"moon"}'),
    ]


def server_run(call: dict[str, Any], *results: dict[str, Any]) -> list[object]:
    """Return what is shown of a turn with this call of a server's tool and these results."""
    blocks = [call, *results]
    events = [
        event
        for index, block in enumerate(blocks)
        for event in (block_start(index, **block), block_stop(index))
    ]
    shown, _ = heard(WIRE, (START, *events, message_delta(stop_reason="end_turn"), STOP))
    return [*shown]


CALL = {"type": "server_tool_use", "id": "s1", "name": "bash_code_execution", "input": {"x": 1}}


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ({"content": {"type": "bash_code_execution_result", "return_code": 1}}, "done"),
        ({"content": [{"type": "web_search_result"}]}, "done"),
        ({"content": None}, "done"),
        ({"content": {"type": "web_search_tool_result_error", "error_code": "x"}}, "failed"),
        ({"content": [], "is_error": True}, "failed"),
        ({"content": [], "is_error": False}, "done"),
    ],
)
def test_a_run_on_the_server_is_told_from_its_call_to_its_result(
    result: dict[str, Any], state: str
) -> None:
    """A person who waits for a search sees that it goes on; code that failed has been run."""
    block = {"type": "bash_code_execution_tool_result", "tool_use_id": "s1", **result}

    name = "bash_code_execution"
    assert server_run(CALL, block) == [
        ProviderToolDelta(0, name, "started"),
        ProviderToolDelta(0, name, "running", '{"x":1}'),
        ProviderToolDelta(0, name, state),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a state in a table
    ]


def test_the_result_of_an_earlier_call_has_an_index_and_a_name() -> None:
    """After a pause, the server sends results of calls in the reply before."""
    block = {"type": "web_fetch_tool_result", "tool_use_id": "s0", "content": None}

    assert server_run({**CALL, "id": None}, block, block)[2:] == [
        ProviderToolDelta(1, "web_fetch", "done"),
        ProviderToolDelta(1, "web_fetch", "done"),
    ]


def test_signatures_and_redacted_thinking_are_kept_in_order() -> None:
    """The server checks them; an edit or a gap makes it refuse the conversation."""
    _, reply = recorded("redacted")

    thought, hidden, summary = reply.message.parts
    assert thought == ReasoningPart("Hm.", "EqQB")
    assert hidden == ReasoningPart("", data="EmwKAh")
    assert summary == OpaquePart('{"type":"compaction","content":"So far: nothing."}')


NAN, FAR = float("nan"), float("inf")
UNKNOWN_DELTA: dict[str, Any] = {"type": "glitter_delta", "glitter": 1}

# Each turn's events, and the parts of the reply.
TURNS: dict[str, tuple[tuple[ServerEvent, ...], tuple[object, ...]]] = {
    "unknown fields of known blocks are kept": (
        (
            block_start(0, type="tool_use", id="a", name="f", input={}, caller={"type": "direct"}),
            block_stop(0),
            block_start(1, type="thinking", thinking="", signature="", depth=2),
        ),
        (
            ToolCall("a", "f", "{}", '{"caller":{"type":"direct"}}'),
            ReasoningPart("", extra='{"depth":2}'),
        ),
    ),
    "deltas of an unknown kind change no known block": (
        (
            block_start(0, type="text", text="a"),
            block_start(1, type="thinking", thinking="b", signature="s"),
            block_start(2, type="redacted_thinking", data="c"),
            block_start(3, type="tool_use", id="d", name="f", input={}),
            *(block_delta(index, **UNKNOWN_DELTA) for index in range(4)),
            block_stop(3),
        ),
        (
            TextPart("a"),
            ReasoningPart("b", "s"),
            ReasoningPart("", data="c"),
            ToolCall("d", "f", "{}"),
        ),
    ),
    "deltas of an unknown block are merged into it": (
        (
            block_start(0, type="scroll", text="a", items=[1], size=1),
            block_delta(0, type="x", text="b", items=[2], size=2, seal=None, ink="red"),
        ),
        (OpaquePart('{"type":"scroll","text":"ab","items":[1,2],"size":2,"ink":"red"}'),),
    ),
    "a server's call that is cut in its input never holds broken JSON": (
        (
            block_start(0, type="server_tool_use", id="s", name="web_search", input={}),
            block_delta(0, type="input_json_delta", partial_json='{"query": "mo'),
            message_delta(stop_reason="max_tokens"),
        ),
        (OpaquePart('{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'),),
    ),
    "redacted thinking without data stays the block that it is": (
        (block_start(0, type="redacted_thinking", data=""),),
        (OpaquePart('{"type":"redacted_thinking","data":""}'),),
    ),
    "citations of the start and of deltas are all kept": (
        (
            block_start(0, type="text", text="a", citations=[{"n": 1}]),
            block_delta(0, type="citations_delta", citation={"n": 2}),
        ),
        (TextPart("a", '{"citations":[{"n":1},{"n":2}]}'),),
    ),
    "halves of characters are joined wherever they stand": (
        (
            block_start(0, type="compaction", content=""),
            block_delta(0, type="compaction_delta", content="a\ud83d"),
            block_delta(0, type="compaction_delta", content="\udc69b"),
            block_start(1, type="tool_use", id="i\ud83d", name="\udc69n", caller="\ud83d"),
            block_stop(1),
            block_start(2, type="thinking", thinking="", signature="s\ud83d"),
            block_start(3, type="redacted_thinking", data="\ud83dd"),
            block_start(4, type="text", text="t"),
            block_delta(4, type="citations_delta", citation="\ud83d\udc69"),
        ),
        (
            OpaquePart('{"type":"compaction","content":"a\U0001f469b"}'),
            ToolCall("i\ufffd", "\ufffdn", "{}", '{"caller":"\ufffd"}'),
            ReasoningPart("", "s\ufffd"),
            ReasoningPart("", data="\ufffdd"),
            TextPart("t", '{"citations":["\U0001f469"]}'),
        ),
    ),
    "numbers that JSON does not have are kept as null": (
        (
            block_start(0, type="text", text="a", score=NAN, big=FAR),
            block_start(1, type="scroll", score=[NAN, -FAR]),
        ),
        (
            TextPart("a", '{"score":null,"big":null}'),
            OpaquePart('{"type":"scroll","score":[null,null]}'),
        ),
    ),
    "blocks with one index for all are all kept": (
        (
            block_start(0, type="tool_use", id="a", name="f"),
            block_delta(0, type="input_json_delta", partial_json='{"x":1}'),
            block_start(0, type="tool_use", id="a", name="f"),
            block_delta(0, type="input_json_delta", partial_json='{"x":2}'),
        ),
        (ToolCall("a", "f", '{"x":1}'), ToolCall("a", "f", '{"x":2}')),
    ),
}


@pytest.mark.parametrize(("events", "parts"), TURNS.values(), ids=list(TURNS))
def test_a_turn_becomes_its_parts(
    events: tuple[ServerEvent, ...], parts: tuple[object, ...]
) -> None:
    """A block goes back to its server, which must find in it the fields that it sent."""
    assert reply_to(*events).message.parts == parts


def test_a_call_that_stops_twice_is_shown_once() -> None:
    """The stop of the block and the stop of the message both end it."""
    decoder, stop = WIRE.decoder(), block_stop(0)
    events = (START, block_start(0, type="tool_use", id="a", name="f"), stop, stop, STOP)

    deltas = [delta for one in events for delta in decoder.feed(one)]

    assert deltas == [ToolCallDelta(0, "a", "f", ""), ToolCallDelta(0, "", "", "{}")]


def test_a_name_that_is_no_string_is_no_call() -> None:
    """A value of the wrong type would fail later, far from its cause."""
    with pytest.raises(BadReply, match="name"):
        reply_to(block_start(0, type="tool_use", id="a", name=7))
