"""Encode messages and their parts as content blocks of the Anthropic wire format.

These functions keep no state; `encode.py` decides which blocks form a message. The API refuses
blank text, so a blank block becomes the empty string, which is left out of the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from ...errors import ConfigError
from ...media import FileId, Inline, MediaPart, Url
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
)
from ..media import MediaPlace, MediaRow, MediaTable, base64_text
from ..wire_json import JsonObject, json_text, object_in, object_or_empty, object_text, sent_name

__all__ = ["ANTHROPIC_WIRE", "assistant_blocks", "result_blocks", "system_block", "user_blocks"]

ANTHROPIC_WIRE = "anthropic"


def system_block(message: SystemMessage) -> str:
    """Encode a system message that follows other messages as a text block.

    The API accepts system messages only at the top of a request. Blank content gives "".
    """
    content = message.content
    return _text_block(f"<system>\n{content}\n</system>") if content.strip() else ""


def user_blocks(message: UserMessage) -> list[str]:
    """Return the content blocks of a user message, without blank text."""
    return _blocks_of(message.content, "user")


def result_blocks(result: ToolResult, wire_id: str) -> tuple[str, list[str]]:
    """Return the `tool_result` block of a call, and the blocks that follow all results.

    The API answers 400 to media in the result of a failed call. Such media follow the results, with
    a text that names the call.
    """
    content, apart = result.content, list[str]()
    if isinstance(content, str):
        body = f',"content":{json_text(content)}' if content else ""
    else:
        if result.is_error and (media := [one for one in content if isinstance(one, MediaPart)]):
            about = f"Attached to the result of tool {result.name} (call {wire_id}):"
            apart = [_text_block(about), *[_media_block(one, "tool") for one in media]]
            content = tuple([one for one in content if isinstance(one, TextPart)])
        blocks = ",".join(_blocks_of(content, "tool"))
        body = f',"content":[{blocks}]' if blocks else ""
    if result.is_error:
        body = (body or ',"content":"The call failed."') + ',"is_error":true'
    return f'{{"type":"tool_result","tool_use_id":{json_text(wire_id)}{body}}}', apart


def assistant_blocks(message: AssistantMessage, wire_ids: Sequence[str]) -> list[str]:
    """Return the content blocks of an assistant message; its calls get the ids `wire_ids`.

    Reasoning, opaque parts and unknown fields are sent only if the message came from this wire.
    """
    native = message.wire == ANTHROPIC_WIRE
    ids = iter(wire_ids)
    blocks: list[str] = []
    for part in message.parts:
        match part:
            case TextPart():
                blocks.append(_text_block(part.text, part.extra if native else ""))
            case ToolCall():
                blocks.append(_call_block(part, next(ids), part.extra if native else ""))
            case ReasoningPart():
                # Unsigned thinking at the end means that the reply was cut; the API refuses it.
                cut = part is message.parts[-1] and not (part.signature or part.data)
                blocks.append(_reasoning_block(part) if native and not cut else "")
            case OpaquePart():
                blocks.append(_opaque_block(part) if native else "")
            case MediaPart():
                blocks.append(_media_block(part, "assistant") if native else "")
            case _:
                assert_never(part)
    return [block for block in blocks if block]


def _blocks_of(content: str | Iterable[UserPart], place: MediaPlace) -> list[str]:
    parts = (TextPart(content),) if isinstance(content, str) else content
    return [block for part in parts if (block := _user_block(part, place))]


def _user_block(part: UserPart, place: MediaPlace) -> str:
    match part:
        case TextPart():
            return _text_block(part.text, part.extra)
        case MediaPart():
            return _media_block(part, place)
        case _:
            assert_never(part)


def _text_block(text: str, extra: str = "") -> str:
    # The API answers 400 to a blank text block, even if the API itself sent that block.
    if not text or text.isspace():
        return ""
    return _with_extra(f'{{"type":"text","text":{json_text(text)}}}', extra, ("type", "text"))


def _media_block(part: MediaPart, place: MediaPlace) -> str:
    return json_text(_MEDIA.json_of(part, place))


def _image(part: MediaPart, extra: JsonObject) -> JsonObject:
    return {"type": "image", "source": _source(part), **extra}


def _document(part: MediaPart, extra: JsonObject) -> JsonObject:
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": _source(part), **title, **extra}


def _source(part: MediaPart) -> JsonObject:
    match part.source:
        case Inline() if part.is_text:
            # The API knows one type of text; the name tells the model what the text is.
            return {"type": "text", "media_type": "text/plain", "data": _utf8(part, part.source)}
        case Inline():
            data = base64_text(part.source)
            return {"type": "base64", "media_type": part.media_type, "data": data}
        case Url(url=url):
            return {"type": "url", "url": url}
        case FileId(id=file_id):
            return {"type": "file", "file_id": file_id}
        case _:
            assert_never(part.source)


def _utf8(part: MediaPart, source: Inline) -> str:
    try:
        return source.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{part.label}: expected text in UTF-8, found {error}. Fix: convert it to UTF-8."
        ) from error


_OF_DOCUMENTS: Final = ("cache_control", "citations", "context")
_MEDIA: Final = MediaTable(
    ANTHROPIC_WIRE,
    (
        MediaRow(
            ("image/png", "image/jpeg", "image/gif", "image/webp"),
            (Inline, Url, FileId),
            _image,
            extra=("cache_control", "transformations"),
        ),
        MediaRow(("application/pdf",), (Inline, Url, FileId), _document, extra=_OF_DOCUMENTS),
        MediaRow(("text/*", "application/json"), (Inline, FileId), _document, extra=_OF_DOCUMENTS),
    ),
)


def _call_block(call: ToolCall, wire_id: str, extra: str) -> str:
    named = f'"id":{json_text(wire_id)},"name":{json_text(sent_name(call.name))}'
    block = f'{{"type":"tool_use",{named},"input":{object_or_empty(call.arguments)}}}'
    return _with_extra(block, extra, ("type", "id", "name", "input"))


def _reasoning_block(part: ReasoningPart) -> str:
    if part.data:
        block = f'{{"type":"redacted_thinking","data":{json_text(part.data)}}}'
        return _with_extra(block, part.extra, ("type", "data"))
    text, signature = json_text(part.text), json_text(part.signature)
    block = f'{{"type":"thinking","thinking":{text},"signature":{signature}}}'
    return _with_extra(block, part.extra, ("type", "thinking", "signature"))


def _opaque_block(part: OpaquePart) -> str:
    return object_text(part.data, place="OpaquePart.data")


def _with_extra(block: str, extra: str, own: tuple[str, ...]) -> str:
    """Return the JSON `block` with the fields of the JSON `extra` that are not named in `own`."""
    if not extra:
        return block
    fields = object_in(extra, place="the extra of a part")
    more = json_text({key: value for key, value in fields.items() if key not in own})
    return block if more == "{}" else f"{block[:-1]},{more[1:]}"
