"""JSON text of stored values, which may hold half of a surrogate pair."""

from __future__ import annotations

import json
from typing import TypeVar

from msgspec import DecodeError, convert
from msgspec.json import Decoder

__all__ = ["decoded"]

T = TypeVar("T")


def decoded(decoder: Decoder[T], text: bytes) -> T:
    """Decode JSON, also such as the `json` module wrote for half of a surrogate pair.

    Raises:
        DecodeError: the text is not JSON, or not of this type.
        ValueError: the same, found by the `json` module.
    """
    try:
        return decoder.decode(text)
    except DecodeError:
        if b"\\ud" not in text:
            raise
        return convert(json.loads(text), decoder.type)
