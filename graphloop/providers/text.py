"""Join streamed text that a server split in the middle of a character.

Servers split characters beyond U+FFFF over two deltas, with an escaped surrogate in each. Text that
is stored or sent must hold whole characters only, because encoding a lone surrogate fails later.
"""

from __future__ import annotations

import re
from typing import final

__all__ = ["TextJoiner", "whole_text"]

_has_surrogate = re.compile("[\ud800-\udfff]").search


def whole_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@final
class TextJoiner:
    """Joins the text pieces of a stream into text of whole characters.

    `text` is the concatenation of all results of `push` and `flush`, and can always be encoded.
    """

    __slots__ = ("_half", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def push(self, piece: str) -> str:
        """Add the next piece; return its text, and hold back half a character at its end."""
        if self._half:
            piece, self._half = self._half + piece, ""
        if not piece.isascii():
            if "\ud800" <= piece[-1] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            piece = whole_text(piece)
        self._pieces.append(piece)
        return piece

    def flush(self) -> str:
        """End the text; return U+FFFD if half a character was held back, else an empty string."""
        if not self._half:
            return ""
        self._half = ""
        self._pieces.append("\ufffd")
        return "\ufffd"

    @property
    def text(self) -> str:
        """All text that `push` and `flush` have returned so far."""
        return "".join(self._pieces)
