"""Streams of the OpenAI chat wire, as real servers send them."""

from __future__ import annotations

import json

import pytest

from graphloop.errors import (
    BadReply,
    Overloaded,
    ProviderError,
    StreamTruncated,
)
from graphloop.providers.base import (
    ReasoningDelta,
    ServerEvent,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from graphloop.providers.openai_chat.messages import CHAT_REASONING
from graphloop.values import (
    FinishReason,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    Usage,
)
from tests.openai_talk import DONE, WIRE, calls, chunk, fed, fragment, heard_from, reply
from tests.transcripts import event


@pytest.mark.parametrize("first", [None, ""])
def test_content_deltas_are_shown_and_joined(first: str | None) -> None:
    """llama.cpp begins with null, OpenAI with an empty string."""
    deltas, found = heard_from(
        chunk({"role": "assistant", "content": first}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        DONE,
    )

    assert [TextDelta("Hel"), TextDelta("lo")] == deltas
    assert found.message.parts == (TextPart("Hello"),)
    assert found.message.wire == "openai"
    assert (found.finish_reason, found.raw_finish_reason) == (FinishReason.STOP, "stop")


@pytest.mark.parametrize(
    ("words", "means"),
    [
        (("length", "stop"), FinishReason.LENGTH),
        (("length", "tool_calls"), FinishReason.LENGTH),
        (("unheard_of", "stop"), FinishReason.OTHER),
        (("content_filter", "length"), FinishReason.CONTENT_FILTER),
        (("length", "content_filter", "stop"), FinishReason.CONTENT_FILTER),
        (("stop", "tool_calls"), FinishReason.TOOL_CALLS),
    ],
)
def test_the_worst_of_several_finish_reasons_counts(
    words: tuple[str, ...], means: FinishReason
) -> None:
    """A later word takes nothing back: a call that was cut must not run."""
    call = fragment(0, "a", "f", "{}")

    _, found = heard_from(
        chunk({"tool_calls": [call]}, words[0]), *[chunk({}, word) for word in words[1:]], DONE
    )

    assert found.finish_reason is means


def test_a_server_that_broke_off_has_not_answered_whatever_it_says_later() -> None:
    """It said so itself."""
    with pytest.raises(StreamTruncated, match="'error'"):
        reply(chunk({"content": "Half"}, "error"), chunk({}, "stop"), DONE)


def test_content_has_started_with_the_first_content_and_not_before() -> None:
    """Until then a retry repeats nothing anyone has seen."""
    assert not fed(chunk({"role": "assistant", "content": ""})).content_started
    assert fed(chunk({"content": "a"})).content_started
    assert fed(chunk({"reasoning": "a"})).content_started
    assert fed(calls(fragment(0, "a", "f"))).content_started


def test_only_done_completes_so_that_the_usage_is_still_read() -> None:
    """The usage comes after the finish reason, in a chunk without choices."""
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    decoder = fed(chunk({"content": "a"}), chunk({}, "stop"))

    assert not decoder.complete
    decoder.feed(event({"choices": [], "usage": usage}))
    decoder.feed(DONE)

    assert decoder.complete
    assert decoder.reply().usage == Usage(10, 4)


def test_stop_with_calls_means_tool_calls() -> None:
    """Several servers say "stop" when they ask for tools."""
    found = reply(calls(fragment(0, "a", "f", "{}")), chunk({}, "stop"), DONE)

    assert (found.finish_reason, found.raw_finish_reason) == (FinishReason.TOOL_CALLS, "stop")


@pytest.mark.parametrize("finish", [None, "error", "abort", "insufficient_system_resource"])
@pytest.mark.parametrize("delta", [{"content": "a"}, {"tool_calls": [fragment(0, "a", "f", "{}")]}])
def test_a_turn_that_the_server_broke_off_is_no_answer(
    finish: str | None, delta: dict[str, object]
) -> None:
    """Half an answer must not look whole, and a call may be cut even where it looks whole."""
    decoder = fed(chunk(delta), chunk({}, finish), DONE)

    with pytest.raises(StreamTruncated, match="finish reason"):
        decoder.reply()


def test_a_refusal_is_text_and_ends_the_turn_as_refusal() -> None:
    """OpenAI streams it beside the content and says "stop"."""
    deltas, found = heard_from(
        chunk({"content": None, "refusal": ""}),
        chunk({"refusal": "I can't"}),
        chunk({"refusal": " do that."}),
        chunk({}, "stop"),
        DONE,
    )

    assert [TextDelta("I can't"), TextDelta(" do that.")] == deltas
    assert found.message.text == "I can't do that."
    assert (found.finish_reason, found.raw_finish_reason) == (FinishReason.REFUSAL, "stop")


@pytest.mark.parametrize(("field", "extra"), CHAT_REASONING.items())
def test_reasoning_is_read_under_either_name(field: str, extra: str) -> None:
    """DeepSeek says reasoning_content, Groq says reasoning; each wants its own name back."""
    deltas, found = heard_from(
        chunk({"content": "", field: ""}),
        chunk({field: "Hm "}),
        chunk({field: "so"}),
        chunk({"content": "a"}),
        DONE,
    )

    assert [ReasoningDelta("Hm "), ReasoningDelta("so"), TextDelta("a")] == deltas
    assert found.message.parts == (ReasoningPart("Hm so", extra=extra), TextPart("a"))


def test_reasoning_under_both_names_is_read_once() -> None:
    """Servers in transition send the same words twice."""
    both = chunk({"reasoning_content": "Hm", "reasoning": "Hm"})

    assert reply(both, both, DONE).message.reasoning == "HmHm"


def test_a_turn_of_reasoning_only_is_an_answer() -> None:
    """It happens when the limit is reached while thinking."""
    found = reply(chunk({"content": "", "reasoning": "Hm"}), chunk({}, "length"), DONE)

    assert found.message.parts == (ReasoningPart("Hm", extra=CHAT_REASONING["reasoning"]),)


def test_reasoning_details_grow_by_index_and_are_kept_verbatim() -> None:
    """Signed and encrypted blocks are checked by the server when they come back."""
    deltas, found = heard_from(
        chunk({"reasoning": "Hm", "reasoning_details": [thought("Hm", id="r")]}),
        chunk({"reasoning": " so", "reasoning_details": [thought(" so", id=None)]}),
        chunk({"reasoning_details": [{"index": 0, "signature": "s"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 0}]}),
        chunk({"reasoning_details": [{"type": "other"}, {"type": "other"}]}, "stop"),
    )

    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "Hm so"
    assert json.loads(found.message.extra)["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Hm so", "index": 0, "id": "r", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "index": 0},
        {"type": "other"},
        {"type": "other"},
    ]


def thought(text: str, **more: object) -> dict[str, object]:
    return {"type": "reasoning.text", "text": text, "index": 0, **more}


def test_reasoning_that_comes_in_details_alone_is_shown() -> None:
    """A server that says it nowhere else has still said it."""
    deltas, found = heard_from(chunk({"reasoning_details": [thought("Hm")]}), DONE)

    assert [ReasoningDelta("Hm")] == deltas
    assert found.message.reasoning == "Hm"


def test_content_of_typed_parts_is_read() -> None:
    """Mistral sends text and thinking as parts; what nobody knows is kept."""
    deltas, found = heard_from(
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}),
        chunk({"content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": ""}]}),
        chunk({"content": [{"type": "thinking", "thinking": 1}]}),
        chunk({"content": [{"type": "text", "text": "Yes"}, {"type": "reference", "ids": [1]}]}),
        DONE,
    )

    assert [ReasoningDelta("Hm"), ReasoningDelta("so"), TextDelta("Yes")] == deltas
    assert found.message.parts == (
        ReasoningPart("Hmso", extra='{"type":"thinking"}'),
        TextPart("Yes"),
        OpaquePart('{"type":"reference","ids":[1]}'),
    )


