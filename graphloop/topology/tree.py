"""Tree: the values of a file, each with its line and column.

Plain words follow the core schema of YAML 1.2: `true` and `false` are the only booleans, so `yes`,
`no`, `on`, `off`, dates, `1_000` and `12:30:00` are text. Leading zeros mean two things in two
versions of YAML, and an infinite number bounds nothing: both are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias, final

__all__ = [
    "DIGITS_MAX",
    "Entry",
    "Fields",
    "Items",
    "Loc",
    "Mark",
    "Plain",
    "Scalar",
    "Value",
    "described",
    "entry_at",
    "is_text",
    "plain_data",
    "plain_word",
    "value_at",
]

Plain: TypeAlias = str | int | float | bool | None
Loc: TypeAlias = tuple[int | str, ...]
"""The keys and indices that lead to a value."""

NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
TRUE: Final = frozenset({"true", "True", "TRUE"})
FALSE: Final = frozenset({"false", "False", "FALSE"})

_whole = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+").fullmatch
_fraction = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_endless = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)").fullmatch
_leading = re.compile(r"[-+]?0[0-9]").match

DIGITS_MAX: Final = 18
"""The digits of a whole number; reading time grows with their square."""
FRACTION_MAX: Final = 30
"""The length of any other number; Python writes at most 24 characters."""


@final
@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; lines and columns are counted from 1."""

    line: int
    column: int


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A word or text; `written` is its form in the file."""

    value: Plain
    mark: Mark
    written: str


@final
@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Value, ...]
    mark: Mark


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping, with its value."""

    key: str
    mark: Mark
    value: Value


@final
@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; each key stands in it once."""

    entries: tuple[Entry, ...]
    mark: Mark


Value: TypeAlias = Scalar | Items | Fields


@final
class _Nothing:
    """Stands for a missing value: unlike `null`, no type takes it."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()


def plain_data(value: Value) -> object:
    """Return a value as plain lists, dicts and words."""
    match value:
        case Scalar():
            return NOTHING if value.value is None and not value.written else value.value
        case Items():
            return [plain_data(item) for item in value.items]
        case Fields():
            return {entry.key: plain_data(entry.value) for entry in value.entries}


def value_at(tree: Value, loc: Loc) -> Value:
    """Return the value at a location, or its nearest ancestor that exists."""
    for part in loc:
        if isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            tree = tree.items[part]
        elif entry := entry_at(tree, part):
            tree = entry.value
        else:
            break
    return tree


def entry_at(tree: Value, key: object) -> Entry | None:
    """Return the entry of this key; None without one."""
    entries = tree.entries if isinstance(tree, Fields) else ()
    return next((entry for entry in entries if entry.key == key), None)


def described(value: Value) -> str:
    """Return a value in the words of messages."""
    match value:
        case Items():
            return "a list" if value.items else "an empty list"
        case Fields():
            return "a mapping" if value.entries else "an empty mapping"
        case Scalar(str(text)):
            return f"the text {text if len(text) <= 60 else text[:57] + '…'!r}"
        case Scalar(None, written=written):
            return f"null ({written})" if written else "nothing"
        case Scalar(bool(), written=written):
            return f"the boolean {written}"
        case _:
            return f"the number {value.written:.40}"


def plain_word(word: str) -> Plain:
    """Return the value of a word without quotes.

    Raises:
        ValueError: a number means two things, or no topology needs it; the message is the fix.
    """
    if word in NULL:
        return None
    if word in TRUE or word in FALSE:
        return word in TRUE
    if _endless(word):
        raise ValueError("write a finite number, or quote it if it is text.")
    is_whole = _whole(word) is not None
    if not is_whole and not _fraction(word):
        return word
    digits_max = DIGITS_MAX if is_whole else FRACTION_MAX
    if len(word.lstrip("+-")) > digits_max:
        raise ValueError(f"write at most {digits_max} digits, or quote it if it is text.")
    if _leading(word):
        raise ValueError("remove the leading zeros, or quote it if it is text.")
    if is_whole:
        return int(word, 0)
    value = float(word)
    if value in (float("inf"), float("-inf")):
        raise ValueError("write a finite number, or quote it if it is text.")
    return value


def is_text(word: str) -> bool:
    """Whether a word without quotes would be read as this very text."""
    try:
        return plain_word(word) == word
    except ValueError:
        return False
