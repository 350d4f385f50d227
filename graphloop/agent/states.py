"""The user's state: its type, its fields, and whether it can change."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from enum import Enum
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from msgspec import Struct
from pydantic import BaseModel

from ..errors import ConfigError, GraphError, Problem
from ..graph import NodeGraph
from ..node_protocol import Node, unwrapped
from ..outcomes import Outcome

__all__ = [
    "ATOMS",
    "Stateful",
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
    """Return the names of a state type's fields; None where it names none."""
    if not isinstance(kind, type):
        return None
    if dataclasses.is_dataclass(kind):
        return frozenset(one.name for one in dataclasses.fields(kind))
    if issubclass(kind, BaseModel):
        return frozenset(kind.model_fields)
    if issubclass(kind, Struct):
        return frozenset(kind.__struct_fields__)
    # Named tuples and typed mappings.
    told: Mapping[str, object] = getattr(cast("object", kind), "__annotations__", {})
    return (frozenset(told) or None) if issubclass(kind, tuple | dict) else None


def is_frozen(state: object) -> bool:
    """Whether a state can surely not be changed in place."""
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
    """Whether the fields of such an object stay the objects that they are."""
    if issubclass(kind, BaseModel):
        return bool(kind.model_config.get("frozen"))
    if issubclass(kind, Struct):
        return bool(kind.__struct_config__.frozen)
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def lent(state: S) -> S:
    """Return a state as functions are given it: a copy where it could be changed in place.

    No journal would see such a change.

    Raises:
        ConfigError: it cannot be copied.
    """
    if is_frozen(state):
        return state
    try:
        return copy.deepcopy(state)
    except Exception as error:
        raise ConfigError(
            f"a state of type {type(state).__name__} cannot be copied, so nobody could tell "
            f"whether a function changes it in place: {error}. Fix: keep in it what a journal can "
            "hold; clients, locks and open files are for the functions to know"
        ) from error


def states_fit(one: object, other: object) -> bool:
    """Whether nodes of these state types can stand in one graph."""
    return one == other or Any in (one, other)


@runtime_checkable
class Stateful(Node[S, Outcome], Protocol[S]):
    """A node that knows the type of the state that it works on, such as a function's."""

    @property
    def state_type(self) -> object:
        """The state's type; None for no state, `Any` for whatever there is."""
        ...


def state_type_of(graph: NodeGraph[Any], given: object) -> object:
    """Return the type of a graph's state: the one that is given, else the one its nodes tell.

    Raises:
        GraphError: naming each node whose state is of another type.
    """
    told = dict(_told(graph))
    kind = given
    if given is None:
        kind = next((one for one in told.values() if one is not None), None)
    problems = [
        Problem(
            f"node {name!r}",
            f"takes a state of type {_word(one)}, and the graph's is of type {_word(kind)}.",
            "have all functions of a graph take the same type of state.",
        )
        for name, one in told.items()
        if not states_fit(one, kind)
    ]
    if problems:
        raise GraphError(graph.name, problems)
    return kind


def known_state_type(graph: NodeGraph[Any]) -> object:
    """Return the type of a graph's state; None where no node tells it."""
    return getattr(graph, "state_type", None)


def _told(graph: NodeGraph[Any]) -> Iterator[tuple[str, object]]:
    for node in unwrapped(graph.nodes.values()):
        if isinstance(node, Stateful):
            # isinstance leaves the type of its state unknown, which is what is asked for here.
            kind = cast("Stateful[object]", node).state_type
            if kind is not Any:
                yield node.name, kind


def _word(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


CONTAINERS: Final = (dict, list, tuple, set, frozenset, deque)
PYDANTIC: Final = ("__pydantic_extra__", "__pydantic_private__")
"""The attributes of a model beside its fields."""

Container: TypeAlias = (
    dict[object, object]
    | list[object]
    | tuple[object, ...]
    | set[object]
    | frozenset[object]
    | deque[object]
)


def changed_fields(kind: object, old: object, new: object, writes: Collection[str]) -> list[str]:
    """Return the fields that differ and are not among `writes`, as far as the type tells."""
    return [
        one
        for one in sorted((fields_of(kind) or frozenset()).difference(writes))
        if not same_state(_value(old, one), _value(new, one))
    ]


def _value(state: object, name: str) -> object:
    if isinstance(state, dict):
        return cast("dict[str, object]", state).get(name)
    return cast("object", getattr(state, name))


def same_state(one: object, other: object) -> bool:
    """Whether two states say the same."""
    return _Comparison().same(one, other)


class _Comparison:
    """Compares two states, which may hold themselves."""

    def __init__(self) -> None:
        # The pairs are kept as well, so that no other object is given the id of one.
        self._seen: dict[tuple[int, int], tuple[object, object]] = {}

    def same(self, one: object, other: object) -> bool:
        """Whether two values say the same."""
        if one is other:
            return True
        if type(one) is not type(other):
            return False
        if isinstance(one, ATOMS):
            return one == other or (one != one and other != other)  # noqa: PLR0124 - as NaN is.
        pair = (id(one), id(other))
        if pair in self._seen:
            return True
        self._seen[pair] = (one, other)
        same = self._same_parts(one, other)
        if not same:
            del self._seen[pair]
        return same

    def _same_parts(self, one: object, other: object) -> bool:
        kind = type(one)
        if issubclass(kind, CONTAINERS):
            members = cast("Container", one), cast("Container", other)
            return self._same_members(*members) and self._same_attributes(one, other)
        fields = fields_of(kind)
        if fields is not None:
            return all(
                self.same(getattr(one, name, None), getattr(other, name, None))
                for name in (*fields, *PYDANTIC)
            )
        if kind.__eq__ is object.__eq__:
            return self._same_attributes(one, other)
        return _are_equal(one, other) or (
            bool(_attributes(one)) and self._same_attributes(one, other)
        )

    def _same_members(self, one: Container, other: Container) -> bool:
        if len(one) != len(other):
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() == other.keys():
                return all(self.same(value, other[key]) for key, value in one.items())
            # Keys may be equal to themselves alone; a copy keeps their order.
            return self._in_order([*one.items()], [*other.items()])
        if isinstance(one, set | frozenset) and isinstance(other, set | frozenset):
            rest = other - one
            return all(any(self.same(left, right) for right in rest) for left in one - other)
        return self._in_order(one, other)

    def _in_order(self, one: Iterable[object], other: Iterable[object]) -> bool:
        return all(self.same(left, right) for left, right in zip(one, other, strict=True))

    def _same_attributes(self, one: object, other: object) -> bool:
        mine, others = _attributes(one), _attributes(other)
        return mine.keys() == others.keys() and all(
            self.same(value, others[name]) for name, value in mine.items()
        )


def _attributes(one: object) -> dict[str, object]:
    """Return what an object holds, without what it keeps only to be faster."""
    told = object.__getstate__(one)
    # A dictionary, or one and that of the slots; None where there is none.
    parts = cast(
        "tuple[dict[str, object] | None, ...]", told if isinstance(told, tuple) else (told,)
    )
    return {
        name: value
        for part in parts
        for name, value in (part or {}).items()
        if not isinstance(getattr(type(one), name, None), cached_property)
    }


def _are_equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - two arrays, for one, are not simply equal.
        return False
