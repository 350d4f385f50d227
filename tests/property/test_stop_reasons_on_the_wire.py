"""The table of stop reasons (CONTRACT §5.7), upstream's side: every word a server ends a turn with.

What the loop then does is the other half of the table: `test_contract_stop_reasons`.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.providers.base import TextDelta
from graphloop.values import FinishReason as F
from graphloop.values import ModelRequest, ToolCall, UserMessage
from tests.anthropic_talk import START, STOP, block_delta, block_start, message_delta
from tests.anthropic_talk import WIRE as ANTHROPIC
from tests.openai_talk import DONE, calls, chunk, fragment, heard_from
from tests.openai_talk import WIRE as OPENAI
from tests.transcripts import any_text, heard

CALL = ToolCall("a", "f", '{"x":1}')

# The server's word, whether the turn holds a call, and what it means.
ON_ANTHROPIC: list[tuple[str, bool, F]] = [
    ("end_turn", False, F.STOP),
    ("tool_use", True, F.TOOL_CALLS),
    ("max_tokens", False, F.LENGTH),
    ("max_tokens", True, F.LENGTH),
    ("stop_sequence", False, F.STOP_SEQUENCE),
    ("pause_turn", False, F.PAUSE),
    ("compaction", False, F.PAUSE),
    ("refusal", False, F.REFUSAL),
    ("refusal", True, F.REFUSAL),
    ("model_context_window_exceeded", False, F.CONTEXT_WINDOW),
    ("model_context_window_exceeded", True, F.CONTEXT_WINDOW),
    ("a_word_of_tomorrow", False, F.OTHER),
    ("a_word_of_tomorrow", True, F.OTHER),
    ("End_Turn", False, F.STOP),
]
ON_OPENAI: list[tuple[str, bool, F]] = [
    ("stop", False, F.STOP),
    ("stop", True, F.TOOL_CALLS),
    ("length", False, F.LENGTH),
    ("length", True, F.LENGTH),
    ("tool_calls", True, F.TOOL_CALLS),
    ("function_call", True, F.TOOL_CALLS),
    ("content_filter", False, F.CONTENT_FILTER),
    ("content_filter", True, F.CONTENT_FILTER),
    ("model_length", True, F.LENGTH),
    ("max_tokens", True, F.LENGTH),
    ("refusal", True, F.REFUSAL),
    ("safety", True, F.CONTENT_FILTER),
    ("a_word_of_tomorrow", False, F.OTHER),
    ("a_word_of_tomorrow", True, F.OTHER),
    ("STOP", False, F.STOP),
]


@pytest.mark.parametrize(("raw", "asks", "expected"), ON_ANTHROPIC)
def test_every_word_of_the_anthropic_wire_has_its_meaning(
    raw: str, asks: bool, expected: F
) -> None:
    """And stays readable; what came before it is kept, text and calls."""
    call = (
        block_start(1, type="tool_use", id=CALL.id, name=CALL.name, input={}),
        block_delta(1, type="input_json_delta", partial_json=CALL.arguments),
    )

    _, reply = heard(
        ANTHROPIC,
        (
            START,
            block_start(0, type="text", text="So:"),
            *(call if asks else ()),
            message_delta(stop_reason=raw),
            STOP,
        ),
    )

    assert (reply.finish_reason, reply.raw_finish_reason) == (expected, raw)
    assert reply.message.text == "So:"
    assert reply.message.calls == ((CALL,) if asks else ())


@pytest.mark.parametrize(("raw", "asks", "expected"), ON_OPENAI)
def test_every_word_of_the_openai_wire_has_its_meaning(raw: str, asks: bool, expected: F) -> None:
    """The same meanings, whoever said it; only "stop" may mean that tools are asked for."""
    call = (calls(fragment(0, CALL.id, CALL.name, CALL.arguments)),)

    _, reply = heard_from(chunk({"content": "So:"}), *(call if asks else ()), chunk({}, raw), DONE)

    assert (reply.finish_reason, reply.raw_finish_reason) == (expected, raw)
    assert reply.message.text == "So:"
    assert reply.message.calls == ((CALL,) if asks else ())


@given(any_text.map("x-".__add__))
def test_a_word_that_nobody_knows_is_kept_and_taken_for_nothing_else(word: str) -> None:
    """A guess would run calls that were cut, or end a run that was not done."""
    whole = word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    _, theirs = heard(ANTHROPIC, (START, message_delta(stop_reason=word), STOP))
    _, ours = heard_from(chunk({}, word), DONE)

    assert (theirs.finish_reason, theirs.raw_finish_reason) == (F.OTHER, whole)
    assert (ours.finish_reason, ours.raw_finish_reason) == (F.OTHER, whole)


def test_a_compaction_is_kept_and_goes_back_like_any_pause() -> None:
    """The summary is the server's block: it goes on from it, and from nothing else."""
    _, reply = heard(
        ANTHROPIC,
        (
            START,
            block_start(0, type="compaction", content=None),
            block_delta(0, type="compaction_delta", content="They talked "),
            block_delta(0, type="compaction_delta", content="of tides."),
            message_delta(stop_reason="compaction"),
            STOP,
        ),
    )

    request = ModelRequest((UserMessage("Go on."), reply.message))
    sent = json.loads(b"".join(ANTHROPIC.encoder().encode(request)))
    assert reply.finish_reason is F.PAUSE
    assert sent["messages"][1]["content"] == [
        {"type": "compaction", "content": "They talked of tides."}
    ]


def test_a_refusal_tells_its_details() -> None:
    """Whoever asked may be told why, and what may be done about it."""
    details = {"type": "refusal", "category": "bio", "explanation": "No."}

    _, reply = heard(
        ANTHROPIC, (START, message_delta(stop_reason="refusal", stop_details=details), STOP)
    )

    assert reply.finish_reason is F.REFUSAL
    assert json.loads(reply.metadata)["stop_details"] == details


def test_a_stop_sequence_tells_which() -> None:
    """And also where a compatible server says `end_turn` with it."""
    for word in ("stop_sequence", "end_turn"):
        ending = message_delta(stop_reason=word, stop_sequence="END")
        _, reply = heard(ANTHROPIC, (START, ending, STOP))

        assert (reply.finish_reason, reply.raw_finish_reason) == (F.STOP_SEQUENCE, word)
        assert json.loads(reply.metadata)["stop_sequence"] == "END"


@pytest.mark.parametrize("word", ["stop", "content_filter", "length"])
def test_a_refusal_in_words_is_shown_as_text_and_ends_as_a_refusal(word: str) -> None:
    """A listener who sees nothing would take it for an empty answer."""
    deltas, reply = heard_from(
        chunk({"role": "assistant", "content": None, "refusal": "I "}),
        chunk({"refusal": "can't."}),
        chunk({}, word),
        DONE,
    )

    assert deltas == [TextDelta("I "), TextDelta("can't.")]
    assert reply.message.text == "I can't."
    assert (reply.finish_reason, reply.raw_finish_reason) == (F.REFUSAL, word)


@given(st.sampled_from([raw for raw, _, _ in ON_OPENAI]), st.booleans())
def test_the_reason_is_the_same_whether_the_end_is_marked_or_not(raw: str, marked: bool) -> None:
    """Some servers never send `[DONE]`."""
    decoder = OPENAI.decoder()
    for one in (chunk({"content": "a"}, raw), *((DONE,) if marked else ())):
        decoder.feed(one)

    assert decoder.reply().raw_finish_reason == raw
