"""JSON: a text of RFC 8259 as a tree of values, each with its line and column.

YAML takes nearly every JSON text, and a good deal besides: unquoted keys, trailing commas, tabs in
a text as spaces. A file of JSON is read as what every other reader of JSON takes it for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from json import JSONDecodeError, JSONDecoder
from typing import Final

from .problems import Complaints, Mark, Misread
from .scalars import plain_value
from .tree import Entry, Fields, Growth, Items, Scalar, Value

__all__ = ["is_json", "read_json"]

_blank = re.compile(r"[ \t\r\n]*").match
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?").match
_word = re.compile(r"true|false|null").match

_strings: Final = JSONDecoder()

SHOWN_MAX: Final = 20


def read_json(text: str, complaints: Complaints) -> Value:
    """Return the tree of a text.

    Raises:
        Misread: it is no JSON, or has more values than are read; where, is among the complaints.
    """
    return _Scanner(text, complaints).document()


def is_json(text: str) -> bool:
    """Whether a text is an object or a list of JSON."""
    if not text.lstrip(" \t\r\n").startswith(("{", "[")):
        return False
    try:
        read_json(text, Complaints("text"))
    except Misread:
        return False
    return True


class _Scanner:
    def __init__(self, text: str, complaints: Complaints) -> None:
        self._text = text
        self._complaints = complaints
        self._growth = Growth(complaints)
        self._lines = [0, *(one.end() for one in re.finditer("\n", text))]
        self._at = 0

    def document(self) -> Value:
        value = self._value(1)
        self._skip()
        if self._at < len(self._text):
            raise self._expected("the end of the text")
        return value

    def _value(self, depth: int) -> Value:
        self._skip()
        mark = self._mark(self._at)
        self._growth.value(depth, mark)
        sign = self._text[self._at : self._at + 1]
        if sign == "{":
            return self._fields(depth, mark)
        if sign == "[":
            return self._items(depth, mark)
        if sign == '"':
            text = self._string(mark)
            return Scalar(text, mark, text)
        found = _number(self._text, self._at) or _word(self._text, self._at)
        if found is None:
            raise self._expected("a value (a text stands in double quotes)")
        self._at = found.end()
        return self._plain(found[0], mark)

    def _plain(self, word: str, mark: Mark) -> Scalar:
        try:
            return Scalar(plain_value(word), mark, word)
        except ValueError as error:
            self._complaints.spoil(mark, f"found the number {word:.40}.", str(error))
            return Scalar(0, mark, word)

    def _string(self, mark: Mark) -> str:
        try:
            found, self._at = _strings.raw_decode(self._text, self._at)
        except JSONDecodeError as error:
            told = f"this is no JSON: {error.msg}."
            fix = "write it with an escape, such as \\n, \\t or \\u0000, and end it with a quote."
            raise self._complaints.misread(self._mark(error.pos), told, fix) from error
        return self._growth.text(str(found), mark)

    def _items(self, depth: int, mark: Mark) -> Items:
        items: list[Value] = []
        self._at += 1
        if self._took("]"):
            return Items((), mark)
        while True:
            items.append(self._value(depth + 1))
            if self._took("]"):
                return Items(tuple(items), mark)
            if not self._took(","):
                raise self._expected("a comma or `]`")

    def _fields(self, depth: int, mark: Mark) -> Fields:
        entries: dict[str, Entry] = {}
        self._at += 1
        if self._took("}"):
            return Fields((), mark)
        while True:
            entry = self._entry(depth)
            if self._growth.is_new(entry.key, entry.mark, entries):
                entries[entry.key] = entry
            if self._took("}"):
                return Fields(tuple(entries.values()), mark)
            if not self._took(","):
                raise self._expected("a comma or `}`")

    def _entry(self, depth: int) -> Entry:
        self._skip()
        mark = self._mark(self._at)
        if not self._text.startswith('"', self._at):
            raise self._expected("a key in quotes")
        self._growth.value(depth + 1, mark)
        key = self._string(mark)
        if not self._took(":"):
            raise self._expected("a colon")
        return Entry(key, mark, self._value(depth + 1))

    def _took(self, sign: str) -> bool:
        self._skip()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        return True

    def _skip(self) -> None:
        found = _blank(self._text, self._at)
        assert found is not None, "it matches nothing, too"
        self._at = found.end()

    def _mark(self, at: int) -> Mark:
        line = bisect_right(self._lines, at)
        return Mark(line, at - self._lines[line - 1] + 1)

    def _expected(self, expected: str) -> Misread:
        rest = self._text[self._at : self._at + SHOWN_MAX].partition("\n")[0]
        found = f"found {rest!r}" if rest else "the text ends here"
        return self._complaints.misread(
            self._mark(self._at),
            f"this is no JSON: {expected} was expected; {found}.",
            "mend the line, or the one before it; YAML belongs into a file that ends in .yaml.",
        )
