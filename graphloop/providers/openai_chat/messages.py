"""Encode messages in the OpenAI chat wire format.

These functions keep no state; `encode.py` gives each call its id. A server's own data (`extra`,
reasoning) is sent only if it came from this wire format. Reasoning is sent back only on turns with
tool calls, in the field in which it arrived: DeepSeek and others require it on such turns, and
ignore it elsewhere.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, assert_never

from ...media import FileId, Inline, MediaPart, Url
from ...spending import is_number
from ...values import (
    AssistantMessage,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
    evolve,
)
from ..media import MediaPlace, MediaRow, MediaTable, base64_text, data_url, file_name
from ..wire_json import (
    JsonObject,
    failure_text,
    is_object,
    json_text,
    object_in,
    object_or_empty,
    sent_name,
)

__all__ = [
    "CHAT_REASONING",
    "CHAT_WIRE",
    "THINKING_EXTRA",
    "TRANSCRIPT_EXTRA",
    "Spoken",
    "image_part",
    "media_of_result",
    "plain_message",
    "result_message",
    "spoken_in",
    "turn_message",
]

CHAT_WIRE: Final = "openai"
CHAT_REASONING: Final[Mapping[str, str]] = {
    "reasoning_content": "",
    "reasoning": '{"field":"reasoning"}',
}
"""Maps each field for readable reasoning to the `extra` of the parts that arrived in that field."""

THINKING_EXTRA: Final = '{"type":"thinking"}'
"""The `extra` of a reasoning part that arrived as a typed content part (Mistral)."""

TRANSCRIPT_EXTRA: Final = '{"field":"audio"}'
"""The `extra` of a text that the model has said aloud."""


def plain_message(message: SystemMessage | UserMessage) -> JsonObject:
    """Return the wire's message for a message that is no part of a turn."""
    if isinstance(message, SystemMessage):
        return {"role": "system", "content": message.content}
    return {"role": "user", "content": _user_content(message.content)}


def result_message(result: ToolResult, call_id: str) -> JsonObject:
    """Return the wire's message for the result of the call that was sent with the id `call_id`."""
    text = failure_text(result.text) if result.is_error else result.text
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def media_of_result(result: ToolResult, call_id: str) -> list[JsonObject]:
    """Return the parts of a user's message with the media of a result; empty without media.

    Tool messages of this wire hold only text, so media follow the results of a turn.
    """
    if isinstance(result.content, str):
        return []
    files = [_part(part, "tool") for part in result.content if isinstance(part, MediaPart)]
    note = f"Attached to the result of tool {result.name} (call {call_id}):"
    return [{"type": "text", "text": note}, *files] if files else []


def _user_content(content: str | tuple[UserPart, ...]) -> object:
    return content if isinstance(content, str) else [_part(part, "user") for part in content] or ""


def _part(part: UserPart, place: MediaPlace) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case MediaPart():
            return _MEDIA.json_of(part, place)
        case _:
            assert_never(part)


def image_part(image: object) -> MediaPart | None:
    """Return an item of a reply's `images` as a part; None if it has another form."""
    address = image.get("image_url") if is_object(image) else None
    url = address.get("url") if is_object(address) else None
    if not (is_object(image) and image.get("type") == "image_url" and isinstance(url, str)):
        return None
    extra = json_text({"index": image["index"]}) if "index" in image else ""
    kind, separator, data = url.partition(";base64,")
    if not separator and url.startswith(("https://", "http://")):
        return MediaPart("image/*", Url(url), extra=extra)
    if not separator or not kind.startswith("data:image/"):
        return None
    try:
        source = Inline(b64decode(data, validate=True))
    except ValueError:
        return None
    return MediaPart(kind.removeprefix("data:"), source, extra=extra)


def _image(part: MediaPart, extra: JsonObject) -> JsonObject:
    url = part.source.url if isinstance(part.source, Url) else _data_url(part)
    return {"type": "image_url", "image_url": {"url": url, **extra}}


def _made(part: MediaPart, extra: JsonObject) -> JsonObject:
    return {**_image(part, {}), **extra}


def _audio(part: MediaPart, _: JsonObject) -> JsonObject:
    audio = {"data": base64_text(_inline(part)), "format": _AUDIO[part.media_type]}
    return {"type": "input_audio", "input_audio": audio}


def _file(part: MediaPart, _: JsonObject) -> JsonObject:
    if isinstance(part.source, FileId):
        return {"type": "file", "file": {"file_id": part.source.id}}
    return {"type": "file", "file": {"filename": file_name(part), "file_data": _data_url(part)}}


def _data_url(part: MediaPart) -> str:
    return data_url(part.media_type, _inline(part))


def _inline(part: MediaPart) -> Inline:
    assert isinstance(part.source, Inline), "the row has no other source"
    return part.source


_AUDIO: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_MEDIA: Final = MediaTable(
    CHAT_WIRE,
    (
        MediaRow(
            ("image/png", "image/jpeg", "image/gif", "image/webp"),
            (Inline, Url),
            _image,
            extra=("detail",),
        ),
        MediaRow(("image/*",), (Inline, Url), _made, extra=("index",), places=("assistant",)),
        MediaRow(tuple(_AUDIO), (Inline,), _audio),
        MediaRow(("application/*", "text/*"), (Inline, FileId), _file),
    ),
)


