"""Each kind of media, from each source, on each wire: sent as the wire wants, or refused.

A new wire is a row of `WIRES`: its format, the vendor's own types of its messages, and the JSON of
each part that it takes. All other parts must be refused before anything is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

from graphloop.errors import ConfigError
from graphloop.media import FileId, Inline, MediaPart, MediaSource, Url
from graphloop.providers import is_list, is_object
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.for_each import for_each
from tests.strategies import media_sources

Json: TypeAlias = Mapping[str, object]

TYPES = ("image/png", "image/jpeg", "application/pdf", "audio/wav", "video/mp4", "text/plain")
SOURCES: Mapping[str, MediaSource] = {
    "inline": Inline(b"hi"),
    "url": Url("https://example.org/a"),
    "file id": FileId("file_1"),
}
PLACES = ("user", "tool")

odd_types = st.sampled_from([*TYPES, "image/*", "text/*", "text/csv", "application/json", "a", ""])
odd_extras = st.sampled_from(["", "{", "[]", "{}", '{"detail": "low"}', '{"context": "c"}'])
odd_parts = st.builds(
    MediaPart, odd_types, media_sources, st.text(max_size=5), odd_extras | st.text(max_size=5)
)


@dataclass(frozen=True)
class Row:
    """A wire, the field of its requests that holds the messages, and what it takes."""

    wire: Wire
    field: str
    published: TypeAdapter[Any]
    taken: Mapping[tuple[str, str], Json]


def anthropic_row() -> Row:
    taken: dict[tuple[str, str], Json] = {}
    for media_type in ("image/png", "image/jpeg", "application/pdf"):
        kind = "document" if media_type == "application/pdf" else "image"
        sources: Mapping[str, Json] = {
            "inline": {"type": "base64", "media_type": media_type, "data": "aGk="},
            "url": {"type": "url", "url": "https://example.org/a"},
            "file id": {"type": "file", "file_id": "file_1"},
        }
        for name, source in sources.items():
            taken[media_type, name] = {"type": kind, "source": source}
    text = {"type": "text", "media_type": "text/plain", "data": "hi"}
    taken["text/plain", "inline"] = {"type": "document", "source": text}
    file_id = {"type": "file", "file_id": "file_1"}
    taken["text/plain", "file id"] = {"type": "document", "source": file_id}
    return Row(AnthropicMessages("m"), "messages", TypeAdapter(list[MessageParam]), taken)


def chat_row() -> Row:
    taken: dict[tuple[str, str], Json] = {}
    for media_type in ("image/png", "image/jpeg"):
        data = f"data:{media_type};base64,aGk="
        taken[media_type, "inline"] = {"type": "image_url", "image_url": {"url": data}}
        url = {"url": "https://example.org/a"}
        taken[media_type, "url"] = {"type": "image_url", "image_url": url}
    for media_type, name in (("application/pdf", "file.pdf"), ("text/plain", "file.txt")):
        file = {"filename": name, "file_data": f"data:{media_type};base64,aGk="}
        taken[media_type, "inline"] = {"type": "file", "file": file}
        taken[media_type, "file id"] = {"type": "file", "file": {"file_id": "file_1"}}
    audio = {"data": "aGk=", "format": "wav"}
    taken["audio/wav", "inline"] = {"type": "input_audio", "input_audio": audio}
    published: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
    return Row(OpenAIChat("m"), "messages", published, taken)


def responses_row() -> Row:
    taken: dict[tuple[str, str], Json] = {}
    for media_type in ("image/png", "image/jpeg"):
        image = {"type": "input_image", "detail": "auto"}
        data = {"image_url": f"data:{media_type};base64,aGk="}
        taken[media_type, "inline"] = {**image, **data}
        taken[media_type, "url"] = {**image, "image_url": "https://example.org/a"}
        taken[media_type, "file id"] = {**image, "file_id": "file_1"}
    for media_type, name in (("application/pdf", "file.pdf"), ("text/plain", "file.txt")):
        data = {"filename": name, "file_data": f"data:{media_type};base64,aGk="}
        taken[media_type, "inline"] = {"type": "input_file", **data}
        taken[media_type, "url"] = {"type": "input_file", "file_url": "https://example.org/a"}
        taken[media_type, "file id"] = {"type": "input_file", "file_id": "file_1"}
    published: TypeAdapter[Any] = TypeAdapter(ResponseInputParam)
    return Row(OpenAIResponses("m"), "input", published, taken)


def google_row() -> Row:
    taken: dict[tuple[str, str], Json] = {}
    for media_type in TYPES:
        taken[media_type, "inline"] = {"inlineData": {"mimeType": media_type, "data": "aGk="}}
        for name, uri in (("url", "https://example.org/a"), ("file id", "file_1")):
            taken[media_type, name] = {"fileData": {"fileUri": uri, "mimeType": media_type}}
    return Row(GoogleGemini("m"), "contents", TypeAdapter(list[Content]), taken)


WIRES: Mapping[str, Row] = {
    "anthropic": anthropic_row(),
    "google": google_row(),
    "openai": chat_row(),
    "openai-responses": responses_row(),
}


@for_each("place", PLACES)
@for_each("source", SOURCES)
@for_each("media_type", TYPES)
@pytest.mark.parametrize("wire", WIRES)
def test_media_is_sent_as_the_wire_wants_or_refused(
    wire: str, media_type: str, source: str, place: str
) -> None:
    """A part that is dropped, or sent in another wire's form, is a wrong answer or an error 400."""
    row, part = WIRES[wire], MediaPart(media_type, SOURCES[source])
    wanted = row.taken.get((media_type, source))

    if wanted is None:
        with pytest.raises(ConfigError) as caught:
            sent(row, part, place)
        told = str(caught.value)
        assert f"the wire {wire!r}" in told
        assert media_type in told
        assert source in told.replace("URL", "url")
        assert "Fix: " in told
    else:
        messages = sent(row, part, place)
        assert wanted in [*objects(messages)]
        # The vendor's types check lists while they are read, so the messages are written again.
        assert row.published.dump_json(row.published.validate_python(messages))


