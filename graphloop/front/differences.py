"""What differs between two states, also where no class says when two of its objects are equal."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final, TypeAlias, cast

from .states import ATOMS, fields_of

__all__ = ["changed_fields", "same_state"]

CONTAINERS: Final = (dict, list, tuple, set, frozenset, deque)
PYDANTIC: Final = ("__pydantic_extra__", "__pydantic_private__")
"""What a model holds beside its fields."""

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
