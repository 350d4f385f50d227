"""Text of whole characters, also where a server cuts them.

Servers split characters beyond U+FFFF over two deltas, each half an escape of its own. Text that
is stored or sent must hold whole characters only, or encoding it fails much later, elsewhere.
"""

from __future__ import annotations

import re
from typing import final

__all__ = ["TextJoiner", "whole_text"]

_has_surrogate = re.compile("[\ud800-\udfff]").search


def whole_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates as U+FFFD."""
    if text.isascii() or not _has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@final
class TextJoiner:
    """Joins the text pieces of a stream in whole characters.

    The join of everything `push` and `flush` returned is `text`, and `text` can always be encoded.
    """

    __slots__ = ("_half", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def push(self, piece: str) -> str:
        """Take the next piece; return the whole characters so far."""
        if self._half:
            piece, self._half = self._half + piece, ""
        if not piece.isascii():
            if "\ud800" <= piece[-1] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            piece = whole_text(piece)
        self._pieces.append(piece)
        return piece

    def flush(self) -> str:
        """End the text; return its rest (U+FFFD for a lone half)."""
        if not self._half:
            return ""
        self._half = ""
        self._pieces.append("\ufffd")
        return "\ufffd"

    @property
    def text(self) -> str:
        """Everything shown so far."""
        return "".join(self._pieces)
