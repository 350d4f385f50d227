"""The user's state, by its type: its fields, and whether it can change."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from msgspec import Struct
from pydantic import BaseModel

__all__ = ["changed_fields", "fields_of", "is_frozen", "lent", "states_fit"]

S = TypeVar("S")

ATOMS = (str, int, float, bool, bytes, tuple, frozenset, type(None))


def fields_of(kind: object) -> frozenset[str] | None:
    """Return the names of a state type's fields; None where it does not tell them."""
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


def changed_fields(kind: object, old: object, new: object, writes: Collection[str]) -> list[str]:
    """Return the fields that differ and are not among `writes`, as far as the type tells."""
    return [
        one
        for one in sorted((fields_of(kind) or frozenset()).difference(writes))
        if _differ(_value(old, one), _value(new, one))
    ]


def _differ(one: object, other: object) -> bool:
    return one is not other and one != other


def _value(state: object, name: str) -> object:
    if isinstance(state, dict):
        return cast("dict[str, object]", state).get(name)
    return cast("object", getattr(state, name))


def is_frozen(state: object) -> bool:
    """Whether a state can only be replaced, and not be changed where it is, as far as it tells."""
    kind = type(state)
    if isinstance(state, ATOMS):
        return True
    if isinstance(state, BaseModel):
        return bool(state.model_config.get("frozen"))
    if isinstance(state, Struct):
        return bool(state.__struct_config__.frozen)
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def lent(state: S) -> S:
    """Return a state as functions are given it: a copy where it could be changed in place.

    No journal would see such a change.
    """
    return state if is_frozen(state) else copy.deepcopy(state)


def states_fit(one: object, other: object) -> bool:
    """Whether nodes of these state types can stand in one graph."""
    return one == other or Any in (one, other)
