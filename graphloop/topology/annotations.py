"""Annotations: the fields of a frozen dataclass as parameters that a file may give."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

import docstring_parser
import msgspec

from ..errors import ConfigError
from .forms import Flag, Form, Many, Maybe, Number, Text, Whole, Word
from .record import Parameter, Record

__all__ = ["form_of", "parameters_of", "record_of", "summary_of"]

LEFT_OUT: Final = frozenset({"name", "kind"})

SIMPLE: Final[Mapping[object, Form]] = {
    str: Text(),
    int: Whole(),
    float: Number(),
    bool: Flag(),
}


def parameters_of(
    made: type, forms: Mapping[str, Form] | None = None, *, skip: frozenset[str] = LEFT_OUT
) -> dict[str, Parameter]:
    """Return the parameters of a class: its fields but for those to skip.

    Args:
        made: a frozen dataclass, or a struct.
        forms: the forms of fields whose annotations do not tell them.
        skip: the fields that a file gives in another way.

    Raises:
        ConfigError: a field is of a type that no file can hold.
    """
    hints = typing.get_type_hints(made)
    docs = _docs(made)
    parameters: dict[str, Parameter] = {}
    for name, needed in _fields(made):
        if name in skip:
            continue
        form = (forms or {}).get(name) or form_of(hints[name])
        if form is None:
            raise ConfigError(
                f"the field {name!r} of {made.__name__} is of the type {hints[name]}, which no "
                "file can hold: use text, numbers, booleans, Literal, tuples, or dataclasses of "
                "these; or register nodes instead of their class"
            )
        parameters[name] = Parameter(form, needed, docs.get(name, ""))
    return parameters


def record_of(
    title: str, made: type, forms: Mapping[str, Form] | None = None, *, short: str = ""
) -> Record:
    """Return the form of values of a class; the arguments are those of `parameters_of`."""
    parameters = parameters_of(made, forms, skip=frozenset())
    return Record(title, made, parameters, short, summary_of(made))


def form_of(annotation: object) -> Form | None:
    """Return how values of a type stand in a file, None if they cannot."""
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal and all(isinstance(one, str) for one in arguments):
        return Word(arguments)
    if origin in {Union, UnionType}:
        inner = [form_of(one) for one in arguments if one is not NoneType]
        return Maybe(inner[0]) if len(inner) == 1 and inner[0] is not None else None
    if origin in {tuple, frozenset}:
        return _listing(origin, arguments)
    if isinstance(annotation, type) and _is_record(annotation):
        return record_of(f"a {annotation.__name__}", annotation)
    return None


def summary_of(made: type) -> str:
    """Return the first line of a docstring."""
    return (made.__doc__ or "").strip().partition("\n")[0]


def _listing(origin: object, arguments: tuple[Any, ...]) -> Form | None:
    inner = form_of(arguments[0]) if arguments else None
    if inner is None or (origin is tuple and arguments[1:] != (...,)):
        return None
    make: Callable[[list[object]], object] = tuple if origin is tuple else frozenset
    return Many(inner, make=make)


def _is_record(annotation: type) -> bool:
    return dataclasses.is_dataclass(annotation) or issubclass(annotation, msgspec.Struct)


def _fields(made: type) -> list[tuple[str, bool]]:
    """Return the fields of a class, and whether each has to be given."""
    if issubclass(made, msgspec.Struct):
        return [(one.name, one.required) for one in msgspec.structs.fields(made)]
    missing = dataclasses.MISSING
    return [
        (one.name, one.default is missing and one.default_factory is missing)
        for one in dataclasses.fields(cast("Any", made))  # Whoever calls has looked at it.
        if one.init
    ]


def _docs(made: type) -> dict[str, str]:
    parsed = docstring_parser.parse(made.__doc__ or "", docstring_parser.DocstringStyle.GOOGLE)
    return {one.arg_name: " ".join((one.description or "").split()) for one in parsed.params}
