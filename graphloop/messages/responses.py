"""Items of OpenAI's Responses API, as callers keep its input and output.

A reply is several items there: reasoning, texts and calls, one after another. The wire's own
decoder reads them, so a kept conversation goes on as one that graphloop has had itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..errors import BadReply, ConfigError, StreamTruncated
from ..media import FileId, MediaPart
from ..providers import RESPONSES_WIRE, is_list, is_object, json_text, message_of_items
from ..values import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolResult,
    UserMessage,
    UserPart,
    evolve,
)
from .fields import as_fields, media_at, refuse_other_fields, text_field, text_or_empty

__all__ = ["input_item", "is_output_item", "output_items"]

NO_REPLY: Final = frozenset({"item_reference", "mcp_approval_request", "mcp_approval_response"})
"""The types of items that only the server can read, and that are no part of a reply."""

SAID: Final = ("output_text", "refusal")
"""The types of parts that a message of a model has."""


def is_output_item(message: Mapping[str, object]) -> bool:
    """Whether an item is one that a model wrote; such items in a row are one reply."""
    kind = message.get("type")
    if kind == "message":
        return message.get("role") == "assistant" and is_list(message.get("content"))
    return isinstance(kind, str) and kind not in NO_REPLY and not kind.endswith("_output")


def output_items(place: str, items: Sequence[object]) -> AssistantMessage:
    """Return the reply whose items follow one another.

    Opaque items go back to the server as they came, unless reasoning lacks its encrypted form: the
    server would look for such items where it stores none.

    Args:
        place: the name of the first item in errors, such as `messages[3]`.
        items: the items.

    Raises:
        ConfigError: an item is malformed.
    """
    given = [_checked(place, as_fields(item)) for item in items]
    try:
        message = message_of_items(given)
    except (BadReply, StreamTruncated, TypeError, ValueError) as error:
        raise ConfigError(
            f"{place}: expected output items of the Responses API, found a fault: {error}"
        ) from error
    reasoned = [part for part in message.parts if isinstance(part, ReasoningPart)]
    is_own = all(part.signature for part in reasoned) and any(
        isinstance(part, ReasoningPart | OpaquePart | MediaPart) for part in message.parts
    )
    if is_own:
        return message
    plain = [
        part if isinstance(part, OpaquePart | MediaPart) else evolve(part, extra="")
        for part in message.parts
    ]
    return AssistantMessage(tuple(plain))


def _checked(place: str, item: Mapping[str, object]) -> dict[str, object]:
    """Return an item without the empty fields that an SDK's dump has."""
    if item["type"] == "function_call":
        for name in ("call_id", "name", "arguments"):
            text_field(place, item, name)
    content = item.get("content")
    for part in content if item["type"] == "message" and is_list(content) else ():
        if not is_object(part) or part.get("type") not in SAID:
            raise ConfigError(
                f"{place}: expected parts of type {' or '.join(SAID)}, found {part!r:.80}"
            )
    return {name: value for name, value in item.items() if value is not None}


def input_item(place: str, item: Mapping[str, object]) -> Message:
    """Return an item that a caller wrote: a message, or the result of a call.

    Raises:
        ConfigError: the item's type or role is unknown, or a field has a wrong value.
    """
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call_output":
        refuse_other_fields(place, item, ("type", "id", "call_id", "output", "status"))
        call_id = text_field(place, item, "call_id")
        return ToolResult("", call_id, "", _content(f"{place}.output", item.get("output")))
    if kind != "message":
        raise ConfigError(
            f"{place}: expected a message, a function_call_output or an item of a reply, found one "
            f"of type {kind!r}. Fix: leave it out, or pass what it stands for."
        )
    refuse_other_fields(place, item, ("type", "id", "role", "content", "status"))
    said = _content(f"{place}.content", item.get("content"))
    if role == "user":
        return UserMessage(said)
    parts = (TextPart(said),) if isinstance(said, str) else said
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if role in ("system", "developer") and len(texts) == len(parts):
        return SystemMessage("".join(texts))
    if role == "assistant" and isinstance(said, str):
        return AssistantMessage((TextPart(said),))
    raise ConfigError(
        f"{place}: expected text of role system or developer, or any content of role user, found "
        f"role {role!r} with {said!r:.80}"
    )


def _content(place: str, content: object) -> str | tuple[UserPart, ...]:
    if isinstance(content, str):
        return content
    if not is_list(content):
        raise ConfigError(f"{place}: expected text or a list of parts, found {content!r:.80}")
    return tuple([_part(f"{place}[{at}]", part) for at, part in enumerate(content)])


def _part(place: str, part: object) -> UserPart:
    fields: Mapping[str, object] = part if is_object(part) else {}
    match fields.get("type"):
        case "input_text":
            refuse_other_fields(place, fields, ("type", "text"))
            return TextPart(text_field(place, fields, "text"))
        case "input_image":
            refuse_other_fields(place, fields, ("type", "image_url", "file_id", "detail"))
            shown = _media(place, fields, "image_url", "image/*")
        case "input_file":
            known = ("type", "file_data", "file_url", "file_id", "filename", "detail")
            refuse_other_fields(place, fields, known)
            source = "file_data" if fields.get("file_data") else "file_url"
            shown = _media(place, fields, source, "application/octet-stream")
        case _:
            raise ConfigError(
                f"{place}: expected input_text, input_image or input_file, found {part!r:.80}"
            )
    detail = text_or_empty(place, fields, "detail")
    return shown if detail in ("", "auto") else evolve(shown, extra=json_text({"detail": detail}))


def _media(place: str, fields: Mapping[str, object], source: str, media_type: str) -> MediaPart:
    name = text_or_empty(place, fields, "filename")
    if file_id := text_or_empty(place, fields, "file_id"):
        return MediaPart(media_type, FileId(file_id, RESPONSES_WIRE), name)
    return media_at(place, text_field(place, fields, source), media_type, name)
