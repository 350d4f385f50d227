"""The Anthropic decoder: a stream is an answer only when it is whole."""

import json

import pytest

from graphloop.errors import (
    BadReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
    StreamTruncated,
)
from graphloop.providers.base import (
    ReasoningDelta,
    Restarted,
    ServerEvent,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from graphloop.spending import UsageDetails
from graphloop.values import (
    FinishReason,
    ReasoningPart,
    TextPart,
    ToolCall,
    Usage,
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
from tests.transcripts import event, heard


def started(**usage: object) -> ServerEvent:
    return event({"type": "message_start", "message": {"id": "m", "usage": usage}})


def test_text_is_shown_as_it_comes_and_whole_in_the_end() -> None:
    """The commonest turn of all."""
    deltas, reply = recorded("text")

    assert deltas == [TextDelta("It is"), TextDelta(" warm —é 22°C"), TextDelta(" today.")]
    assert reply.message.parts == (TextPart("It is warm —é 22°C today."),)
    assert reply.message.wire == "anthropic"
    assert (reply.finish_reason, reply.raw_finish_reason) == (FinishReason.STOP, "end_turn")
    assert reply.usage == Usage(25, 12)
    assert (reply.model, json.loads(reply.metadata)) == ("claude-test-1", {"id": "msg_1"})


def test_overlapping_blocks_are_assembled_by_index() -> None:
    """llama starts the text before the thinking has ended, and signs the thinking afterwards."""
    deltas, reply = recorded("thinking_overlap")

    assert reply.message.parts == (
        ReasoningPart("Two plus two is four.", "c2ln"),
        TextPart("Four."),
        ToolCall("x0", "add", '{"a":2}'),
    )
    assert deltas[:2] == [ReasoningDelta("Two plus two"), ReasoningDelta(" is four.")]
    assert reply.usage == Usage(1, 9, cache_read_tokens=19)


def test_a_paused_turn_names_its_container() -> None:
    """The next request may need them; they are no part of the message."""
    _, reply = recorded("server_tools")

    metadata = json.loads(reply.metadata)
    assert reply.finish_reason == FinishReason.PAUSE
    assert metadata["container"]["id"] == "cnt_1"
    assert metadata["context_management"] == {"applied_edits": []}


def test_a_refusal_keeps_its_text_and_its_details() -> None:
    """It ends a run; the category says what may be done about it."""
    _, reply = recorded("refusal")

    assert reply.finish_reason == FinishReason.REFUSAL
    assert reply.message.text == "I can"
    assert json.loads(reply.metadata)["stop_details"]["category"] == "bio"


def test_calls_of_a_model_that_gave_way_are_left_out() -> None:
    """They were cut off by a refusal; the API wants neither them back nor results for them."""
    deltas, reply = recorded("fallback")

    assert [call.id for call in reply.message.calls] == ["toolu_b"]
    assert reply.message.text == "First."
    assert reply.model == "claude-second"
    assert any("fallback" in part.data for part in reply.message.parts if part.type == "opaque")
    assert ToolCallDelta(1, "toolu_b", "get_time", "") in deltas


def test_a_second_message_start_starts_over() -> None:
    """A proxy that retries splices two streams; mixing them makes an answer nobody gave."""
    _, reply = recorded("started_over")

    assert reply.message.parts == (TextPart("Found"),)
    assert reply.usage == Usage(3, 9)
    assert json.loads(reply.metadata) == {"id": "msg_new"}


def test_an_answer_that_starts_over_announces_it() -> None:
    """Else half an answer would stand before the whole one; where nothing came, nothing is void."""
    text = block_start(0, type="text", text="Half")
    decoder = WIRE.decoder()

    shown = [list(decoder.feed(one)) for one in (START, START, text, START, text)]

    assert [Restarted() in items for items in shown] == [False, False, False, True, False]


@pytest.mark.parametrize("arguments", [(), ('{"x": 1',)])
def test_a_call_whose_block_has_no_end_is_no_answer(arguments: tuple[str, ...]) -> None:
    """Its arguments may go on: a call without any would run as if it took none."""
    block = block_start(0, type="tool_use", id="a", name="f", input={})
    pieces = [block_delta(0, type="input_json_delta", partial_json=one) for one in arguments]

    with pytest.raises(StreamTruncated, match="content_block_stop"):
        heard(WIRE, (START, block, *pieces, message_delta(stop_reason="tool_use"), STOP))


def test_no_two_calls_are_shown_under_one_number() -> None:
    """Who shows calls live would append one's arguments to another's."""
    call = (
        block_start(0, type="tool_use", id="a", name="f"),
        block_delta(0, type="input_json_delta", partial_json="{}"),
    )
    fallback = block_start(1, type="fallback")
    ending = (message_delta(stop_reason="tool_use"), STOP)

    deltas, reply = heard(WIRE, (START, *call, START, *call, fallback, *call, *ending))

    assert [one.index for one in deltas if isinstance(one, ToolCallDelta)] == [0, 0, 1, 1, 2, 2]
    assert len(reply.message.calls) == 1


def test_noise_before_and_after_and_between_is_ignored() -> None:
    """Comments, pings, unknown events and deltas, events out of place: seen, all of them."""
    deltas, reply = recorded("noise")

    assert deltas == [TextDelta("kept")]
    assert reply.message.parts == (TextPart("kept"),)
    assert reply.finish_reason == FinishReason.STOP_SEQUENCE
    assert json.loads(reply.metadata)["stop_sequence"] == "END"


def test_a_stream_without_its_end_is_no_answer() -> None:
    """Everything else may be there: without message_stop the rest may be missing."""
    decoder = WIRE.decoder()
    for one in (START, block_start(0, type="text", text="all"), message_delta(stop_reason="end")):
        list(decoder.feed(one))

    assert not decoder.complete
    with pytest.raises(StreamTruncated):
        decoder.reply()


@pytest.mark.parametrize(
    "ending",
    [
        (),
        (message_delta({"output_tokens": 3}, stop_reason=None),),
        (message_delta(stop_reason=""),),
    ],
)
def test_a_stream_that_says_no_reason_to_stop_is_no_answer(ending: tuple[ServerEvent, ...]) -> None:
    """Servers that fail end the stream politely; the call they were at must not be run."""
    call = block_start(0, type="tool_use", id="a", name="f", input={})

    with pytest.raises(StreamTruncated, match=r"finish reason.*found ''"):
        heard(WIRE, (START, call, block_stop(0), *ending, STOP))


def test_a_server_that_does_not_stream_itself_is_read() -> None:
    """It says all at once, in the start."""
    start = event({"type": "message_start", "message": {"stop_reason": "end_turn"}})

    assert heard(WIRE, (start, STOP))[1].finish_reason == FinishReason.STOP


def test_content_starts_with_the_first_shown_delta() -> None:
    """Until then a failed request can be sent again and nobody notices."""
    decoder = WIRE.decoder()

    started: list[bool] = []
    for one in (
        START,
        block_start(0, type="text", text=""),
        block_delta(0, type="text_delta", text="x"),
        START,
    ):
        list(decoder.feed(one))
        started.append(decoder.content_started)

    assert started == [False, False, True, True]


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        b"[]",
        b"5",
        b'{"type":',
        b"[" * 100_000,
        b'{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}',
        b'{"type":"content_block_delta","index":[],"delta":{"type":"text_delta"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":1}}',
        b'{"type":"content_block_delta","index":0,"delta":null}',
        b'{"type":"content_block_start","index":"0","content_block":{"type":"text"}}',
        b'{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":1}}',
        b'{"type":"message_delta","delta":{"stop_reason":1}}',
        b'{"type":"message_delta","delta":{},"stop_reason":1}',
        b'{"type":"message_start"}',
        b'{"type":"message_start","message":["abc"]}',
    ],
)
def test_what_is_not_of_this_wire_is_reported_not_skipped(data: bytes) -> None:
    """A skipped event is a hole in an answer that looks whole."""
    decoder = WIRE.decoder()
    list(decoder.feed(START))
    list(decoder.feed(block_start(0, type="text", text="")))

    with pytest.raises(BadReply, match="wire"):
        list(decoder.feed(ServerEvent("", data)))


