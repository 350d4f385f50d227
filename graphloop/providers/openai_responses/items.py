"""Encode messages as items of the Responses wire format.

A server's own data (item ids, encrypted reasoning, items of the server's tools) is sent back only
if it came from this wire format, and then unchanged. These functions keep no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from ...errors import ConfigError
from ...media import FileId, Inline, MediaPart, Url
from ...values import (
    AssistantMessage,
    AssistantPart,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from ..media import MediaPlace, MediaRow, MediaTable, base64_text, data_url, file_name
from ..wire_json import (
    JsonObject,
    failure_text,
    is_object,
    json_text,
    object_in,
    object_or_empty,
    object_text,
    sent_name,
)

__all__ = [
    "CONTENT",
    "PICTURE",
    "RESPONSES_WIRE",
    "assistant_items",
    "callers_of",
    "reasoning_of",
    "result_item",
    "user_item",
]

RESPONSES_WIRE: Final = "openai-responses"

PICTURE: Final = "image_generation_call"
"""The type of the item with a picture that the model made."""

CALLER: Final = "caller"
"""The field of a call, and of its result, with the program of the server that made the call."""

CONTENT: Final = "content"
"""The field of a `TextPart.extra` that holds the fields of the text's content part."""


def user_item(message: UserMessage) -> str:
    """Return the item of a user message."""
    content = message.content
    said = content if isinstance(content, str) else _content(content, "user")
    return json_text({"role": "user", "content": said})


def result_item(result: ToolResult, call_id: str, caller: object = None) -> str:
    """Return the item with the result of the call that was sent with the id `call_id`.

    Args:
        result: the result.
        call_id: the id of the call.
        caller: the program of the server that made the call and waits for its result, if any.
    """
    content = result.content
    output: str | list[JsonObject]
    if isinstance(content, str):
        output = failure_text(content) if result.is_error else content
    else:
        output = _content(content, "tool")
        if result.is_error:
            output.insert(0, {"type": "input_text", "text": "Error:"})
    item = {"type": "function_call_output", "call_id": call_id, "output": output}
    return json_text(item if caller is None else {**item, "caller": caller})


def callers_of(message: AssistantMessage, call_ids: Sequence[str]) -> dict[str, object]:
    """Return what made each call of a message that the model did not make itself, by its id."""
    if not _keeps_own_data(message):
        return {}
    extras = [_extra(call.extra) for call in message.calls]
    pairs = zip(call_ids, extras, strict=True)
    return {call_id: extra[CALLER] for call_id, extra in pairs if extra.get(CALLER)}


def assistant_items(message: AssistantMessage, call_ids: Sequence[str]) -> list[str]:
    """Return the items of an assistant message; its calls get the ids `call_ids`."""
    own = _keeps_own_data(message)
    ids = iter(call_ids)
    items: list[str] = []
    parts = list(message.parts)
    # The server refuses reasoning that no other item follows: the reply was cut there.
    while parts and isinstance(parts[-1], ReasoningPart):
        parts.pop()
    for said, rest in _texts_together(parts):
        if said:
            items.append(_message_item(said, own=own))
        match rest:
            case ToolCall():
                items.append(_call_item(rest, next(ids), own=own))
            case ReasoningPart() if own:
                items.append(_reasoning_item(rest))
            case OpaquePart() if own:
                items.append(object_text(rest.data, place="OpaquePart.data"))
            case MediaPart() if own:
                items.append(_picture_item(rest))
            case _:
                pass
    return items


def _keeps_own_data(message: AssistantMessage) -> bool:
    """Whether a message is sent with the server's own data.

    The server refuses an item by its id if the reasoning that it followed is missing. So a message
    that has lost reasoning, for example by a compaction, is sent without.
    """
    return message.wire == RESPONSES_WIRE and message.extra in ("", reasoning_of(message.parts))


def reasoning_of(parts: Iterable[AssistantPart]) -> str:
    """Return the `extra` of a message with these parts: how many of them are reasoning."""
    count = sum(isinstance(part, ReasoningPart) for part in parts)
    return json_text({"reasoning": count}) if count else ""


