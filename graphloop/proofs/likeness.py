"""Likeness: whether two values say the same, although they were made apart.

Two versions of a file define the same classes and functions twice. A class is told by its name, its
annotations, its fields and what it does, a function by what its body was compiled to, any other
object by its class, by what it holds and by its attributes. What shows nothing of itself is equal
to itself alone.
"""

from __future__ import annotations

import dis
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from types import CodeType, ModuleType
from typing import Final, TypeAlias, cast, get_args, get_origin

from ..graph import Graph
from .shown import (
    PRIMITIVE,
    attributes_of,
    does,
    hidden_in,
    mark,
    parts_of,
    plain,
    said_by,
    says,
)

__all__ = ["alike", "behave_alike"]

DEPTH_MAX: Final = 64
"""How deep values are looked into; what is deeper is equal to what it says that it is equal to."""

DOCUMENTED: Final = 0x4000000

Pair: TypeAlias = tuple[int, int]

Known: TypeAlias = dict[Pair, tuple[bool, object, object]]
"""What was found of pairs, by their identities; with them, lest these are given to others."""


def alike(one: object, other: object) -> bool:
    """Whether nobody can tell two values apart, but by their identity."""
    return _Likeness().same(one, other)


def behave_alike(one: type, other: type) -> bool:
    """Whether two classes have one name and do the same, their bases as well."""
    return _Likeness().behave(one, other, 0)


