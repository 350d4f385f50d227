"""The Gemini wire over random histories, streams cut anywhere, and hostile servers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ProviderError
from graphloop.media import Inline, MediaPart
from graphloop.providers.base import (
    Delta,
    Live,
    Restarted,
    ServerEvent,
    TextDelta,
    UsageSoFar,
)
from graphloop.providers.google.wire import GoogleGemini
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.for_each import for_each
from tests.google_talk import (
    FORMS,
    GOOGLE,
    ITEMS,
    WIRE,
    Form,
    body,
    call,
    chunk,
    recorded,
    stream,
)
from tests.transcripts import any_text, decoded, in_pieces

JsonObject: TypeAlias = dict[str, Any]

objects = st.dictionaries(any_text, st.none() | st.integers() | any_text, max_size=2).map(
    json.dumps
)
extras = st.just("") | objects
call_drafts = st.builds(
    ToolCall,
    st.sampled_from(["", "call_0", "call_1", "call_1_0"]),
    st.sampled_from(["f", "g"]) | any_text,
    objects | any_text,
    extras,
)
user_messages = st.builds(UserMessage, any_text)
picture = MediaPart("image/png", Inline(b"hi"))
contents = any_text | st.tuples(st.builds(TextPart, any_text), st.just(picture))
prose = (
    st.builds(TextPart, any_text, extras)
    | st.builds(ReasoningPart, any_text, any_text, st.just(""), extras)
    | st.builds(OpaquePart, st.sampled_from(['{"toolCall":{}}', '{"executableCode":{}}']))
    | st.just(picture)
)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Draw what a loop appends in one turn: a reply, a result a call, sometimes a user's text."""
    calls = draw(st.lists(call_drafts, max_size=3))
    texts = draw(st.lists(prose, max_size=3))
    wire = draw(st.sampled_from(["google", "anthropic", ""]))
    results = [ToolResult("k", draw(any_text), call.name, draw(contents)) for call in calls]
    users = draw(st.lists(user_messages, max_size=1))
    return [AssistantMessage((*texts, *calls), wire), *results, *users]


starts = st.lists(st.builds(SystemMessage, any_text) | user_messages, min_size=1, max_size=3)


def encoded(messages: Sequence[Message]) -> bytes:
    return b"".join(WIRE.encoder().encode(ModelRequest(messages)))


@given(starts, st.lists(turns(), max_size=6), st.booleans())
def test_each_request_begins_with_the_bytes_of_the_one_before(
    start: list[Message], later: list[list[Message]], as_history: bool
) -> None:
    """Prompt caches hit; and what was remembered is what would be encoded anew."""
    encoder = WIRE.encoder()
    tools = (ToolSpec("f", "", "{}"),)
    history = History(start)
    before = b""

    for turn in ([], *later):
        history = history.append(*turn)
        messages = history if as_history else list(history)
        sent = b"".join(encoder.encode(ModelRequest(messages, tools)))

        assert sent.startswith(before)
        assert sent == b"".join(WIRE.encoder().encode(ModelRequest(tuple(history), tools)))
        # The last content stays open for neighbours of its role.
        before = sent.removesuffix(b"]}").removesuffix(b"]}")


@given(starts, st.lists(turns(), max_size=6))
def test_all_results_of_a_turn_answer_its_calls_in_order(
    start: list[Message], later: list[list[Message]]
) -> None:
    """The server counts calls and results, and refuses roles that do not take turns."""
    sent = body(ModelRequest([*start, *(message for turn in later for message in turn)]))[
        "contents"
    ]

    roles = [content["role"] for content in sent]
    assert all(before != after for before, after in pairwise(roles))
    assert all(content["parts"] for content in sent)
    seen: list[str] = []
    nothing: JsonObject = {"role": "user", "parts": []}
    for content, following in pairwise([*sent, nothing]):
        called = about(content, "functionCall")
        answered = about(following, "functionResponse")
        if content["role"] == "model":
            assert [one.get("id") for one in called] == [one.get("id") for one in answered]
            assert [one["name"] for one in called] == [one["name"] for one in answered]
            first = [*following["parts"]][: len(answered)]
            assert all("functionResponse" in part for part in first)
        seen += [one["id"] for one in called if "id" in one]
    assert len(seen) == len(set(seen))


def about(content: JsonObject, field: str) -> list[JsonObject]:
    """Return this field of each part of a content that has it."""
    return [part[field] for part in content["parts"] if field in part]


signatures = st.text("ABCxyz019+/=", min_size=1, max_size=8)
said = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def native_parts(draw: st.DrawFn) -> JsonObject:
    """Return a part that Google's server sends, with a signature where it may have one."""
    own = {"thoughtSignature": draw(signatures)}
    text = draw(said)
    arguments = draw(st.dictionaries(said, said | st.integers() | st.booleans(), max_size=2))
    parts: list[JsonObject] = [
        {"text": text},
        {"text": text, **own},
        {"text": "", **own},
        {"text": text, "thought": True, **own},
        call("f", arguments, text, **own),
        {"executableCode": {"code": text}, **own},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, **own},
    ]
    return draw(st.sampled_from(parts))


