"""Streams of the OpenAI chat wire, as real servers send them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

import pytest

from graphloop.errors import (
    BadReply,
    Overloaded,
    ProviderError,
    StreamTruncated,
)
from graphloop.media import Inline, MediaPart, Url
from graphloop.providers.base import (
    Delta,
    MediaDelta,
    ReasoningDelta,
    ServerEvent,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from graphloop.providers.openai_chat.messages import (
    CHAT_REASONING,
    THINKING_EXTRA,
    TRANSCRIPT_EXTRA,
)
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


def say(text: str) -> ServerEvent:
    return chunk({"content": text})


def think(text: str) -> ServerEvent:
    return chunk({"reasoning": text})


HM = CHAT_REASONING["reasoning"]
HALF, OTHER_HALF = "\ud83d", "\udc69"
WHOLE = {"role": "assistant", "content": "Yes"}
CALL = fragment(0, "a", "f", "{}")
DRAWN = {"type": "image_url", "index": 0, "image_url": {"url": "data:image/png;base64,aGk="}}
LINKED = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}

# Each stream, the deltas that it shows (None: not looked at) and the parts of its reply.
STREAMS: dict[str, tuple[tuple[ServerEvent, ...], list[Delta] | None, tuple[object, ...]]] = {
    "llama.cpp begins with null": (
        (chunk({"role": "assistant", "content": None}), say("Hel"), say("lo")),
        [TextDelta("Hel"), TextDelta("lo")],
        (TextPart("Hello"),),
    ),
    "OpenRouter sends pictures whole, beside the text": (
        (say("A "), chunk({"content": "", "images": [DRAWN, LINKED]}), say("fox")),
        [TextDelta("A "), MediaDelta(0, "image/png", "aGk="), TextDelta("fox")],
        (
            TextPart("A "),
            MediaPart("image/png", Inline(b"hi"), extra='{"index":0}'),
            MediaPart("image/*", Url("https://x/a.png")),
            TextPart("fox"),
        ),
    ),
    "OpenAI begins with an empty text": (
        (chunk({"role": "assistant", "content": ""}), say("Hello")),
        [TextDelta("Hello")],
        (TextPart("Hello"),),
    ),
    "DeepSeek names it reasoning_content": (
        (chunk({"reasoning_content": "Hm "}), chunk({"reasoning_content": "so"}), say("a")),
        [ReasoningDelta("Hm "), ReasoningDelta("so"), TextDelta("a")],
        (ReasoningPart("Hm so"), TextPart("a")),
    ),
    "Groq names it reasoning": (
        (chunk({"content": "", "reasoning": ""}), chunk({"reasoning": "Hm"}), say("a")),
        [ReasoningDelta("Hm"), TextDelta("a")],
        (ReasoningPart("Hm", extra=HM), TextPart("a")),
    ),
    "a server in transition sends the same words under both names": (
        (chunk({"reasoning_content": "Hm", "reasoning": "Hm"}),) * 2,
        [ReasoningDelta("Hm"), ReasoningDelta("Hm")],
        (ReasoningPart("HmHm"),),
    ),
    "the limit is reached while thinking": (
        (chunk({"content": "", "reasoning": "Hm"}), chunk({}, "length")),
        [ReasoningDelta("Hm")],
        (ReasoningPart("Hm", extra=HM),),
    ),
    "reasoning comes in details alone": (
        (chunk({"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}),),
        [ReasoningDelta("Hm")],
        (ReasoningPart("Hm"),),
    ),
    "Mistral sends typed parts": (
        (
            chunk({"content": [THINKING]}),
            chunk(
                {"content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": ""}]}
            ),
            chunk({"content": [{"type": "thinking", "thinking": 1}]}),
            chunk({"content": [{"type": "text", "text": "Yes"}, {"type": "ref", "ids": [1]}]}),
        ),
        [ReasoningDelta("Hm"), ReasoningDelta("so"), TextDelta("Yes")],
        (
            ReasoningPart("Hmso", extra=THINKING_EXTRA),
            TextPart("Yes"),
            OpaquePart('{"type":"ref","ids":[1]}'),
        ),
    ),
    "with n > 1 the choices come mixed": (
        (
            chunk({"content": "zero"}, index=0),
            chunk({"content": "one"}, "length", index=1),
            chunk({}, "stop"),
        ),
        [TextDelta("zero")],
        (TextPart("zero"),),
    ),
    "an old server has one call, without an id": (
        (
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"arguments": "}"}}),
            chunk({}, "function_call"),
        ),
        None,
        (ToolCall("", "f", "{}"),),
    ),
    "text goes on after a call": (
        (chunk({"reasoning": "Hm"}), say("A"), calls(CALL), say("B")),
        None,
        (ReasoningPart("Hm", extra=HM), TextPart("A"), ToolCall("a", "f", "{}"), TextPart("B")),
    ),
    "a character is split over two deltas, and half of another is left": (
        (say(HALF), say(OTHER_HALF), say(HALF), *[think(half) for half in (HALF, OTHER_HALF)]),
        [TextDelta("\U0001f469"), TextDelta("\ufffd"), ReasoningDelta("\U0001f469")],
        (TextPart("\U0001f469\ufffd"), ReasoningPart("\U0001f469", extra=HM)),
    ),
    "a server answers in one piece": (
        (event({"choices": [{"message": {**WHOLE, "tool_calls": [CALL]}}]}),),
        [TextDelta("Yes"), ToolCallDelta(0, "a", "f", "{}")],
        (TextPart("Yes"), ToolCall("a", "f", "{}")),
    ),
    "Perplexity repeats the answer so far in every chunk": (
        (
            chunk({"content": "Y"}, message={"content": "Y"}),
            chunk({"content": "es"}, message=WHOLE),
            event({"choices": [{"message": WHOLE, "finish_reason": "stop"}]}),
        ),
        [TextDelta("Y"), TextDelta("es")],
        (TextPart("Yes"),),
    ),
    "a gateway adds words of a report beside the choices": (
        (event({"code": 200, "message": "x", "detail": "x", "choices": [{"delta": WHOLE}]}),),
        [TextDelta("Yes")],
        (TextPart("Yes"),),
    ),
    "events without content": (
        (
            ServerEvent("", b""),
            event({"type": "ping"}, "ping"),
            event({"choices": None}),
            event({"choices": [{"delta": None}]}),
            event({"choices": [{"delta": {"content": "a"}}], "error": None}),
        ),
        [TextDelta("a")],
        (TextPart("a"),),
    ),
}


@pytest.mark.parametrize(("events", "shown", "parts"), STREAMS.values(), ids=list(STREAMS))
def test_a_stream_becomes_its_parts(
    events: tuple[ServerEvent, ...], shown: list[Delta] | None, parts: tuple[object, ...]
) -> None:
    """Each stream is what some server sends."""
    deltas, found = heard_from(*events, DONE)

    assert shown in (None, deltas)
    assert found.message.parts == parts
    assert found.message.wire == "openai"


@pytest.mark.parametrize(
    ("words", "means"),
    [
        (("stop",), FinishReason.TOOL_CALLS),  # Several servers say so when they ask for tools.
        (("length", "stop"), FinishReason.LENGTH),
        (("length", "tool_calls"), FinishReason.LENGTH),
        (("unheard_of", "stop"), FinishReason.OTHER),
        (("content_filter", "length"), FinishReason.CONTENT_FILTER),
        (("length", "content_filter", "stop"), FinishReason.CONTENT_FILTER),
        (("stop", "tool_calls"), FinishReason.TOOL_CALLS),
        ((None,), None),
        (("error", "stop"), None),
        (("abort",), None),
        (("insufficient_system_resource",), None),
    ],
)
def test_the_worst_of_several_finish_reasons_counts(
    words: tuple[str | None, ...], means: FinishReason | None
) -> None:
    """A later word takes nothing back: a call that was cut must not run."""
    for delta in ({"tool_calls": [CALL]}, {"content": "Half"}):
        decoder = fed(chunk(delta, words[0]), *[chunk({}, word) for word in words[1:]], DONE)
        if means is None:
            with pytest.raises(StreamTruncated, match="finish reason"):
                decoder.reply()
        elif "content" not in delta:
            assert decoder.reply().finish_reason is means


def test_a_refusal_is_text_and_ends_the_turn_as_refusal() -> None:
    """OpenAI streams it beside the content and says "stop"."""
    first = chunk({"content": None, "refusal": ""})

    deltas, found = heard_from(first, chunk({"refusal": "I can't."}), chunk({}, "stop"), DONE)

    assert [TextDelta("I can't.")] == deltas
    assert (found.finish_reason, found.raw_finish_reason) == (FinishReason.REFUSAL, "stop")


def test_metadata_is_read_at_the_start_and_with_or_after_the_end() -> None:
    """The model may be another than the one asked for; llama.cpp sends its timings last."""
    about = {"id": "c1", "model": "gpt-4o-2026", "system_fingerprint": "fp", "created": 1}

    found = reply(
        event({**about, "choices": [{"delta": {"content": "a"}}]}),
        event({"model": "unread", "choices": [{"delta": {"content": "b"}}]}),
        event({"choices": [{"finish_reason": "stop"}], "service_tier": "flex"}),
        event({"choices": [], "timings": {"predicted_ms": 1.5}}),
        DONE,
    )

    last = {"service_tier": "flex", "timings": {"predicted_ms": 1.5}}
    assert found.model == "gpt-4o-2026"
    assert json.loads(found.metadata) == {"id": "c1", "system_fingerprint": "fp", **last}


def test_content_starts_with_the_first_content() -> None:
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


def test_unknown_fields_of_calls_and_messages_are_kept() -> None:
    """A thought signature must come back, or the next request is refused."""
    signed = {"google": {"thought_signature": "c2ln"}}
    one = fragment(0, "a", "f", "{}", extra_content=signed, type="function")
    one["function"] = {"name": "f", "arguments": "{}", "strict": True}

    found = reply(
        chunk({"content": "", "images": [1], "note": {"id": "a"}, "mood": "calm"}),
        chunk({"images": [2], "note": {"data": "x"}, "mood": "wild", "nothing": None}),
        calls(one),
        DONE,
    ).message

    assert json.loads(found.extra) == {
        "images": [1, 2],
        "note": {"id": "a", "data": "x"},
        "mood": "wild",
    }
    assert json.loads(found.calls[0].extra) == {
        "extra_content": signed,
        "function": {"strict": True},
    }


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


def test_numbers_json_does_not_have_are_kept_as_null() -> None:
    """Python's servers write NaN; sent back, it would break every later request."""
    data = rb'{"choices":[{"delta":{"content":"x","score":NaN,"big":1e400,"half":"\ud83d"}}]}'

    found = reply(ServerEvent("", data), ServerEvent("", data.replace(rb"\ud83d", b"")), DONE)

    assert json.loads(found.message.extra) == {"score": None, "big": None, "half": ""}
    half = reply(ServerEvent("", data), DONE).message.extra
    assert json.loads(half) == {"score": None, "big": None, "half": "\ufffd"}


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


