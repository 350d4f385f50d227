"""The Gemini decoder: what a server streams, in each form, and what the run gets of it."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pytest

from graphloop.errors import (
    BadReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
    StreamTruncated,
)
from graphloop.media import Inline, MediaPart
from graphloop.providers.base import (
    Delta,
    MediaDelta,
    ProviderToolDelta,
    ServerEvent,
    ToolCallDelta,
    UsageSoFar,
)
from graphloop.providers.google.wire import GOOGLE_WORDS, GoogleGemini
from graphloop.values import FinishReason, OpaquePart, Reply, TextPart, ToolCall, Usage
from tests.for_each import for_each
from tests.google_talk import FORMS, ITEMS, PIXEL, WIRE, Form, call, chunk, stream
from tests.transcripts import heard

JsonObject: TypeAlias = dict[str, Any]
NOTHING: JsonObject = {}


def said(*chunks: JsonObject) -> tuple[list[Delta], Reply]:
    """Return what a stream of chunks shows, and the reply."""
    return heard(WIRE, [ServerEvent("", json.dumps(each).encode()) for each in chunks])


FINISHED = {
    "text": FinishReason.STOP,
    "signed text": FinishReason.STOP,
    "search": FinishReason.TOOL_CALLS,
    "two searches": FinishReason.STOP,
    "calls": FinishReason.TOOL_CALLS,
    "nothing": FinishReason.STOP,
}


@for_each("name", ITEMS)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_stream_gives_the_same_reply(form: Form, name: str) -> None:
    """Models and options decide where a stream is cut; the parts are the same."""
    expected = said(*stream(ITEMS[name]))[1]

    assert said(*stream(ITEMS[name], form))[1] == expected
    assert expected.finish_reason is FINISHED.get(name, expected.finish_reason)


def test_a_signature_stays_on_its_own_part() -> None:
    """Two texts are joined only if neither has a signature, for it must go back with its text."""
    parts = [{"text": "a"}, {"text": "b"}, {"text": "c", "thoughtSignature": "s"}, {"text": "d"}]

    (reply,) = {said(chunk(parts, "STOP"))[1].message.parts}

    assert reply == (
        TextPart("ab"),
        TextPart("c", '{"thoughtSignature":"s"}'),
        TextPart("d"),
    )


def test_the_usage_counts_each_token_once_and_grows() -> None:
    """The prompt count holds the cached tokens; thoughts and results of server tools are apart."""
    decoder = WIRE.decoder()
    items = [
        item
        for each in stream(ITEMS["text"])
        for item in decoder.feed(ServerEvent("", json.dumps(each).encode()))
    ]
    reports = [item.usage for item in items if isinstance(item, UsageSoFar)]

    reply = decoder.reply()

    assert reply.usage == Usage(9, 11, cache_read_tokens=5, reasoning_tokens=3)
    assert reports[0] == Usage(12, 1)
    assert reports[-1] == reply.usage
    assert [one.output_tokens for one in reports] == sorted(one.output_tokens for one in reports)
    assert reply.model == "gemini-3-flash-preview"
    assert json.loads(reply.metadata) == {"responseId": "vQRpaqzAPN2M9MoPxPq2uQ4"}


def test_a_report_without_counts_does_not_reset_the_usage() -> None:
    """Vertex AI sends the type of traffic in each chunk, and the counts once."""
    chunks = [
        chunk([{"text": "Hi."}], usage={"promptTokenCount": 4, "candidatesTokenCount": 1}),
        chunk([{"text": ""}], "STOP", usage={"trafficType": "ON_DEMAND"}),
    ]

    assert said(*chunks)[1].usage == Usage(4, 1)


@pytest.mark.parametrize("word", GOOGLE_WORDS)
def test_each_finish_word_has_its_meaning(word: str) -> None:
    """A call runs only after a word that says that the answer is whole."""
    means = GOOGLE_WORDS[word].means
    chunks = stream(ITEMS["call"], finish=word.upper())

    if means is None:
        with pytest.raises(StreamTruncated, match=word.upper()):
            said(*chunks)
        return
    expected = FinishReason.TOOL_CALLS if means is FinishReason.STOP else means
    reply = said(*chunks)[1]
    assert reply.finish_reason is expected
    assert reply.raw_finish_reason == word.upper()


def test_a_word_of_tomorrow_says_nothing() -> None:
    """Unless the caller knows what the word means."""
    chunks = stream(ITEMS["call"], finish="TOMORROW")
    known = GoogleGemini("m", finish_words={"tomorrow": GOOGLE_WORDS["stop"]})

    assert said(*chunks)[1].finish_reason is FinishReason.OTHER
    events = [ServerEvent("", json.dumps(each).encode()) for each in chunks]
    assert heard(known, events)[1].finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("word", ["PROHIBITED_CONTENT", "OTHER", "JAILBREAK", "A_NEW_WORD"])
def test_a_blocked_prompt_is_filtered(word: str) -> None:
    """The server sends no candidate then, and no finish reason."""
    feedback = {"blockReason": word}
    blocked = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 9}}

    reply = said(blocked)[1]

    assert (reply.finish_reason, reply.raw_finish_reason) == (FinishReason.CONTENT_FILTER, word)
    assert json.loads(reply.metadata) == {"promptFeedback": feedback}
    assert (reply.message.parts, reply.usage) == ((), Usage(9))


@pytest.mark.parametrize(
    "only", [{"candidates": []}, {"usageMetadata": {"promptTokenCount": 9}}, {"promptFeedback": {}}]
)
def test_an_answer_without_a_candidate_is_filtered(only: JsonObject) -> None:
    """The server documents it for a blocked prompt; to ask again would not help."""
    assert said(only)[1].finish_reason is FinishReason.CONTENT_FILTER


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "SAFETY"])
def test_a_candidate_may_have_no_content(finish: str) -> None:
    """All tokens went into thoughts, or the text was withheld."""
    candidates: tuple[JsonObject, ...] = (
        *({}, {"content": {}}),
        *({"content": {"role": "model"}}, {"content": None}),
    )
    for candidate in candidates:
        reply = said({"candidates": [{**candidate, "finishReason": finish}]})[1]

        assert reply.message.parts == ()
        assert reply.finish_reason is GOOGLE_WORDS[finish.lower()].means


def test_arguments_in_pieces_may_come_in_any_order() -> None:
    """Two texts may grow in turns, and a call may begin with whole arguments."""
    pieces = [
        {"jsonPath": "$.a", "stringValue": "1", "willContinue": True},
        {"jsonPath": '$["b c"].d[0]', "stringValue": "x\ud83d", "willContinue": True},
        {"jsonPath": "$.a", "stringValue": "2"},
        {"jsonPath": '$["b c"].d[0]', "stringValue": "\udc69"},
        {"jsonPath": "$['it\\'s']", "boolValue": False},
    ]
    started = {"name": "f", "args": {"z": 0}, "partialArgs": pieces[:2], "willContinue": True}
    parts: list[JsonObject] = [
        {"functionCall": started},
        {"functionCall": {"partialArgs": pieces[2:]}, "thoughtSignature": "s"},
    ]

    deltas, reply = said(chunk(parts, "STOP"))

    (made,) = reply.message.calls
    assert json.loads(made.arguments) == {"z": 0, "a": "12", "b c": {"d": ["x👩"]}, "it's": False}
    assert made.extra == '{"thoughtSignature":"s"}'
    assert deltas == [ToolCallDelta(0, "", "f", ""), ToolCallDelta(0, "", "", made.arguments)]


@pytest.mark.parametrize(
    "more",
    [
        [{"jsonPath": "$.note", "stringValue": "half", "willContinue": True}],
        [],
    ],
)
def test_a_call_that_was_cut_never_runs(more: list[JsonObject]) -> None:
    """Even if the server says STOP: it announced more of the call, and sent none."""
    begun = {"functionCall": {"name": "pay", "willContinue": True}}
    cut = [{"functionCall": {"partialArgs": [piece], "willContinue": True}} for piece in more]

    assert said(chunk([begun, *cut], "STOP"))[1].finish_reason is FinishReason.LENGTH


def test_a_new_name_begins_a_new_call() -> None:
    """The end of the call before it may be missing."""
    parts: list[JsonObject] = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]}},
        call("g", {"b": 2}),
    ]

    calls = said(chunk(parts, "STOP"))[1].message.calls

    assert calls == (ToolCall("", "f", '{"a":1}'), ToolCall("", "g", '{"b":2}'))


def test_fields_that_only_this_wire_knows_are_kept() -> None:
    """Of the part, and of the call inside it."""
    part: JsonObject = {
        "functionCall": {"name": "f", "args": {}, "priority": 1},
        "partMetadata": {"a": 1},
    }

    (made,) = said(chunk([part], "STOP"))[1].message.calls

    assert json.loads(made.extra) == {"partMetadata": {"a": 1}, "functionCall": {"priority": 1}}


def test_the_server_tells_what_its_tools_do() -> None:
    """A page can show that the server searches, and that code has failed."""
    searched, _ = said(*stream(ITEMS["two searches"]))
    ran, _ = said(*stream(ITEMS["failed code"]))

    assert [one for one in searched if isinstance(one, ProviderToolDelta)] == [
        ProviderToolDelta(0, "google_search_web", "running", '{"queries":["tide"]}'),
        ProviderToolDelta(1, "url_context", "running", '{"urls":["https://a.b"]}'),
        ProviderToolDelta(1, "url_context", "done"),
        ProviderToolDelta(0, "google_search_web", "done"),
    ]
    (begun, failed) = [one for one in ran if isinstance(one, ProviderToolDelta)]
    assert (begun.name, begun.state, failed.state) == ("code_execution", "running", "failed")
    assert json.loads(begun.arguments)["code"] == "print(1 + 1)"


def test_media_of_the_model_are_shown_and_kept() -> None:
    """A picture comes whole; a sound comes in pieces, which belong together."""
    drawn, pictures = said(*stream(ITEMS["two pictures"]))
    spoken, sound = said(*stream(ITEMS["sound"]))

    shown = [one for one in drawn if isinstance(one, MediaDelta)]
    assert [(one.index, one.media_type) for one in shown] == [(0, "image/png"), (1, "image/png")]
    assert pictures.message.media == (MediaPart("image/png", Inline(PIXEL)),) * 2
    assert len(sound.message.media) == 1
    assert [one.index for one in spoken if isinstance(one, MediaDelta)] == [0]


@pytest.mark.parametrize("data", ["!!", "a", ""])
def test_media_that_are_no_base64_stay_opaque(data: str) -> None:
    """They go back as they came."""
    part = {"inlineData": {"mimeType": "image/png", "data": data}}

    deltas, reply = said(chunk([part], "STOP"))

    assert deltas == []
    (kept,) = reply.message.parts
    assert isinstance(kept, OpaquePart)
    assert json.loads(kept.data) == part


def test_media_in_the_alphabet_of_urls_are_read() -> None:
    """Some gateways write bytes so."""
    part = {"inlineData": {"mimeType": "image/png", "data": "-_-_"}}

    (medium,) = said(chunk([part], "STOP"))[1].message.media

    assert medium.source == Inline(b"\xfb\xff\xbf")


def test_sources_of_an_answer_are_in_its_metadata() -> None:
    """A page links them; no request carries them back."""
    grounded = chunk([{"text": "Noon."}])
    grounded["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["tide"]}
    last = chunk([{"text": ""}], "STOP")
    last["candidates"][0]["urlContextMetadata"] = {"urlMetadata": [{"retrievedUrl": "https://a"}]}

    metadata = json.loads(said(grounded, last)[1].metadata)

    assert metadata["groundingMetadata"] == {"webSearchQueries": ["tide"]}
    assert metadata["urlContextMetadata"]["urlMetadata"] == [{"retrievedUrl": "https://a"}]


def test_the_first_of_several_answers_counts() -> None:
    """Servers send one; an option of a gateway may ask for more."""
    both = chunk([{"text": "One."}], "STOP")
    both["candidates"].append({"index": 1, "content": {"parts": [{"text": "Two."}]}})

    assert said(both)[1].message.text == "One."


FAILURES: list[tuple[list[JsonObject], type[ProviderError]]] = [
    ([{"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}], Overloaded),
    ([{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}], RateLimited),
    ([{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}], RequestRejected),
    ([], StreamTruncated),
    ([NOTHING], StreamTruncated),
    (stream(ITEMS["text"])[:-1], StreamTruncated),
    ([chunk([{"text": "Hi."}], "FINISH_REASON_UNSPECIFIED")], StreamTruncated),
]


@pytest.mark.parametrize(("chunks", "kind"), FAILURES)
def test_a_failure_of_the_server_is_an_error(
    chunks: list[JsonObject], kind: type[ProviderError]
) -> None:
    """Of the class that decides whether the request is sent again."""
    with pytest.raises(ProviderError) as caught:
        said(*chunks)

    assert type(caught.value) is kind


def test_the_server_says_how_long_to_wait() -> None:
    """In the body: it sends no header for it."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}]
    error = {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}

    found = WIRE.error(429, json.dumps({"error": error}).encode())

    assert isinstance(found, RateLimited)
    assert found.retry_after_s == 34.4


