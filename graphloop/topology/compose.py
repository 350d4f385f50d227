"""Compose: the text of a topology as a tree of values, each with its line and column.

Reads YAML, and JSON with it, from the parser's events: nothing is ever constructed from a tag, and
every limit holds while the tree grows. Anchors, aliases, tags, directives and a second document are
refused: a topology has no use for them, and a reader would have to know what they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import yaml
from yaml.reader import ReaderError

from .problems import Complaints, Mark, Misread
from .scalars import Plain, plain_value, shown

__all__ = ["Entry", "Fields", "Items", "Scalar", "Value", "compose", "described"]

_directive = re.compile(r"(?:[ \t]*(?:#[^%\n]*)?\n)*%").match

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


def compose(text: str, complaints: Complaints, *, json: bool = False) -> Value:
    """Return the tree of a text.

    Args:
        text: what stands in the file.
        complaints: takes what is wrong, so that the rest can be read all the same.
        json: whether the file is JSON, which allows tabs between its signs.

    Raises:
        Misread: the text is no YAML, or has what is refused; where, is among the complaints.
    """
    if json:
        # In JSON no string holds a tab, and a space takes as much room.
        text = text.replace("\t", " ")
    if _directive(text):
        # Before it is parsed: a warning for each of many would take its time.
        mark = Mark(text[: text.index("%")].count("\n") + 1, 1)
        raise complaints.misread(mark, "a directive (%) stands here.", "remove the line.")
    try:
        return _Composer(text, complaints).document()
    except ReaderError as error:
        before = text[: error.position]
        mark = Mark(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        found = f"the character U+{int(error.character):04X} stands here."
        raise complaints.misread(mark, found, "remove it, or write it with an escape.") from error
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, complaints) from error


def described(value: Value) -> str:
    """Return what stands there, as messages say it."""
    match value:
        case Scalar():
            return shown(value.value, value.written)
        case Items():
            return "a list" if value.items else "an empty list"
        case Fields():
            return "a mapping" if value.entries else "an empty mapping"


class _Composer:
    def __init__(self, text: str, complaints: Complaints) -> None:
        self._events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        self._complaints = complaints
        self._count = 0

    def document(self) -> Value:
        next(self._events)  # The stream begins.
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            raise self._refused(
                event, "a topology was expected, found only comments.", "begin with `graphloop: 1`."
            )
        assert isinstance(event, yaml.DocumentStartEvent)
        value = self._value(next(self._events), 1)
        next(self._events)  # The document ends.
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            found = "a second document begins here."
            raise self._refused(event, found, "keep one topology a file: remove the `---`.")
        return value

    def _value(self, event: yaml.Event, depth: int) -> Value:
        self._count += 1
        if self._count > VALUES_MAX:
            found = f"at most {VALUES_MAX:,} values are read, found more."
            raise self._refused(event, found, "move parts into files of their own (`include`).")
        if depth > DEPTH_MAX:
            found = f"values stand at most {DEPTH_MAX} levels deep, found more."
            raise self._refused(event, found, "give inner graphs files of their own (`include`).")
        self._refuse_references(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(event, depth)
        assert isinstance(event, yaml.MappingStartEvent)
        return self._fields(event, depth)

    def _refuse_references(self, event: yaml.Event) -> None:
        fix = "write out what is meant."
        if isinstance(event, yaml.AliasEvent):
            found = f"an alias (*{event.anchor}) stands here, and a topology has none."
            raise self._refused(event, found, fix)
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor is not None:
            found = f"an anchor (&{anchor}) stands here, and a topology has none."
            raise self._refused(event, found, f"remove it; where it is used, {fix}")
        if tag is not None:
            found = f"a tag ({str(tag)[:60]}) stands here, and a topology has none."
            raise self._refused(event, found, "remove it; text is put in quotes.")

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        written, mark = str(event.value), _mark(event)
        if not event.implicit[0]:
            return Scalar(self._whole_text(written, mark), mark, written)
        try:
            return Scalar(plain_value(written), mark, written)
        except ValueError as error:
            self._complaints.spoil(mark, f"found the number {written:.40}.", str(error))
            return Scalar(0, mark, written)

    def _whole_text(self, text: str, mark: Mark) -> str:
        """Return a text in quotes; JSON writes characters beyond U+FFFF as two escapes."""
        if not any("\ud800" <= sign <= "\udfff" for sign in text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            found = "half of a surrogate pair stands here, which is no character."
            self._complaints.spoil(mark, found, "write the character itself.")
            return ""

    def _items(self, start: yaml.Event, depth: int) -> Items:
        items: list[Value] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return Items(tuple(items), _mark(start))

    def _fields(self, start: yaml.Event, depth: int) -> Fields:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            value = self._value(next(self._events), depth + 1)
            merges = isinstance(event, yaml.ScalarEvent) and event.implicit[0]
            word = self._key(key, merges=merges)
            if word is None:
                continue
            if word in entries:
                line = entries[word].mark.line
                found = f"the key {word!r} stands here twice, first on line {line}."
                self._complaints.note(key.mark, found, "remove one of the two.")
                continue
            entries[word] = Entry(word, key.mark, value)
        return Fields(tuple(entries.values()), _mark(start))

    def _key(self, key: Value, *, merges: bool) -> str | None:
        """Return a key; `<<` without quotes merges mappings in other readers."""
        merges = merges and isinstance(key, Scalar) and key.value == "<<"
        if isinstance(key, Scalar) and isinstance(key.value, str) and not merges:
            return key.value
        if merges:
            fix = "write out what is meant."
            self._complaints.note(key.mark, "a merge key (<<) stands here.", fix)
            return None
        fix = f"write '{key.written}' in quotes." if isinstance(key, Scalar) else "write one word."
        self._complaints.note(key.mark, f"a key is text; found {described(key)}.", fix)
        return None

    def _refused(self, event: yaml.Event, found: str, fix: str) -> Misread:
        return self._complaints.misread(_mark(event), found, fix)


def _mark(event: yaml.Event) -> Mark:
    mark = event.start_mark
    assert mark is not None, "every event of a text has a mark"
    return Mark(mark.line + 1, mark.column + 1)


def _unreadable(error: yaml.MarkedYAMLError, complaints: Complaints) -> Misread:
    at = error.problem_mark or error.context_mark
    mark = Mark(1, 1) if at is None else Mark(at.line + 1, at.column + 1)
    problem = str(error.problem or error.context or "it ends too early")
    if "'\\t'" in problem:
        return complaints.misread(mark, "a tab stands here.", "indent with spaces.")
    where = f" ({error.context})" if error.context and error.problem else ""
    return complaints.misread(
        mark, f"this is no YAML: {problem}{where}.", "mend the line, or the one before it."
    )
