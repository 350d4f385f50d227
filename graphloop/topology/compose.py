"""Compose: parse the bytes of a topology file into a tree of values with line and column.

YAML and JSON are turned into the same parser events, so one composer applies the same limits to
both. It refuses anchors, aliases, tags, directives and a second document.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NoReturn, cast

import yaml
from yaml.reader import ReaderError

from .diagnostics import Diagnostics, ParseError
from .tree import Entry, Fields, Items, Mark, Scalar, Value, described, plain_word

__all__ = ["DEPTH_MAX", "SIZE_MAX", "VALUES_MAX", "bytes_of", "compose", "text_at"]

SIZE_MAX: Final = 1_000_000
"""The largest size of a file in bytes."""
DEPTH_MAX: Final = 32
VALUES_MAX: Final = 50_000

_WIDE: Final = (BOM_UTF32_LE, BOM_UTF32_BE, BOM_UTF16_LE, BOM_UTF16_BE)
_TOP: Final = Mark(1, 1)
_HALF: Final = "half of a surrogate pair stands here, which is no character."
_WRITE_OUT: Final = "write out what it stands for."
_ITSELF: Final = "write the character itself."

_directive = re.compile(r"((?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*)%").match
_break = re.compile(r"\r\n|\r|\n").finditer
# These characters are line breaks in YAML 1.1, and ordinary text in YAML 1.2.
_disputed = re.compile("[\x85\u2028\u2029]").search
# Matches each JSON token except commas, colons and white space.
_token = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s,:{}\[\]"]+').finditer


def bytes_of(path: Path, diagnostics: Diagnostics) -> bytes:
    """Return a file's content, truncated to one byte more than `SIZE_MAX`.

    Raises:
        ParseError: the path does not name a file, or the file cannot be read.
    """
    try:
        if not path.is_file():
            problem = "is a folder, not a file." if path.is_dir() else "there is no such file."
            raise diagnostics.error(_TOP, problem, "name a file that ends in .yaml, .yml or .json.")
        with path.open("rb") as file:
            return file.read(SIZE_MAX + 1)
    except OSError as error:
        fix = "look at its name, and at the file's permissions."
        raise diagnostics.error(_TOP, f"cannot be read: {error.strerror}.", fix) from error


def text_at(content: bytes | str, diagnostics: Diagnostics) -> str:
    """Decode a file's content as UTF-8, and return it without its byte order mark.

    Raises:
        ParseError: the content is too long, empty or not UTF-8, or contains a NUL character.
    """
    try:
        size = len(content if isinstance(content, bytes) else content.encode())
    except UnicodeEncodeError as error:
        raise diagnostics.error(_mark_at(str(content), error.start), _HALF, _ITSELF) from error
    if size > SIZE_MAX:
        raise diagnostics.error(
            _TOP,
            f"expected at most {SIZE_MAX:,} bytes, found more.",
            "a topology is a table, not data: move parts into files of their own (`include`).",
        )
    text = content if isinstance(content, str) else _decode(content, diagnostics)
    text = text.removeprefix("\ufeff")
    nul = text.find("\0")
    if nul >= 0:
        mark, fix = _mark_at(text, nul), "remove it; is it a text file?"
        raise diagnostics.error(mark, "a NUL character stands here.", fix)
    if not text.strip():
        fix = "begin with `graphloop: 1`."
        raise diagnostics.error(_TOP, "expected a topology, found nothing.", fix)
    return text


def _decode(content: bytes, diagnostics: Diagnostics) -> str:
    fix = "save the file as UTF-8."
    if not content.startswith(BOM_UTF8) and content.startswith(_WIDE):
        raise diagnostics.error(_TOP, "expected UTF-8, found UTF-16 or UTF-32.", fix)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        problem = f"expected UTF-8, found the byte 0x{content[error.start]:02x}."
        raise diagnostics.error(_mark_at(before, len(before)), problem, fix) from error


def compose(text: str, diagnostics: Diagnostics, *, must_be_json: bool = False) -> Value:
    """Parse a JSON or YAML text into a tree of values.

    If the rest of the text stays readable after a problem, the problem is added to `diagnostics`
    and parsing continues.

    Raises:
        ParseError: the text is not valid YAML or JSON, or contains a refused YAML feature.
    """
    if must_be_json or text.lstrip(" \t\r\n").startswith(("{", "[")):
        error = _json_error(text)
        if error is None:
            return _Composer(_json_events(text), diagnostics).value()
        if must_be_json:
            raise diagnostics.error(
                Mark(error.lineno, error.colno),
                f"this is no JSON: {error.msg}.",
                "mend the line, or the one before it; YAML belongs into a file that ends in .yaml.",
            )
    if directive := _directive(text):
        # Checked before parsing, because PyYAML would emit a warning for each directive.
        mark = _mark_at(text, directive.end(1))
        raise diagnostics.error(mark, "a directive (%) stands here.", "remove the line.")
    if disputed := _disputed(text):
        raise diagnostics.error(
            _mark_at(text, disputed.start()),
            f"the character U+{ord(disputed[0]):04X} stands here, which is a line break in one "
            "version of YAML, and text in another.",
            'remove it; in a text in double quotes write "\\N", "\\L" or "\\P".',
        )
    try:
        return _Composer(_yaml_events(text, diagnostics), diagnostics).document()
    except ReaderError as error:
        problem = f"the character U+{int(error.character):04X} stands here."
        fix = "remove it, or write it with an escape."
        raise diagnostics.error(_mark_at(text, error.position), problem, fix) from error
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, diagnostics) from error


def _json_error(text: str) -> json.JSONDecodeError | None:
    """Return the error from parsing a text as JSON (RFC 8259); None if the text is valid JSON."""

    def refuse(word: str) -> NoReturn:
        raise json.JSONDecodeError(f"{word} is no value", text, text.index(word))

    try:
        # Numbers are kept as strings: the composer later refuses numbers with too many digits.
        json.loads(text, parse_constant=refuse, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        return error
    except RecursionError:
        pass  # The composer later refuses text that is nested too deeply.
    return None


class _Composer:
    """Builds a tree of values from parser events, and enforces the limits on count and depth."""

    def __init__(self, events: Iterator[yaml.Event], diagnostics: Diagnostics) -> None:
        self._events = events
        self._diagnostics = diagnostics
        self._count = 0

    def document(self) -> Value:
        next(self._events)  # Skip the event for the start of the stream.
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            problem = "expected a topology, found only comments."
            raise self._error(event, problem, "begin with `graphloop: 1`.")
        value = self.value()
        next(self._events)  # Skip the event for the end of the document.
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            fix = "keep one topology a file: remove the `---`."
            raise self._error(event, "a second document begins here.", fix)
        return value

    def value(self, event: yaml.Event | None = None, depth: int = 1) -> Value:
        event = next(self._events) if event is None else event
        self._count += 1
        if self._count > VALUES_MAX:
            problem = f"expected at most {VALUES_MAX:,} values, found more."
            raise self._error(event, problem, "move parts into files of their own (`include`).")
        if depth > DEPTH_MAX:
            problem = f"expected at most {DEPTH_MAX} levels, found more."
            raise self._error(event, problem, "give inner graphs files of their own (`include`).")
        self._refuse_references(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._read_scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Value] = []
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                items.append(self.value(inner, depth + 1))
            return Items(tuple(items), _mark_of(event))
        assert isinstance(event, yaml.MappingStartEvent)
        return self._read_fields(event, depth)

    def _refuse_references(self, event: yaml.Event) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent):
            what, fix = f"an alias (*{anchor})", _WRITE_OUT
        elif anchor is not None:
            what, fix = f"an anchor (&{anchor})", f"remove it; for each alias, {_WRITE_OUT}"
        elif tag is not None:
            what, fix = f"a tag ({str(tag)[:60]})", "remove it; text is put in quotes."
        else:
            return
        raise self._error(event, f"{what} stands here, and a topology has none.", fix)

    def _read_scalar(self, event: yaml.ScalarEvent) -> Scalar:
        written, mark = str(event.value), _mark_of(event)
        if not event.implicit[0]:
            return Scalar(self._join_surrogates(written, mark), mark, written)
        try:
            return Scalar(plain_word(written), mark, written)
        except ValueError as error:
            self._diagnostics.note_last(mark, f"found the number {written:.40}.", str(error))
            return Scalar(0, mark, written)

    def _join_surrogates(self, text: str, mark: Mark) -> str:
        """Return a quoted text, with each escaped surrogate pair joined into one character."""
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._diagnostics.note_last(mark, _HALF, _ITSELF)
            return ""

    def _read_fields(self, start: yaml.Event, depth: int) -> Fields:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self.value(event, depth + 1)
            value = self.value(depth=depth + 1)
            word = self._read_key(
                key, is_bare=isinstance(event, yaml.ScalarEvent) and event.implicit[0]
            )
            if word in entries:
                line = entries[word].mark.line
                problem = f"the key {word!r} stands here twice, first on line {line}."
                self._diagnostics.note(key.mark, problem, "remove one of the two.")
            elif word is not None:
                entries[word] = Entry(word, key.mark, value)
        return Fields(tuple(entries.values()), _mark_of(start))

    def _read_key(self, key: Value, *, is_bare: bool) -> str | None:
        """Return a mapping key's text; None, with a problem added, if the key is not allowed.

        An unquoted `<<` is not allowed, because other YAML readers merge mappings there.
        """
        if isinstance(key, Scalar) and isinstance(key.value, str):
            if not is_bare or key.value != "<<":
                return key.value
            self._diagnostics.note(key.mark, "a merge key (<<) stands here.", _WRITE_OUT)
            return None
        fix = f"write '{key.written}' in quotes." if isinstance(key, Scalar) else "write one word."
        self._diagnostics.note(key.mark, f"expected a key of text, found {described(key)}.", fix)
        return None

    def _error(self, event: yaml.Event, problem: str, fix: str) -> ParseError:
        return self._diagnostics.error(_mark_of(event), problem, fix)


def _yaml_events(text: str, diagnostics: Diagnostics) -> Iterator[yaml.Event]:
    loader = yaml.SafeLoader(text)
    # PyYAML's stub lacks the return type of `get_event`.
    get_event = cast("Callable[[], yaml.Event]", loader.get_event)  # pyright: ignore[reportUnknownMemberType]
    while True:
        try:
            yield get_event()
        except (OverflowError, ValueError) as error:
            at = loader.get_mark()
            problem = "an escape stands here for no character, or a number that is none."
            raise diagnostics.error(Mark(at.line + 1, at.column + 1), problem, _ITSELF) from error


def _json_events(text: str) -> Iterator[yaml.Event]:
    """Yield the YAML parser events for a text that is valid JSON."""
    lines = [0, *(line_break.end() for line_break in re.finditer("\n", text))]
    for token in _token(text):
        line = bisect_right(lines, token.start()) - 1
        mark = yaml.Mark("", token.start(), line, token.start() - lines[line], None, 0)
        word = token[0]
        match word[0]:
            case "{":
                yield yaml.MappingStartEvent(None, None, implicit=True, start_mark=mark)
            case "[":
                yield yaml.SequenceStartEvent(None, None, implicit=True, start_mark=mark)
            case "}":
                yield yaml.MappingEndEvent(mark)
            case "]":
                yield yaml.SequenceEndEvent(mark)
            case '"':
                yield yaml.ScalarEvent(None, None, (False, True), json.loads(word), mark)
            case _:
                yield yaml.ScalarEvent(None, None, (True, False), word, mark)


def _mark_at(text: str, at: int) -> Mark:
    """Return the line and column of the character at the index `at`."""
    starts = [0, *(line_break.end() for line_break in _break(text, 0, at))]
    return Mark(len(starts), at - starts[-1] + 1)


def _mark_of(event: yaml.Event) -> Mark:
    mark = event.start_mark
    assert mark is not None, "every event of a text has a mark"
    return Mark(mark.line + 1, mark.column + 1)


def _unreadable(error: yaml.MarkedYAMLError, diagnostics: Diagnostics) -> ParseError:
    at = error.problem_mark or error.context_mark
    mark = Mark(1, 1) if at is None else Mark(at.line + 1, at.column + 1)
    said = str(error.problem or error.context or "it ends too early")
    if "'\\t'" in said:
        return diagnostics.error(mark, "a tab stands here.", "indent with spaces.")
    if "'?'" in said:
        problem = "a text with a question mark stands in {…} or […] without quotes."
        return diagnostics.error(mark, problem, 'put the text in quotes: "…?".')
    where = f" ({error.context})" if error.context and error.problem else ""
    return diagnostics.error(
        mark,
        f"this is no YAML: {said}{where}.",
        "mend the line, or the one before it; put text with signs in quotes.",
    )
