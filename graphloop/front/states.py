"""The user's state, by its type: its fields, and whether it can change."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Mapping
from datetime import date, time, timedelta
from enum import Enum
from typing import Any, Final, TypeVar, cast

from msgspec import Struct
from pydantic import BaseModel

from ..errors import ConfigError

__all__ = ["ATOMS", "fields_of", "is_frozen", "lent", "states_fit"]

S = TypeVar("S")

ATOMS: Final = (str, int, float, bool, bytes, Enum, date, time, timedelta, type(None))


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


def is_frozen(state: object) -> bool:
    """Whether nothing of a state can be changed where it is; what does not tell may be."""
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
