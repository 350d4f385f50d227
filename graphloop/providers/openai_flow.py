"""The most frequent chunk of the OpenAI chat wire: more text, nothing else.

Reading it by its own types costs a third of reading any chunk. This module refuses a chunk with
anything else in it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

__all__ = ["more_text"]


class _Delta(Struct, forbid_unknown_fields=True):
    """Text alone; the other fields accept servers that write null into all of them."""

    content: str
    role: str | None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(Struct):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None


class _Chunk(Struct):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


_decode = Decoder(_Chunk).decode


def more_text(data: bytes) -> str | None:
    """Return the text of a chunk that holds only more text, or None."""
    try:
        return _decode(data).choices[0].delta.content
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