def test_only_the_first_choice_is_read() -> None:
    """With n > 1 the choices come mixed, and the other ones end first."""
    found = reply(
        chunk({"content": "zero"}, index=0),
        chunk({"content": "one"}, "length", index=1),
        chunk({}, "stop", index=0),
        DONE,
    )

    assert (found.message.text, found.finish_reason) == ("zero", FinishReason.STOP)


def test_the_old_function_call_is_a_call_without_id() -> None:
    """Old servers know one call a turn, in a field of its own."""
    found = reply(
        chunk({"function_call": {"name": "f", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}),
        chunk({}, "function_call"),
    )

    assert found.message.calls == (ToolCall("", "f", "{}"),)
    assert found.finish_reason is FinishReason.TOOL_CALLS


def test_unknown_fields_of_calls_and_messages_are_kept() -> None:
    """A thought signature must come back, or the next request is refused."""
    signed = {"google": {"thought_signature": "c2ln"}}
    one = fragment(0, "a", "f", "{}", extra_content=signed, type="function")
    one["function"] = {"name": "f", "arguments": "{}", "strict": True}

    found = reply(
        chunk({"content": "", "images": [1], "audio": {"id": "a"}, "mood": "calm"}),
        chunk({"images": [2], "audio": {"data": "x"}, "mood": "wild", "nothing": None}),
        calls(one),
        DONE,
    ).message

    assert json.loads(found.extra) == {
        "images": [1, 2],
        "audio": {"id": "a", "data": "x"},
        "mood": "wild",
    }
    assert json.loads(found.calls[0].extra) == {
        "extra_content": signed,
        "function": {"strict": True},
    }


def test_parts_keep_the_order_in_which_they_began() -> None:
    """Text may go on after a call was asked for."""
    found = reply(
        chunk({"reasoning": "Hm"}),
        chunk({"content": "A"}),
        calls(fragment(0, "a", "f", "{}")),
        chunk({"content": "B"}),
        DONE,
    )

    assert found.message.parts == (
        ReasoningPart("Hm", extra=CHAT_REASONING["reasoning"]),
        TextPart("A"),
        ToolCall("a", "f", "{}"),
        TextPart("B"),
    )


def test_a_character_split_over_two_deltas_is_whole_again() -> None:
    """Halves cannot be stored or sent, and no listener should see one."""
    half, other = r'"\ud83d"', r'"\udc69"'
    pieces = [
        ServerEvent("", f'{{"choices":[{{"delta":{{"{field}":{piece}}}}}]}}'.encode())
        for field in ("content", "reasoning")
        for piece in (half, other, half)
    ]

    deltas, found = heard_from(*pieces, DONE)

    assert [TextDelta, TextDelta, ReasoningDelta, ReasoningDelta] == [type(one) for one in deltas]
    assert found.message.text == found.message.reasoning == "\U0001f469\ufffd"


def test_the_last_usage_wins() -> None:
    """xAI counts up in every chunk; null says nothing."""
    first, last = ({"prompt_tokens": count} for count in (1, 5))

    found = reply(
        event({"choices": [{"delta": {"content": "a"}}], "usage": first}),
        event({"choices": [{"finish_reason": "stop"}], "usage": last}),
        event({"choices": [], "usage": None}),
        DONE,
    )

    assert found.usage == Usage(5)


def test_what_the_server_says_of_itself_is_kept() -> None:
    """The model that answered may be another than the one asked for."""
    about = {"id": "c1", "model": "gpt-4o-2026", "system_fingerprint": "fp", "created": 1}
    last = {"service_tier": "default", "timings": {"predicted_ms": 1.5}}

    found = reply(
        event({**about, "choices": [{"delta": {"content": "a"}}]}),
        event({"model": "unread", "choices": [{"delta": {"content": "b"}}]}),
        event({"choices": [{"finish_reason": "stop"}]}),
        event({**last, "choices": [], "usage": {"prompt_tokens": 1}}),
        DONE,
    )

    assert found.model == "gpt-4o-2026"
    assert json.loads(found.metadata) == {"id": "c1", "system_fingerprint": "fp", **last}


def test_what_comes_with_and_after_the_finish_reason_is_kept() -> None:
    """llama.cpp sends its timings, and some proxies the tier, last and without a usage."""
    finish = {"choices": [{"finish_reason": "stop"}], "service_tier": "flex"}

    found = reply(
        event({"id": "c1", "model": "m1", "choices": [{"delta": {"content": "a"}}]}),
        event(finish),
        event({"choices": [], "timings": {"predicted_ms": 1.5}}),
        DONE,
    )

    timings = {"predicted_ms": 1.5}
    assert json.loads(found.metadata) == {"id": "c1", "service_tier": "flex", "timings": timings}


def test_a_message_instead_of_a_delta_is_read() -> None:
    """Some servers answer a streaming request in one piece, with the buffered form's choice."""
    message = {
        "role": "assistant",
        "content": "Yes",
        "tool_calls": [fragment(None, "a", "f", "{}")],
    }

    deltas, found = heard_from(
        event({"choices": [{"message": message, "finish_reason": "tool_calls"}]}), DONE
    )

    assert [TextDelta("Yes"), ToolCallDelta(0, "a", "f", "{}")] == deltas
    assert found.message.parts == (TextPart("Yes"), ToolCall("a", "f", "{}"))
    assert found.finish_reason is FinishReason.TOOL_CALLS


def test_a_message_behind_deltas_repeats_them_and_is_not_read() -> None:
    """Perplexity says all of the answer so far in every chunk, others once more at its end."""
    whole = {"role": "assistant", "content": "Yes"}

    found = reply(
        chunk({"content": "Y"}, message={"content": "Y"}),
        chunk({"content": "es"}, message=whole),
        event({"choices": [{"message": whole, "finish_reason": "stop"}]}),
    )

    assert found.message.text == "Yes"


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"code": 500, "message": "CUDA out of memory"}, Overloaded),
        ({"object": "error", "message": "no", "code": 503}, Overloaded),
        ({"detail": "engine died"}, BadReply),
        ({"detail": [{"msg": "engine died"}], "choices": []}, BadReply),
    ],
)
def test_a_bare_report_in_the_stream_is_an_error(
    report: dict[str, object], expected: type[ProviderError]
) -> None:
    """Not every server wraps it in `error`; passed over, it would look like a cut line."""
    with pytest.raises(ProviderError, match=r"CUDA|no|engine died") as raised:
        fed(chunk({"content": "a"}), event(report))

    assert type(raised.value) is expected