def test_usage_in_every_chunk_comes_behind_the_text() -> None:
    """Each count stands for all before it; one that is empty says nothing."""
    decoder = WIRE.decoder()
    nothing = {"prompt_tokens": 0}
    counts: list[dict[str, int] | None] = [nothing, {"prompt_tokens": 1}, {"prompt_tokens": 2}, {}]

    found = [
        list(decoder.feed(event({"choices": [{"delta": {"content": "a"}}], "usage": usage})))
        for usage in counts
    ]

    assert found == [
        [TextDelta("a")],
        [TextDelta("a"), UsageSoFar(Usage(1))],
        [TextDelta("a"), UsageSoFar(Usage(2))],
        [TextDelta("a")],
    ]


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
        (
            {
                "prompt_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            },
            Usage(2, 0, 5, 3),
        ),
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


@pytest.mark.parametrize(
    "image",
    [
        "a.png",
        {"type": "image_url"},
        {"type": "image_url", "image_url": {"url": "data:image/png,hi"}},
        {"type": "image_url", "image_url": {"url": "data:text/plain;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,a"}},
    ],
)
def test_a_picture_of_another_form_is_kept_as_it_came(image: object) -> None:
    """It goes back unchanged, like each field that the wire does not know."""
    answer = reply(say("A fox"), chunk({"images": [image]}, "stop"), DONE)

    assert (TextPart("A fox"),) == answer.message.parts
    assert {"images": [image]} == json.loads(answer.message.extra)


WAVE = b"RIFF\x24\0\0\0WAVEfmt " + bytes(range(256))
RAW = bytes(range(256))
SOUND_ID = {"id": "audio_1", "expires_at": 9_999_999_999, "model": "m"}


@pytest.mark.parametrize("size", [1, 3, 4, 7, 400])
@pytest.mark.parametrize(
    ("sound", "media_type"), [(WAVE, "audio/wav"), (RAW, "audio/pcm;rate=24000")]
)
def test_sound_arrives_in_pieces_that_are_cut_anywhere(
    sound: bytes, media_type: str, size: int
) -> None:
    """Pieces overwrote each other, and the user saw no word of an answer that was spoken."""
    data = b64encode(sound).decode()
    more = [data[at : at + size] for at in range(20, len(data), size)]
    spoken: list[object] = [{"id": "audio_1"}, {"transcript": "Hel"}, {"data": data[:20]}]
    spoken.append({"transcript": "lo"})
    spoken.extend({"data": each} for each in more)
    spoken.append({"expires_at": 9_999_999_999})

    shown, answer = heard_from(*(chunk({"audio": each}) for each in spoken), chunk({}, "stop"))

    text, made = answer.message.parts
    assert TextPart("Hello", TRANSCRIPT_EXTRA) == text
    assert isinstance(made, MediaPart)
    assert (media_type, Inline(sound), SOUND_ID) == (
        made.media_type,
        made.source,
        json.loads(made.extra),
    )
    assert "" == answer.message.extra
    assert "Hello" == "".join(each.text for each in shown if isinstance(each, TextDelta))
    pieces = [each for each in shown if isinstance(each, MediaDelta)]
    assert sound == b"".join(b64decode(each.data) for each in pieces)
    assert {(0, media_type)} == {(each.index, each.media_type) for each in pieces}


def test_pieces_of_sound_may_each_end_with_padding() -> None:
    ends = [chunk({"audio": {"data": b64encode(each).decode()}}) for each in (b"a", b"bc")]

    (made,) = reply(*ends, chunk({}, "stop"), DONE).message.media

    assert Inline(b"abc") == made.source


def test_sound_that_is_no_base64_is_refused() -> None:
    with pytest.raises(BadReply, match="base64"):
        fed(chunk({"audio": {"data": "?!?!"}}))


def test_a_whole_reply_may_be_spoken() -> None:
    audio = {"id": "audio_1", "data": b64encode(WAVE).decode(), "transcript": "Hello"}
    body = {"choices": [{"message": {"content": None, "audio": audio}, "finish_reason": "stop"}]}
    decoder = WIRE.decoder()

    for each in WIRE.events_of(json.dumps(body).encode()):
        decoder.feed(each)

    message = decoder.reply().message
    assert ("Hello", [Inline(WAVE)]) == (message.text, [each.source for each in message.media])
