"""Written: the types that come back from a journal unchanged.

Of the types named here it is known, value by value (`tests/unit/proofs/test_written.py`). A type
that surely cannot be written or read is an error; every other type is unknown. Three kinds of
values are not looked at: texts that are no Unicode (lone surrogates), floats that are no number,
and values of a type that derives from the named one, which are refused where they are made.
"""

from __future__ import annotations

import threading
from collections import abc
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from io import IOBase
from pathlib import Path
from types import FunctionType, ModuleType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from pydantic import BaseModel, RootModel

from .report import Finding, Unknown

__all__ = ["enum_of", "field_types", "is_record", "named_type", "unsure", "unwritten"]

ATOMS: Final[frozenset[object]] = frozenset(
    {None, NoneType, bool, int, float, str, date, timedelta, UUID, Path}
)
"""What a journal holds as it is."""

LISTS: Final[frozenset[object]] = frozenset({list, tuple, set, frozenset})
KEYS: Final[frozenset[object]] = frozenset({str, int, date, UUID})
TEXT: Final = frozenset({"text"})
CONFIG: Final = frozenset(
    {
        "arbitrary_types_allowed",
        "frozen",
        "json_schema_extra",
        "strict",
        "title",
        "use_attribute_docstrings",
        "validate_assignment",
        "validate_default",
    }
)
"""Options of a pydantic model that change no value."""

HOLDING: Final[frozenset[object]] = frozenset(
    {BaseException, bytes, dict, float, frozenset, int, list, set, str, tuple}
)
"""Classes whose values hold something of their own."""

LIVING: Final[tuple[type[object], ...]] = (
    FunctionType,
    IOBase,
    ModuleType,
    threading.Event,
    threading.Thread,
    type(threading.Lock()),
    type(threading.RLock()),
)
"""Types of what lives in one process, and in no file."""

ABSTRACT: Final = frozenset(
    {
        *("AsyncGenerator", "AsyncIterable", "AsyncIterator", "Awaitable", "Callable"),
        *("Coroutine", "Generator", "Iterable", "Iterator"),
    }
)
"""The same, in `collections.abc`: many classes are callable, so only these themselves are meant."""

WHY: Final[dict[object, str]] = {
    bytes: "what is no UTF-8 cannot be written: keep it as text",
    datetime: "its zone comes back as an offset of whole minutes: keep seconds, or text",
    time: "its zone comes back as an offset of whole minutes: keep seconds, or text",
    Decimal: "one that is not finite cannot be read: keep it as text",
}


def unsure(of: object, place: str) -> Iterator[Finding | Unknown]:
    """Yield what of a type may not come back from a journal as it was, part by part."""
    yield from _unsure(of, place, set())


def field_types(of: type[object]) -> dict[str, object]:
    """Return the types of a record's fields.

    Raises:
        NameError: one is not known where the record is defined.
        TypeError: one is no type.
    """
    hints = get_type_hints(of, include_extras=True)
    if issubclass(of, BaseModel):
        return {name: hints.get(name, one.annotation) for name, one in of.model_fields.items()}
    if is_dataclass(of):
        return {one.name: hints[one.name] for one in fields(of)}
    names = cast("tuple[str, ...]", getattr(of, "_fields", ()))
    return {name: hints.get(name, Any) for name in names}


def is_record(of: object) -> bool:
    """Whether a type has fields that come back one by one."""
    found = _class(of)
    if found is None:
        return False
    quote_names = tuple in found.__mro__ and hasattr(found, "_fields")
    return quote_names or is_dataclass(found) or issubclass(found, BaseModel)


def _class(of: object) -> type[object] | None:
    """Return a type if it is a class; isinstance leaves what it is a class of unknown."""
    return cast("type[object]", of) if isinstance(of, type) else None


