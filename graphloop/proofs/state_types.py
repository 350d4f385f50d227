"""State types: whether a journal returns values of a state type unchanged (GL11).

Tests write and read values of each accepted type (`tests/unit/proofs/test_state_types.py`). A type
that no journal can store is an error, and any other type is unknown. The proof does not cover lone
surrogates, floats that are not a number, and values that do not match their declared type.
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
from itertools import combinations
from pathlib import Path
from types import FunctionType, ModuleType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from pydantic import BaseModel, RootModel

from ..states import Reduce
from .report import Finding, Unknown

__all__ = ["enum_of", "field_types", "is_record", "type_name", "unsafe_parts", "unserialisable"]

ATOMS: Final[frozenset[object]] = frozenset(
    {None, NoneType, bool, int, float, str, date, timedelta, UUID, Path}
)
LISTS: Final[frozenset[object]] = frozenset({list, tuple, set, frozenset})
KEYS: Final[frozenset[object]] = frozenset({str, int, date, UUID})
SHAPES: Final[dict[object, set[str]]] = {
    None: {"null"},
    NoneType: {"null"},
    bool: {"bool"},
    int: {"number"},
    float: {"number", "text"},  # Infinity is written as text.
    dict: {"object"},
    **{kind: {"list"} for kind in LISTS},
}
"""The kinds of JSON values as which a type is written; every other type is written as text."""

HARMLESS_CONFIG: Final = frozenset(
    {
        *("arbitrary_types_allowed", "extra", "frozen", "json_schema_extra", "strict", "title"),
        *("use_attribute_docstrings", "validate_assignment", "validate_default"),
    }
)
"""The options of a pydantic model that do not change values in a journal."""

CHANGING: Final = (
    *("computed_fields", "field_serializers", "field_validators", "model_serializers"),
    *("model_validators", "root_validators", "validators"),
)
"""The decorators of a pydantic model that may change values in a journal."""

CONTAINERS: Final[frozenset[object]] = frozenset(
    {BaseException, bytes, dict, float, frozenset, int, list, set, str, tuple}
)
"""Base classes whose instances hold data outside their dataclass fields."""

PROCESS_BOUND: Final[tuple[type[object], ...]] = (
    *(FunctionType, IOBase, ModuleType, threading.Event, threading.Thread),
    *(type(threading.Lock()), type(threading.RLock())),
)
PROCESS_BOUND_ABSTRACT: Final = frozenset(
    {
        *("AsyncGenerator", "AsyncIterable", "AsyncIterator", "Awaitable", "Callable"),
        *("Coroutine", "Generator", "Iterable", "Iterator"),
    }
)
"""Types in `collections.abc` that no journal can store, by name.

Types that derive from them are not included, since many of these can be stored.
"""

REASONS: Final[dict[object, str]] = {
    bytes: "what is no UTF-8 cannot be written: keep it as text",
    **dict.fromkeys(
        (datetime, time),
        "its zone comes back as an offset of whole minutes: keep seconds, or text",
    ),
    Decimal: "one that is not finite cannot be read: keep it as text",
    **dict.fromkeys((*LISTS, dict), "its type does not say what it holds"),
}
"""The reason and the advice in the message about a type that is unknown."""

_Found: TypeAlias = Iterator[Finding | Unknown]


def unsafe_parts(of: object, place: str) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each part of a type that a journal may change (GL11).

    Args:
        of: the type.
        place: the place of the type in the state, for messages.
    """
    yield from _unsafe_parts(of, place, set())


def field_types(of: type[object]) -> dict[str, object]:
    """Return the type of each field of a dataclass, pydantic model or named tuple.

    Raises:
        NameError: an annotation has a name that the record's module does not define.
        TypeError: an annotation is not a type.
    """
    hints = get_type_hints(of, include_extras=True)
    if issubclass(of, BaseModel):
        return {name: hints.get(name, info.annotation) for name, info in of.model_fields.items()}
    if is_dataclass(of):
        return {field.name: hints[field.name] for field in fields(of)}
    names = cast("tuple[str, ...]", getattr(of, "_fields", ()))
    return {name: hints.get(name, Any) for name in names}


def is_record(of: object) -> bool:
    """Return whether a type is a dataclass, a pydantic model or a named tuple."""
    known = _class_or_none(of)
    if known is None:
        return False
    named = tuple in known.__mro__ and hasattr(known, "_fields")
    return named or is_dataclass(known) or issubclass(known, BaseModel)


