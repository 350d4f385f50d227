"""shown: what a value shows of itself, so that another can be held against it.

A value is of a class, holds what the types of Python hold (a text, entries, a function's body), and
has attributes. What is written in C may hold more, and shows it where it says how it is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from inspect import get_annotations
from itertools import islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import Final, TypeVar, cast, get_origin, get_type_hints

from ..argument_checks import checks_of
from ..graph import Graph

__all__ = [
    "PRIMITIVE",
    "attributes_of",
    "does",
    "hidden_in",
    "mark",
    "parts_of",
    "plain",
    "said_by",
    "says",
]

PRIMITIVE: Final = (type(None), bool, int, float, complex, str, bytes)

ASIDE: Final = frozenset({"__module__", "__doc__", "_abc_impl"})
"""What classes and wrappers hold that says nothing of what they do."""

FIELDS: Final = (
    *("__pydantic_fields__", "__dataclass_fields__", "_field_defaults", "_member_map_"),
    *("__total__", "model_config"),
)
"""Where classes keep what is said of their fields beside the annotations."""

HEAP: Final = 1 << 9
IMMUTABLE: Final = 1 << 8

MARKED_MAX: Final = 8
"""How many parts of a value its mark is made of, of each."""

BARE: Final = (dict, list, tuple, set, frozenset)
"""What has no attributes, unless it is of a class made of these."""

WHOLE: Final[tuple[type, ...]] = (
    Enum,
    cached_property,
    MethodType,
    TypeVar,
    property,
    classmethod,
    staticmethod,
)
"""What has no attributes beside what is said by it."""


def parts_of(value: object) -> dict[str, object] | None:
    """Return what an object is made of, by name; None for what is one piece.

    An object of this library with `facts` is told by these alone: the rest is how it does its work.
    """
    if isinstance(value, (type, Graph, Enum, Mapping, Set, list, tuple, *PRIMITIVE)):
        return None
    if get_origin(value) is not None:
        # A type with its arguments.
        return None
    if _is_ours(type(value)):
        facts: object = getattr(value, "facts", None)
        if isinstance(facts, Mapping):
            # isinstance cannot tell what is in it.
            told = cast("Mapping[object, object]", facts)
            return {str(name): one for name, one in told.items()}
        if is_dataclass(value):
            return {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
    names = getattr(type(value), "__struct_fields__", None)
    if isinstance(names, tuple):
        given = cast("tuple[str, ...]", names)
        return {name: getattr(value, name) for name in given}
    return _own(value, [one for one in type(value).__mro__ if "__slots__" in vars(one)]) or None


def attributes_of(value: object) -> dict[str, object]:
    """Return what a container, a number or a function has beside what it is."""
    bare = type(value) in BARE or issubclass(type(value), WHOLE)
    return {} if bare else _own(value, type(value).__mro__)


def said_by(value: object) -> list[object] | None:  # noqa: C901, PLR0911 - a kind a line
    """Return what a function says, or what is made of one, or a number; None for others."""
    match value:
        case Enum():
            return ["enum", value.name, value.value]
        case FunctionType():
            cells = [_content(one) for one in value.__closure__ or ()]
            defaults = value.__defaults__ or (), value.__kwdefaults__ or {}
            return ["function", value.__qualname__, value.__code__, *defaults, cells]
        case MethodType():
            return ["method", value.__func__, value.__self__]
        case BuiltinFunctionType():
            return ["builtin", value.__qualname__, str(value.__module__), value.__self__]
        case TypeVar():
            return ["variable", repr(value), value.__bound__, value.__constraints__]
        case partial():
            part = cast("partial[object]", value)
            return ["partial", part.func, part.args, part.keywords]
        case staticmethod() | classmethod():
            of_class = cast("object", value.__func__)  # pyright: ignore[reportUnknownMemberType]
            return ["of class", isinstance(value, classmethod), of_class]
        case property():
            return ["property", value.fget, value.fset, value.fdel]
        case cached_property():
            return ["cached", cast("object", value.func)]
        case complex():
            return ["number", value.real, value.imag]
        case int() | float() | str() | bytes():
            return ["plain", *value.__getnewargs__()]
        case _:
            return None


def hidden_in(value: object) -> list[object] | None:
    """Return what an object holds beside its parts, as it is copied; None if nobody can see it."""
    kinds = type(value).__mro__[:-1]
    if all(map(_written, kinds)):
        return [] if kinds else None
    try:
        made = value.__reduce_ex__(4)
        if isinstance(made, str):
            return [made]
        return [[*one] if isinstance(one, Iterator) else one for one in made]
    except Exception:  # noqa: BLE001 - what stands in a graph may be anybody's.
        return None


def says(kind: type) -> list[object]:
    """Return what a class says of its own values: annotations, fields, validators."""
    try:
        annotated: Mapping[str, object] = get_annotations(kind)
    except NameError:
        # A name that is known to type checkers alone.
        annotated = {}
    named = {name: _meant(one, kind) for name, one in annotated.items()}
    said = {name: kind.__dict__[name] for name in FIELDS if name in kind.__dict__}
    return [named, checks_of(kind), said]


def does(kind: type) -> dict[str, object]:
    """Return what a class brings to its objects: methods, and values that they share."""
    return {
        name: one
        for name, one in vars(kind).items()
        if name not in ASIDE
        and not isinstance(one, MemberDescriptorType | GetSetDescriptorType)
        and (not name.startswith("__") or callable(one) or isinstance(one, WHOLE))
    }


def plain(kind: type) -> bool:
    """Whether objects of a class are what they hold: a tuple says what a list says."""
    return kind.__module__ == "builtins" and not kind.__flags__ & HEAP


def mark(value: object, depth: int = 4) -> object:  # noqa: PLR0911 - a kind a line
    """Return something hashable that all have in common that are like a value."""
    inner = depth - 1
    match value:
        case type():
            return "class", value.__qualname__
        case CodeType():
            return "code", value.co_name
        case _ if type(value) in PRIMITIVE:
            # There is a number that is not even itself.
            return type(value).__name__, value if value == value else ""  # noqa: PLR0124
        case Mapping() | Set():
            # isinstance cannot tell what is in it.
            return "held", len(cast("Set[object]", value))
        case list() | tuple():
            listed = cast("Sequence[object]", value) if depth > 0 else ()
            marks = [mark(one, inner) for one in islice(listed, MARKED_MAX)]
            return "each", len(cast("Sequence[object]", value)), *marks
        case _ if depth <= 0 or get_origin(value) is not None:
            return "object", type(value).__qualname__
        case _:
            parts = parts_of(value) or {}
            shown = said_by(value) or [parts[name] for name in sorted(parts, key=str)]
            return "object", type(value).__qualname__, mark(shown, inner)


def _own(value: object, kinds: Iterable[type]) -> dict[str, object]:
    """Return the attributes that an object has itself, and in the slots of some of its classes.

    None of these is asked for by way of the object's class, which may answer whatever it likes.
    """
    found: dict[str, object] = {}
    for kind in kinds:
        for name, one in vars(kind).items():
            if isinstance(one, MemberDescriptorType) and (_written(kind) or name[:2] != "__"):
                try:
                    found[name] = one.__get__(value)
                except AttributeError:
                    # A slot that nothing was put into holds nothing.
                    continue
    try:
        own: object = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = None
    if isinstance(own, dict):
        found |= cast("dict[str, object]", own)
    return {name: one for name, one in found.items() if name not in ASIDE}


def _written(kind: type) -> bool:
    """Whether a class is written in Python: it holds what stands in it, and no more."""
    return bool(kind.__flags__ & HEAP) and not kind.__flags__ & IMMUTABLE


def _meant(annotation: object, kind: type) -> object:
    """Return what an annotation means; one that is written as a text, in the file it is from."""
    if not isinstance(annotation, str):
        return annotation
    functions = [one for one in vars(kind).values() if isinstance(one, FunctionType)]
    around = [one.__globals__ for one in functions if one.__module__ == kind.__module__]
    known = around[0] if around else vars(sys.modules.get(kind.__module__, SimpleNamespace()))
    try:
        one = SimpleNamespace(__annotations__={"it": annotation})
        return cast("object", get_type_hints(one, known, vars(kind), include_extras=True)["it"])
    except Exception:  # noqa: BLE001 - a text of anybody's, that pydantic need not have read.
        return annotation


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _content(cell: object) -> object:
    # A cell that is not filled yet has no content.
    return getattr(cell, "cell_contents", None)