def _unsure(  # noqa: C901, PLR0912 - a branch for each kind of type
    of: object, place: str, seen: set[object]
) -> Iterator[Finding | Unknown]:
    origin, args = get_origin(of), get_args(of)
    kind = of if origin is None else origin
    if of is Any or of is object or isinstance(of, TypeVar):
        yield Unknown("GL11", f"{place} may hold anything: give it a type that says what it holds.")
    elif isinstance(of, NewType):
        yield from _unsure(of.__supertype__, place, seen)
    elif kind is Annotated:
        yield from _annotated(args, place, seen)
    elif kind in {Union, UnionType}:
        yield from _union(of, place, seen)
    elif kind is Literal:
        if not _shape(of):
            yield _open(place, of, "its values are of several kinds")
    elif of in ATOMS:
        return
    elif kind is type or _lives(kind):
        yield unwritten(place, f"is of type {named_type(of)}, which no file can hold.")
    elif kind in LISTS and args:
        for number, part in enumerate(one for one in args if one is not ...):
            yield from _unsure(part, f"{place}[{number}]" if number else place, seen)
    elif kind is dict and args:
        yield from _keys(args[0], place)
        yield from _unsure(args[1], place, seen)
    elif enum_of(of) is not None:
        if not _shape(of):
            yield _open(place, of, "its values are neither all texts nor all whole numbers")
    elif is_record(of):
        yield from _record(cast("type[object]", of), place, seen)
    else:
        yield _open(place, of, _why(kind))


def _why(kind: object) -> str:
    if kind in WHY:
        return WHY[kind]
    if kind in LISTS or kind is dict:
        return "its type does not say what it holds"
    if getattr(kind, "__module__", "") == abc.__name__:
        return "it comes back as another collection: say which one it is, `list` or `tuple`"
    return "it is not known whether it comes back as it was: keep it as text, or as a dataclass"


def _annotated(
    args: tuple[object, ...], place: str, seen: set[object]
) -> Iterator[Finding | Unknown]:
    changing = [one for one in args[1:] if not _only_says(one)]
    if changing:
        yield _open(place, args[0], f"{type(changing[0]).__name__} may change it on the way")
    else:
        yield from _unsure(args[0], place, seen)


def _keys(key: object, place: str) -> Iterator[Finding | Unknown]:
    if key in KEYS:
        return
    text = enum_of(key) is not None and _shape(key) == TEXT
    if text or (get_origin(key) is Literal and _shape(key) == TEXT):
        return
    if get_origin(key) in LISTS or key in LISTS or is_record(key):
        yield unwritten(
            place, f"has keys of type {named_type(key)}, which are written and cannot be read."
        )
    else:
        yield _open(place, key, "keys are written as text, and may be read as something else")


def _union(of: object, place: str, seen: set[object]) -> Iterator[Finding | Unknown]:
    members = get_args(of)
    for one in members:
        yield from _unsure(one, place, seen)
    for number, one in enumerate(members):
        for other in members[:number]:
            if not _told_apart(one, other):
                both = f"{named_type(other)} from {named_type(one)}"
                yield _open(
                    place,
                    of,
                    f"a journal does not tell {both}: give each a field of its own, or a tag (a "
                    "`Literal` field of one name)",
                )
                return


def _told_apart(one: object, other: object) -> bool:
    """Whether what is written of two types is read as what it was."""
    both = _shape(one) & _shape(other)
    if not both:
        return True
    plain = ({str}, {int, float})
    if any(_plain(one) in kinds and _plain(other) in kinds for kinds in plain):
        return True
    return (
        both == frozenset({"object"})
        and _tags(one).keys() & _tags(other).keys() != set()
        and any(
            not _tags(one)[name] & _tags(other)[name]
            for name in _tags(one).keys() & _tags(other).keys()
        )
    )


def _plain(of: object) -> object:
    """Return str or int for a Literal of only texts or only numbers, None for another Literal."""
    if get_origin(of) is Literal:
        return str if _shape(of) == TEXT else int if _shape(of) == frozenset({"number"}) else None
    return of


def _shape(of: object) -> frozenset[str]:
    """Return what a type looks like in JSON; for literals and enums nothing if that is not sure."""
    kind = get_origin(of) or of
    if kind is Annotated:
        return _shape(get_args(of)[0])
    if isinstance(of, NewType):
        return _shape(of.__supertype__)
    if kind is Literal or enum_of(kind) is not None:
        return _values(kind, of)
    if kind in LISTS or issubclass(_class(kind) or object, tuple):
        return frozenset({"list"})
    if kind is dict or is_record(kind):
        return frozenset({"object"})
    # What is no finite number is written as text.
    shapes = {
        None: {"null"},
        NoneType: {"null"},
        bool: {"bool"},
        int: {"number"},
        float: {"number", "text"},
    }
    return frozenset(shapes.get(cast("type[Any]", kind), TEXT))


