"""tool_samples: a tool's name for each way in which patterns can match one, or none.

What rules decide of a name depends on which of their patterns match it, and on nothing else. So two
lists of rules that decide alike of one name for each set of patterns decide alike of all names. The
patterns are read beside each other, letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final, TypeAlias

from .children import WILDCARDS

__all__ = ["tool_samples"]

LETTERS: Final = f"x{ascii_lowercase}_{digits}-{ascii_uppercase}"
"""What tools are named with; an `x` first, which stands for any."""

STEPS_MAX: Final = 50_000
"""How many letters are tried; then nobody knows."""

Place: TypeAlias = tuple[bool, str | None, tuple[int, ...]]
"""Whether a name has begun, what it may become of the exact names, and where each pattern is."""


def tool_samples(patterns: Iterable[str]) -> tuple[str, ...] | None:
    """Return the shortest name for each set of patterns that can match a name, and no others.

    Args:
        patterns: names, and shell patterns; what names match is told by these themselves.

    Returns:
        Names that are none of the patterns; None if there are too many ways to look at.
    """
    every = tuple(dict.fromkeys(patterns))
    exact = frozenset(one for one in every if not WILDCARDS & set(one))
    globs = [_Glob(one) for one in every if one not in exact]
    starts = frozenset(one[:end] for one in exact for end in range(len(one) + 1))
    letters = _letters(globs, exact)
    # A name has a letter: where it begins, is nowhere that it comes to.
    first: Place = False, "" if starts else None, tuple([glob.begin for glob in globs])
    words: dict[Place, str] = {first: ""}
    found: dict[tuple[bool, ...], str] = {}
    todo: list[Place] = [first]
    steps = 0
    for here in todo:
        begun, name, places = here
        word = words[here]
        matched = tuple([glob.ends(place) for glob, place in zip(globs, places, strict=True)])
        if begun and word not in exact:
            found.setdefault(matched, word)
        steps += len(letters)
        if steps > STEPS_MAX:
            return None
        for letter in letters:
            longer = None if name is None else name + letter
            known = longer if longer in starts else None
            pairs = zip(globs, places, strict=True)
            there = True, known, tuple([glob.after(place, letter) for glob, place in pairs])
            if there not in words:
                words[there] = word + letter
                todo.append(there)
    return tuple(found.values())


class _Glob:
    """A shell pattern that is read letter by letter; a place in it is a set of bits."""

    def __init__(self, pattern: str) -> None:
        self.parts = _parts(pattern)
        self._after: dict[tuple[int, str], int] = {}
        self.begin = self._on(1)

    def ends(self, place: int) -> bool:
        """Whether the pattern may end there."""
        return bool(place >> len(self.parts) & 1)

    def after(self, place: int, letter: str) -> int:
        """Return the place behind a letter."""
        key = place, letter
        known = self._after.get(key)
        if known is None:
            reached = 0
            for at, part in enumerate(self.parts):
                if place >> at & 1 and (part is None or letter in part):
                    reached |= 1 << (at if part is None else at + 1)
            known = self._after[key] = self._on(reached)
        return known

    def _on(self, place: int) -> int:
        """Return a place, and what is reached from there by a `*` that stands for nothing."""
        for at, part in enumerate(self.parts):
            if part is None and place >> at & 1:
                place |= 1 << (at + 1)
        return place


def _parts(pattern: str) -> Sequence[frozenset[str] | None]:
    """Return which letters each part of a pattern matches; None for a `*`."""
    found: list[frozenset[str] | None] = []
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            # A bracket that closes nothing yet may stand first in the brackets.
            closing = pattern.find("]", at + (3 if pattern[at + 1 : at + 2] == "!" else 2))
            end = at + 1 if closing < 0 else closing + 1
        part = pattern[at:end]
        letters = frozenset(one for one in LETTERS if fnmatchcase(one, part))
        found.append(None if part == "*" else letters)
        at = end
    return found


def _letters(globs: Iterable[_Glob], exact: Iterable[str]) -> Sequence[str]:
    """Return a letter for all that no pattern and no name tells apart."""
    parts = [part for glob in globs for part in glob.parts if part is not None]
    spelt = frozenset("".join(exact))
    kinds: dict[object, str] = {}
    for letter in LETTERS:
        told_apart = tuple([letter in part for part in parts])
        kinds.setdefault((told_apart, letter if letter in spelt else ""), letter)
    return tuple(kinds.values())
