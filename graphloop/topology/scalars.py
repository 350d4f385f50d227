"""Plain words of YAML as values: the core schema of YAML 1.2, and nothing that surprises.

`true` and `false` are the only booleans: `yes`, `no`, `on` and `off` are text. So are dates,
`1_000` and `12:30:00`. A number with leading zeros means two things in two versions of YAML, so it
is refused, like infinities, which bound nothing.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

__all__ = ["DIGITS_MAX", "Plain", "is_text", "plain_value", "shown"]

Plain: TypeAlias = str | int | float | bool | None

NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
TRUE: Final = frozenset({"true", "True", "TRUE"})
FALSE: Final = frozenset({"false", "False", "FALSE"})

_whole = re.compile(r"[-+]?[0-9]+").fullmatch
_based = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+").fullmatch
_number = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_endless = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)").fullmatch
_leading = re.compile(r"[-+]?0[0-9]").match

DIGITS_MAX: Final = 18
"""Longer numbers are nobody's limit; and the time to read one grows with its square."""

FRACTION_MAX: Final = 30
"""How long a number is that is no whole one; Python writes none with more than 24 signs."""


def plain_value(word: str) -> Plain:
    """Return what a word without quotes means.

    Raises:
        ValueError: it means two things, or is a number that no topology needs; says how to mend it.
    """
    if word in NULL:
        return None
    if word in TRUE or word in FALSE:
        return word in TRUE
    if _endless(word):
        raise ValueError("write a finite number, or quote it if it is text.")
    if not (_whole(word) or _based(word) or _number(word)):
        return word
    most = DIGITS_MAX if _whole(word) or _based(word) else FRACTION_MAX
    if len(word.lstrip("+-")) > most:
        raise ValueError(f"write at most {most} digits, or quote it if it is text.")
    if _leading(word):
        raise ValueError("remove the leading zeros, or quote it if it is text.")
    if _whole(word):
        return int(word)
    if _based(word):
        return int(word, 0)
    value = float(word)
    if value in (float("inf"), float("-inf")):
        raise ValueError("write a finite number, or quote it if it is text.")
    return value


def is_text(word: str) -> bool:
    """Whether a word without quotes would be read as this very text."""
    try:
        return plain_value(word) == word
    except ValueError:
        return False


def shown(value: Plain, written: str) -> str:
    """Return what stands there, as messages say it."""
    match value:
        case str():
            text = value if len(value) <= 60 else f"{value[:57]}…"
            return f"the text {text!r}"
        case None:
            return "nothing" if not written else f"null ({written})"
        case bool():
            return f"the boolean {written}"
        case _:
            return f"the number {written:.40}"