def _values(kind: object, of: object) -> frozenset[str]:
    enum = enum_of(kind)
    if enum is not None:
        values = [one.value for one in enum] if not issubclass(enum, Flag) else []
        nullable = False
    else:
        values = [one for one in get_args(of) if one is not None]
        nullable = len(values) < len(get_args(of))
    types = set(map(type, values))
    names = {str: "text", int: "number", bool: "bool"}
    if len(types) > 1 or not types <= set(names):
        return frozenset()
    return frozenset({names[one] for one in types} | ({"null"} if nullable else set()))


def _tags(of: object) -> dict[str, set[object]]:
    """Return the fields of a record that hold one of a few texts."""
    if not is_record(of):
        return {}
    try:
        types = field_types(cast("type[object]", of))
    except (NameError, TypeError):
        return {}
    return {name: set(get_args(one)) for name, one in types.items() if get_origin(one) is Literal}


def enum_of(of: object) -> type[Enum] | None:
    """Return a type if it is an enum."""
    found = _class(of)
    return found if found is not None and issubclass(found, Enum) else None


def _record(of: type[object], place: str, seen: set[object]) -> Iterator[Finding | Unknown]:
    if of in seen:
        return
    seen.add(of)
    for why in _model(of) if issubclass(of, BaseModel) else _dataclass(of):
        yield _open(place, of, why)
    more = of.__subclasses__()
    if more:
        yield _open(
            place,
            of,
            f"it may be a {more[0].__name__}, which is read as a {of.__name__}: say which of them "
            "it is, and let neither derive from the other",
        )
    try:
        types = field_types(of)
    except (NameError, TypeError) as error:
        yield Unknown("GL11", f"the types of {place} cannot be looked up: {error}.")
        return
    for name, one in types.items():
        yield from _unsure(one, f"{place}.{name}", seen)


def _dataclass(of: type[object]) -> Iterator[str]:
    if hasattr(of, "__post_init__"):
        yield "its `__post_init__` runs again when it is read"
    if hasattr(of, "__get_pydantic_core_schema__") or hasattr(of, "__pydantic_config__"):
        yield "it has a written form of its own"
    if is_dataclass(of) and not all(one.init for one in fields(of)):
        yield "not all of its fields are given when it is made"
    if is_dataclass(of) and HOLDING & {*of.__mro__}:
        yield "what it holds beside its fields is not written"


def _model(of: type[BaseModel]) -> Iterator[str]:
    told = of.__pydantic_decorators__
    kinds = (
        *("computed_fields", "field_serializers", "field_validators", "model_serializers"),
        *("model_validators", "root_validators", "validators"),
    )
    if any(getattr(told, one) for one in kinds) or RootModel in of.__mro__:
        yield "functions of its own change it when it is written or read"
    if of.__private_attributes__ or "model_post_init" in _own(of):
        yield "its private attributes are not written"
    odd = [one for one in of.model_config if one not in CONFIG]
    if odd != [] and (odd != ["extra"] or of.model_config.get("extra") == "allow"):
        yield f"its option `{odd[0]}` may change it"
    for name, one in of.model_fields.items():
        if one.alias or one.validation_alias or one.serialization_alias or one.exclude:
            yield f"its field {name!r} has another name in JSON, or none"
        if any(not _only_says(each) for each in one.metadata):
            yield f"what is said of its field {name!r} may change it"


def _own(of: type[object]) -> set[str]:
    """Return what a class and those it derives from define, down to pydantic's own."""
    classes = [one for one in of.__mro__ if issubclass(one, BaseModel) and one is not BaseModel]
    return {name for one in classes for name in vars(one)}


def _only_says(one: object) -> bool:
    """Whether what is said of a type changes no value: a word about it, or a limit."""
    return isinstance(one, str) or type(one).__module__ == "annotated_types"


def _lives(of: object) -> bool:
    found = _class(of)
    if found is None:
        return False
    abstract = found.__module__ == "collections.abc" and found.__name__ in ABSTRACT
    return abstract or issubclass(found, LIVING)


def named_type(of: object) -> str:
    """Return a type as it is written in code."""
    found = _class(of)
    return str(of) if found is None or get_args(of) else found.__name__


def _open(place: str, of: object, why: str) -> Unknown:
    return Unknown("GL11", f"{place} is of type {named_type(of)}, and {why}.")


def unwritten(place: str, message: str) -> Finding:
    """Return that a part of the state does not come back from a journal."""
    fix = "keep state to dataclasses, pydantic models and JSON values."
    return Finding("GL11", "error", f"state {place!r}", message, (), fix)
