"""The Responses decoder: what a server streams, in each form, and what the run gets of it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from graphloop.errors import (
    BadReply,
    ContextOverflow,
    Overloaded,
    ProviderError,
    RequestRejected,
    StreamTruncated,
)
from graphloop.providers.base import (
    Delta,
    MediaDelta,
    ProviderToolDelta,
    ServerEvent,
    TextDelta,
    UsageSoFar,
)
from graphloop.values import FinishReason, OpaquePart, Reply, ToolCall, Usage
from tests.for_each import for_each
from tests.responses_talk import FORMS, ITEMS, WIRE, Form, call, message, response, stream, text
from tests.transcripts import heard

JsonObject: TypeAlias = dict[str, Any]


def said(*events: JsonObject) -> tuple[list[Delta], Reply]:
    """Return what a stream of events shows, and the reply."""
    return heard(WIRE, [ServerEvent("", json.dumps(event).encode()) for event in events])


FINISHED = {
    "refusal": FinishReason.REFUSAL,
    "text": FinishReason.STOP,
    "cited": FinishReason.STOP,
    "calls": FinishReason.TOOL_CALLS,
    "reasoning and call": FinishReason.TOOL_CALLS,
}


@for_each("name", ITEMS)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "new ids"])
def test_each_form_of_a_stream_gives_the_same_reply(form: Form, name: str) -> None:
    """Servers leave out indexes, deltas, or whole items; the items are the same."""
    expected = said(*stream(ITEMS[name]))[1]

    assert said(*stream(ITEMS[name], form))[1] == expected
    assert expected.finish_reason is FINISHED.get(name, expected.finish_reason)


@pytest.mark.parametrize("name", ITEMS)
def test_a_gateway_may_change_the_ids(name: str) -> None:
    """The indexes then tell which item an event is about."""
    plain, changed = said(*stream(ITEMS[name]))[1], said(*stream(ITEMS[name], "new ids"))[1]

    assert changed.message.text == plain.message.text
    assert [(one.id, one.name, one.arguments) for one in changed.message.calls] == [
        (one.id, one.name, one.arguments) for one in plain.message.calls
    ]
    assert len(changed.message.parts) == len(plain.message.parts)


def without(events: Sequence[JsonObject], *fields: str) -> list[JsonObject]:
    """Return events that say nothing of these fields, neither themselves nor in their items."""
    kept: list[JsonObject] = []
    for event in events:
        changed = {key: value for key, value in event.items() if key not in fields}
        for place in ("item", "response"):
            if place in changed:
                (changed[place],) = without([changed[place]], *fields)
        if "output" in changed:
            changed["output"] = without(changed["output"], *fields)
        kept.append(changed)
    return kept


@for_each("name", ITEMS)
@pytest.mark.parametrize("form", ["openai", "new ids", "last event"])
@for_each("fields", [("id", "item_id", "output_index"), ("output_index",)])
@for_each("ends", ["each item", "the stream"])
def test_an_item_that_nothing_names_comes_once(
    name: str, form: Form, fields: tuple[str, ...], ends: str
) -> None:
    """A call that comes twice runs twice, and a payment is paid twice."""
    events = without(stream(ITEMS[name], form), *fields)
    if form == "new ids" and "id" not in fields:
        # Deltas then belong to the latest item.
        events = without(events, "item_id")
    if ends == "the stream":
        events = [one for one in events if one["type"] != "response.output_item.done"]
    plain = said(*stream(ITEMS[name]))[1].message

    found = said(*events)[1].message

    assert found.text == plain.text
    assert [(one.id, one.name, one.arguments) for one in found.calls] == [
        (one.id, one.name, one.arguments) for one in plain.calls
    ]


@pytest.mark.parametrize("name", ITEMS)
def test_an_event_that_comes_twice_is_taken_once(name: str) -> None:
    """Gateways send the beginning and the end of an item again."""
    events = [
        one
        for event in stream(ITEMS[name])
        for one in [event] * (2 if event["type"].startswith("response.output_item.") else 1)
    ]

    assert said(*events)[1] == said(*stream(ITEMS[name]))[1]


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("form", ["openai", "llama", "no output"])
def test_a_lost_event_is_an_error_or_does_no_harm(name: str, form: Form) -> None:
    """A payment of 100 whose last digit is lost is not a payment of 10."""
    plain, events = said(*stream(ITEMS[name]))[1], stream(ITEMS[name], form)
    for lost, event in enumerate(events):
        if form == "no output" and event["type"] == "response.output_item.done":
            continue  # Nothing else tells of this item then.
        try:
            _, reply = said(*events[:lost], *events[lost + 1 :])
        except ProviderError:
            continue
        assert reply.message.text == plain.message.text
        assert reply.message.calls == plain.message.calls
        assert reply.finish_reason is plain.finish_reason


def test_deltas_without_any_item_are_no_empty_answer() -> None:
    """The words came, but the reply would hold none of them."""
    events = [
        event
        for event in stream(ITEMS["text"], "no output")
        if not event["type"].startswith("response.output_item.")
    ]

    with pytest.raises(StreamTruncated, match="expected the items of the reply"):
        said(*events)


def test_a_gateway_may_write_arguments_in_another_way() -> None:
    """White space and the order of keys say nothing."""
    events = stream([call("fc_1", "call_a", "pay", '{"amount": 100, "to": "é"}')], "llama")
    again = call("fc_1", "call_a", "pay", '{"to":"\\u00e9","amount":100}')
    for event in events:
        if event["type"] == "response.output_item.done":
            event["item"] = again

    (made,) = said(*events)[1].message.calls

    assert made.arguments == '{"amount": 100, "to": "é"}'


def test_the_usage_counts_each_token_once() -> None:
    """The server's input count holds the cached tokens, and its output count the reasoning."""
    reply = said(*stream(ITEMS["text"]))[1]

    assert reply.usage == Usage(5, 8, cache_read_tokens=5, cache_write_tokens=2, reasoning_tokens=3)
    assert reply.model == "gpt-5-2025-08-07"
    assert json.loads(reply.metadata) == {"id": "resp_1"}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("", FinishReason.LENGTH),
        ("a_word_of_tomorrow", FinishReason.OTHER),
    ],
)
def test_an_incomplete_response_says_why(reason: str, expected: FinishReason) -> None:
    """The run must not take half an answer for a whole one."""
    reply = said(*stream(ITEMS["call"], status="incomplete", reason=reason))[1]

    assert reply.finish_reason is expected


