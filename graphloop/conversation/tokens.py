"""Token estimates for a history, corrected by the counts that providers report.

No tokenizer is used: each provider has its own, most keep it secret, and the decisions that use
these numbers need only a rough estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Final, assert_never

from msgspec import Struct

from ..media import Inline, MediaPart
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

__all__ = ["CHARS_PER_TOKEN", "Calibration", "content_tokens", "estimate"]

CHARS_PER_TOKEN = 3.6
MESSAGE_TOKENS = 4
TOOL_TOKENS = 10
IMAGE_TOKENS = 1_600
PAGE_BYTES = 37_500
"""Bytes of a document that count as one page; a page costs as much as an image."""
BYTES_PER_TOKEN: Final = {"audio": 500, "video": 1_000}
"""An MP3 has 16,000 bytes a second, a small MP4 250,000; Gemini counts 32 and 263 tokens a second.

https://ai.google.dev/gemini-api/docs/tokens
"""

FACTOR_MIN, FACTOR_MAX = 0.5, 2.0


class Calibration(Struct, frozen=True, gc=False):
    """The ratio of measured to estimated tokens, which corrects later estimates."""

    factor: float = 1.0

    @classmethod
    def of(cls, estimated: int, measured: int) -> Calibration:
        """Return the calibration from one measurement, with the factor limited to its range."""
        if estimated <= 0 or measured <= 0:
            return cls()
        return cls(min(FACTOR_MAX, max(FACTOR_MIN, measured / estimated)))

    def corrected(self, tokens: int) -> int:
        """Return the estimate `tokens` multiplied by the factor, rounded up."""
        return ceil(tokens * self.factor)


def estimate(messages: Iterable[Message]) -> int:
    """Return the estimated number of tokens of these messages.

    The estimate of a list is the sum of the estimates of its messages. So a caller that keeps the
    sum estimates only new messages.
    """
    return sum(_tokens_of(message) for message in messages)


def content_tokens(content: str | tuple[UserPart, ...]) -> int:
    """Return the estimated number of tokens of one message's content."""
    if isinstance(content, str):
        return _chars(content)
    return sum(_part_tokens(part) for part in content)


def _tokens_of(message: Message) -> int:
    match message:
        case SystemMessage(content=content):
            cost = _chars(content)
        case UserMessage(content=content):
            cost = content_tokens(content)
        case ToolResult(content=content):
            cost = content_tokens(content) + TOOL_TOKENS
        case AssistantMessage(parts=parts):
            cost = sum(_part_tokens(part) for part in parts)
        case _:
            assert_never(message)
    return MESSAGE_TOKENS + cost


def _part_tokens(part: UserPart | AssistantPart) -> int:
    match part:
        case TextPart(text=text) | OpaquePart(data=text):
            return _chars(text)
        case MediaPart():
            return _media_tokens(part)
        case ReasoningPart():
            return _chars(part.text, part.signature, part.data)
        case ToolCall():
            return _chars(part.name, part.arguments) + TOOL_TOKENS
        case _:
            assert_never(part)


def _media_tokens(part: MediaPart) -> int:
    if part.kind == "image" or not isinstance(part.source, Inline):
        return IMAGE_TOKENS
    size = len(part.source.data)
    if per_token := BYTES_PER_TOKEN.get(part.kind):
        return ceil(size / per_token)
    if part.is_text:
        return ceil(size / CHARS_PER_TOKEN)
    return max(1, ceil(size / PAGE_BYTES)) * IMAGE_TOKENS


def _chars(*texts: str) -> int:
    return ceil(sum(len(text) for text in texts) / CHARS_PER_TOKEN)