def _content(parts: Iterable[UserPart], place: MediaPlace) -> list[JsonObject]:
    return [
        {"type": "input_text", "text": part.text}
        if isinstance(part, TextPart)
        else _MEDIA.json_of(part, place)
        for part in parts
    ]


def _image(part: MediaPart, extra: JsonObject) -> JsonObject:
    # The API's types require `detail`.
    return {"type": "input_image", **_source(part, "image"), "detail": "auto", **extra}


def _file(part: MediaPart, extra: JsonObject) -> JsonObject:
    name = {"filename": file_name(part)} if isinstance(part.source, Inline) else {}
    return {"type": "input_file", **name, **_source(part, "file"), **extra}


def _source(part: MediaPart, kind: str) -> JsonObject:
    match part.source:
        case Inline():
            field = "image_url" if kind == "image" else "file_data"
            return {field: data_url(part.media_type, part.source)}
        case Url(url=url):
            return {f"{kind}_url": url}
        case FileId(id=file_id):
            return {"file_id": file_id}
        case _:
            assert_never(part.source)


_MEDIA: Final = MediaTable(
    RESPONSES_WIRE,
    (
        MediaRow(
            ("image/png", "image/jpeg", "image/gif", "image/webp"),
            (Inline, Url, FileId),
            _image,
            extra=("detail",),
        ),
        MediaRow(("application/*", "text/*"), (Inline, Url, FileId), _file, extra=("detail",)),
    ),
)


def _texts_together(
    parts: Iterable[AssistantPart],
) -> Iterable[tuple[list[TextPart], AssistantPart | None]]:
    """Yield the texts of each message item, with the part of another kind that follows them."""
    texts: list[TextPart] = []
    for part in parts:
        if not isinstance(part, TextPart):
            yield texts, part
            texts = []
            continue
        if texts and _item_id(texts[-1]) != _item_id(part):
            yield texts, None
            texts = []
        texts.append(part)
    yield texts, None


def _item_id(part: TextPart) -> object:
    return _extra(part.extra).get("id")


def _message_item(texts: Sequence[TextPart], *, own: bool) -> str:
    if not own:
        said = "".join(part.text for part in texts)
        # llama.cpp needs the type, which OpenAI's reference leaves open.
        return json_text({"type": "message", "role": "assistant", "content": said})
    fields: JsonObject = {"status": "completed", **_extra(texts[0].extra)}
    fields.pop(CONTENT, None)
    content = [_output_text(part) for part in texts]
    return json_text({"type": "message", "role": "assistant", **fields, "content": content})


def _output_text(part: TextPart) -> JsonObject:
    fields = _extra(part.extra).get(CONTENT, {})
    if not is_object(fields):
        raise ConfigError(
            f"TextPart.extra: {CONTENT}: expected an object, found {fields!r:.80}. Fix: leave the "
            "extra as the model's reply has it, or leave it out."
        )
    if fields.get("type") == "refusal":
        return {**fields, "refusal": part.text}
    return {"type": "output_text", "text": part.text, "annotations": [], **fields}


def _reasoning_item(part: ReasoningPart) -> str:
    # llama.cpp refuses reasoning without the array `content`.
    fields: JsonObject = {"type": "reasoning", "summary": [], "content": [], **_extra(part.extra)}
    if part.signature:
        fields["encrypted_content"] = part.signature
    return json_text(fields)


def _call_item(call: ToolCall, call_id: str, *, own: bool) -> str:
    return json_text(
        {
            "type": "function_call",
            **(_extra(call.extra) if own else {}),
            "call_id": call_id,
            "name": sent_name(call.name),
            "arguments": object_or_empty(call.arguments),
        }
    )


def _picture_item(part: MediaPart) -> str:
    if not isinstance(part.source, Inline):  # The caller made the part; no row takes it.
        return json_text(_MEDIA.json_of(part, "assistant"))
    fields = {"type": PICTURE, "status": "completed", **_extra(part.extra)}
    return json_text({**fields, "result": base64_text(part.source)})


def _extra(text: str) -> JsonObject:
    return object_in(text, place="the extra of a part") if text else {}
