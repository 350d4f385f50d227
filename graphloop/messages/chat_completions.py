"""The message form of OpenAI's chat completions, as callers, databases and other SDKs hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ..errors import ConfigError, nearest
from ..media import FileId, MediaPart
from ..providers import CHAT_REASONING, CHAT_WIRE, is_list, is_object, json_text
from ..values import (
    AssistantMessage,
    AssistantPart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
    evolve,
)
from .fields import as_fields, media_at, media_in, refuse_other_fields, text_field, text_or_empty

__all__ = ["chat_message"]

# The fields that a message of each role may have, apart from `role`.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "system": ("content",),
    "developer": ("content",),
    "user": ("content",),
    "assistant": ("content", *CHAT_REASONING, "reasoning_details", "audio", "tool_calls"),
    "tool": ("content", "is_error", "name", "tool_call_id"),
}

AUDIO: Final[Mapping[str, str]] = {"mp3": "audio/mpeg"}
"""The media types of audio formats whose word is not the second half of the type."""

SOUND: Final = "audio/pcm"
"""The type of sound whose bytes tell no other one."""

UNKNOWN_TYPE: Final = "application/octet-stream"


def chat_message(place: str, message: Mapping[str, object]) -> Message:
    """Return a message in the form of chat completions as a value.

    Args:
        place: the name of the message in errors, such as `messages[3]`.
        message: the message, with `role` and `content`.

    Raises:
        ConfigError: the role or a field is unknown, or a field has a wrong value.
    """
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in FIELDS:
        found = f"{role!r}.{nearest(str(role), FIELDS)}"
        raise ConfigError(
            f"{place}: expected `role` to be one of {', '.join(FIELDS)}, found {found}"
        )
    refuse_other_fields(place, message, ("role", *FIELDS[role]))
    match role:
        case "system" | "developer":
            return SystemMessage(_check_text(place, content))
        case "user":
            parts = content if isinstance(content, str) else _user_parts(place, content)
            return UserMessage(parts)
        case "assistant":
            said, details = _assistant_parts(place, message), _reasoning_json(place, message)
            # Fields that a server added may be sent only to the wire that they came from.
            own = details or any(
                isinstance(part, ReasoningPart) or (isinstance(part, ToolCall) and part.extra)
                for part in said
            )
            return AssistantMessage(tuple(said), CHAT_WIRE if own else "", details)
        case _:  # "tool", the last of the roles.
            failed = message.get("is_error", False)
            if not isinstance(failed, bool):
                raise ConfigError(f"{place}: `is_error`: expected True or False, found {failed!r}")
            return ToolResult(
                key="",
                call_id=text_field(place, message, "tool_call_id"),
                name=text_or_empty(place, message, "name"),
                content=_check_text(place, content),
                status="error" if failed else "ok",
            )


def _check_text(place: str, content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts = _user_parts(place, content)
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    raise ConfigError(f"{place}: `content` must be text here")


def _user_parts(place: str, content: object) -> tuple[UserPart, ...]:
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise ConfigError(
            f"{place}: expected `content` to be a string or a list of parts, found "
            f"{type(content).__name__}"
        )
    given = cast("Sequence[object]", content)  # `isinstance` narrows no item's type.
    return tuple(_user_part(f"{place}.content[{at}]", part) for at, part in enumerate(given))


def _user_part(place: str, part: object) -> UserPart:
    match part:
        case TextPart() | MediaPart():
            return part
        case {"type": "text", "text": str(text)}:
            refuse_other_fields(place, part, ("type", "text"))
            return TextPart(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            refuse_other_fields(place, part, ("type", "image_url"))
            here, image = f"{place}.image_url", as_fields(as_fields(part)["image_url"])
            refuse_other_fields(here, image, ("url", "detail"))
            detail = text_or_empty(here, image, "detail")
            shown = media_at(here, url, "image/*")
            is_usual = detail in ("", "auto")
            return shown if is_usual else evolve(shown, extra=json_text({"detail": detail}))
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(form)}}:
            refuse_other_fields(place, part, ("type", "input_audio"))
            return media_in(f"{place}.input_audio", data, AUDIO.get(form, f"audio/{form}"))
        case {"type": "file", "file": {"file_id": str(file_id)}}:
            refuse_other_fields(place, part, ("type", "file"))
            refuse_other_fields(f"{place}.file", as_fields(part)["file"], ("file_id",))
            return MediaPart(UNKNOWN_TYPE, FileId(file_id, CHAT_WIRE))
        case {"type": "file", "file": {"file_data": str(data)}}:
            refuse_other_fields(place, part, ("type", "file"))
            here, file = f"{place}.file", as_fields(as_fields(part)["file"])
            refuse_other_fields(here, file, ("file_data", "filename"))
            if not data.startswith("data:"):
                raise ConfigError(f"{here}: expected 'data:<type>;base64,…', found {data[:80]!r}")
            return media_at(here, data, "", text_or_empty(here, file, "filename"))
        case _:
            raise ConfigError(
                f'{place}: expected {{"type": "text", "text": …}}, {{"type": "image_url", …}}, '
                f'{{"type": "input_audio", …}} or {{"type": "file", "file": …}}, found {part!r:.80}'
            )


def _assistant_parts(place: str, message: Mapping[str, object]) -> list[AssistantPart]:
    parts: list[AssistantPart] = []
    for name, extra in CHAT_REASONING.items():
        if message.get(name):
            parts.append(ReasoningPart(text_field(place, message, name), extra=extra))
    if text := _check_text(place, message.get("content")):
        parts.append(TextPart(text))
    if message.get("audio"):
        parts += _said_aloud(f"{place}.audio", as_fields(message["audio"]))
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise ConfigError(
            f"{place}: expected `tool_calls` to be a list, found {type(calls).__name__}"
        )
    for at, call in enumerate(cast("Sequence[object]", calls)):
        match call:
            case {"id": str(id_), "function": {"name": str(name), "arguments": str(arguments)}}:
                here = f"{place}.tool_calls[{at}]"
                function = as_fields(call)["function"]
                refuse_other_fields(f"{here}.function", function, ("name", "arguments"))
                parts.append(ToolCall(id_, name, arguments, _extra_json(here, as_fields(call))))
            case _:
                raise ConfigError(
                    f"{place}.tool_calls[{at}]: expected id and function with name and "
                    f"arguments (a JSON string), found {call!r:.80}"
                )
    return parts


def _said_aloud(place: str, audio: Mapping[str, object]) -> list[AssistantPart]:
    """Return the words and the sound of an answer; another server does not know its id."""
    refuse_other_fields(place, audio, ("id", "data", "transcript", "expires_at"))
    said, data = text_field(place, audio, "transcript"), text_or_empty(place, audio, "data")
    sound = [media_in(place, data, SOUND)] if data else []
    return [TextPart(said), *sound]


def _extra_json(place: str, call: Mapping[str, object]) -> str:
    """Return the server-specific fields of a call as JSON text, for later requests."""
    known = ("id", "type", "index", "function")
    extra = {name: value for name, value in call.items() if value and name not in known}
    try:
        return json_text(extra) if extra else ""
    except (TypeError, ValueError) as error:
        found = ", ".join(map(repr, extra))
        raise ConfigError(f"{place}: expected JSON in {found}, found {error}") from error


def _reasoning_json(place: str, message: Mapping[str, object]) -> str:
    """Return a message's structured reasoning as JSON text for later requests; empty without it."""
    details: object = message.get("reasoning_details") or ()
    if not details:
        return ""
    if not is_list(details) or not all(map(is_object, details)):
        raise ConfigError(
            f"{place}: `reasoning_details`: expected a list of objects, found {details!r:.80}"
        )
    return json_text({"reasoning_details": details})