class _Likeness:
    """One comparison. What is asked about again, while it is looked into, is taken for alike."""

    def __init__(self) -> None:
        self._known: Known = {}
        self._asked: list[Pair] = []

    def same(self, one: object, other: object, depth: int = 0) -> bool:
        """Whether two values say the same."""
        if one is other:
            return True
        if type(one) in PRIMITIVE or type(other) in PRIMITIVE:
            # 1 is no True, and 0 no False; and there is a number that is not even itself.
            unequal = type(one) is not type(other) or one != other
            return not unequal or (_is_odd(one) and _is_odd(other))
        if depth > DEPTH_MAX:
            return _equal(one, other)
        key = id(one), id(other)
        known = self._known.get(key)
        if known is not None:
            return known[0]
        self._known[key] = True, one, other
        self._asked.append(key)
        found = self._compared(one, other, depth + 1)
        self._known[key] = found, one, other
        return found

    def behave(self, one: type, other: type, depth: int) -> bool:
        """Whether the objects of two classes do the same."""
        lines, others = one.__mro__, other.__mro__
        return len(lines) == len(others) and all(
            kind is base
            or (_named_alike(kind, base) and self.same(does(kind), does(base), depth + 1))
            for kind, base in zip(lines, others, strict=True)
        )

    def _compared(self, one: object, other: object, depth: int) -> bool:
        match one, other:
            case Graph(), Graph():
                # What becomes of a graph is told as a graph's difference.
                return True
            case type(), type():
                return self._classes(one, other, depth)
            case ModuleType(), ModuleType():
                return one.__name__ == other.__name__
            case CodeType(), CodeType():
                return _code(one) == _code(other) and self._each(_names(one), _names(other), depth)
            case _:
                return self._objects(one, other, depth)

    def _classes(self, one: type, other: type, depth: int) -> bool:
        """Whether two classes have the same name, annotations, fields and validators, and do so."""
        metas = type(one), type(other)
        return (
            self.behave(*metas, depth)
            and self.behave(one, other, depth)
            and all(
                kind is base or self.same(says(kind), says(base), depth + 1)
                for kind, base in zip(one.__mro__, other.__mro__, strict=True)
            )
        )

    def _objects(self, one: object, other: object, depth: int) -> bool:
        """Whether two objects are of classes that do the same, and hold and have the same."""
        kinds = type(one), type(other)
        if not all(map(plain, kinds)) and not self.behave(*kinds, depth):
            return False
        origin, origin_now = get_origin(one), get_origin(other)
        if origin is not None and origin_now is not None:
            every = self._each(get_args(one), get_args(other), depth)
            return every and self.same(origin, origin_now, depth)
        held = self._held(one, other, depth)
        if held is not None:
            more, more_now = attributes_of(one), attributes_of(other)
            # Most have none, and these need not be looked into for theirs.
            return held and (not (more or more_now) or self.same(more, more_now, depth))
        parts, parts_now = parts_of(one), parts_of(other)
        if parts is None and parts_now is None and _equal(one, other):
            return True
        hidden, hidden_now = hidden_in(one), hidden_in(other)
        seen = hidden is not None and hidden_now is not None
        return seen and self.same([parts, hidden], [parts_now, hidden_now], depth)

    def _held(self, one: object, other: object, depth: int) -> bool | None:
        """Whether two hold the same, a tuple like a list; None for what holds nothing like that."""
        said, said_now = said_by(one), said_by(other)
        # isinstance cannot tell what is in it.
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            some = cast("Mapping[object, object]", one)
            return self._entries(some, cast("Mapping[object, object]", other), depth)
        if isinstance(one, Set) and isinstance(other, Set):
            every = cast("Set[object]", one)
            return self._any_order(every, cast("Set[object]", other), depth)
        if isinstance(one, list | tuple) and isinstance(other, list | tuple):
            listed = cast("Sequence[object]", one)
            return self._each(listed, cast("Sequence[object]", other), depth)
        if said is None or said_now is None:
            return None
        return self._each(said, said_now, depth)

    def _each(self, some: Iterable[object], others: Iterable[object], depth: int) -> bool:
        listed, more = list(some), list(others)
        pairs = zip(listed, more, strict=False)
        return len(listed) == len(more) and all(self.same(*pair, depth) for pair in pairs)

    def _entries(
        self, one: Mapping[object, object], other: Mapping[object, object], depth: int
    ) -> bool:
        if len(one) != len(other):
            return False
        if all(type(key) is str for key in (*one, *other)):
            return one.keys() == other.keys() and all(
                self.same(value, other[key], depth) for key, value in one.items()
            )
        return self._any_order([*one.items()], [*other.items()], depth)

    def _any_order(self, some: Iterable[object], others: Iterable[object], depth: int) -> bool:
        """Whether each of some has one of the others that is like it, and none is left."""
        left: defaultdict[object, list[object]] = defaultdict(list)
        for other in others:
            left[mark(other)].append(other)
        for one in some:
            near = left[mark(one)]
            at = next((at for at, other in enumerate(near) if self._try(one, other, depth)), None)
            if at is None:
                return False
            del near[at]
        return not any(left.values())

    def _try(self, one: object, other: object, depth: int) -> bool:
        """Whether two are alike; if not, what was taken for granted meanwhile is forgotten."""
        before = len(self._asked)
        found = self.same(one, other, depth)
        if not found:
            for key in self._asked[before:]:
                if key in self._known and self._known[key][0]:
                    del self._known[key]
            del self._asked[before:]
        return found


def _code(code: CodeType) -> tuple[object, ...]:
    """Return what a body does, but for the values that it names."""
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    flags = code.co_flags & ~DOCUMENTED
    return (code.co_code, code.co_exceptiontable, *counts, *names, flags)


def _names(code: CodeType) -> Sequence[object]:
    """Return the values that a body names; what it is documented by, no run reads."""
    values = code.co_consts
    if not values or not isinstance(values[0], str):
        return values
    read = {one.arg for one in dis.get_instructions(code) if one.opcode in dis.hasconst}
    return values if 0 in read else (None, *values[1:])


def _is_odd(value: object) -> bool:
    return isinstance(value, float | complex) and value != value  # noqa: PLR0124 - so it says.


def _named_alike(one: type, other: type) -> bool:
    return one.__qualname__ == other.__qualname__


def _equal(one: object, other: object) -> bool:
    """Whether one says that it is equal to the other; what cannot say so is not."""
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - what stands in a graph may be anybody's.
        return False