def test_a_stop_before_the_start_is_noise() -> None:
    """A proxy may hand on the end of another stream."""
    decoder = WIRE.decoder()

    assert list(decoder.feed(event({"type": "content_block_stop", "index": 0}))) == []
    assert list(decoder.feed(ServerEvent("ping", b""))) == []


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        ({"error": {"type": "overloaded_error", "message": "busy"}}, Overloaded),
        ({"error": "busy"}, BadReply),
        ({"code": 500, "message": "slot unavailable"}, Overloaded),
        ({"code": "429"}, RateLimited),
        ({"message": "prompt refused", "code": 400}, RequestRejected),
        ({"type": "rate_limit_error", "message": "slow down"}, RateLimited),
        ({"type": "", "detail": "gone"}, BadReply),
    ],
)
def test_an_error_in_any_form_ends_the_stream(report: object, kind: type[ProviderError]) -> None:
    """Skipped, it would leave a wait for an end that never comes, or half an answer."""
    with pytest.raises(kind) as caught:
        heard(WIRE, (START, block_start(0, type="text", text="half"), event(report), STOP))

    assert type(caught.value) is kind


def test_half_characters_in_metadata_are_replaced() -> None:
    """A half anywhere in a reply makes the journal fail that must hold it."""
    start = event({"type": "message_start", "message": {"id": "i\ud83d", "model": "m\udc69"}})

    reply = heard(WIRE, (start, message_delta(stop_reason="\ud83d\udc69\ud83d"), STOP))[1]

    assert (reply.model, reply.metadata) == ("m\ufffd", '{"id":"i\ufffd"}')
    assert reply.raw_finish_reason == "\U0001f469\ufffd"


