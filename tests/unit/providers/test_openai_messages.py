"""One message as the OpenAI chat wire writes it, line by line of what servers accept."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, get_args

import pytest

from graphloop.errors import ConfigError
from graphloop.media import Inline, MediaPart, Url
from graphloop.providers.base import ServerEvent
from graphloop.providers.openai_chat.messages import THINKING_EXTRA, TRANSCRIPT_EXTRA
from graphloop.providers.openai_chat.wire import OpenAIChat, ReasoningReturn
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    ReasoningPart,
    ResultStatus,
    SystemMessage,
    TextPart,
    UserMessage,
    evolve,
)
from tests.openai_talk import LONDON, NYC, QUESTION, SYSTEM, result, said, sent


def test_results_are_paired_with_calls_by_position() -> None:
    """Many servers repeat ids; a lookup by id would answer the wrong call."""
    calls = said(evolve(NYC, id="call_0"), evolve(LONDON, id="call_0"))

    found = sent(calls, result("first", "other"), result("second", "ids"))

    ids = ["call_0", "call00001"]
    assert ids == [call["id"] for call in found[0]["tool_calls"]]
    assert [(one["tool_call_id"], one["content"]) for one in found[1:]] == [
        (ids[0], "first"),
        (ids[1], "second"),
    ]


def test_calls_without_an_id_get_one_from_their_number() -> None:
    """An empty id is refused by servers, and a random one would change the prefix."""
    calls = said(evolve(NYC, id=""), LONDON, evolve(NYC, id=""))

    found = sent(QUESTION, calls, result("a"), result("b"), result("c"))

    ids = ["call00000", "call_b", "call00002"]
    assert ids == [call["id"] for call in found[1]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in found[2:]]


def test_a_made_up_id_is_no_other_calls_id() -> None:
    """A server that answers in our own form must not make two calls one."""
    calls = said(evolve(NYC, id="call00001"), evolve(LONDON, id=""))
    later = said(evolve(NYC, id="call00002"))

    found = sent(calls, result("a"), result("b"), later, result("c"))

    made = [call["id"] for turn in (found[0], found[3]) for call in turn["tool_calls"]]
    assert made == ["call00001", "call00002", "call00003"]
    assert made == [one["tool_call_id"] for one in found if one["role"] == "tool"]


def test_a_result_without_a_call_is_refused() -> None:
    """The server would refuse each request with it, and its words would not tell the place."""
    with pytest.raises(ConfigError, match=r"messages\[3\].*after all 1 call"):
        sent(QUESTION, said(NYC), result("a"), result("b"))


@pytest.mark.parametrize("status", sorted(set(get_args(ResultStatus)) - {"ok"}))
def test_a_result_that_is_an_error_says_so(status: ResultStatus) -> None:
    """The wire has no flag for it, and the model must not take a traceback for an answer."""
    failed = evolve(result("division by zero"), status=status)
    shown = evolve(result((TextPart("half a page"), MediaPart("image/*", Url("u")))), status=status)

    found = sent(said(NYC, LONDON, NYC), failed, shown, QUESTION, result("division by zero"))

    assert [found[at]["content"] for at in (1, 2)] == [
        "Error: division by zero",
        "Error: half a page",
    ]
    assert found[-1]["content"] == "division by zero"


def test_arguments_are_sent_back_as_the_model_wrote_them() -> None:
    """Spaces and order are the model's; a prompt cache holds exactly these."""
    written = '{ "b": 1.0,  "a": "\\u00e9" }'

    found = sent(said(evolve(NYC, arguments=written)), result("ok"))

    assert found[0]["tool_calls"][0]["function"]["arguments"] == written


def test_flat_reasoning_goes_back_only_on_turns_with_calls() -> None:
    """DeepSeek-style servers refuse call turns without it and ignore it elsewhere."""
    thought = ReasoningPart("Two cities.")

    found = sent(said(thought, NYC), result("72"), said(thought, TextPart("72")))

    assert list(found[0]) == ["role", "content", "reasoning_content", "tool_calls"]
    assert found[0]["reasoning_content"] == "Two cities."
    assert list(found[2]) == ["role", "content"]


