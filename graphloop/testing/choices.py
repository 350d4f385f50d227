"""Choices: a simulated world as a list of small numbers.

A seed draws a list, and the list makes the same world again. A number that a list lacks is 0, the
simplest choice, so a shorter list of smaller numbers is a simpler world. Shrinking and the token
of `--replay` need nothing more (docs/decisions/2026-11-23-the-fuzzer-keeps-its-choices.md).
"""

from __future__ import annotations

import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Final, TypeAlias, TypeVar, final

from ..errors import ConfigError

__all__ = ["COUNT_MAX", "TRIALS_MAX", "Choices", "from_token", "shrunk", "to_token"]

T = TypeVar("T")
Values: TypeAlias = tuple[int, ...]

COUNT_MAX: Final = 256
"""The most options of a choice: a choice is a byte of the token."""

VERSION: Final = "f1"
MARK_BYTES: Final = 4

TRIALS_MAX: Final = 400
"""The most lists that `shrunk` tries."""

COUNTED_MAX: Final = 4
"""The most numbers that belong to an item which another number counts."""


@final
class Choices:
    """Draws numbers, and keeps them in `taken`."""

    def __init__(self, source: Callable[[int], int]) -> None:
        self.taken: list[int] = []
        self._source = source

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        """Return the choices of a seed: the same ones every time."""
        # Not for secrets: a seed must be repeatable.
        return cls(random.Random(seed).randrange)  # noqa: S311

    @classmethod
    def replayed(cls, values: Iterable[int]) -> Choices:
        """Return choices that were taken before; too large a number wraps round."""
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
        """Return one of the options; the first is the simplest."""
        return options[self.draw(len(options))]

    def chance(self, of: int) -> bool:
        """Return True once in so many times; False is the simplest."""
        return self.draw(of) == of - 1


def to_token(values: Sequence[int], mark: int) -> str:
    """Return choices as a token for a command line.

    Args:
        values: the choices, each below `COUNT_MAX`.
        mark: a checksum of the graph, tools and rules that they were made for.
    """
    content = mark.to_bytes(MARK_BYTES) + bytes(_bare(tuple(values)))
    return f"{VERSION}-{urlsafe_b64encode(content).decode().rstrip('=')}"


def from_token(token: str) -> tuple[Values, int]:
    """Return the choices and the checksum that `to_token` has written.

    Raises:
        ConfigError: `to_token` has not written the token.
    """
    word = token.strip().removeprefix(f"{VERSION}-")
    try:
        content = urlsafe_b64decode(word + "=" * (-len(word) % 4))
    except ValueError:
        content = b""
    values, mark = tuple(content[MARK_BYTES:]), int.from_bytes(content[:MARK_BYTES])
    if len(content) < MARK_BYTES or to_token(values, mark) != token.strip():
        raise ConfigError(
            f"token: expected a token that `graphloop fuzz` has printed ({VERSION}-…), "
            f"found {token!r:.80}. Fix: copy it whole."
        )
    return values, mark


def shrunk(values: Values, fails: Callable[[Values], Values | None]) -> Values:
    """Return a simpler list that still fails.

    A shorter list is simpler; of two equally long ones, the list with the smaller numbers. Pieces
    are left out and numbers are lowered, also together with the items that they count.

    Args:
        values: a list that fails.
        fails: returns the choices that a run of the list really took; None if it does not fail.
    """
    best, known = values, {values}

    def improved(candidates: Callable[[Values], Iterator[Values]]) -> bool:
        nonlocal best
        for candidate in candidates(best):
            if candidate in known or len(known) > TRIALS_MAX:
                continue
            known.add(candidate)
            taken = fails(candidate)
            if taken is not None:
                # The run needs no number that it has not taken; beyond the list it took zeros.
                simpler = (_bare(taken), _bare(candidate), best)
                best = min(simpler, key=lambda numbers: (len(numbers), numbers))
                return True
        return False

    before: Values | None = None
    while before != best:
        before = best
        for candidates in (_without, _lowered):
            while improved(candidates):
                pass
    return best


def _without(values: Values) -> Iterator[Values]:
    """Yield the list without a piece: large pieces first, from the end."""
    size = piece = len(values)
    while piece:
        for end in range(size, piece - 1, -piece):
            yield values[: end - piece] + values[end:]
        piece //= 2


def _lowered(values: Values) -> Iterator[Values]:
    """Yield the list with a lower number, and without some of the numbers behind it."""
    for omitted in (*range(1, COUNTED_MAX + 1), 0):
        for at, value in enumerate(values):
            for less in dict.fromkeys((0, 1, value // 2, value - 1)):
                if 0 <= less < value and at + omitted < len(values):
                    yield (*values[:at], less, *values[at + 1 + omitted :])


def _bare(values: Values) -> Values:
    """Return the list without the zeros at its end."""
    size = len(values)
    while size and not values[size - 1]:
        size -= 1
    return values[:size]
