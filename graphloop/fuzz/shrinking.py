"""Shrinking: a shorter list of smaller choices that still fails in the same way.

A list of choices has no structure to be kept: whatever is left out, what follows is read as
something else. So pieces are left out and numbers are lowered, as long as the failure stays; a
number that says how many there are is lowered together with what it counts, right behind it;
of two lists the shorter is the simpler, and of two of one length the one with smaller numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, final

__all__ = ["TRIALS_MAX", "shrunk"]

TRIALS_MAX: Final = 400
"""How many lists are tried at most."""

COUNTED_MAX: Final = 4
"""How many numbers one of the things has at most that another number counts."""

Values: TypeAlias = tuple[int, ...]


def shrunk(values: Values, fails: Callable[[Values], Values | None]) -> Values:
    """Return the simplest list found.

    Args:
        values: a list that fails.
        fails: the choices that were really taken when a list is tried, or None if nothing fails.
    """
    search = _Search(values, fails)
    before: Values | None = None
    while before != search.best and search.left:
        before = search.best
        for one_pass in (_without, _folded, _lowered):
            search.walk(one_pass)
    return search.best


@final
class _Search:
    """The simplest list so far, and what has been tried."""

    def __init__(self, values: Values, fails: Callable[[Values], Values | None]) -> None:
        self.best = values
        self.left = TRIALS_MAX
        self._fails = fails
        self._known: set[Values] = {values}

    def walk(self, candidates: Callable[[Values], Iterator[Values]]) -> None:
        """Try simpler lists, from the best there is, until none of them is any better."""
        better = True
        while better and self.left:
            better = any(self._is_better(one) for one in candidates(self.best) if self.left)

    def _is_better(self, values: Values) -> bool:
        if values in self._known:
            return False
        self._known.add(values)
        self.left -= 1
        taken = self._fails(values)
        if taken is None:
            return False
        # What was not taken is not needed; what was taken beyond the list is 0.
        self.best = min((_bare(taken), _bare(values), self.best), key=lambda one: (len(one), one))
        return True


def _without(values: Values) -> Iterator[Values]:
    """Leave out pieces, large ones first, from the end."""
    size = len(values)
    piece = size
    while piece:
        for end in range(size, piece - 1, -piece):
            yield values[: end - piece] + values[end:]
        piece //= 2


def _folded(values: Values) -> Iterator[Values]:
    """Lower a number, and leave out the next ones: there are fewer of what it counts."""
    for at, value in enumerate(values):
        for less in dict.fromkeys((0, 1, value // 2, value - 1)):
            for count in range(1, COUNTED_MAX + 1):
                if 0 <= less < value and at + count < len(values):
                    yield (*values[:at], less, *values[at + 1 + count :])


def _lowered(values: Values) -> Iterator[Values]:
    for at, value in enumerate(values):
        for less in dict.fromkeys((0, value // 2, value - 1)):
            if 0 <= less < value:
                yield (*values[:at], less, *values[at + 1 :])


def _bare(values: Values) -> Values:
    """Return the list without the zeros at its end, which say nothing."""
    size = len(values)
    while size and not values[size - 1]:
        size -= 1
    return values[:size]