def test_flat_reasoning_goes_back_under_the_name_it_came_by() -> None:
    """Groq and vLLM read `reasoning` and refuse, or do not see, `reasoning_content`."""
    turns: list[Message] = []
    for field in ("reasoning", "reasoning_content"):
        decoder = OpenAIChat("m").decoder()
        call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
        delta = {field: f"Hm: {field}", "tool_calls": [call]}
        chunk = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
        decoder.feed(ServerEvent("", json.dumps(chunk).encode()))
        turns += [decoder.reply().message, result("72")]

    found = sent(*turns)

    assert list(found[0]) == ["role", "content", "reasoning", "tool_calls"]
    assert found[0]["reasoning"] == "Hm: reasoning"
    assert list(found[2]) == ["role", "content", "reasoning_content", "tool_calls"]
    assert found[2]["reasoning_content"] == "Hm: reasoning_content"


def test_structured_reasoning_goes_back_verbatim_instead_of_flat() -> None:
    """Signed blocks are checked by the model's server; any change breaks them."""
    details = [{"type": "reasoning.text", "text": "Hm", "signature": "s", "index": 0}]
    extra = json.dumps({"reasoning_details": details})
    turn = said(ReasoningPart("Hm"), NYC, extra=extra)

    found = sent(turn, result("72"), said(TextPart("72"), extra=extra))

    assert found[0]["reasoning_details"] == details
    assert "reasoning_content" not in found[0]
    assert list(found[2]) == ["role", "content"]


def test_unknown_fields_go_back_to_their_own_wire() -> None:
    """Gemini behind this wire refuses a call whose thought signature is missing."""
    extra = '{"extra_content":{"sig":"c2ln"},"function":{"strict":true,"name":"no"},"id":"no"}'
    turn = said(TextPart("Hi"), evolve(NYC, extra=extra), extra='{"audio":{"id":"a"},"role":"no"}')

    found = sent(turn, result("72"))[0]

    assert (found["role"], found["audio"]) == ("assistant", {"id": "a"})
    call = found["tool_calls"][0]
    assert (call["id"], call["extra_content"]) == ("call_a", {"sig": "c2ln"})
    assert (call["function"]["name"], call["function"]["strict"]) == ("get_weather", True)


def test_typed_thinking_goes_back_as_it_came() -> None:
    """Mistral refuses `reasoning_content`; its thinking is a typed part of the content."""
    decoder = OpenAIChat("m").decoder()
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Look:"},
        {"type": "reference", "reference_ids": [1]},
    ]
    call = {"id": "m1", "function": {"name": "get_weather", "arguments": "{}"}}
    delta = {"content": content, "tool_calls": [call]}
    chunk = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
    decoder.feed(ServerEvent("", json.dumps(chunk).encode()))
    turn = decoder.reply().message

    found = sent(turn, result("72"), said(*turn.parts[:2]))

    assert found[0]["content"] == content
    assert "reasoning_content" not in found[0]
    assert found[2] == {"role": "assistant", "content": "Look:"}


def test_images_and_files_of_a_user_become_content_parts() -> None:
    """The wire takes base64 only as a data URL."""
    parts = (
        TextPart("See"),
        MediaPart("image/*", Url("https://example.org/a.png")),
        MediaPart("image/png", Inline(b"ABC")),
        MediaPart("application/pdf", Inline(b"ABC"), "a.pdf"),
        MediaPart("text/plain", Inline(b"ABC")),
    )

    found = sent(UserMessage(parts), UserMessage(()))

    assert found[0]["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"},
        },
        {
            "type": "file",
            "file": {"filename": "file.txt", "file_data": "data:text/plain;base64,QUJD"},
        },
    ]
    assert found[1]["content"] == ""


def test_a_models_own_pictures_go_back_only_to_this_wire() -> None:
    """The model continues from what it has drawn; another wire would refuse the field."""
    drawn = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}, "index": 0}
    part = MediaPart("image/png", Inline(b"hi"), extra='{"index":0}')
    own = AssistantMessage((TextPart("A fox."), part), "openai")

    found = sent(own, QUESTION, evolve(own, wire="another"))

    assert found[0] == {"role": "assistant", "content": "A fox.", "images": [drawn]}
    assert found[2] == {"role": "assistant", "content": "A fox."}
    both = sent(evolve(own, extra='{"images":["unknown"]}'))
    assert [drawn, "unknown"] == both[0]["images"]


def spoken(until: float = 9_999_999_999, model: str = "gpt-4o") -> AssistantMessage:
    extra = json.dumps({"model": model, "id": "audio_1", "expires_at": until})
    words = TextPart("Hello", TRANSCRIPT_EXTRA)
    return AssistantMessage((words, MediaPart("audio/wav", Inline(b"hi"), extra=extra)), "openai")