def enum_of(of: object) -> type[Enum] | None:
    """Return `of` if it is an enum class, else None."""
    known = _class_or_none(of)
    return known if known is not None and issubclass(known, Enum) else None


def type_name(of: object) -> str:
    """Return a type as text for messages: a class by its name, such as `int` or `list[int]`."""
    known = _class_or_none(of)
    return str(of) if known is None or get_args(of) else known.__name__


def unserialisable(place: str, message: str) -> Finding:
    """Return the GL11 error for a part of the state that a journal cannot store and return."""
    fix = "keep state to dataclasses, pydantic models and JSON values."
    return Finding("GL11", "error", f"state {place!r}", message, (), fix)


def _class_or_none(of: object) -> type[object] | None:
    """Return `of` if it is a class, else None."""
    # The cast is needed since isinstance leaves the type parameter of `type` unknown.
    return cast("type[object]", of) if isinstance(of, type) else None


def _unsafe_parts(of: object, place: str, seen: set[object]) -> _Found:  # noqa: C901, PLR0912 - a branch for each kind of type
    """Yield a finding or unknown for each unsafe part of a type; skip the records in `seen`."""
    args, kind = get_args(of), get_origin(of) or of
    if of is Any or of is object or isinstance(of, TypeVar):
        yield Unknown("GL11", f"{place} may hold anything: give it a type that says what it holds.")
    elif isinstance(of, NewType):
        yield from _unsafe_parts(of.__supertype__, place, seen)
    elif kind is Annotated:
        changing = [note for note in args[1:] if not _is_harmless(note)]
        if changing:
            yield _unknown_type(
                place, args[0], f"{type(changing[0]).__name__} may change it on the way"
            )
        else:
            yield from _unsafe_parts(args[0], place, seen)
    elif kind in {Union, UnionType}:
        yield from _unsafe_members(of, place, seen)
    elif of in ATOMS:
        return
    elif kind is type or _is_process_bound(kind):
        yield unserialisable(place, f"is of type {type_name(of)}, which no file can hold.")
    elif kind in LISTS and args:
        for number, part in enumerate(part for part in args if part is not ...):
            yield from _unsafe_parts(part, f"{place}[{number}]" if number else place, seen)
    elif kind is dict and args:
        yield from _unsafe_keys(args[0], place)
        yield from _unsafe_parts(args[1], place, seen)
    elif kind is Literal or enum_of(of) is not None:
        if not _json_kinds(of):
            yield _unknown_type(place, of, "its values are neither all texts nor all whole numbers")
    elif is_record(of):
        yield from _unsafe_record(cast("type[object]", of), place, seen)
    elif getattr(kind, "__module__", "") == abc.__name__:
        why = "it comes back as another collection: say which one it is, `list` or `tuple`"
        yield _unknown_type(place, of, why)
    else:
        why = "it is not known whether it comes back as it was: keep it as text, or as a dataclass"
        yield _unknown_type(place, of, REASONS.get(kind, why))


def _is_process_bound(of: object) -> bool:
    """Return whether a type, such as a lock or a file, has meaning only in one process."""
    known = _class_or_none(of)
    if known is None:
        return False
    abstract = known.__module__ == abc.__name__ and known.__name__ in PROCESS_BOUND_ABSTRACT
    return abstract or issubclass(known, PROCESS_BOUND)


def _is_harmless(note: object) -> bool:
    """Return whether `Annotated` metadata is a text, a limit or a reducer: none changes a value."""
    return isinstance(note, str | Reduce) or type(note).__module__ == "annotated_types"


def _unsafe_keys(key: object, place: str) -> _Found:
    """Yield a finding or unknown if a journal may change mapping keys of type `key`."""
    texts = enum_of(key) is not None or get_origin(key) is Literal
    if key in KEYS or (texts and _json_kinds(key) == {"text"}):
        return
    if get_origin(key) in LISTS or key in LISTS or is_record(key):
        said = f"has keys of type {type_name(key)}, which are written and cannot be read."
        yield unserialisable(place, said)
    else:
        yield _unknown_type(
            place, key, "keys are written as text, and may be read as something else"
        )


