"""Tree: what stands in a file, as values, each with its line and column.

What reads YAML and what reads JSON build the same tree, and hold it to the same limits while it
grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from .problems import Complaints, Mark
from .scalars import Plain, shown

__all__ = [
    "DEPTH_MAX",
    "VALUES_MAX",
    "Entry",
    "Fields",
    "Growth",
    "Items",
    "Scalar",
    "Value",
    "described",
]

DEPTH_MAX: Final = 32
VALUES_MAX: Final = 50_000


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """One word or text; `written` is how it stands in the file."""

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
    """One key of a mapping, and what stands there."""

    key: str
    mark: Mark
    value: Value


@final
@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; no key stands in it twice."""

    entries: tuple[Entry, ...]
    mark: Mark


Value: TypeAlias = Scalar | Items | Fields


def described(value: Value) -> str:
    """Return what stands there, as messages say it."""
    match value:
        case Scalar():
            return shown(value.value, value.written)
        case Items():
            return "a list" if value.items else "an empty list"
        case Fields():
            return "a mapping" if value.entries else "an empty mapping"


@final
class Growth:
    """Holds a tree to what every tree is held to, while it grows."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._count = 0

    def value(self, depth: int, mark: Mark) -> None:
        """Count one more value, or key.

        Raises:
            Misread: there are too many, or too many levels.
        """
        self._count += 1
        if self._count > VALUES_MAX:
            found = f"at most {VALUES_MAX:,} values are read, found more."
            fix = "move parts into files of their own (`include`)."
            raise self._complaints.misread(mark, found, fix)
        if depth > DEPTH_MAX:
            found = f"values stand at most {DEPTH_MAX} levels deep, found more."
            fix = "give inner graphs files of their own (`include`)."
            raise self._complaints.misread(mark, found, fix)

    def text(self, text: str, mark: Mark) -> str:
        """Return a text in quotes; JSON writes characters beyond U+FFFF as two escapes."""
        if not any("\ud800" <= sign <= "\udfff" for sign in text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            found = "half of a surrogate pair stands here, which is no character."
            self._complaints.spoil(mark, found, "write the character itself.")
            return ""

    def is_new(self, key: str, mark: Mark, entries: Mapping[str, Entry]) -> bool:
        """Whether a mapping has no such key yet; one that stands there twice is noted."""
        if key not in entries:
            return True
        line = entries[key].mark.line
        found = f"the key {key!r} stands here twice, first on line {line}."
        self._complaints.note(mark, found, "remove one of the two.")
        return False
