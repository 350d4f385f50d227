"""Choices: where a simulated world takes every decision from, so that a run is a list of numbers.

A seed makes a list, a list makes the same world again, and a shorter list of smaller numbers makes
a simpler one: what is not in the list is 0, the simplest thing. That is all that shrinking needs.
"""

from __future__ import annotations

import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import Final, TypeVar, final

from ..errors import ConfigError

__all__ = ["COUNT_MAX", "Choices", "from_token", "to_token"]

T = TypeVar("T")

COUNT_MAX: Final = 256
"""How many things there are at most to choose from: a choice is a byte."""

VERSION: Final = "f1"
MARK_BYTES: Final = 4


@final
class Choices:
    """Draws numbers, and keeps what it drew in `taken`. Make it with `seeded` or `given`."""

    def __init__(self, source: Callable[[int], int]) -> None:
        self.taken: list[int] = []
        self._source = source

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        """Return the choices of a seed: the same ones every time."""
        # Not for secrets: a seed must be repeatable.
        return cls(random.Random(seed).randrange)  # noqa: S311

    @classmethod
    def given(cls, values: Iterable[int]) -> Choices:
        """Return choices that were taken before; what is too large is counted round."""
        numbers = chain(values, repeat(0))
        return cls(lambda count: next(numbers) % count)

    def draw(self, count: int) -> int:
        """Return a number below `count`; 0 is the simplest."""
        assert 0 < count <= COUNT_MAX, "a choice is a byte"
        if count == 1:
            return 0
        drawn = self._source(count)
        self.taken.append(drawn)
        return drawn

    def pick(self, options: Sequence[T]) -> T:
        """Return one of these; the first is the simplest."""
        return options[self.draw(len(options))]

    def chance(self, of: int) -> bool:
        """Return True once in so many times; False is the simplest."""
        return self.draw(of) == of - 1


def to_token(values: Sequence[int], mark: int) -> str:
    """Return choices as a word for a command line.

    Args:
        values: the choices, each below `COUNT_MAX`.
        mark: a checksum of what they were made for.
    """
    # What is not in a list is 0, so zeros at its end say nothing.
    length = max((at for at, value in enumerate(values, 1) if value), default=0)
    content = mark.to_bytes(MARK_BYTES) + bytes(values[:length])
    return f"{VERSION}-{urlsafe_b64encode(content).decode().rstrip('=')}"


def from_token(token: str) -> tuple[tuple[int, ...], int]:
    """Return the choices and the checksum that `to_token` has written down.

    Raises:
        ConfigError: it is no such word.
    """
    content = _decoded(token.strip())
    if content is None:
        raise ConfigError(
            f"expected a token that `graphloop fuzz` has printed ({VERSION}-…), found {token!r:.80}"
        )
    return tuple(content[MARK_BYTES:]), int.from_bytes(content[:MARK_BYTES])


def _decoded(token: str) -> bytes | None:
    """Return what stands in a token; None if nothing does that would be written so."""
    version, _, word = token.partition("-")
    if version != VERSION or not word.isascii():
        return None
    try:
        content = urlsafe_b64decode(word + "=" * (-len(word) % 4))
    except ValueError:
        return None
    mark, values = content[:MARK_BYTES], content[MARK_BYTES:]
    if len(mark) < MARK_BYTES or to_token(values, int.from_bytes(mark)) != token:
        return None
    return content