THOUGHT = {"thinking_tokens": 6}
SEARCHED = {"web_search_requests": 2, "web_fetch_requests": 1, "new_requests": 4, "odd": "x"}


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        (
            # Null overwrites nothing: servers send it for what they do not know at that moment.
            (
                message_delta({"input_tokens": 4, "output_tokens": 9}),
                message_delta(
                    {"input_tokens": None, "output_tokens_details": {"thinking_tokens": 6}}
                ),
            ),
            Usage(4, 9, reasoning_tokens=6),
        ),
        (
            # Tools that the server ran are paid for each, of any kind.
            (
                started(server_tool_use={"web_search_requests": 1}),
                message_delta({"output_tokens": 3, "server_tool_use": SEARCHED}, stop_reason="x"),
                message_delta({"server_tool_use": None}),
            ),
            Usage(0, 3, server_tool_calls=7, details=UsageDetails(web_searches=2)),
        ),
        ((message_delta({"input_tokens": "many", "iterations": []}),), Usage()),
        ((message_delta({"output_tokens_details": {"thinking_tokens": True}}),), Usage()),
    ],
)
def test_counts_are_cumulative_and_of_any_form(
    events: tuple[ServerEvent, ...], usage: Usage
) -> None:
    """A bill must not fail for a word in it, nor an answer for its bill."""
    assert reply_to(*events).usage == usage


@pytest.mark.parametrize(
    ("recording", "usage"),
    [
        ("tools", Usage(430, 71, cache_read_tokens=19, cache_write_tokens=7)),
        # Of several iterations the sum counts: the numbers beside them are of the last model only.
        ("fallback", Usage(58, 13, cache_read_tokens=2, cache_write_tokens=1)),
    ],
)
def test_usage_of_a_recorded_stream_is_complete(recording: str, usage: Usage) -> None:
    """Input tokens may be corrected at the end; cached tokens are apart."""
    assert recorded(recording)[1].usage == usage


def test_usage_is_reported_at_the_start_and_with_each_count() -> None:
    """A turn that is aborted is paid for all the same."""
    decoder = WIRE.decoder()

    for usage in ({}, {"input_tokens": 0}, {"input_tokens": None}):  # Of nothing nothing is told.
        assert list(decoder.feed(started(**usage))) == []
    first = list(decoder.feed(started(input_tokens=25, output_tokens=1)))
    assert not decoder.content_started
    decoder.feed(block_start(0, type="text", text="a"))
    later = [
        list(decoder.feed(message_delta({"output_tokens": 5}))),
        list(decoder.feed(message_delta({"output_tokens": 9}, stop_reason="end_turn"))),
    ]

    assert first == [UsageSoFar(Usage(25, 1))]
    assert later == [[UsageSoFar(Usage(25, 5))], [UsageSoFar(Usage(25, 9))]]
    decoder.feed(STOP)
    assert decoder.reply().usage == Usage(25, 9)


@pytest.mark.parametrize(
    "odd",
    [
        block_delta(1, type="text_delta", text="word"),
        block_delta(0, type="citations_delta", citation={"title": "t"}),
        block_delta(0, type="text_delta", text="\ud83d"),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}}),
        block_delta(0, text="word"),
        block_delta(0, type="text_delta", text=None),
        ServerEvent("", b'{"type":"content_block_delta","x":' + b"[" * 100_000),
        ServerEvent("", b"null"),
    ],
)
def test_an_event_amid_text_means_what_it_means_elsewhere(odd: ServerEvent) -> None:
    """A shortcut for text that mixes up blocks or loses half a character is a wrong answer."""
    text = block_delta(0, type="text_delta", text="a")
    padded = event({**json.loads(text.data), "padding": "abc"})

    def told(before: str, *events: ServerEvent) -> object:
        start = (block_start(0, type="text", text=before), block_start(1, type="text", text=""))
        try:
            return reply_to(*start, *events).message.parts
        except ProviderError as error:
            return type(error)

    assert told("", text, padded, odd) == told("aa", odd)