@pytest.mark.parametrize(
    "cut",
    [
        {**call("fc_1", "call_a", "pay", ""), "status": "completed"},
        {**call("fc_1", "call_a", "pay", '{"amount'), "status": "incomplete"},
    ],
)
def test_a_cut_call_never_runs_even_if_the_server_says_completed(cut: JsonObject) -> None:
    """llama.cpp calls a reply completed that its token limit cut in the middle of a call."""
    assert said(*stream([cut], "llama"))[1].finish_reason is FinishReason.LENGTH


def test_a_made_up_call_of_several_tools_becomes_these_calls() -> None:
    """Models call a tool `parallel` that does not exist, with the calls as its arguments."""
    reply = said(*stream(ITEMS["made-up parallel call"]))[1]

    assert reply.message.calls == (
        ToolCall("call_a_0", "get_weather", '{"city":"NYC"}'),
        ToolCall("call_a_1", "now", "{}"),
    )


def test_a_tool_named_parallel_is_called_as_any_other() -> None:
    """Only the made-up form is taken apart."""
    own = call("fc_1", "call_a", "parallel", {"lines": 2})

    (made,) = said(*stream([own]))[1].message.calls

    assert (made.name, json.loads(made.arguments)) == ("parallel", {"lines": 2})


def test_the_server_tells_what_its_tools_do() -> None:
    """A page can show that the server searches, and a picture before it is whole."""
    searched, _ = said(*stream(ITEMS["cited"]))
    drawn, _ = said(*stream(ITEMS["picture"]))

    assert [one for one in searched if not isinstance(one, TextDelta)] == [
        ProviderToolDelta(0, "web_search", "started"),
        ProviderToolDelta(0, "web_search", "running"),
        ProviderToolDelta(0, "web_search", "done"),
    ]
    assert [one for one in drawn if isinstance(one, MediaDelta)] == [
        MediaDelta(0, "image/png", "cA==", preview=True),
        MediaDelta(0, "image/png", "iVBORw0KGgogcGl4ZWw="),
    ]