class Spoken(NamedTuple):
    """The id by which the server knows the sound of a turn, and the time at which it forgets it."""

    id: str
    until: float


def spoken_in(message: AssistantMessage, model: str, now: float) -> Spoken | None:
    """Return the sound of a turn that `model` made and its server still knows; None without.

    Without it, the words of the sound are sent as text.
    """
    for part in message.parts if message.wire == CHAT_WIRE else ():
        if isinstance(part, MediaPart) and part.kind == "audio":
            about = _extra(part.extra)
            known, end = about.get("id"), about.get("expires_at")
            if about.get("model") == model and isinstance(known, str) and is_number(end):
                until = end - _MARGIN_S
                return Spoken(known, until) if now < until else None
    return None


_MARGIN_S: Final = 60
"""How long before its end an id is no longer sent, since a request may wait."""


def turn_message(
    message: AssistantMessage,
    call_ids: Sequence[str],
    spoken: Spoken | None = None,
    *,
    reasoning: bool = True,
    unknown_fields: bool = True,
) -> JsonObject:
    """Return the wire's message for a turn of the model; its calls get the ids `call_ids`.

    Args:
        message: the turn.
        call_ids: an id for each call.
        spoken: the sound of the turn, in place of its words.
        reasoning: whether the model's reasoning may be sent back to the server.
        unknown_fields: whether fields that only the server knows may be sent back to it.
    """
    reasoning = reasoning and bool(call_ids)
    own = message.wire == CHAT_WIRE
    extra = _extra(message.extra) if own else {}
    thoughts = {
        name: extra.pop(name) for name in (*CHAT_REASONING, "reasoning_details") if name in extra
    }
    if spoken:
        said = (one for one in message.parts if getattr(one, "extra", "") != TRANSCRIPT_EXTRA)
        message = evolve(message, parts=tuple(said))
    entry: JsonObject = {"role": "assistant", "content": message.text}
    if own:
        entry["content"] = _typed_content(message, thinking=reasoning) or message.text
    if own and reasoning:
        details = thoughts.get("reasoning_details")
        entry |= {"reasoning_details": details} if details else _flat_reasoning(message)
    if spoken:
        # The API takes a turn without content if it has sound.
        entry = {name: value for name, value in entry.items() if value != ""}
        entry["audio"] = {"id": spoken.id}
    made = [one for one in message.parts if isinstance(one, MediaPart) and one.kind != "audio"]
    if own and made:
        images = [_MEDIA.json_of(part, "assistant") for part in made]
        entry["images"] = [*images, *extra.pop("images", ())]
    if call_ids:
        pairs = zip(call_ids, message.calls, strict=True)
        with_own = own and unknown_fields
        entry["tool_calls"] = [_call(call_id, call, own=with_own) for call_id, call in pairs]
    return _with_extra(entry, extra) if unknown_fields else entry


def _typed_content(message: AssistantMessage, *, thinking: bool) -> list[JsonObject]:
    """Return the content as typed parts, or an empty list if plain text can express all of it."""
    typed: list[JsonObject] = []
    needed = False
    for part in message.parts:
        match part:
            case TextPart():
                typed.append({"type": "text", "text": part.text})
            case ReasoningPart(extra=extra) if thinking and extra == THINKING_EXTRA:
                thought = [{"type": "text", "text": part.text}]
                typed.append({"type": "thinking", "thinking": thought})
                needed = True
            case OpaquePart():
                typed.append(_extra(part.data))
                needed = True
            case _:
                pass
    return typed if needed else []


def _flat_reasoning(message: AssistantMessage) -> JsonObject:
    flat: JsonObject = {}
    for part in message.parts:
        if isinstance(part, ReasoningPart) and part.text and part.extra != THINKING_EXTRA:
            names = (name for name, extra in CHAT_REASONING.items() if extra == part.extra)
            field = next(names, "reasoning_content")
            flat[field] = flat.get(field, "") + part.text
    return flat


def _call(call_id: str, call: ToolCall, *, own: bool) -> JsonObject:
    arguments = object_or_empty(call.arguments)
    function: JsonObject = {"name": sent_name(call.name), "arguments": arguments}
    entry: JsonObject = {"id": call_id, "type": "function", "function": function}
    if not own or not call.extra:
        return entry
    extra = _extra(call.extra)
    inner = extra.pop("function", None)
    if is_object(inner):
        _with_extra(function, inner)
    return _with_extra(entry, extra)


def _with_extra(entry: JsonObject, extra: JsonObject) -> JsonObject:
    """Add the fields of `extra` that `entry` lacks to `entry`, and return `entry`."""
    for name, value in extra.items():
        entry.setdefault(name, value)
    return entry


def _extra(text: str) -> JsonObject:
    return object_in(text, place="provider data (extra, opaque) of a message") if text else {}
