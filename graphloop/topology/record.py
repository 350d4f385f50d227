"""Record: a mapping of which every key is known, as the parameters of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from ..errors import ConfigError
from .forms import Data, Form, Reading, Schema, Unwritable, Writing, put_off
from .problems import Mark, Misread
from .tree import Entry, Fields, Value

__all__ = ["Parameter", "Record", "mapping_of", "read_fields", "refuse_unknown"]


@final
@dataclass(frozen=True)
class Parameter:
    """One key of a record.

    Args:
        form: how its value stands there.
        needed: whether it has to be there.
        doc: what it is for.
    """

    form: Form
    needed: bool = False
    doc: str = ""

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the value."""
        described = {"description": self.doc} if self.doc else {}
        return {**self.form.schema, **described}


@final
@dataclass(frozen=True)
class Record:
    """Values of one class.

    Args:
        title: what it is, in messages.
        make: makes a value of its parts; raises `ConfigError` if they do not fit.
        parameters: the keys.
        short: the one key that a value may stand for that is no mapping.
        doc: what it is for.
    """

    title: str
    make: Callable[..., Any]
    parameters: Mapping[str, Parameter] = field(hash=False)
    short: str = ""
    doc: str = ""

    def read(self, value: Value, to: Reading) -> object:
        """Return the value that stands there."""
        if self.short and not isinstance(value, Fields):
            given = {self.short: self.parameters[self.short].form.read(value, to)}
            return self._made(given, value.mark, {}, to)
        entries = mapping_of(value, self.title, to)
        given = read_fields(self.title, self.parameters, entries, value.mark, to)
        marks = {one.key: one.value.mark for one in entries}
        return self._made(given, value.mark, marks, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands for a value: what says nothing new is left out."""
        written: dict[str, Data] = {}
        given = {name: getattr(value, name, None) for name in self.parameters}
        for name, parameter in self.parameters.items():
            without = {key: one for key, one in given.items() if key != name}
            if not parameter.needed and self._makes(without, value):
                given = without
                continue
            try:
                written[name] = parameter.form.write(given[name], to)
            except Unwritable as error:
                raise Unwritable(f"`{name}` of {self.title}: {error}") from error
        if not self._makes(given, value):
            raise Unwritable(f"{value!r:.80} has more to it than a file can say")
        return written[self.short] if self.short and [*written] == [self.short] else written

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the record."""
        made: Schema = {
            "type": "object",
            "properties": {name: one.schema for name, one in self.parameters.items()},
            "required": [name for name, one in self.parameters.items() if one.needed],
            "additionalProperties": False,
        }
        made |= {"description": self.doc} if self.doc else {}
        return {"anyOf": [self.parameters[self.short].schema, made]} if self.short else made

    def _made(
        self, given: Mapping[str, object], mark: Mark, marks: Mapping[str, Mark], to: Reading
    ) -> object:
        try:
            return self.make(**given)
        except ConfigError as error:
            named = [one for one in marks if one in str(error)]
            at = marks[named[0]] if named else mark
            found = str(error).rstrip(".")
            raise to.complaints.misread(at, f"{found}.", f"mend {self.title}.") from error

    def _makes(self, given: Mapping[str, object], value: object) -> bool:
        try:
            return bool(self.make(**given) == value)
        except (ConfigError, TypeError):
            return False


def mapping_of(value: Value, title: str, to: Reading) -> tuple[Entry, ...]:
    """Return the entries of a mapping.

    Raises:
        Misread: it is none.
    """
    if not isinstance(value, Fields):
        raise to.misread(value, f"{title} is a mapping", "write `key: value` pairs.")
    return value.entries


def read_fields(
    title: str,
    parameters: Mapping[str, Parameter],
    entries: tuple[Entry, ...],
    mark: Mark,
    to: Reading,
) -> dict[str, object]:
    """Return what stands at each of the keys that are there.

    Raises:
        Misread: one is unknown, missing, or has a value that is not of its form.
    """
    failed = refuse_unknown(title, parameters, entries, to)
    present = {one.key for one in entries}
    for name, parameter in parameters.items():
        if parameter.needed and name not in present:
            to.complaints.note(mark, f"{title} lacks `{name}`.", f"add `{name}: …`.")
            failed = True
    given: dict[str, object] = {}
    for entry in entries:
        if entry.key in parameters:
            try:
                given[entry.key] = parameters[entry.key].form.read(entry.value, to)
            except Misread:
                failed = True
    put_off(failed=failed)
    return given


def refuse_unknown(
    title: str, known: Mapping[str, object], entries: tuple[Entry, ...], to: Reading
) -> bool:
    """Note each key that is not among those known; return whether there was one."""
    unknown = [one for one in entries if one.key not in known]
    for one in unknown:
        hint = to.complaints.nearest(one.key, known)
        keys = f"its keys are {', '.join(known)}." if known else "it has no keys."
        to.complaints.note(one.mark, f"{title} has no key {one.key!r}.{hint}", keys)
    return bool(unknown)