def test_what_a_model_said_aloud_goes_back_by_its_id() -> None:
    """The server knows the sound, which is much longer than its id."""
    call = evolve(spoken(), parts=(*spoken().parts, TextPart("See:"), NYC))

    found = sent(spoken(), QUESTION, call, result("72"))

    assert {"role": "assistant", "audio": {"id": "audio_1"}} == found[0]
    assert ("See:", {"id": "audio_1"}) == (found[2]["content"], found[2]["audio"])
    assert ["call_a"] == [each["id"] for each in found[2]["tool_calls"]]


@pytest.mark.parametrize(
    "message",
    [
        spoken(until=1),
        spoken(model="another"),
        evolve(spoken(), wire="another"),
        evolve(spoken(), parts=(spoken().parts[0], MediaPart("audio/wav", Inline(b"hi")))),
    ],
)
def test_sound_that_the_server_no_longer_knows_goes_back_as_its_words(
    message: AssistantMessage,
) -> None:
    """An id that has expired, or one of another model or server, would end the conversation."""
    assert sent(message) == [{"role": "assistant", "content": "Hello"}]


def test_a_long_run_sends_words_once_the_server_has_forgotten_the_sound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The encoder keeps what it has encoded, perhaps for longer than the server keeps the sound."""
    encoder, request = OpenAIChat("gpt-4o").encoder(), ModelRequest((spoken(until=1_000),))
    answers: list[Any] = []

    for now in (900, 930, 950):
        monkeypatch.setattr("graphloop.providers.encoder.time", partial(float, now))
        answers.append(json.loads(b"".join(encoder.encode(request)))["messages"])

    by_id = [{"role": "assistant", "audio": {"id": "audio_1"}}]
    assert [by_id, by_id, [{"role": "assistant", "content": "Hello"}]] == answers


def test_images_of_results_follow_the_whole_batch() -> None:
    """A tool message holds text only, and nothing may stand between calls and results."""
    image = MediaPart("image/*", Url("https://example.org/a.png"))

    found = sent(said(NYC, LONDON), result((TextPart("see"), image)), result("rain"), QUESTION)

    assert [one["role"] for one in found] == ["assistant", "tool", "tool", "user", "user"]
    assert found[1]["content"] == "see"
    note, shown = found[3]["content"]
    assert "get_weather" in note["text"]
    assert "call_a" in note["text"]
    assert shown["image_url"]["url"] == "https://example.org/a.png"


def test_images_of_an_unfinished_batch_never_split_it() -> None:
    """They are sent at the end, and move behind the results that come later."""
    image = MediaPart("image/*", Url("https://example.org/a.png"))
    encoder = OpenAIChat("m").encoder()
    history = History[Message]((said(NYC, LONDON), result((image,))))

    first = json.loads(b"".join(encoder.encode(ModelRequest(history))))["messages"]
    longer = history.append(result("rain"))
    second = json.loads(b"".join(encoder.encode(ModelRequest(longer))))["messages"]

    assert [one["role"] for one in first] == ["assistant", "tool", "user"]
    assert [one["role"] for one in second] == ["assistant", "tool", "tool", "user"]


def test_system_messages_keep_their_place() -> None:
    """Instructions given in the middle speak about what follows them."""
    found = sent(SYSTEM, QUESTION, SystemMessage("Be brief."))

    assert [one["role"] for one in found] == ["system", "user", "system"]


@pytest.mark.parametrize("reasoning", ["auto", "never"])
def test_reasoning_can_be_kept_from_the_server_in_every_form(reasoning: ReasoningReturn) -> None:
    """Strict servers refuse the fields; signed blocks and typed parts are reasoning as well."""
    parts = (ReasoningPart("Hm", extra=THINKING_EXTRA), TextPart("Look:"))
    extra = '{"reasoning_details":[{"index":0}],"audio":{"id":"a"}}'
    turns = (said(ReasoningPart("Hm"), NYC), result("72"), said(*parts, NYC, extra=extra))
    encoder = OpenAIChat("m", reasoning=reasoning).encoder()

    flat, _, typed = json.loads(b"".join(encoder.encode(ModelRequest(turns))))["messages"]

    kept = reasoning == "never"
    assert flat.get("reasoning_content") == (None if kept else "Hm")
    assert (typed["content"] == "Look:") is kept
    assert ("reasoning_details" not in typed) is kept
    assert typed["audio"] == {"id": "a"}