@for_each("form", FORMS)
def test_searches_of_the_server_are_counted_for_their_price(form: Form) -> None:
    """Each search costs a cent beside its tokens; a page that the model opens costs none."""
    search = ITEMS["cited"][0]
    page = {**search, "id": "ws_2", "action": {"type": "open_page", "url": "https://a"}}
    unknown = {**search, "id": "ws_3", "action": "search"}
    told = {"input_tokens": 9, "output_tokens": 9}
    events = stream([search, page, unknown, *ITEMS["picture"]], form)
    events[-1]["response"]["usage"] = told

    _, reply = said(*events)

    assert reply.usage.details.web_searches == 2
    assert reply.usage.server_tool_calls == 4


def test_each_run_of_the_server_s_tools_has_a_number_of_its_own() -> None:
    """A page keeps a line for each number; a picture must not take the line of a search."""
    items = [*ITEMS["cited"][:1], *ITEMS["picture"][:1], {**ITEMS["cited"][0], "id": "ws_2"}]

    shown, _ = said(*stream(items))

    names = {(one.index, one.name) for one in shown if isinstance(one, ProviderToolDelta)}
    assert names == {(0, "web_search"), (1, "image_generation"), (2, "web_search")}
    assert {one.index for one in shown if isinstance(one, MediaDelta)} == {0}


@pytest.mark.parametrize("begins", [True, False])
def test_the_work_for_an_item_does_not_grow_with_the_items_before(begins: bool) -> None:
    """A hostile server must not hold all runs of a process by a reply of many small items."""

    def work(count: int) -> int:
        """Return the number of function calls that a reply of `count` tool calls takes."""
        items = [without([call("", f"call_{at}", "pay", {})], "id")[0] for at in range(count)]
        begun = [{"type": "response.output_item.added", "item": one} for one in items]
        done = [{"type": "response.output_item.done", "item": one} for one in reversed(items)]
        events = [*(begun if begins else ()), *done, stream(())[-1]]
        blobs = [json.dumps(event).encode() for event in events]
        calls: Counter[str] = Counter()
        decoder = WIRE.decoder()
        sys.setprofile(lambda _, event, __: calls.update((event,)))
        for blob in blobs:
            decoder.feed(ServerEvent("", blob))
        reply = decoder.reply()
        sys.setprofile(None)
        assert len(reply.message.calls) == count
        return calls["call"] + calls["c_call"]

    assert work(800) < 5 * work(200)


def test_a_failed_tool_of_the_server_is_told() -> None:
    """The reply goes on without its result."""
    failed = {"type": "mcp_call", "id": "mcp_1", "name": "tide", "error": "down", "output": None}

    deltas, reply = said(*stream([failed]))

    assert deltas[-1] == ProviderToolDelta(0, "tide", "failed")
    (part,) = reply.message.parts
    assert isinstance(part, OpaquePart)
    assert json.loads(part.data) == failed


def test_items_may_end_in_any_order() -> None:
    """Reasoning is done after the message was begun, and calls are done at the end."""
    thought, spoken = ITEMS["reasoning"]
    one, other = stream([thought])[1:-1], stream([spoken])[1:-1]
    for event in other:
        event["output_index"] = 1
    last = {"type": "response.completed", "response": response([thought, spoken], "completed")}

    mixed = said(one[0], *other[:-1], *one[1:], other[-1], last)[1]

    assert mixed == said(*stream([thought, spoken]))[1]


