"""Compose: the text of a topology as a tree of values, each with its line and column.

Reads YAML from the parser's events: nothing is ever constructed from a tag, and every limit holds
while the tree grows. Anchors, aliases, tags, directives and a second document are
refused: a topology has no use for them, and a reader would have to know what they do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

import yaml
from yaml.reader import ReaderError

from .json_text import read_json
from .problems import Complaints, Mark, Misread
from .scalars import plain_value
from .tree import Entry, Fields, Growth, Items, Scalar, Value, described

__all__ = ["Entry", "Fields", "Items", "Scalar", "Value", "compose", "described"]

_directive = re.compile(r"((?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*)%").match
_break = re.compile(r"\r\n|\r|\n").finditer
# Line breaks in YAML 1.1, and text in 1.2.
_disputed = re.compile("[\x85\u2028\u2029]").search


def compose(text: str, complaints: Complaints, *, json: bool = False) -> Value:
    """Return the tree of a text.

    Args:
        text: what stands in the file.
        complaints: takes what is wrong, so that the rest can be read all the same.
        json: whether the file is JSON.

    Raises:
        Misread: the text is no YAML, or no JSON, or has what is refused; where, is among the
            complaints.
    """
    if json:
        return read_json(text, complaints)
    if found := _directive(text):
        # Before it is parsed: a warning for each of many would take its time.
        mark = _mark_at(text, found.end(1))
        raise complaints.misread(mark, "a directive (%) stands here.", "remove the line.")
    if found := _disputed(text):
        raise complaints.misread(
            _mark_at(text, found.start()),
            f"the character U+{ord(found[0]):04X} stands here, which is a line break in one "
            "version of YAML, and text in another.",
            'remove it; in a text in double quotes write "\\N", "\\L" or "\\P".',
        )
    try:
        return _Composer(text, complaints).document()
    except ReaderError as error:
        mark = _mark_at(text, error.position)
        told = f"the character U+{int(error.character):04X} stands here."
        raise complaints.misread(mark, told, "remove it, or write it with an escape.") from error
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, complaints) from error


class _Composer:
    def __init__(self, text: str, complaints: Complaints) -> None:
        self._loader = yaml.SafeLoader(text)
        self._complaints = complaints
        self._growth = Growth(complaints)

    def document(self) -> Value:
        self._next()  # The stream begins.
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise self._refused(
                event, "a topology was expected, found only comments.", "begin with `graphloop: 1`."
            )
        assert isinstance(event, yaml.DocumentStartEvent)
        value = self._value(self._next(), 1)
        self._next()  # The document ends.
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            found = "a second document begins here."
            raise self._refused(event, found, "keep one topology a file: remove the `---`.")
        return value

    def _value(self, event: yaml.Event, depth: int) -> Value:
        self._growth.value(depth, _mark(event))
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
            return Scalar(self._growth.text(written, mark), mark, written)
        try:
            return Scalar(plain_value(written), mark, written)
        except ValueError as error:
            self._complaints.spoil(mark, f"found the number {written:.40}.", str(error))
            return Scalar(0, mark, written)

    def _items(self, start: yaml.Event, depth: int) -> Items:
        items: list[Value] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return Items(tuple(items), _mark(start))

    def _fields(self, start: yaml.Event, depth: int) -> Fields:
        entries: dict[str, Entry] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            value = self._value(self._next(), depth + 1)
            merges = isinstance(event, yaml.ScalarEvent) and event.implicit[0]
            word = self._key(key, merges=merges)
            if word is None:
                continue
            if self._growth.is_new(word, key.mark, entries):
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

    def _next(self) -> yaml.Event:
        """Return what comes next in the text."""
        try:
            # Its stub lacks the type of what it returns.
            get_event = cast("Callable[[], yaml.Event]", self._loader.get_event)  # pyright: ignore[reportUnknownMemberType]
            return get_event()
        except (OverflowError, ValueError) as error:
            at = self._loader.get_mark()
            mark, fix = Mark(at.line + 1, at.column + 1), "write the character itself."
            found = "an escape stands here for no character, or a number that is none."
            raise self._complaints.misread(mark, found, fix) from error

    def _refused(self, event: yaml.Event, found: str, fix: str) -> Misread:
        return self._complaints.misread(_mark(event), found, fix)


def _mark_at(text: str, at: int) -> Mark:
    """Return the place of a character."""
    starts = [0, *(one.end() for one in _break(text, 0, at))]
    return Mark(len(starts), at - starts[-1] + 1)


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
    if "'?'" in problem:
        found = "a text with a question mark stands in {…} or […] without quotes."
        return complaints.misread(mark, found, 'put the text in quotes: "…?".')
    where = f" ({error.context})" if error.context and error.problem else ""
    return complaints.misread(
        mark,
        f"this is no YAML: {problem}{where}.",
        "mend the line, or the one before it; put text with signs in quotes.",
    )
