"""Text: prepare text for a terminal, without control characters and wrapped between words."""

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
from ..values import TextPart, UserPart

__all__ = [
    "ASKED_MAX",
    "agents_text",
    "call_text",
    "clean",
    "content_text",
    "counted",
    "one_line",
    "safe_json",
    "time_text",
    "wrapped",
]

ARGUMENTS_MAX: Final = 120
ASKED_MAX: Final = 10_000
"""The most characters of a call that are shown to the person who decides about the call."""
UNSAFE: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that control a terminal or the writing direction, and that JSON does not escape."""
COPIED: Final = "graphloop "
"""A line that contains this text has a command; it is not wrapped, so that it can be copied."""


def clean(text: str) -> str:
    """Return `text` without control characters, which could control the terminal.

    Characters that change the writing direction are escaped, because they could make a call look
    like another call.
    """
    if text.isprintable():
        return text
    kept = [sign for sign in text if sign in "\n\t" or category(sign) != "Cc"]
    return "".join(ascii(sign)[1:-1] if turns_direction(sign) else sign for sign in kept)


def wrapped(text: str, out: TextIO) -> str:
    """Return clean text; if `out` is a terminal, wrapped to its width."""
    text = clean(text)
    if not out.isatty():
        return text
    return "\n".join(map(_wrap_line, text.split("\n")))


def _wrap_line(line: str) -> str:
    width = shutil.get_terminal_size().columns
    if len(line) <= width or COPIED in line:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    rows = wrap(
        line, width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(rows)


def safe_json(text: str) -> str:
    """Escape the characters of a JSON text that could control a terminal; keep the JSON value."""
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def call_text(name: str, arguments: str, length_max: int = ARGUMENTS_MAX) -> str:
    """Return the text of a call in Python syntax, such as `get_weather(city="NYC")`."""
    try:
        value: object = json.loads(arguments)
    except ValueError:
        value = arguments
    shown = arguments
    if isinstance(value, dict):
        values = cast("dict[str, object]", value)  # JSON objects have text keys.
        shown = ", ".join(f"{key}={json.dumps(values[key], ensure_ascii=False)}" for key in values)
    return f"{one_line(name, ARGUMENTS_MAX)}({one_line(shown, length_max)})"


def agents_text(agents: Iterable[str], server: str = "") -> str:
    """Return the prefix that names the sub-agents of a call and the server of its tool.

    For example `desk > payer > `, or `server 'bank' > `.
    """
    agents = (*agents, f"server {server!r}") if server else agents
    return "".join(f"{clean(name)} > " for name in agents)


def one_line(text: str, length_max: int) -> str:
    """Return text on one line, cut to `length_max` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def counted(number: int, name: str) -> str:
    """Return a number with its noun in singular or plural, such as `1 step` or `2 steps`."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def time_text(at: float) -> str:
    """Return a Unix time as date and time in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}Z"


def content_text(content: str | Iterable[UserPart]) -> str:
    """Return the content of a message as text, in which media are only named."""
    if isinstance(content, str):
        return content
    return " ".join(
        part.text if isinstance(part, TextPart) else f"[{part.label}]" for part in content
    )