NOTHING: JsonObject = {}
FAILURES: list[tuple[list[JsonObject], type[ProviderError]]] = [
    ([{"type": "error", "code": "server_error", "message": "m"}], Overloaded),
    ([{"type": "error", "error": {"type": "server_error", "message": "m"}}], Overloaded),
    ([{"error": {"code": 500, "message": "m"}}], Overloaded),
    (
        [
            {
                "type": "response.failed",
                "response": response((), "failed")
                | {"error": {"code": "insufficient_quota", "message": "m"}},
            }
        ],
        RequestRejected,
    ),
    (
        [
            {
                "type": "response.failed",
                "response": {"error": {"code": "context_length_exceeded", "message": "m"}},
            }
        ],
        ContextOverflow,
    ),
    ([{"type": "response.failed", "response": {"status": "failed"}}], StreamTruncated),
    ([{"type": "response.cancelled", "response": NOTHING}], StreamTruncated),
    ([], StreamTruncated),
    (stream(ITEMS["text"])[:-1], StreamTruncated),
]


@pytest.mark.parametrize(("events", "kind"), FAILURES)
def test_a_failure_of_the_server_is_an_error(
    events: list[JsonObject], kind: type[ProviderError]
) -> None:
    """Of the class that decides whether the request is sent again."""
    with pytest.raises(ProviderError) as caught:
        said(*events)

    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_item.added"},
        {"type": "response.output_item.added", "item": []},
        {"type": "response.output_item.added", "item": {"type": 1}},
        {"type": "response.completed", "response": []},
        {"type": "response.completed", "response": {"output": {}}},
        {"type": "response.completed", "response": {"output": [1]}},
        {"type": "response.output_item.done", "item": {"type": "message", "content": ["x"]}},
        {"type": "response.output_item.done", "item": {"type": "function_call", "arguments": {}}},
    ],
)
def test_another_wire_is_a_bad_reply(event: JsonObject) -> None:
    """The error quotes the event, and says to check the server."""
    with pytest.raises(BadReply, match=r"[Cc]heck that the"):
        said(event)


def test_what_the_wire_does_not_know_is_passed_over() -> None:
    """New events, a marker of another wire, deltas of no item, and all after the last event."""
    events = stream(ITEMS["text"])
    stray = {"type": "response.output_text.delta", "item_id": "no", "delta": "x"}
    encoded = [json.dumps(event).encode() for event in (*events[:-1], stray, events[-1])]
    new = [b'{"type":"response.tomorrow"}', b'{"type":"keepalive"}']
    blobs = [encoded[0], *new, *encoded[1:], b"[DONE]", json.dumps(events[2]).encode()]

    deltas, reply = heard(WIRE, [ServerEvent("", data) for data in blobs])

    assert (deltas, reply) == said(*events)


def test_a_text_without_an_index_is_the_latest() -> None:
    """llama.cpp sends no index; each part that it adds begins a text."""
    both = message("msg_1", text("One."), text("Two."))

    reply = said(*stream([both], "llama", size=1))[1]

    assert [part.text for part in reply.message.parts if part.type == "text"] == ["One.", "Two."]


def test_content_has_started_with_the_first_item_that_a_retry_would_repeat() -> None:
    """A search that the server ran is paid for, even before a word is shown."""
    decoder = WIRE.decoder()
    created, added = stream(ITEMS["cited"])[:2]
    list(decoder.feed(ServerEvent("", json.dumps(created).encode())))
    assert not decoder.content_started
    list(decoder.feed(ServerEvent("", json.dumps(added).encode())))
    assert decoder.content_started


def test_the_usage_comes_with_the_last_event() -> None:
    """It counts even if the reply is thrown away."""
    decoder = WIRE.decoder()
    items = [
        item
        for event in stream(ITEMS["text"])
        for item in decoder.feed(ServerEvent("", json.dumps(event).encode()))
    ]

    assert items[-1] == UsageSoFar(decoder.reply().usage)
