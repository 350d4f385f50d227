"""The OpenAI chat wire over random histories, transcripts cut anywhere, and hostile servers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ProviderError
from graphloop.media import MediaPart, Url
from graphloop.providers.base import (
    Delta,
    ReasoningDelta,
    ServerEvent,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    ReasoningPart,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.openai_talk import WIRE
from tests.transcripts import OPENAI, any_text, decoded, in_pieces

objects = st.dictionaries(any_text, st.none() | st.integers() | any_text, max_size=2).map(
    json.dumps
)
extras = st.just("") | objects
call_drafts = st.builds(
    ToolCall,
    st.sampled_from(["", "call_0", "call_1", "graphloop_1_0", "graphloop_2_1"]),
    st.sampled_from(["f", "g"]) | any_text,
    objects | any_text,
    extras,
)
user_messages = st.builds(UserMessage, any_text)
contents = any_text | st.tuples(
    st.builds(TextPart, any_text), st.just(MediaPart("image/*", Url("u")))
)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Draw what a loop appends in one turn: a reply, a result a call, sometimes a user's text."""
    calls = draw(st.lists(call_drafts, max_size=3))
    prose = draw(
        st.lists(st.builds(TextPart, any_text) | st.builds(ReasoningPart, any_text), max_size=2)
    )
    wire = draw(st.sampled_from(["openai", "anthropic", ""]))
    results = [ToolResult("k", draw(any_text), call.name, draw(contents)) for call in calls]
    users = draw(st.lists(user_messages, max_size=1))
    return [AssistantMessage((*prose, *calls), wire, draw(extras)), *results, *users]


is_legal = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch
starts = st.lists(st.builds(SystemMessage, any_text) | user_messages, min_size=1, max_size=3)


def encoded(messages: Sequence[Message]) -> bytes:
    return b"".join(WIRE.encoder().encode(ModelRequest(messages)))


outputs = st.none() | st.builds(OutputSpec, any_text, st.just('{"type":"object"}'), any_text)


@given(starts, st.lists(turns(), max_size=6), st.booleans(), outputs)
def test_each_request_begins_with_the_bytes_of_the_one_before(
    start: list[Message],
    later: list[list[Message]],
    as_history: bool,
    output: OutputSpec | None,
) -> None:
    """Prompt caches hit; and what was remembered is what would be encoded anew."""
    encoder = WIRE.encoder()
    tools = (ToolSpec("f", "", "{}"),)
    history = History(start)
    before = b""

    for turn in ([], *later):
        history = history.append(*turn)
        messages = history if as_history else list(history)
        body = b"".join(encoder.encode(ModelRequest(messages, tools, output=output)))

        assert body.startswith(before)
        anew = ModelRequest(tuple(history), tools, output=output)
        assert body == b"".join(WIRE.encoder().encode(anew))
        before = body.removesuffix(b"]}")


