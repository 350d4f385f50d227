"""Encode messages and their parts as parts of the Gemini wire format.

A server's own data (signatures, thoughts, runs of the server's tools) is sent back only if it came
from this wire format, and then unchanged. These functions keep no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from ...media import FileId, Inline, MediaPart, Url
from ...values import (
    AssistantMessage,
    AssistantPart,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ..media import MediaRow, MediaTable, base64_text
from ..wire_json import (
    JsonObject,
    is_object,
    json_text,
    object_in,
    object_or_empty,
    object_text,
    sent_name,
)

__all__ = [
    "CALL",
    "GOOGLE_WIRE",
    "MEDIA",
    "SIGNATURE",
    "model_parts",
    "result_parts",
    "system_part",
    "user_parts",
]

GOOGLE_WIRE: Final = "google"

CALL: Final = "functionCall"
MEDIA: Final = "inlineData"
SIGNATURE: Final = "thoughtSignature"

UNSIGNED: Final = "skip_thought_signature_validator"
"""The signature that Google documents for a call without one, such as a call of another model."""


def system_part(message: SystemMessage) -> list[str]:
    """Return the parts of a system message that follows other messages, as part of a user's text.

    The API accepts system messages only at the top of a request.
    """
    return _text_parts(message.content and f"<system>\n{message.content}\n</system>")


def user_parts(message: UserMessage) -> list[str]:
    """Return the parts of a user message, without empty text."""
    content = message.content
    if isinstance(content, str):
        return _text_parts(content)
    parts: list[str] = []
    for part in content:
        if isinstance(part, TextPart):
            parts += _text_parts(part.text)
        else:
            parts.append(json_text(_MEDIA.json_of(part, "user")))
    return parts


def result_parts(result: ToolResult, call_id: str) -> tuple[str, list[str]]:
    """Return the part with a tool's result, and the parts that follow all results of the turn.

    Models before Gemini 3 take no media in a result. So media follow the results, with a text that
    names the tool.
    """
    content, apart = result.content, list[str]()
    text = content if isinstance(content, str) else ""
    if not isinstance(content, str):
        text = "\n".join(part.text for part in content if isinstance(part, TextPart))
        media = [part for part in content if isinstance(part, MediaPart)]
        if media:
            apart = _text_parts(f"Attached to the result of tool {result.name}:")
            apart += [json_text(_MEDIA.json_of(part, "tool")) for part in media]
    response: JsonObject = {
        **({"id": call_id} if call_id else {}),
        "name": sent_name(result.name),
        "response": {"error" if result.is_error else "output": text},
    }
    return json_text({"functionResponse": response}), apart


def model_parts(
    message: AssistantMessage, call_ids: Sequence[str], *, signed_calls: bool
) -> list[str]:
    """Return the parts of an assistant message; its calls get the ids `call_ids`.

    Args:
        message: the assistant message.
        call_ids: an id for each call; empty for a call that the model made without an id.
        signed_calls: whether the server refuses a turn whose first call has no signature.
    """
    own = message.wire == GOOGLE_WIRE
    ids = iter(call_ids)
    parts: list[str] = []
    is_first = signed_calls
    for part in message.parts:
        if isinstance(part, ToolCall):
            parts.append(_call_part(part, next(ids), own=own, signed=is_first))
            is_first = False
        else:
            parts += _own_part(part) if own else _foreign_part(part)
    return parts


def _foreign_part(part: AssistantPart) -> list[str]:
    return _text_parts(part.text) if isinstance(part, TextPart) else []


def _own_part(part: AssistantPart) -> list[str]:
    match part:
        case TextPart():
            extra = _extra(part.extra)
            return [json_text({"text": part.text, **extra})] if part.text or extra else []
        case ReasoningPart():
            thought: JsonObject = {"text": part.text, "thought": True, **_extra(part.extra)}
            return [json_text(thought | ({SIGNATURE: part.signature} if part.signature else {}))]
        case OpaquePart():
            return [object_text(part.data, place="OpaquePart.data")]
        case MediaPart():
            return [json_text({**_inline(part, {}), **_extra(part.extra)})]
        case ToolCall():
            raise AssertionError("calls are encoded with their ids")
        case _:
            assert_never(part)


def _call_part(call: ToolCall, call_id: str, *, own: bool, signed: bool) -> str:
    extra = _extra(call.extra) if own else {}
    about: object = extra.pop(CALL, {})
    named = {**(about if is_object(about) else {}), "name": sent_name(call.name)}
    if call_id:
        named["id"] = call_id
    if signed:
        extra.setdefault(SIGNATURE, UNSIGNED)
    arguments = object_or_empty(call.arguments)
    part = f'{{"{CALL}":{json_text(named)[:-1]},"args":{arguments}}}'
    return f"{part},{json_text(extra)[1:]}" if extra else f"{part}}}"


def _text_parts(text: str) -> list[str]:
    # The API refuses a part with an empty text, except for its own.
    return [json_text({"text": text})] if text else []


def _inline(part: MediaPart, extra: JsonObject) -> JsonObject:
    assert isinstance(part.source, Inline), "the row has no other source"
    return {MEDIA: {"mimeType": part.media_type, "data": base64_text(part.source)}, **extra}


def _file(part: MediaPart, extra: JsonObject) -> JsonObject:
    assert not isinstance(part.source, Inline), "the row has no such source"
    uri = part.source.url if isinstance(part.source, Url) else part.source.id
    about = {"fileUri": uri}
    # Without a type, the server looks at the file.
    if not part.media_type.endswith("/*"):
        about["mimeType"] = part.media_type
    return {"fileData": about, **extra}


_TYPES: Final = ("image/*", "audio/*", "video/*", "application/*", "text/*")
_FIELDS: Final = ("mediaResolution", "videoMetadata")
_MEDIA: Final = MediaTable(
    GOOGLE_WIRE,
    (
        MediaRow(_TYPES, (Inline,), _inline, extra=_FIELDS),
        MediaRow(_TYPES, (Url, FileId), _file, extra=_FIELDS),
    ),
)


def _extra(text: str) -> JsonObject:
    return object_in(text, place="the extra of a part") if text else {}