def _unsafe_members(of: object, place: str, seen: set[object]) -> _Found:
    """Yield unsafe members of a union, and an unknown if two members look alike in JSON."""
    members = get_args(of)
    for member in members:
        yield from _unsafe_parts(member, place, seen)
    for first, second in combinations(members, 2):
        tags, others = _literal_fields(first), _literal_fields(second)
        tagged = any(not tags[name] & others[name] for name in tags.keys() & others.keys())
        numbers = {first, second} == {int, float}
        if _json_kinds(first) & _json_kinds(second) and not (tagged or numbers):
            both = f"{type_name(first)} from {type_name(second)}"
            why = f"a journal does not tell {both}: give each a tag (a `Literal` field of one name)"
            yield _unknown_type(place, of, why)
            return


def _json_kinds(of: object) -> set[str]:
    """Return the kinds of JSON values as which a type is written; an empty set if unsure."""
    kind = get_origin(of) or of
    if kind is Annotated:
        return _json_kinds(get_args(of)[0])
    if isinstance(of, NewType):
        return _json_kinds(of.__supertype__)
    enum = enum_of(of)
    if kind is Literal or enum is not None:
        values = get_args(of) if enum is None else [member.value for member in enum]
        types: set[type] = {type(value) for value in values}
        sure = len(types - {NoneType}) <= 1 and types <= {str, int, bool, NoneType}
        sure = sure and not (enum is not None and issubclass(enum, Flag))
        return set[str]().union(*(SHAPES.get(one, {"text"}) for one in types)) if sure else set()
    if is_record(kind):
        return {"list"} if tuple in cast("type[object]", kind).__mro__ else {"object"}
    return SHAPES.get(kind, {"text"})


def _literal_fields(of: object) -> dict[str, set[object]]:
    """Return the `Literal` fields of a record with their allowed values, by field name."""
    if not is_record(of):
        return {}
    try:
        types = field_types(cast("type[object]", of))
    except (NameError, TypeError):
        return {}
    return {
        name: set(get_args(hint)) for name, hint in types.items() if get_origin(hint) is Literal
    }


def _unsafe_record(of: type[object], place: str, seen: set[object]) -> _Found:
    """Yield an unknown per reason why a journal may change a record, and results for its fields."""
    if of in seen:
        return
    seen.add(of)
    for why in _model_doubts(of) if issubclass(of, BaseModel) else _dataclass_doubts(of):
        yield _unknown_type(place, of, why)
    derived = of.__subclasses__()
    if derived:
        why = (
            f"it may be a {derived[0].__name__}, which is read as a {of.__name__}: say which of "
            "them it is, and let neither derive from the other"
        )
        yield _unknown_type(place, of, why)
    try:
        types = field_types(of)
    except (NameError, TypeError) as error:
        yield Unknown("GL11", f"the types of {place} cannot be looked up: {error}.")
        return
    for name, hint in types.items():
        yield from _unsafe_parts(hint, f"{place}.{name}", seen)


def _dataclass_doubts(of: type[object]) -> Iterator[str]:
    """Yield the reasons why a journal may change a dataclass or named tuple."""
    if hasattr(of, "__post_init__"):
        yield "its `__post_init__` runs again when it is read"
    if hasattr(of, "__get_pydantic_core_schema__") or hasattr(of, "__pydantic_config__"):
        yield "it has a written form of its own"
    if is_dataclass(of) and not all(field.init for field in fields(of)):
        yield "not all of its fields are given when it is made"
    if is_dataclass(of) and CONTAINERS & {*of.__mro__}:
        yield "what it holds beside its fields is not written"


def _model_doubts(of: type[BaseModel]) -> Iterator[str]:
    """Yield the reasons why a journal may change a pydantic model."""
    decorators = of.__pydantic_decorators__
    if any(getattr(decorators, kind) for kind in CHANGING) or RootModel in of.__mro__:
        yield "functions of its own change it when it is written or read"
    bases = [base for base in of.__mro__ if issubclass(base, BaseModel) and base is not BaseModel]
    if of.__private_attributes__ or any("model_post_init" in vars(base) for base in bases):
        yield "its private attributes are not written"
    options = [name for name in of.model_config if name not in HARMLESS_CONFIG]
    if options or of.model_config.get("extra") == "allow":
        yield f"its option `{[*options, 'extra'][0]}` may change it"
    for name, info in of.model_fields.items():
        if info.alias or info.validation_alias or info.serialization_alias or info.exclude:
            yield f"its field {name!r} has another name in JSON, or none"
        if not all(map(_is_harmless, info.metadata)):
            yield f"the metadata of its field {name!r} may change it"


def _unknown_type(place: str, of: object, why: str) -> Unknown:
    """Return GL11 as unknown for a type at a place of the state."""
    return Unknown("GL11", f"{place} is of type {type_name(of)}, and {why}.")
