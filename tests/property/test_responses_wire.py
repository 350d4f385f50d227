"""The Responses wire over random histories, streams cut anywhere, and hostile servers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
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
from tests.responses_talk import (
    FORMS,
    ITEMS,
    RESPONSES,
    SEARCH,
    WIRE,
    Form,
    JsonObject,
    body,
    call,
    message,
    reasoning,
    recorded,
    stream,
    text,
)
from tests.transcripts import any_text, decoded, in_pieces

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
said = (
    st.builds(TextPart, any_text, extras)
    | st.builds(ReasoningPart, any_text, any_text, st.just(""), extras)
    | st.builds(OpaquePart, st.sampled_from(['{"type":"compaction"}', '{"type":"mcp_call"}']))
)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Draw what a loop appends in one turn: a reply, a result a call, sometimes a user's text."""
    calls = draw(st.lists(call_drafts, max_size=3))
    prose = draw(st.lists(said, max_size=3))
    wire = draw(st.sampled_from(["openai-responses", "anthropic", ""]))
    results = [ToolResult("k", draw(any_text), call.name, draw(contents)) for call in calls]
    users = draw(st.lists(user_messages, max_size=1))
    return [AssistantMessage((*prose, *calls), wire), *results, *users]


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
        body = b"".join(encoder.encode(ModelRequest(messages, tools)))

        assert body.startswith(before)
        assert body == b"".join(WIRE.encoder().encode(ModelRequest(tuple(history), tools)))
        before = body.removesuffix(b"]}")


@given(starts, st.lists(turns(), max_size=6))
def test_every_call_is_answered_under_an_id_of_its_own(
    start: list[Message], later: list[list[Message]]
) -> None:
    """The server refuses a call without a result, and a result without a call."""
    sent = json.loads(encoded([*start, *(message for turn in later for message in turn)]))["input"]

    called = [item["call_id"] for item in sent if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in sent if item.get("type") == "function_call_output"]
    assert called == answered
    assert len(called) == len(set(called))
    assert all(0 < len(call_id) <= 64 for call_id in called)


@given(
    st.sampled_from(sorted(RESPONSES)),
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


@pytest.mark.parametrize("name", sorted(RESPONSES))
def test_a_stream_cut_before_its_last_event_is_no_answer(name: str) -> None:
    """At each event: an error, never a reply."""
    events = stream(ITEMS[name])

    for end in range(len(events)):
        with pytest.raises(ProviderError):
            decoded(WIRE, recorded(events[:end]))


encrypted = st.text("ABCxyz019+/=", min_size=1, max_size=8)
plain = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def native_item(number: int) -> st.SearchStrategy[JsonObject]:
    """Draw an output item of OpenAI's server, with an id of its own."""
    thought = encrypted.map(lambda data: reasoning(f"rs_{number}", encrypted=data))
    shown = plain.map(lambda said: reasoning(f"rs_{number}", said, encrypted=f"e{number}"))
    said = plain.map(lambda said: message(f"msg_{number}", text(said), phase="commentary"))
    called = plain.map(lambda said: call(f"fc_{number}", f"call_{number}", "f", {"said": said}))
    searched: JsonObject = {**SEARCH, "id": f"ws_{number}"}
    unknown = encrypted.map(
        lambda data: {"type": "new", "id": f"n_{number}", "encrypted_content": data}
    )
    return thought | shown | said | called | st.just(searched) | unknown


native_items = st.integers(0, 6).flatmap(lambda size: st.tuples(*map(native_item, range(size))))


@given(
    native_items,
    st.sampled_from([form for form in FORMS if form != "new ids"]),
    st.integers(1, 9),
)
def test_what_only_the_server_reads_goes_back_byte_for_byte(
    items: Sequence[JsonObject], form: Form, size: int
) -> None:
    """Encrypted reasoning, ids, and items that graphloop does not know, each at its place."""
    _, reply = decoded(WIRE, recorded(stream(items, form, size=size)))
    results = [ToolResult("k", each.id, each.name, "ok") for each in reply.message.calls]

    sent = body(ModelRequest((UserMessage("Go."), reply.message, *results)))["input"][1:]

    last = max([at for at, item in enumerate(items) if item["type"] != "reasoning"], default=-1)
    answers = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
        for item in items
        if item["type"] == "function_call"
    ]
    assert sent == [*map(sent_back, items[: last + 1]), *answers]


def sent_back(item: JsonObject) -> JsonObject:
    """Return an item without what the server does not read, and with what it wants."""
    match item["type"]:
        case "reasoning":
            return {"content": [], **item}
        case "function_call":
            return {key: item[key] for key in item if key != "status"}
        case "message":
            parts = [
                {key: part[key] for key in part if key != "logprobs"} for part in item["content"]
            ]
            return {**item, "content": parts}
        case _:
            return item


@given(st.text(max_size=30), st.integers(1, 3))
def test_a_text_comes_whole_however_its_deltas_are_cut(said: str, size: int) -> None:
    """Servers cut a character beyond U+FFFF into two halves, each in a delta of its own."""
    units = said.encode("utf-16-be")
    halves = "".join(
        chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True)
    )
    events = stream([message("msg_1", text(halves))], size=size)

    deltas, reply = decoded(WIRE, recorded(events))

    assert "".join(one.text for one in deltas if isinstance(one, TextDelta)) == said
    assert reply.message.text == said


KINDS = (
    *("response.created", "response.output_item.added", "response.output_item.done"),
    *("response.content_part.added", "response.output_text.delta", "response.refusal.done"),
    *("response.function_call_arguments.delta", "response.function_call_arguments.done"),
    *("response.reasoning_summary_text.delta", "response.completed", "response.incomplete"),
    *("response.web_search_call.searching", "response.image_generation_call.partial_image"),
    *("message", "reasoning", "function_call", "web_search_call", "image_generation_call"),
    *("output_text", "refusal", "summary_text"),
)
FIELDS = (
    *("type", "item", "item_id", "id", "output_index", "content_index", "summary_index", "delta"),
    *("text", "arguments", "call_id", "name", "content", "summary", "encrypted_content", "status"),
    *("response", "output", "usage", "error", "incomplete_details", "reason", "model", "result"),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text | st.sampled_from(KINDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
        | st.fixed_dictionaries(
            {"type": st.sampled_from(KINDS)},
            optional={"id": st.just("i"), "content": inner, "status": inner, "arguments": inner},
        )
    ),
    max_leaves=12,
)
events = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "item": json_values,
        "item_id": st.just("i"),
        "output_index": st.integers(0, 2),
        "content_index": st.integers(0, 2),
        "delta": any_text,
        "text": any_text,
        "arguments": any_text,
        "response": json_values,
    },
)
last = st.fixed_dictionaries(
    {"output": st.lists(json_values, max_size=3)},
    optional={
        "status": json_values,
        "model": json_values,
        "incomplete_details": json_values,
        "usage": json_values,
    },
).map(lambda response: {"type": "response.completed", "response": response})


@given(st.lists(events | json_values, max_size=6), last)
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
