"""Diagnostics: collect the problems of a topology file, each with line, column and fix.

pydantic identifies an invalid value by its path of keys. `report` looks up the line and column of
this path in the file's tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..errors import ConfigError, GraphError, Problem, nearest
from ..node_protocol import escaped
from .tree import Fields, Mark, Scalar, Value, described, entry_at, value_at

__all__ = ["FAULT", "UNKNOWN_KEY", "Diagnostics", "ParseError", "TopologyError"]

PROBLEMS_MAX: Final = 100
"""The largest number of problems in one report; further problems are left out."""
TEXT_MAX, TEXT_HEAD, TEXT_TAIL = 500, 300, 150
"""A longer text than `TEXT_MAX` is shortened to this many characters of its head and tail."""
NAME_MAX: Final = 100
"""The longest name for which a similar name is suggested; the search is slow for longer names."""
KEY: Final = "[key]"
"""The last part of a pydantic error location if the error is about a mapping's key."""
FAULT: Final = "fault"
"""The type of a pydantic error whose context holds a complete message: `problem` and `fix`."""
UNKNOWN_KEY: Final = "unknown_key"
"""The type of a pydantic error about an unknown key; its context lists the `known` keys."""

EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "string_type": ("text", "write a text."),
    "string_pattern_mismatch": ("a text that says something", "fill it in."),
    "int_type": ("a whole number", "write a number such as 3, without quotes."),
    "float_type": ("a number", "write a number, such as 3 or 0.5."),
    "bool_type": (
        "true or false",
        "write true or false, without quotes (yes, no, on and off are text here).",
    ),
    "greater_than_equal": ("a whole number of at least {ge}", "write {ge} or more."),
    "greater_than": ("a number above {gt:g}", "write a number, such as 3 or 0.5."),
    "dict_type": ("a mapping", "write `key: value` pairs."),
    "tuple_type": ("a list", "write [first, second], or one `- ` a line."),
    "list_type": ("a list", "write [first, second], or one `- ` a line."),
    "frozen_set_type": ("a list", "write [first, second], or one `- ` a line."),
    "too_short": ("something in it", "fill it."),
    "literal_error": ("one of {words}", "choose one of these."),
    "missing": ("a value", "add `{name}: …`."),
}
"""For each pydantic error type, the expected value and the fix to write in the message."""


