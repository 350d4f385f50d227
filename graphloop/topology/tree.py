"""Tree: the values of a file, each with its line and column.

Unquoted words follow the core schema of YAML 1.2: `true` and `false` are the only booleans, so
`yes`, `no`, `on`, `off`, dates, `1_000` and `12:30:00` are text. Leading zeros are refused, because
YAML 1.1 and 1.2 read them differently. Infinite numbers are refused, because they limit nothing.
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
"""The path of keys and indices from the root of a tree to a value."""

NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
TRUE: Final = frozenset({"true", "True", "TRUE"})
FALSE: Final = frozenset({"false", "False", "FALSE"})

_whole = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+").fullmatch
_fraction = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_endless = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)").fullmatch
_leading = re.compile(r"[-+]?0[0-9]").match

DIGITS_MAX: Final = 18
"""The most digits of a whole number; parsing time grows with the square of their number."""
FRACTION_MAX: Final = 30
"""The most characters of a number with a fraction; Python itself writes at most 24."""


@final
@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; lines and columns are counted from 1."""

    line: int
    column: int


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, number, boolean or null; `written` is its spelling in the file."""

    value: Plain
    mark: Mark
    written: str


@final
@dataclass(frozen=True, slots=True)
class Items:
    """A list of values."""

    items: tuple[Value, ...]
    mark: Mark


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping with its position and its value."""

    key: str
    mark: Mark
    value: Value


@final
@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with unique keys."""

    entries: tuple[Entry, ...]
    mark: Mark


Value: TypeAlias = Scalar | Items | Fields


@final
class _Nothing:
    """The type of a marker for a missing value; unlike `null`, no pydantic type accepts it."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()


def plain_data(value: Value) -> object:
    """Convert a tree value to Python lists, dicts and scalars."""
    match value:
        case Scalar():
            return NOTHING if value.value is None and not value.written else value.value
        case Items():
            return [plain_data(item) for item in value.items]
        case Fields():
            return {entry.key: plain_data(entry.value) for entry in value.entries}


def value_at(tree: Value, loc: Loc) -> Value:
    """Return the value at a path; if it is missing, the deepest value on the path that exists."""
    for part in loc:
        if isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            tree = tree.items[part]
        elif entry := entry_at(tree, part):
            tree = entry.value
        else:
            break
    return tree


def entry_at(tree: Value, key: object) -> Entry | None:
    """Return the entry of a key; None if the key is missing or the value is not a mapping."""
    entries = tree.entries if isinstance(tree, Fields) else ()
    return next((entry for entry in entries if entry.key == key), None)


def described(value: Value) -> str:
    """Return a short description of a value for messages, such as `the boolean true`."""
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
    """Return the Python value of an unquoted YAML word.

    Raises:
        ValueError: a number is infinite, too long or has leading zeros; the message is the fix.
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
    """Whether the reader would read this word, written without quotes, as the same text."""
    try:
        return plain_word(word) == word
    except ValueError:
        return False
