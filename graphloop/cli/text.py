"""Text that may be printed: a model's words drive no terminal, and lines break between words."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from textwrap import wrap
from typing import Final, TextIO, cast
from unicodedata import category

from ..node_protocol import turns_direction

__all__ = [
    "ASKED_MAX",
    "agents_text",
    "call_text",
    "clean",
    "counted",
    "one_line",
    "safe_json",
    "time_text",
    "wrapped",
]

ARGUMENTS_MAX: Final = 120
ASKED_MAX: Final = 10_000
"""A person who decides about a call reads all of it."""
UNSAFE: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Signs that drive a terminal, or turn the direction of text, and that JSON takes unescaped."""
COPIED: Final = "graphloop "
"""A line with a command in it stays whole, to be copied."""


def clean(text: str) -> str:
    """Return `text` without control characters, which drive a terminal.

    Signs that turn the direction of text become escapes: they make a call look like another.
    """
    return text if text.isprintable() else "".join(map(_clean, text))


def _clean(sign: str) -> str:
    if turns_direction(sign):
        return ascii(sign)[1:-1]
    return sign if sign in "\n\t" or category(sign) != "Cc" else ""


def wrapped(text: str, out: TextIO) -> str:
    """Return `text` with lines that fit the terminal `out`."""
    if not out.isatty():
        return text
    return "\n".join(map(_wrapped, text.split("\n")))


def _wrapped(line: str) -> str:
    width = shutil.get_terminal_size().columns
    if len(line) <= width or COPIED in line:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    rows = wrap(
        line, width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(rows)


def safe_json(text: str) -> str:
    """Return JSON that means the same, and drives no terminal."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def call_text(name: str, arguments: str, length_max: int = ARGUMENTS_MAX) -> str:
    """Return a call as Python writes it: `get_weather(city="NYC")`."""
    try:
        value: object = json.loads(arguments)
    except ValueError:
        value = arguments
    shown = arguments
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)  # JSON objects have text keys.
        shown = ", ".join(
            f"{key}={json.dumps(given, ensure_ascii=False)}" for key, given in named.items()
        )
    return f"{one_line(name, ARGUMENTS_MAX)}({one_line(shown, length_max)})"


def agents_text(agents: Iterable[str]) -> str:
    """Return the names of sub-agents before a call."""
    return "".join(f"{clean(name)} > " for name in agents)


def one_line(text: str, length_max: int) -> str:
    """Return text on one line, cut to a length."""
    line = " ".join(clean(text).split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def counted(number: int, name: str) -> str:
    """Return a number of things: `1 step`, `2 steps`."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def time_text(at: float) -> str:
    """Return a time in seconds since the epoch in words, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}Z"
