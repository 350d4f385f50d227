"""Names: what a graph and its nodes may be called, and how odd text is shown in messages.

Names stand in journals, diagrams, files and terminals: none holds a control character, and no two
look alike for white space around them.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import bidirectional, category

__all__ = ["NAME_MAX", "control_in", "escaped", "flaw_of", "node_flaw_of", "turns_direction"]

NAME_MAX: Final = 200

_CONTROL: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, half pairs, and the separators of lines and paragraphs."""

_TURNS: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})

_CALLS: Final = re.compile(r"c-?[0-9]+")
"""What the keys of calls begin with."""


def control_in(text: str) -> str | None:
    """Return the first control character of a text, None if it has none."""
    if text.isprintable():
        return None
    return next((sign for sign in text if category(sign) in _CONTROL), None)


def turns_direction(sign: str) -> bool:
    """Whether a character changes the writing direction of those that follow it."""
    return bidirectional(sign) in _TURNS


def flaw_of(name: str) -> str | None:
    """Return what keeps a text from being a node's name, None if nothing does."""
    if not name.strip():
        return "it says nothing"
    control = control_in(name)
    if control is not None:
        return f"it holds the control character {control!r}"
    if name != name.strip():
        return "it begins or ends with white space"
    if "/" in name:
        return "a slash leads from a child to its nodes (child/node)"
    return f"it has more than {NAME_MAX} characters" if len(name) > NAME_MAX else None


def node_flaw_of(name: str) -> str | None:
    """Return what keeps a text from being a node's name, None if nothing does.

    What a node asks for has a key that begins with the node's name, among the keys of the calls.
    """
    if _CALLS.fullmatch(name):
        return "the calls of a turn have such keys, and what the node asks for would have the same"
    return flaw_of(name)


def escaped(text: str) -> str:
    """Return a text with escapes for what cannot be seen: it may be shown anywhere."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
