"""The user's state: its type, its fields, copies of it, and comparison."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, time, timedelta
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import pydantic
from msgspec import Struct

from ..errors import ConfigError, GraphError, Problem
from ..graph import NodeGraph

__all__ = [
    "ATOMS",
    "changed_fields",
    "fields_of",
    "is_frozen",
    "known_state_type",
    "lent",
    "same_state",
    "state_type_of",
    "states_fit",
]

S = TypeVar("S")

ATOMS: Final = (str, int, float, bool, bytes, Enum, date, time, timedelta, type(None))


def fields_of(kind: object) -> frozenset[str] | None:
    """Return the field names of a state type; None if the type does not declare fields."""
    if not isinstance(kind, type):
        return None
    if dataclasses.is_dataclass(kind):
        return frozenset(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, pydantic.BaseModel):
        return frozenset(kind.model_fields)
    if issubclass(kind, Struct):
        return frozenset(kind.__struct_fields__)
    # Named tuples and typed mappings.
    named: Mapping[str, object] = getattr(cast("object", kind), "__annotations__", {})
    return (frozenset(named) or None) if issubclass(kind, tuple | dict) else None


def is_frozen(state: object) -> bool:
    """Whether a state, with all its parts, is certainly immutable."""
    if isinstance(state, ATOMS):
        return True
    if isinstance(state, tuple | frozenset):
        return all(map(is_frozen, cast("Collection[object]", state)))
    kind = type(state)
    if not _is_frozen_type(kind):
        return False
    names = fields_of(kind) or ()
    return all(is_frozen(cast("object", getattr(state, name, None))) for name in names)


def _is_frozen_type(kind: type[object]) -> bool:
    """Whether objects of this type refuse assignment to their fields."""
    if issubclass(kind, pydantic.BaseModel):
        return bool(kind.model_config.get("frozen"))
    if issubclass(kind, Struct):
        return bool(kind.__struct_config__.frozen)
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def lent(state: S) -> S:
    """Return a deep copy of the state for a user's function; a frozen state is not copied.

    The copy protects the run's state: the journal would not record a change in place.

    Raises:
        ConfigError: the state cannot be copied.
    """
    if is_frozen(state):
        return state
    try:
        return copy.deepcopy(state)
    except Exception as error:
        raise ConfigError(
            f"a state of type {type(state).__name__} cannot be copied: {error}. A function gets a "
            "copy, so that it cannot change the state in place. Fix: keep clients, locks and open "
            "files out of the state, and let the functions hold them"
        ) from error


def states_fit(kind: object, other: object) -> bool:
    """Whether one graph can have nodes of both state types: equal types, or one is `Any`."""
    return kind == other or Any in (kind, other)


def state_type_of(graph: NodeGraph[Any], given: object) -> object:
    """Return the state type of a graph: the given type, or the first that a node declares.

    Raises:
        GraphError: a node declares another type; the message names each such node.
    """
    named = dict(_types_named(graph))
    kind = given
    if given is None:
        kind = next((found for found in named.values() if found is not None), None)
    problems = [
        Problem(
            f"node {name!r}",
            f"takes a state of type {_type_name(found)}, and the graph's is of type "
            f"{_type_name(kind)}.",
            "have all functions of a graph take the same type of state.",
        )
        for name, found in named.items()
        if not states_fit(found, kind)
    ]
    if problems:
        raise GraphError(graph.name, problems)
    return kind


def known_state_type(graph: NodeGraph[Any]) -> object:
    """Return the state type that a graph has stored; None if no node declares a type."""
    return getattr(graph, "state_type", None)


def _types_named(graph: NodeGraph[Any]) -> Iterator[tuple[str, object]]:
    for node in graph.every_node:
        # A node that declares the type of its state, such as one made of a typed function.
        kind: object = getattr(node, "state_type", Any)
        if kind is not Any:
            yield node.name, kind


def _type_name(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def changed_fields(kind: object, old: object, new: object, writes: Collection[str]) -> list[str]:
    """Return the names of the fields, except those in `writes`, that differ between two states.

    Args:
        kind: the type of both states.
        old: the state before.
        new: the state after.
        writes: the names of fields that may differ.
    """
    names = (fields_of(kind) or frozenset()).difference(writes)
    return [
        name
        for name in sorted(names)
        if not same_state(_field_value(old, name), _field_value(new, name))
    ]


def _field_value(state: object, name: str) -> object:
    if isinstance(state, dict):
        return cast("dict[str, object]", state).get(name)
    return cast("object", getattr(state, name))


def same_state(state: object, other: object) -> bool:
    """Whether two states have equal values at every depth.

    `==` does not suffice: many classes compare their objects by identity, and here a state is
    compared with its copy.
    """
    return _Comparison().same(state, other)


class _Comparison:
    """A deep comparison of two states; it also ends if a state contains itself."""

    def __init__(self) -> None:
        # Keeps the objects, too: a freed object's id could be given to a later object.
        self._seen: dict[tuple[int, int], tuple[object, object]] = {}

    def same(self, first: object, second: object) -> bool:
        """Whether two values have the same type and equal parts."""
        if first is second:
            return True
        if type(first) is not type(second):
            return False
        if isinstance(first, ATOMS):
            return first == second or (first != first and second != second)  # noqa: PLR0124 - NaN
        pair = (id(first), id(second))
        if pair in self._seen:
            return True
        self._seen[pair] = (first, second)
        same = self._same_parts(first, second)
        if not same:
            del self._seen[pair]
        return same

    def _same_parts(self, first: object, second: object) -> bool:
        if isinstance(first, set | frozenset):
            ours, theirs = cast("Set[object]", first), cast("Set[object]", second)
            rest = theirs - ours
            return len(ours) == len(theirs) and all(
                any(self.same(member, candidate) for candidate in rest) for member in ours - theirs
            )
        if isinstance(first, dict):
            mine, its = cast("dict[object, object]", first), cast("dict[object, object]", second)
            if mine.keys() == its.keys():
                return all(self.same(value, its[key]) for key, value in mine.items())
            return self._in_order(tuple(mine.items()), tuple(its.items()))
        parts, others = _items_of(first), _items_of(second)
        if parts is None or others is None:
            return bool(first == second)
        return self._in_order(parts, others)

    def _in_order(self, parts: Sequence[object], others: Sequence[object]) -> bool:
        return len(parts) == len(others) and all(map(self.same, parts, others))


def _items_of(value: object) -> tuple[object, ...] | None:
    """Return the items or attributes of an object, as `copy` and `pickle` find them.

    Returns None for an object that pickle stores by name only, such as a function or a class.
    """
    if isinstance(value, tuple | list | deque):
        return tuple(cast("Iterable[object]", value))
    try:
        reduced: str | tuple[Any, ...] = value.__reduce_ex__(4)
    except TypeError:
        return None
    if isinstance(reduced, str):
        return None
    padded: tuple[Any, ...] = (*reduced, None, None)
    arguments, state, *rest = padded[1:5]
    # A class with slots has two dictionaries: one of other attributes, one of the slots.
    attributes = cast("tuple[object, ...]", state) if isinstance(state, tuple) else (state,)
    kept = [_without_caches(type(value), member) for member in attributes]
    return (*arguments, *kept, *[tuple(items) for items in rest if items is not None])


def _without_caches(kind: type[object], attributes: object) -> object:
    if not isinstance(attributes, dict):
        return attributes
    members = cast("dict[str, object]", attributes).items()
    return {
        name: value
        for name, value in members
        if not isinstance(getattr(kind, name, None), cached_property)
    }