@example([call("f", {"\\": "0"}, "0", thoughtSignature="0")], "partial arguments", 1)
@example([call("f", {"\\0": "0"}, "0", thoughtSignature="0")], "partial arguments", 1)
@example([call("f", {"it's \"\n\u2028": "0"}, "0")], "partial arguments", 1)
@given(st.lists(native_parts(), max_size=6), st.sampled_from(FORMS), st.integers(1, 9))
def test_what_only_the_server_reads_goes_back_byte_for_byte(
    parts: list[JsonObject], form: Form, size: int
) -> None:
    """Each signature and each opaque part, on the very part that it came with, in order."""
    wire = GoogleGemini("gemini-2.5-flash")
    _, reply = decoded(wire, recorded(stream(parts, form, size=size)))
    results = [ToolResult("k", each.id, each.name, "ok") for each in reply.message.calls]

    request = ModelRequest((UserMessage("Go."), reply.message, *results))
    sent = body(request, wire)["contents"]

    unique = [without_ids(part) for part in joined(parts)]
    back: list[JsonObject] = sent[1]["parts"] if parts else []
    assert [without_ids(part) for part in back] == unique


def joined(parts: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the parts with neighbouring plain texts joined: only their pieces are parts."""
    found: list[JsonObject] = []
    for part in parts:
        if found and part.keys() == {"text"} == found[-1].keys():
            found[-1] = {"text": found[-1]["text"] + part["text"]}
        else:
            found.append(part)
    return found


def without_ids(part: JsonObject) -> JsonObject:
    """Return a part without the id of its call, which is changed if it is not the first."""
    made = part.get("functionCall")
    if not made:
        return part
    return {**part, "functionCall": {key: made[key] for key in made if key != "id"}}


@given(
    st.sampled_from(sorted(GOOGLE)),
    st.sampled_from(FORMS),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.sets(st.integers(0, 9000), max_size=12),
)
def test_a_stream_says_the_same_wherever_it_is_cut_in_pieces(
    name: str, form: Form, end: bytes, cuts: set[int]
) -> None:
    """The network decides where bytes end, and must not decide what was said."""
    whole = recorded(stream(ITEMS[name], form), end)

    assert decoded(WIRE, *in_pieces(whole, cuts)) == decoded(WIRE, whole)


@for_each("name", sorted(GOOGLE))
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_cut_before_its_last_event_is_no_answer(name: str, form: Form) -> None:
    """At each event: an error, never a reply."""
    chunks = stream(ITEMS[name], form)

    for end in range(len(chunks)):
        with pytest.raises(ProviderError):
            decoded(WIRE, recorded(chunks[:end]))


@given(st.text(max_size=30), st.integers(1, 3))
def test_a_text_comes_whole_however_its_pieces_are_cut(said: str, size: int) -> None:
    """Gateways cut a character beyond U+FFFF into two halves, each in a piece of its own."""
    units = said.encode("utf-16-be")
    halves = "".join(
        chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True)
    )
    chunks = stream([{"text": halves}], size=size)

    deltas, reply = decoded(WIRE, recorded(chunks))

    assert "".join(one.text for one in deltas if isinstance(one, TextDelta)) == said
    assert reply.message.text == said


FIELDS = (
    *("text", "thought", "thoughtSignature", "functionCall", "name", "args", "id", "partialArgs"),
    *("jsonPath", "stringValue", "numberValue", "willContinue", "inlineData", "mimeType", "data"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse", "toolType", "outcome"),
    *("content", "parts", "candidates", "finishReason", "promptFeedback", "blockReason", "index"),
    *("usageMetadata", "promptTokenCount", "candidatesTokenCount", "modelVersion", "error"),
)
words = st.sampled_from(["STOP", "SAFETY", "image/png", "audio/L16", "aGk=", "f", "$.a", "$.b[0]"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
        | st.fixed_dictionaries(
            {}, optional={"text": any_text, "thought": st.booleans(), "thoughtSignature": any_text}
        )
    ),
    max_leaves=12,
)
pieces = st.fixed_dictionaries(
    {"jsonPath": st.sampled_from(["$.a", "$.b[0]", "$.b[1].c", "$['a'].b", "$", "x"])},
    optional={
        "stringValue": any_text,
        "numberValue": json_values,
        "nullValue": json_values,
        "willContinue": json_values,
    },
)
calls = st.fixed_dictionaries(
    {},
    optional={
        "name": any_text,
        "id": json_values,
        "args": json_values,
        "partialArgs": st.lists(pieces, max_size=3),
        "willContinue": st.booleans(),
    },
)
parts = json_values | st.fixed_dictionaries(
    {}, optional={"functionCall": calls, "text": any_text, "thoughtSignature": any_text}
)
chunks = json_values | st.builds(chunk, st.lists(parts, max_size=4))


@given(st.lists(chunks, max_size=6), st.builds(chunk, st.lists(parts, max_size=2), words))
def test_whatever_a_server_sends_only_provider_errors_come_of_it(
    sent: list[object], end: object
) -> None:
    """And a reply that does come can be shown, stored, and sent back."""
    decoder = WIRE.decoder()
    seen: list[Delta] = []
    try:
        for one in (*sent, end):
            seen += deltas_of(decoder.feed(ServerEvent("", json.dumps(one).encode())))
        reply = decoder.reply()
    except ProviderError:
        return

    str(reply).encode()
    shown = "".join(one.text for one in seen if isinstance(one, TextDelta))
    assert shown == reply.message.text
    json.loads(encoded([reply.message]))


def deltas_of(items: Iterable[Live | UsageSoFar]) -> list[Delta]:
    return [item for item in items if not isinstance(item, UsageSoFar | Restarted)]
