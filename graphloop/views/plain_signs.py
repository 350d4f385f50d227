"""plain_signs: a picture for a terminal whose encoding lacks its signs: one plain sign for each.

So columns stay where they are, and thick, thin and dashed lines can still be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["PLAIN", "in_signs_of"]

PLAIN: Final[Mapping[str, str]] = {
    "━": "=",
    "─": "-",
    "╌": ".",
    "│": "|",
    "┊": ":",
    "├": "+",
    "┤": "+",
    "┼": "+",
    "┌": "+",
    "└": "+",
    "▶": ">",
    "◀": "<",
    "↓": "v",
    "↑": "^",
    "↻": "@",
    "●": "*",
    "◉": "*",
    "▱": "/",
    "■": "#",
    "◇": "X",
    "▣": "$",
    "▤": "=",
    "△": "^",
    "◆": "!",
    "◐": "@",
    "▥": "%",
    "►": "&",
    "○": "o",
    "◌": "O",
    "▒": "#",
    "·": "~",
    "…": "~",
    "→": ">",
}
"""What stands for each sign of the pictures that are text."""


def in_signs_of(text: str, encoding: str | None) -> str:
    """Return a text in signs that an encoding has, as long as it was; as it is if that is None.

    What is no sign of a picture, such as a letter in a name, becomes `?` where it is lacking.
    """
    if encoding is None or _fits(text, encoding):
        return text
    lacking = {sign for sign in set(text) if not _fits(sign, encoding)}
    return text.translate({ord(sign): PLAIN.get(sign, "?") for sign in lacking})


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
