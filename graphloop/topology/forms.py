"""Forms: how a value stands in a file; each reads one, writes one, and tells its JSON Schema.

A form that cannot read a value notes why and raises `Misread`; whoever reads several values goes
on with the next, so that all problems of a file are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, cast, final

from ..errors import ConfigError
from ..graph import Graph
from ..node_protocol import Node
from ..outcomes import Outcome
from .problems import Complaints, Mark, Misread
from .scalars import DIGITS_MAX
from .tree import Items, Scalar, Value, described

if TYPE_CHECKING:
    from .registration import Names

__all__ = [
    "Data",
    "Flag",
    "Form",
    "Many",
    "Maybe",
    "NamedTool",
    "Number",
    "Reading",
    "Schema",
    "Text",
    "Unwritable",
    "Whole",
    "Word",
    "Writing",
    "put_off",
]

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"
Schema: TypeAlias = dict[str, object]

WHOLE_END: Final = 10**DIGITS_MAX
NUMBER_FIX: Final = "write a number, such as 3 or 0.5."


class Unwritable(Exception):
    """A value cannot be written into a file; the message says why, and what to do."""


class NamedTool(NamedTuple):
    """A tool that a node names, where, and what names it: a rule of a gate, or an option."""

    name: str
    mark: Mark
    option: str = ""


@final
@dataclass(frozen=True)
class Reading:
    """What a form may look at while it reads.

    Args:
        complaints: takes what is wrong.
        names: what is known by name.
        part: reads a node that stands within another.
        agents: the agents that the file declares, with their graphs where these are known.
        ruled: takes the tools that nodes name, to be looked up when all are known.
    """

    complaints: Complaints
    names: Names
    part: Callable[[Value, Reading], Node[Any, Outcome]]
    agents: Mapping[str, Graph[Any] | None] = field(default_factory=dict[str, "Graph[Any] | None"])
    ruled: list[NamedTool] = field(default_factory=list[NamedTool])

    def misread(self, value: Value, expected: str, fix: str) -> Misread:
        """Note that something else stands there, and return what to raise."""
        found = f"{expected}; found {described(value)}."
        return self.complaints.misread(value.mark, found, fix)


@final
@dataclass(frozen=True)
class Writing:
    """What a form may look at while it writes.

    Args:
        names: what is known by name.
        part: writes a node that stands within another.
    """

    names: Names
    part: Callable[[object, Writing], Data]


class Form(Protocol):
    """How values of one type stand in a file."""

    def read(self, value: Value, to: Reading) -> object:
        """Return the value that stands there.

        Raises:
            Misread: there is none; why, is among the complaints.
        """
        ...

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands in the file for a value.

        Raises:
            Unwritable: nothing can.
        """
        ...

    @property
    def schema(self) -> Schema:
        """The JSON Schema of what may stand there."""
        ...


@final
@dataclass(frozen=True)
class Text:
    """Text; with `filled`, some."""

    filled: bool = False

    def read(self, value: Value, to: Reading) -> str:
        """Return the text."""
        if not isinstance(value, Scalar) or not isinstance(value.value, str):
            written = value.written if isinstance(value, Scalar) else ""
            fix = f"write '{written}' in quotes." if written else "write a text."
            raise to.misread(value, "text was expected", fix)
        if self.filled and not value.value.strip():
            raise to.misread(value, "a text that says something was expected", "fill it in.")
        return value.value

    def write(self, value: object, to: Writing) -> Data:
        """Return the text."""
        if not isinstance(value, str):
            raise Unwritable(f"{value!r:.60} is no text")
        if any("\ud800" <= sign <= "\udfff" for sign in value):
            raise Unwritable(f"{value!a:.60} has half of a surrogate pair, which is no character")
        if self.filled and not value.strip():
            raise Unwritable(f"{value!r:.60} says nothing")
        return value

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a text."""
        return {"type": "string", "pattern": r"\S"} if self.filled else {"type": "string"}


@final
@dataclass(frozen=True)
class Whole:
    """A whole number of at least `least`."""

    least: int | None = None

    def read(self, value: Value, to: Reading) -> int:
        """Return the number."""
        number = value.value if isinstance(value, Scalar) else None
        if not isinstance(number, int) or isinstance(number, bool):
            whole = isinstance(number, float) and number.is_integer()
            fix = f"write {number:.0f}." if whole else "write a number such as 3, without quotes."
            raise to.misread(value, "a whole number was expected", fix)
        if self.least is not None and number < self.least:
            expected = f"a whole number of at least {self.least} was expected"
            raise to.misread(value, expected, f"write {self.least} or more.")
        return number

    def write(self, value: object, to: Writing) -> Data:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unwritable(f"{value!r:.60} is no whole number")
        if self.least is not None and value < self.least:
            raise Unwritable(f"{value} is less than {self.least}")
        if abs(value) >= WHOLE_END:
            raise Unwritable(f"a file's whole numbers have at most {DIGITS_MAX} digits")
        return value

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a whole number."""
        # For JSON Schema 1.0 is an integer; here it is none, but nobody writes it for one.
        schema: Schema = {"type": "integer"}
        return schema if self.least is None else {**schema, "minimum": self.least}


