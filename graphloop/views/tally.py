"""Tally: how often, how long, how many tokens and how much money; told in words.

Numbers stay numbers until a picture is made of them, so that what is drawn as one is added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, final

__all__ = ["Tally", "sum_of"]

APART_MAX: Final = 4
"""Up to how many runs each one's count is told beside their sum."""


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """What one or several runs have done at one place.

    Attributes:
        times: how often, run by run.
        seconds: how long they waited.
        tokens: what was used meanwhile.
        usd: what that has cost.
    """

    times: tuple[int, ...] = ()
    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0

    @property
    def total(self) -> int:
        """How often, in all runs together."""
        return sum(self.times)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple([one + two for one, two in zip_longest(self.times, other.times, fillvalue=0)]),
            self.seconds + other.seconds,
            self.tokens + other.tokens,
            self.usd + other.usd,
        )

    def less(self, other: Tally) -> Tally:
        """Return the same without the times of `other`; time and money stay."""
        times = zip_longest(self.times, other.times, fillvalue=0)
        left = tuple([one - two for one, two in times])
        return Tally(left, self.seconds, self.tokens, self.usd)

    @property
    def count(self) -> str:
        """How often, in words; up to four runs are told apart."""
        times = self.times
        each = f" ({'+'.join(f'{one:,}' for one in times)})"
        return f"{self.total:,}x{each if 1 < len(times) <= APART_MAX else ''}"

    @property
    def spent(self) -> str:
        """Time, tokens and money, in words; what there is none of is left out."""
        return ", ".join(_spent(self))


def sum_of(tallies: Iterable[Tally]) -> Tally:
    """Return them all together."""
    return sum(tallies, Tally())


def _spent(tally: Tally) -> Iterator[str]:
    seconds = tally.seconds
    if 0.001 <= seconds < 1:
        yield f"{seconds * 1000:.0f} ms"
    elif seconds >= 1:
        yield f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    if tally.tokens:
        yield f"{tally.tokens:,} tokens"
    if tally.usd:
        yield f"${tally.usd:.4f}"