def test_a_field_named_like_a_report_beside_choices_is_none() -> None:
    """Gateways add words of their own to every chunk."""
    added = {"code": 200, "message": "success", "detail": "x"}

    assert (
        reply(event({**added, "choices": [{"delta": {"content": "a"}}]}), DONE).message.text == "a"
    )


def test_numbers_json_does_not_have_are_kept_as_null() -> None:
    """Python's servers write NaN; sent back, it would break every later request."""
    data = rb'{"choices":[{"delta":{"content":"x","score":NaN,"big":1e400,"half":"\ud83d"}}]}'

    found = reply(ServerEvent("", data), ServerEvent("", data.replace(rb"\ud83d", b"")), DONE)

    assert json.loads(found.message.extra) == {"score": None, "big": None, "half": ""}
    half = reply(ServerEvent("", data), DONE).message.extra
    assert json.loads(half) == {"score": None, "big": None, "half": "\ufffd"}


def test_events_that_say_nothing_are_passed_over() -> None:
    """Empty data, keep-alive objects and chunks without choices are real."""
    found = reply(
        ServerEvent("", b""),
        event({"type": "ping"}, "ping"),
        event({"choices": None}),
        event({"choices": [{"delta": None}]}),
        event({"choices": [{"delta": {"content": "a"}}], "error": None}),
        DONE,
    )

    assert found.message.text == "a"


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"<html>",
        b"[1]",
        b"1",
        b"\xff",
        b'"\\ud83d',
        b'{"a":"\\ud83d","b":' + b"[" * 100_000,
        b'{"choices":{}}',
        b'{"choices":[1]}',
        b'{"choices":[{"delta":"x"}]}',
        b'{"choices":[{"delta":{"content":1}}]}',
        b'{"choices":[{"delta":{"content":["x"]}}]}',
        b'{"choices":[{"delta":{"tool_calls":{}}}]}',
        b'{"choices":[{"delta":{"tool_calls":[1]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":"f"}]}}]}',
    ],
)
def test_what_is_not_this_wire_is_a_bad_reply(data: bytes) -> None:
    """An event is never skipped in silence: what it said would be missing."""
    with pytest.raises(BadReply, match="expected"):
        fed(ServerEvent("", data))


