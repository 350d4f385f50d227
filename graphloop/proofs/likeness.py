"""Likeness: any value as plain data, so that two that were made apart can be compared.

Two versions of a file define the same classes and functions twice. A class is told by its name and
annotations, a function by what its body was compiled to, any other object by its parts. What has
no parts that anybody can see is equal to itself alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Final, cast

from ..argument_checks import checks_of
from ..graph import Graph

__all__ = ["alike", "parts_of", "plain"]

DEPTH_MAX: Final = 12

_NOTHING: Final = frozenset[type]()
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")

PRIMITIVE: Final = (type(None), bool, int, float, complex, str, bytes)


def alike(one: object, other: object) -> bool:
    """Whether nobody can tell two values apart, but by their identity."""
    return one is other or plain(one) == plain(other)


def parts_of(value: object) -> dict[str, object] | None:
    """Return what an object is made of, by name; None for what is one piece.

    An object with `facts` is told by these alone: the rest is how it does its work.
    """
    if isinstance(value, (type, Graph, Enum, Mapping, Set, list, tuple, *PRIMITIVE)):
        return None
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
    own: object = getattr(value, "__dict__", None)
    if isinstance(own, dict) and own:
        return dict(cast("dict[str, object]", own))
    return _slots(value) or None


def plain(value: object, depth: int = 0, within: frozenset[type] = _NOTHING) -> object:  # noqa: PLR0911 - a kind a line
    """Return a value as data that compares by what it says; a class in itself by its name."""
    if isinstance(value, PRIMITIVE):
        # 1 is no True, and 0 no False.
        return (type(value).__name__, value)
    if depth > DEPTH_MAX:
        return _Piece(value)
    if isinstance(value, type):
        return _class(value, depth, within)
    said = partial(plain, depth=depth + 1, within=within)
    match value:
        case Graph():
            # What becomes of a graph is told as a graph's difference.
            return "a graph"
        case Enum():
            return (type(value).__qualname__, value.name)
        case Mapping():
            given = cast("Mapping[object, object]", value)
            return {repr(said(name)): said(one) for name, one in given.items()}
        case Set():
            every = cast("Set[object]", value)
            return ("set", sorted([repr(said(one)) for one in every]))
        case list() | tuple():
            listed = cast("list[object] | tuple[object, ...]", value)
            return [said(one) for one in listed]
        case ModuleType():
            return value.__name__
        case _:
            return _callable(value, depth, within) or _object(value, depth, within)


def _class(value: type, depth: int, within: frozenset[type]) -> object:
    """Return a class by its name and annotations, and what its validators say."""
    if value in within:
        return value.__qualname__
    said = partial(plain, depth=depth + 1, within=within | {value})
    annotated = cast("Mapping[str, object]", getattr(value, "__annotations__", {}))
    told: list[object] = []
    for name, one in annotated.items():
        more = cast("tuple[object, ...]", getattr(one, "__metadata__", ()))
        text = str(getattr(one, "__origin__", one) if more else one)
        told.append((name, _ADDRESS.sub("", text), said(more)))
    return (value.__qualname__, told, said(checks_of(value)))


def _callable(value: object, depth: int, within: frozenset[type]) -> object:
    said = partial(plain, depth=depth + 1, within=within)
    match value:
        case FunctionType():
            cells = [said(_content(one)) for one in value.__closure__ or ()]
            code = said(value.__code__)
            return (value.__qualname__, code, said(value.__defaults__), cells)
        case CodeType():
            names = (value.co_names, value.co_varnames, value.co_freevars, value.co_flags)
            return (value.co_code, names, [said(one) for one in value.co_consts])
        case MethodType():
            return (said(value.__func__), said(value.__self__))
        case BuiltinFunctionType():
            return (value.__qualname__, str(value.__module__))
        case partial():
            part = cast("partial[object]", value)
            return (said(part.func), said(part.args), said(part.keywords))
        case _:
            return None


def _object(value: object, depth: int, within: frozenset[type]) -> object:
    parts = parts_of(value)
    if parts is None:
        return _Piece(value)
    said = partial(plain, depth=depth + 1, within=within)
    return (type(value).__qualname__, {name: said(one) for name, one in parts.items()})


def _slots(value: object) -> dict[str, object]:
    found: dict[str, object] = {}
    for kind in type(value).__mro__:
        given: object = kind.__dict__.get("__slots__", ())
        names = (given,) if isinstance(given, str) else cast("tuple[str, ...]", given)
        found |= {name: getattr(value, name) for name in names if hasattr(value, name)}
    return found


def _content(cell: object) -> object:
    # A cell that is not filled yet has no content.
    return getattr(cell, "cell_contents", None)


class _Piece:
    """What has no parts: equal to what it says that it is equal to."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Piece) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash(type(self._value))

    def __repr__(self) -> str:
        return f"{type(self._value).__qualname__}"
