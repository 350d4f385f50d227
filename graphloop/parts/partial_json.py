"""The value of a JSON text that is still being written.

For answers that are shown while a model streams them. A value shown is no promise: a number may
get more digits, a string goes on, and only the whole text is ever checked against a schema.
"""

from __future__ import annotations

from typing import final

from pydantic_core import from_json

__all__ = ["PartialObjects", "partial"]

GROWTH = 64
"""A text is read again once it has grown by one part in so many."""


def partial(text: str) -> object | None:
    """Return the value of the beginning of a JSON text, or None where there is none yet.

    Strings are cut where the text ends, a key without a value is left out, and so is what may
    still become anything (`tru`, `-`). Never raises: what is no JSON at all, or nested deeper than
    200 levels, has no value. A whole text has its own value; what follows it is not looked at.
    """
    try:
        # Encoded here, because half a surrogate pair is a TypeError there and a '?' so.
        value: object = from_json(
            text.encode("utf-8", "replace"), allow_partial="trailing-strings", allow_inf_nan=False
        )
    except ValueError:
        return None
    return value


@final
class PartialObjects:
    """The growing value of one streamed JSON text.

    The text is read again when it has grown by a 64th, so reading costs at most some 64 times the
    length of the whole, however small the pieces are; `finish` reads the rest.
    """

    def __init__(self) -> None:
        self._text = ""
        self._pieces: list[str] = []
        self._waiting = 0
        self._last: object | None = None

    def feed(self, delta: str) -> object | None:
        """Take the next piece in; return the value if it was read and has changed, else None."""
        self._pieces.append(delta)
        self._waiting += len(delta)
        return self._read() if self._waiting >= max(1, len(self._text) // GROWTH) else None

    def finish(self) -> object | None:
        """Return the value of the whole text if it has changed since the last one, else None."""
        return self._read() if self._waiting else None

    def _read(self) -> object | None:
        self._text = "".join((self._text, *self._pieces))
        self._pieces.clear()
        self._waiting = 0
        value = partial(self._text)
        if value is None or value == self._last:
            return None
        self._last = value
        return value