@given(starts, st.lists(turns(), max_size=6))
def test_every_call_is_answered_under_its_own_id_in_order(
    start: list[Message], later: list[list[Message]]
) -> None:
    """Whatever comes: the messages pair, names are legal, and arguments are JSON objects."""
    sent = json.loads(encoded([*start, *(message for turn in later for message in turn)]))

    made_up: set[str] = set()
    waiting: list[str] = []
    for message in sent["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        for call in message.get("tool_calls", ()):
            assert call["id"]
            assert call["id"].startswith("call_") or call["id"] not in made_up
            made_up.add(call["id"])
            assert is_legal(call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
    assert not waiting


def shown(deltas: Iterable[Delta]) -> tuple[str, str, dict[int, tuple[str, str, str]]]:
    """Join what a listener saw: text, reasoning, and each call."""
    text = reasoning = ""
    calls: dict[int, tuple[str, str, str]] = {}
    for delta in deltas:
        match delta:
            case TextDelta():
                text += delta.text
            case ReasoningDelta():
                reasoning += delta.text
            case _:
                assert isinstance(delta, ToolCallDelta)
                call_id, name, arguments = calls.get(delta.index, ("", "", ""))
                known = (call_id + delta.id, name + delta.name)
                calls[delta.index] = (*known, arguments + delta.arguments_delta)
    return text, reasoning, calls


def told(reply: Reply) -> tuple[str, str, dict[int, tuple[str, str, str]]]:
    message = reply.message
    calls = {at: (call.id, call.name, call.arguments) for at, call in enumerate(message.calls)}
    return message.text, message.reasoning, calls


def test_there_are_transcripts() -> None:
    """The tests below mean nothing without any."""
    assert len(OPENAI) >= 10


@given(st.sampled_from(sorted(OPENAI)), st.sets(st.integers(0, 4000), max_size=12))
def test_a_transcript_says_the_same_wherever_it_is_cut_in_pieces(name: str, cuts: set[int]) -> None:
    """The network decides where bytes end, and must not decide what was said."""
    transcript = OPENAI[name]

    deltas, reply = decoded(WIRE, *in_pieces(transcript, cuts))

    expected_deltas, expected = decoded(WIRE, transcript)
    assert expected == reply
    assert shown(expected_deltas) == shown(deltas) == told(reply)


@pytest.mark.parametrize("name", sorted(OPENAI))
def test_a_transcript_cut_off_before_its_end_is_no_answer(name: str) -> None:
    """At any byte before the finish reason has come whole: an error, never a reply."""
    transcript = OPENAI[name]
    finish = max(at for at in range(len(transcript)) if is_finish(transcript, at))

    for end in range(transcript.index(b"\n", finish) - 1):
        with pytest.raises(ProviderError):
            decoded(WIRE, transcript[:end])


def is_finish(transcript: bytes, at: int) -> bool:
    """Whether the finish reason of choice 0 begins at `at`."""
    if not transcript.startswith(b'"finish_reason":"', at):
        return False
    return b'"index":0,"delta"' in transcript[transcript.rindex(b"data:", 0, at) : at]


FIELDS = (
    *("choices", "delta", "content", "tool_calls", "function", "name", "arguments", "id", "index"),
    *("finish_reason", "usage", "error", "code", "type", "message", "reasoning"),
    *("reasoning_details", "refusal", "text", "thinking", "model", "timings"),
)
keys = st.sampled_from(FIELDS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
deltas = st.dictionaries(keys, json_values, max_size=4)
choices = st.fixed_dictionaries({"delta": deltas}, optional={"finish_reason": json_values})
chunks = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2)},
    optional={"usage": json_values, "model": json_values, "error": json_values, "id": json_values},
)


@given(st.lists(chunks | json_values, max_size=5))
@example([{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": ["\ud83d"]}]}}]}])
def test_whatever_a_server_sends_only_provider_errors_come_of_it(sent: list[object]) -> None:
    """And a reply that does come can be shown, stored, and sent back."""
    decoder = WIRE.decoder()
    seen: list[Delta] = []
    try:
        for one in sent:
            seen += deltas_of(decoder.feed(ServerEvent("", json.dumps(one).encode())))
        seen += deltas_of(decoder.feed(ServerEvent("", b"[DONE]")))
        reply = decoder.reply()
    except ProviderError:
        return

    str(reply).encode()
    assert shown(seen)[:2] == told(reply)[:2]
    json.loads(encoded([reply.message]), parse_constant=refuse)


def deltas_of(items: Iterable[Delta | UsageSoFar]) -> list[Delta]:
    return [item for item in items if not isinstance(item, UsageSoFar)]


def refuse(constant: str) -> object:
    raise AssertionError(f"{constant} is not JSON")


@given(
    st.integers(0, 999),
    st.binary() | json_values.map(json.dumps).map(str.encode),
)
def test_reading_a_refusal_never_fails(status: int, body: bytes) -> None:
    """The error of an error would hide what happened; and its words can always be written."""
    found = WIRE.error(status, body)

    assert found.status == status
    assert len(str(found).encode()) < 4000