@final
@dataclass(frozen=True)
class Number:
    """A finite number; with `positive`, one above 0."""

    positive: bool = False

    def read(self, value: Value, to: Reading) -> float:
        """Return the number."""
        number = value.value if isinstance(value, Scalar) else None
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise to.misread(value, "a number was expected", NUMBER_FIX)
        if self.positive and number <= 0:
            raise to.misread(value, "a number above 0 was expected", NUMBER_FIX)
        return number

    def write(self, value: object, to: Writing) -> Data:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            raise Unwritable(f"{value!r:.60} is no finite number")
        if self.positive and value <= 0:
            raise Unwritable(f"{value} is not above 0")
        return _canonical(value)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a number."""
        schema: Schema = {"type": "number"}
        return {**schema, "exclusiveMinimum": 0} if self.positive else schema


@final
@dataclass(frozen=True)
class Flag:
    """`true` or `false`."""

    def read(self, value: Value, to: Reading) -> bool:
        """Return the boolean."""
        if not isinstance(value, Scalar) or not isinstance(value.value, bool):
            fix = "write true or false, without quotes (yes, no, on and off are text here)."
            raise to.misread(value, "true or false was expected", fix)
        return value.value

    def write(self, value: object, to: Writing) -> Data:
        """Return the boolean."""
        if not isinstance(value, bool):
            raise Unwritable(f"{value!r:.60} is neither True nor False")
        return value

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a boolean."""
        return {"type": "boolean"}


@final
@dataclass(frozen=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Value, to: Reading) -> str:
        """Return the word."""
        if not isinstance(value, Scalar) or value.value not in self.words:
            written = value.written if isinstance(value, Scalar) else ""
            hint = to.complaints.nearest(written, self.words)
            expected = f"one of {', '.join(self.words)} was expected"
            raise to.misread(value, expected, f"choose one of these.{hint}")
        return str(value.value)

    def write(self, value: object, to: Writing) -> Data:
        """Return the word."""
        if not isinstance(value, str) or value not in self.words:
            raise Unwritable(f"{value!r:.60} is none of {', '.join(self.words)}")
        return value

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the words."""
        return {"enum": list(self.words)}


@final
@dataclass(frozen=True)
class Maybe:
    """Something or null."""

    form: Form

    def read(self, value: Value, to: Reading) -> object:
        """Return what stands there, None for null."""
        if isinstance(value, Scalar) and value.value is None:
            if value.written:
                return None
            raise to.misread(value, "a value was expected", "write null, or leave the key out.")
        return self.form.read(value, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands for it."""
        return None if value is None else self.form.write(value, to)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the one or the other."""
        return {"anyOf": [self.form.schema, {"type": "null"}]}


@final
@dataclass(frozen=True)
class Many:
    """A list; with `single`, one value may stand for a list of one.

    `fits` refuses, with a ConfigError, the last of the values that were read so far.
    """

    form: Form
    least: int = 0
    single: bool = False
    make: Callable[[list[object]], object] = tuple
    fits: Callable[[list[object]], None] | None = None

    def read(self, value: Value, to: Reading) -> object:
        """Return the values."""
        if self.single and not isinstance(value, Items):
            return self.make([self.form.read(value, to)])
        if not isinstance(value, Items):
            raise to.misread(value, "a list was expected", "write [one, two], or one `- ` a line.")
        if len(value.items) < self.least:
            raise to.misread(value, "a list with something in it was expected", "fill it.")
        read: list[object] = []
        failed = False
        for one in value.items:
            try:
                read.append(self.form.read(one, to))
                if self.fits is not None:
                    self.fits(read)
            except Misread:
                failed = True
            except ConfigError as error:
                found, _, fix = str(error).partition(" Fix: ")
                to.complaints.note(one.mark, found, fix)
                failed = True
        put_off(failed=failed)
        return self.make(read)

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands for the values."""
        if not isinstance(value, tuple | frozenset | list):
            raise Unwritable(f"{value!r:.60} is no listing")
        listed = cast("Iterable[object]", value)  # isinstance cannot tell what is in it.
        written = [self.form.write(one, to) for one in listed]
        if len(written) < self.least:
            raise Unwritable("it has nothing in it")
        if isinstance(value, frozenset):
            written.sort(key=str)
        return written[0] if self.single and len(written) == 1 else written

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the list."""
        items = self.form.schema
        many: Schema = {"type": "array", "items": items}
        many |= {"minItems": self.least} if self.least else {}
        return {"anyOf": [items, many]} if self.single else many


def _is_finite(number: float) -> bool:
    try:
        return isfinite(number)
    except OverflowError:  # A whole number that is longer than any other.
        return False


def _canonical(number: float) -> int | float:
    """Return a number as it is written: as a whole one, if it is one and not too long."""
    if abs(number) < WHOLE_END:
        return int(number) if number == int(number) else number
    if float(number) != number:
        raise Unwritable(f"a file's whole numbers have at most {DIGITS_MAX} digits")
    return float(number)


def put_off(*, failed: bool) -> None:
    """Raise, after everything was read, that something of it was not.

    Raises:
        Misread: `failed`; why, is among the complaints.
    """
    if failed:
        raise Misread("a part of it")
