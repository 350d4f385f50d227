"""Transcript: a conversation as one text, for a model that summarizes it.

Reasoning is left out; media are only named. Long pieces lose their middle, and so does a
long transcript, because the beginning has the request and the end has the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ..media import MediaPart
from ..values import (
    AssistantMessage,
    AssistantPart,
    Message,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)

__all__ = ["transcript"]

PIECE_CHARS_MAX = 4_000


def transcript(messages: Iterable[Message], chars_max: int) -> str:
    """Return the messages as one text of at most about `chars_max` characters."""
    return _middle_out("\n\n".join(_message_text(message) for message in messages), chars_max)


def _message_text(message: Message) -> str:
    match message:
        case SystemMessage(content=content):
            return f"system: {_content_text(content)}"
        case UserMessage(content=content):
            return f"user: {_content_text(content)}"
        case AssistantMessage(parts=parts):
            pieces = [_part_text(part) for part in parts if not isinstance(part, ReasoningPart)]
            return "\n".join(["assistant:", *pieces])
        case ToolResult(name=name, status=status, content=content):
            return f"result of {name} ({status}): {_content_text(content)}"
        case _:
            assert_never(message)


def _content_text(content: str | tuple[UserPart, ...]) -> str:
    if isinstance(content, str):
        return _middle_out(content)
    return "\n".join(_part_text(part) for part in content)


def _part_text(part: UserPart | AssistantPart) -> str:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return _middle_out(text)
        case MediaPart():
            # Media may be larger than the whole window, and the model that summarizes may take
            # none, so the transcript only names them.
            return f"[{part.label}]"
        case ToolCall(name=name, arguments=arguments):
            return f"[calls {name}: {_middle_out(arguments)}]"
        case OpaquePart(data=data):
            return f"[provider: {_middle_out(data)}]"
        case _:
            assert_never(part)


def _middle_out(text: str, chars_max: int = PIECE_CHARS_MAX) -> str:
    """Return the text; if it is longer than `chars_max`, a note replaces its middle."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n[… {missing} characters left out …]\n{text[len(text) - half :]}"