class TopologyError(GraphError):
    """A topology's file has problems; the `place` of each is `file:line:column`."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.graph, self.written = file, ""
        self.problems = tuple(problems)
        lines = "\n".join(f"  {n}. {problem}" for n, problem in enumerate(self.problems, 1))
        ConfigError.__init__(self, f"{file} has {len(self.problems)} problem(s):\n{lines}")

    def __reduce__(self) -> tuple[type[TopologyError], tuple[object, ...]]:
        """Return the class and its constructor arguments, for pickle."""
        return TopologyError, (self.graph, self.problems)


class ParseError(Exception):
    """A part of a file is unreadable; its problem is already in the `Diagnostics`."""


@final
@dataclass
class Diagnostics:
    """Collects the problems of one file while it is read.

    Several files may share one list of problems. Further problems at a `closed` line and column
    are ignored.
    """

    file: str
    problems: list[Problem] = field(default_factory=list[Problem])
    closed: set[Mark] = field(default_factory=set[Mark])

    def note(self, mark: Mark, problem: str, fix: str) -> None:
        """Add a problem, unless the report is full or `mark` is closed."""
        if len(self.problems) < PROBLEMS_MAX and mark not in self.closed:
            place = f"{escaped(self.file)}:{mark.line}:{mark.column}"
            self.problems.append(Problem(place, _printable(problem), _printable(fix)))

    def note_last(self, mark: Mark, problem: str, fix: str) -> None:
        """Add a problem, and ignore further problems at the same line and column."""
        self.note(mark, problem, fix)
        self.closed.add(mark)

    def error(self, mark: Mark, problem: str, fix: str) -> ParseError:
        """Add a problem, and return the exception that the caller raises to stop reading."""
        self.note(mark, problem, fix)
        return ParseError(problem)

    def nearest(self, name: str, names: Iterable[str]) -> str:
        """Return " Did you mean 'x'?" for the most similar of `names`, else an empty string."""
        if len(self.problems) >= PROBLEMS_MAX or len(name) > NAME_MAX:
            return ""
        return nearest(name, names)

    def report(self, error: ValidationError, tree: Value, name: str = "") -> None:
        """Add a problem for each pydantic error; `tree` is the value of the key `name`."""
        for details in error.errors(include_url=False):
            value = value_at(tree, details["loc"])
            # pydantic counts only valid items, so it also calls a list of invalid items too short.
            if details["type"] != "too_short" or described(value).startswith("an empty"):
                self.note(*self._locate_error(details, tree, name))

    def refuse(self) -> None:
        """Raise one error with all collected problems, if there are any.

        Raises:
            TopologyError: at least one problem was added.
        """
        if self.problems:
            raise TopologyError(escaped(self.file), sorted(self.problems, key=_sort_key))

    def _locate_error(self, details: ErrorDetails, tree: Value, name: str) -> tuple[Mark, str, str]:
        """Return the line and column, the message and the fix for one pydantic error."""
        context, loc = details.get("ctx", {}), details["loc"]
        is_key = loc[-1:] == (KEY,)
        loc = loc[:-1] if is_key else loc
        value, mark = value_at(tree, loc), None
        if is_key and (entry := entry_at(value_at(tree, loc[:-1]), loc[-1])) is not None:
            mark = entry.mark
        name = next((part for part in reversed(loc) if isinstance(part, str)), name)
        if details["type"] == FAULT:
            problem = str(context["problem"])
            return mark or _blamed_place(value, problem), problem, str(context["fix"])
        if details["type"] == UNKNOWN_KEY:
            hint = self.nearest(name, context["known"])
            keys = ", ".join(context["known"])
            problem = f"`{name}`: expected a key that is known here, found {name!r}.{hint}"
            return mark or value.mark, problem, f"remove it; the keys are {keys}."
        return mark or value.mark, *self._type_error(details, value, name)

    def _type_error(self, details: ErrorDetails, value: Value, name: str) -> tuple[str, str]:
        """Return the message and the fix for a value of the wrong type."""
        kind, context = details["type"], details.get("ctx", {})
        expected, fix = EXPECTED.get(kind, (details["msg"], "mend it."))
        words = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        parts = {**context, "words": ", ".join(words), "name": name}
        written = value.written if isinstance(value, Scalar) else ""
        found, hint = described(value), ""
        if kind == "missing":
            found = "none"
        elif kind == "literal_error":
            hint = self.nearest(written, words)
        elif kind == "string_type" and written:
            fix, parts = "write '{written}' in quotes.", {"written": written}
        elif kind == "int_type" and isinstance(value, Scalar) and isinstance(value.value, float):
            fix = f"write {value.value:.0f}." if value.value.is_integer() else fix
        at = f"`{name}`: " if name else ""
        # Text from the file is inserted after `format`, because it may contain braces.
        return f"{at}expected {expected.format(**parts)}, found {found}.{hint}", fix.format(**parts)


def _blamed_place(value: Value, problem: str) -> Mark:
    """Return the place of the first key that a message names; else the whole value's place."""
    entries = value.entries if isinstance(value, Fields) else ()
    named = [entry for entry in entries if re.search(f"`{re.escape(entry.key)}(`| of )", problem)]
    return named[0].value.mark if named else value.mark


def _printable(text: str) -> str:
    """Escape a message for printing, and cut out its middle if it is too long."""
    shown = escaped(text)
    return shown if len(shown) <= TEXT_MAX else f"{shown[:TEXT_HEAD]}…{shown[-TEXT_TAIL:]}"


def _sort_key(problem: Problem) -> tuple[str, int, int]:
    file, line, column = problem.place.rsplit(":", 2)
    return file, int(line), int(column)