MISSHAPEN: list[JsonObject] = [
    {"candidates": {}},
    {"candidates": [1]},
    {"candidates": [{"content": []}]},
    {"candidates": [{"content": {"parts": {}}}]},
    {"candidates": [{"content": {"parts": ["x"]}}]},
    {"candidates": [{"finishReason": 1}]},
    {"promptFeedback": 1},
    {"usageMetadata": 1},
    {"modelVersion": 1},
    chunk([call("f", {}) | {"functionCall": {"name": 1}}]),
    chunk([{"functionCall": {"name": "f", "args": []}}]),
    chunk([{"functionCall": {"name": "f", "partialArgs": [{"jsonPath": 1}]}}]),
    chunk([{"functionCall": {"name": "f", "partialArgs": [{"stringValue": 1}]}}]),
]


@pytest.mark.parametrize("event", MISSHAPEN)
def test_another_wire_is_a_bad_reply(event: JsonObject) -> None:
    """The error quotes the event, and says to check the server."""
    with pytest.raises(BadReply, match=r"[Cc]heck that the"):
        said(event, *stream(ITEMS["text"]))


@pytest.mark.parametrize(
    "path",
    [
        *("", "$", "a.b", "$.a b]", "$..a", "$[*]", "$[0]", "$.list[2]", "$.list.a", "$.text.a"),
        *("$.object[0]", "$.text[0]", "$" + ".a" * 101),
    ],
)
def test_a_path_that_fits_no_arguments_is_a_bad_reply(path: str) -> None:
    """It would lose a value, or fill the memory."""
    args: JsonObject = {"list": [1], "object": {}, "text": "x"}
    partial: list[JsonObject] = [{"jsonPath": path, "numberValue": 1}]
    part = {"functionCall": {"name": "f", "args": args, "partialArgs": partial}}

    with pytest.raises(BadReply, match="jsonPath"):
        said(chunk([part], "STOP"))


def test_what_follows_the_finish_reason_is_passed_over() -> None:
    """And so are markers of another wire, and empty parts."""
    chunks = stream(ITEMS["text"])
    encoded = [json.dumps(each).encode() for each in chunks]
    empty = json.dumps(chunk([{"text": "", "thought": True}, {"functionCall": {}}, {}])).encode()
    blobs = [b"", empty, *encoded, b"[DONE]", encoded[0], b"no json"]

    deltas, reply = heard(WIRE, [ServerEvent("", data) for data in blobs])

    assert (deltas, reply.message) == (said(*chunks)[0], said(*chunks)[1].message)


def test_content_has_started_with_the_first_part_that_a_retry_would_repeat() -> None:
    """A search that the server ran is paid for, even before a word is shown."""
    decoder = WIRE.decoder()
    list(decoder.feed(ServerEvent("", json.dumps(chunk([{"text": ""}])).encode())))
    assert not decoder.content_started
    stored = chunk([{"fileData": {"fileUri": "https://a.b/c"}}])
    list(decoder.feed(ServerEvent("", json.dumps(stored).encode())))
    assert decoder.content_started
