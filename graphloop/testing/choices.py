"""Choices: the small numbers that decide every random part of a simulated run.

A seed generates the list of numbers, and the same list gives the same simulated run. A number that
the list lacks counts as 0, the simplest choice. So a shorter list of smaller numbers is a simpler
run. Shrinking and the token of `--replay` work on this list alone
(docs/decisions/2026-11-23-the-fuzzer-keeps-its-choices.md).
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
"""The maximum number of options of a choice, because the token stores a choice as one byte."""

VERSION: Final = "f1"
MARK_BYTES: Final = 4

TRIALS_MAX: Final = 400
"""The maximum number of lists that `shrunk` tries."""

COUNTED_MAX: Final = 4
"""How many numbers behind a lowered number `_lower_numbers` removes at most.

A number may count items; lowering it must then also remove the numbers of an item.
"""


@final
class Choices:
    """Draws numbers from a source, and records each drawn number in `taken`."""

    def __init__(self, source: Callable[[int], int]) -> None:
        self.taken: list[int] = []
        self._source = source

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        """Return choices drawn by a random generator with this seed; equal seeds draw equally."""
        # A secure generator has no seed, and these numbers protect no secret.
        return cls(random.Random(seed).randrange)  # noqa: S311

    @classmethod
    def replayed(cls, values: Iterable[int]) -> Choices:
        """Return choices that draw these values in order, each modulo its options, then zeros."""
        numbers = chain(values, repeat(0))
        return cls(lambda count: next(numbers) % count)

    def draw(self, count: int) -> int:
        """Return a number from 0 to `count - 1`; 0 stands for the simplest choice."""
        assert 0 < count <= COUNT_MAX, "a choice is a byte"
        if count == 1:
            return 0
        drawn = self._source(count)
        self.taken.append(drawn)
        return drawn

    def pick(self, options: Sequence[T]) -> T:
        """Return a drawn member of `options`; the first option is the simplest choice."""
        return options[self.draw(len(options))]

    def chance(self, of: int) -> bool:
        """Return True with a probability of 1 in `of`; False is the simplest choice."""
        return self.draw(of) == of - 1


def to_token(values: Sequence[int], mark: int) -> str:
    """Encode choices and a checksum as a token for the command line.

    Args:
        values: the choices, each below `COUNT_MAX`.
        mark: the checksum of the graph, tools and rules of the fuzzed run (`Subject.mark`).
    """
    content = mark.to_bytes(MARK_BYTES) + bytes(_strip_zeros(tuple(values)))
    return f"{VERSION}-{urlsafe_b64encode(content).decode().rstrip('=')}"


def from_token(token: str) -> tuple[Values, int]:
    """Decode a token of `to_token` into its choices and its checksum.

    Raises:
        ConfigError: the token is incomplete, or `to_token` did not write it.
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
    """Return the simplest list found that still fails.

    A shorter list is simpler. Of two lists of equal length, the list with smaller numbers is
    simpler. The search removes pieces of the list, and lowers numbers, if necessary together with
    removing a few numbers behind them.

    Args:
        values: the choices of a failing run.
        fails: runs a list, and returns the choices that the run drew; None if it did not fail.
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
                # The drawn choices may be shorter than the list, because a run may end early.
                simpler = (_strip_zeros(taken), _strip_zeros(candidate), best)
                best = min(simpler, key=lambda numbers: (len(numbers), numbers))
                return True
        return False

    before: Values | None = None
    while before != best:
        before = best
        for candidates in (_shorter_lists, _lower_numbers):
            while improved(candidates):
                pass
    return best


def _shorter_lists(values: Values) -> Iterator[Values]:
    """Yield copies of the list with a piece removed: large pieces first, each from the end."""
    size = piece = len(values)
    while piece:
        for end in range(size, piece - 1, -piece):
            yield values[: end - piece] + values[end:]
        piece //= 2


def _lower_numbers(values: Values) -> Iterator[Values]:
    """Yield copies of the list with a number lowered and up to four numbers behind it removed."""
    for omitted in (*range(1, COUNTED_MAX + 1), 0):
        for at, value in enumerate(values):
            for less in dict.fromkeys((0, 1, value // 2, value - 1)):
                if 0 <= less < value and at + omitted < len(values):
                    yield (*values[:at], less, *values[at + 1 + omitted :])


def _strip_zeros(values: Values) -> Values:
    """Return the list without its trailing zeros."""
    size = len(values)
    while size and not values[size - 1]:
        size -= 1
    return values[:size]
