"""The most frequent event of the Anthropic wire: more of the same text.

Reading it by its own types costs less than reading any event; this module refuses all others.
"""

from __future__ import annotations

from typing import Literal

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

__all__ = ["more_text"]


# The types are fields and no tags, for msgspec lets a tag be absent.
class _Text(Struct):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(Struct):
    type: Literal["content_block_delta"]
    index: int
    delta: _Text


_decode = Decoder(_BlockDelta).decode


def more_text(data: bytes, index: int) -> str | None:
    """Return the text of an event that extends the block at `index`, or None."""
    try:
        event = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return event.delta.text if event.index == index else None
