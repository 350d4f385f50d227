"""samples: a value of a type, to be written and read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NewType, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel

from .written import enum_of, field_types, is_record

__all__ = ["sample"]

ATOMS: Final[dict[object, object]] = {
    NoneType: None,
    None: None,
    bool: True,
    int: 7,
    float: 0.5,
    str: "text",
    date: date(2020, 2, 29),
    timedelta: timedelta(days=-1, microseconds=1),
    UUID: UUID(int=7),
    Path: Path("a/b"),
}

DEEP: Final = 8
"""How deep records are filled that hold themselves."""


def sample(  # noqa: C901, PLR0911 - a way out for each kind of type
    of: object, depth: int = 0
) -> object:
    """Return a value of a type; what has a default has its default.

    Raises:
        TypeError: no value is known; whatever a class raises when one is made.
    """
    origin, args = get_origin(of) or of, get_args(of)
    if of in ATOMS:
        return ATOMS[of]
    if isinstance(of, NewType):
        return sample(of.__supertype__, depth)
    if origin is Annotated:
        return sample(args[0], depth)
    if origin is Literal:
        return args[0]
    if origin in {Union, UnionType}:
        shallow = NoneType in args and depth > DEEP
        return None if shallow else sample(next(one for one in args if one is not NoneType), depth)
    if origin in {list, set, frozenset} and args:
        make = cast("Callable[[object], object]", origin)
        return make([] if depth > DEEP else [sample(args[0], depth + 1)])
    if origin is tuple and args:
        parts = args[:1] if args[-1] is ... else args
        return tuple([sample(one, depth + 1) for one in parts])
    if origin is dict and args:
        return {} if depth > DEEP else {sample(args[0], depth): sample(args[1], depth + 1)}
    enum = enum_of(of)
    if enum is not None:
        return next(iter(enum))
    if is_record(of) and depth <= 2 * DEEP:
        return _record(cast("type[object]", of), depth)
    raise TypeError(f"no value of {of} is known")


def _record(of: type[object], depth: int) -> object:
    types = field_types(of)
    make = cast("Callable[..., object]", of)
    return make(**{name: sample(types[name], depth + 1) for name in _required(of)})


def _required(of: type[Any]) -> list[str]:
    """Return the fields that have no default."""
    if issubclass(of, BaseModel):
        return [name for name, one in of.model_fields.items() if one.is_required()]
    if is_dataclass(of):
        return [
            one.name
            for one in fields(of)
            if one.init and one.default is MISSING and one.default_factory is MISSING
        ]
    return [name for name in of._fields if name not in of._field_defaults]