def test_a_server_that_counts_in_every_chunk_tells_behind_the_text() -> None:
    """Each count stands for all before it; one that is empty says nothing."""
    decoder = WIRE.decoder()
    counts: list[dict[str, int] | None] = [{"prompt_tokens": 1}, {"prompt_tokens": 2}, {}, None]

    found = [
        list(decoder.feed(event({"choices": [{"delta": {"content": "a"}}], "usage": usage})))
        for usage in counts
    ]

    assert found == [
        [TextDelta("a"), UsageSoFar(Usage(1))],
        [TextDelta("a"), UsageSoFar(Usage(2))],
        [TextDelta("a")],
        [TextDelta("a")],
    ]


def test_a_usage_of_nothing_is_not_worth_telling() -> None:
    """Some servers send zeros with the role."""
    first = event({"choices": [{"delta": {"role": "assistant"}}], "usage": {"prompt_tokens": 0}})

    assert list(WIRE.decoder().feed(first)) == []


PLAIN: dict[str, object] = {"delta": {"content": "word"}, "index": 0, "finish_reason": None}


@pytest.mark.parametrize(
    ("choice", "envelope"),
    [
        ({**PLAIN, "finish_reason": "length"}, {}),
        ({**PLAIN, "index": 1}, {}),
        ({"delta": {"content": None}}, {}),
        ({"delta": {"content": "word", "tool_calls": [fragment(0, "a", "f", "{}")]}}, {}),
        ({"delta": {"content": "word", "reasoning": "hm"}}, {}),
        ({"delta": {"content": "word", "annotations": [1]}}, {}),
        ({"delta": {"content": [{"type": "text", "text": "word"}]}}, {}),
        ({"delta": {"content": "\ud83d"}}, {}),
        (PLAIN, {"usage": {"prompt_tokens": 1}}),
    ],
)
def test_a_chunk_amid_text_means_what_it_means_elsewhere(
    choice: dict[str, object], envelope: dict[str, object]
) -> None:
    """A shortcut for text that overlooks a finish, a call or a usage would be a wrong answer."""
    named = event({"model": "m", "choices": [{"delta": {"content": "a"}}]})
    odd = event({"choices": [choice], **envelope})

    amid = reply(named, named, odd, DONE)
    shortcut_off = reply(
        event({"model": "m"}), chunk({"content": [{"type": "text", "text": "aa"}]}), odd, DONE
    )

    assert amid == shortcut_off


def test_an_error_amid_text_is_an_error() -> None:
    """The shortcut for text reads no errors, and passes them on."""
    named = event({"model": "m", "choices": [{"delta": {"content": "a"}}]})

    for data in (b'{"error":{"message":"slot died"},"choices":[]}', b'{"choices":[', b"null"):
        with pytest.raises(BadReply):
            fed(named, named, ServerEvent("", data))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}, Usage(10, 4)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(2, 0, 8)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8}, Usage(2, 0, 8)),
        ({"prompt_tokens": 3, "cached_tokens": 8}, Usage(0, 0, 8)),
        (
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(output_tokens=9, reasoning_tokens=5),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(10, 9, reasoning_tokens=5),
        ),
        ({"prompt_tokens": None, "completion_tokens": "4", "total_tokens": True}, Usage()),
        ({"prompt_tokens": -1, "prompt_tokens_details": None}, Usage()),
    ],
)
def test_usage_means_the_same_as_on_every_wire(usage: dict[str, object], expected: Usage) -> None:
    """Input excludes what a cache gave, output includes reasoning; servers differ."""
    assert expected == reply(event({"choices": [], "usage": usage}), DONE).usage
