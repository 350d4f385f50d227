"""Diagnostics: the problems of a file, each with line, column and fix.

pydantic names a value by the keys that lead to it; `report` looks up its place in the file's tree.
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
"""The problems of one report; later ones are left out."""
TEXT_MAX, TEXT_HEAD, TEXT_TAIL = 500, 300, 150
"""The length of a text in a message; of a longer one, the head and the tail are kept."""
NAME_MAX: Final = 100
"""The length of a name that gets a suggestion; the search takes time for longer ones."""
KEY: Final = "[key]"
"""pydantic's word for the key of a mapping, as the last part of a location."""
FAULT: Final = "fault"
"""The type of an error whose message is complete, with its `fix` in the context."""
UNKNOWN_KEY: Final = "unknown_key"
"""The type of an error about a key; the context has the `known` ones."""

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
"""The expected value and the fix, by pydantic's type of error."""


class TopologyError(GraphError):
    """A topology's file has problems; the `place` of each is `file:line:column`."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.graph, self.written = file, ""
        self.problems = tuple(problems)
        lines = "\n".join(f"  {n}. {problem}" for n, problem in enumerate(self.problems, 1))
        ConfigError.__init__(self, f"{file} has {len(self.problems)} problem(s):\n{lines}")

    def __reduce__(self) -> tuple[type[TopologyError], tuple[object, ...]]:
        """Tell pickle the arguments."""
        return TopologyError, (self.graph, self.problems)


class ParseError(Exception):
    """A part of a file is unreadable; the diagnostics hold the reason."""


@final
@dataclass
class Diagnostics:
    """The problems of one file, so far.

    Several files may share a list of problems. A `closed` place takes no further problem.
    """

    file: str
    problems: list[Problem] = field(default_factory=list[Problem])
    closed: set[Mark] = field(default_factory=set[Mark])

    def note(self, mark: Mark, problem: str, fix: str) -> None:
        """Add a problem."""
        if len(self.problems) < PROBLEMS_MAX and mark not in self.closed:
            place = f"{escaped(self.file)}:{mark.line}:{mark.column}"
            self.problems.append(Problem(place, _shown(problem), _shown(fix)))

    def note_last(self, mark: Mark, problem: str, fix: str) -> None:
        """Add a problem and close its place for further ones."""
        self.note(mark, problem, fix)
        self.closed.add(mark)

    def error(self, mark: Mark, problem: str, fix: str) -> ParseError:
        """Add a problem, and return the exception that ends the reading."""
        self.note(mark, problem, fix)
        return ParseError(problem)

    def nearest(self, name: str, names: Iterable[str]) -> str:
        """Return " Did you mean 'x'?" while the report has room."""
        if len(self.problems) >= PROBLEMS_MAX or len(name) > NAME_MAX:
            return ""
        return nearest(name, names)

    def report(self, error: ValidationError, tree: Value, name: str = "") -> None:
        """Add pydantic's problems of a value at the key `name`."""
        for details in error.errors(include_url=False):
            value = value_at(tree, details["loc"])
            # A list whose items are wrong is too short for pydantic, which counts the others.
            if details["type"] != "too_short" or described(value).startswith("an empty"):
                self.note(*self._located(details, tree, name))

    def refuse(self) -> None:
        """Raise all problems.

        Raises:
            TopologyError: there is a problem.
        """
        if self.problems:
            raise TopologyError(escaped(self.file), sorted(self.problems, key=_order))

    def _located(self, details: ErrorDetails, tree: Value, name: str) -> tuple[Mark, str, str]:
        """Return the place of an error, the message, and the fix."""
        context, loc = details.get("ctx", {}), details["loc"]
        is_key = loc[-1:] == (KEY,)
        loc = loc[:-1] if is_key else loc
        value, mark = value_at(tree, loc), None
        if is_key and (entry := entry_at(value_at(tree, loc[:-1]), loc[-1])) is not None:
            mark = entry.mark
        name = next((part for part in reversed(loc) if isinstance(part, str)), name)
        if details["type"] == FAULT:
            problem = str(context["problem"])
            return mark or _blamed(value, problem), problem, str(context["fix"])
        if details["type"] == UNKNOWN_KEY:
            hint = self.nearest(name, context["known"])
            keys = ", ".join(context["known"])
            problem = f"`{name}`: expected a key that is known here, found {name!r}.{hint}"
            return mark or value.mark, problem, f"remove it; the keys are {keys}."
        return mark or value.mark, *self._mismatch(details, value, name)

    def _mismatch(self, details: ErrorDetails, value: Value, name: str) -> tuple[str, str]:
        """Return the message about a value of another type, and the fix."""
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
        # Words of the file are put in last: they may have braces.
        return f"{at}expected {expected.format(**parts)}, found {found}.{hint}", fix.format(**parts)


def _blamed(value: Value, problem: str) -> Mark:
    """Return the place of the first key that a message names."""
    entries = value.entries if isinstance(value, Fields) else ()
    named = [entry for entry in entries if re.search(f"`{re.escape(entry.key)}(`| of )", problem)]
    return named[0].value.mark if named else value.mark


def _shown(text: str) -> str:
    """Return a message, without its middle if it is long."""
    shown = escaped(text)
    return shown if len(shown) <= TEXT_MAX else f"{shown[:TEXT_HEAD]}…{shown[-TEXT_TAIL:]}"


def _order(problem: Problem) -> tuple[str, int, int]:
    file, line, column = problem.place.rsplit(":", 2)
    return file, int(line), int(column)