@pytest.mark.parametrize("wire", WIRES)
def test_a_file_id_of_another_wire_is_refused(wire: str) -> None:
    """Its server does not have the file, and may even have another file of this id."""
    row = WIRES[wire]
    own = MediaPart("application/pdf", FileId("file_1", wire))
    foreign = MediaPart("application/pdf", FileId("file_1", "another"))

    assert row.taken["application/pdf", "file id"] in [*objects(sent(row, own, "user"))]
    with pytest.raises(ConfigError, match="of the wire 'another'"):
        sent(row, foreign, "user")


@pytest.mark.parametrize("wire", WIRES)
def test_a_field_that_the_wire_does_not_know_is_refused(wire: str) -> None:
    """It would be lost, or be answered by an error 400."""
    part = MediaPart("image/png", Inline(b"hi"), extra='{"zoom": 2}')

    with pytest.raises(ConfigError, match="found 'zoom'"):
        sent(WIRES[wire], part, "user")


@pytest.mark.parametrize("wire", WIRES)
def test_media_of_another_wires_model_is_left_out(wire: str) -> None:
    """A model's own media goes back only to the wire that it came from."""
    row = WIRES[wire]
    made = AssistantMessage((MediaPart("image/png", Inline(b"hi")),), "another")
    history = (UserMessage("go"), made, UserMessage("and?"))

    body = json.loads(b"".join(row.wire.encoder().encode(ModelRequest(history))))

    assert "aGk=" not in json.dumps(body)


@given(part=odd_parts, place=st.sampled_from(PLACES), wire=st.sampled_from(sorted(WIRES)))
def test_any_part_is_encoded_or_refused(part: MediaPart, place: str, wire: str) -> None:
    """Whatever its type, its bytes and its fields: no request is broken, and no error is ours."""
    row = WIRES[wire]
    try:
        messages = sent(row, part, place)
    except ConfigError:
        return
    assert row.published.dump_json(row.published.validate_python(messages))


def sent(row: Row, part: MediaPart, place: str) -> Any:
    """Return the messages of a request whose user message, or tool result, has this part."""
    call = AssistantMessage((ToolCall("call_1", "show", "{}"),))
    history: tuple[Message, ...] = (UserMessage((part,)),)
    if place == "tool":
        history = (UserMessage("go"), call, ToolResult("c0.0", "call_1", "show", (part,)))
    body = json.loads(b"".join(row.wire.encoder().encode(ModelRequest(history))))
    return body[row.field]


def objects(value: object) -> Iterator[object]:
    """Yield each JSON object in a value, at every depth."""
    if is_object(value):
        yield value
    for item in value.values() if is_object(value) else value if is_list(value) else ():
        yield from objects(item)
