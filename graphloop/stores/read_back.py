"""Whether what a journal would give back is what it was given, and if not, where it differs.

Types decide first, in all parts: what is equal to a text or a number, and is more than that (a
member of an enum, a tuple with names), would be less once it is read. Only then `==` decides, of
what has no parts. What does not say that it is equal is held against what would be written of it:
it may be a number that is no number (NaN), compare by identity, or not be comparable at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

__all__ = ["Apart", "apart"]

_ATOMS: Final = frozenset({int, str, float, bool, bytes, type(None)})

_NONE: Final = object()

_Row: TypeAlias = Sequence[object] | deque[object]

_Part: TypeAlias = tuple[object, object, object]
"""What a part is called, and what is there in each of two values."""


@dataclass(frozen=True)
class Apart:
    """Where two values differ: the place, dotted, what is there in each of them, and what helps."""

    place: str
    given: object
    read: object
    fix: str = ""

    def __str__(self) -> str:
        where = f"`{self.place}`" if self.place else "it"
        return f"{where} would be read back as {self.read!r:.80}; found {self.given!r:.80}"


def apart(given: object, read: object) -> Apart | None:
    """Return where a value first differs from what would be read in its stead; None if nowhere.

    Args:
        given: the value.
        read: what would be read.
    """
    pending: list[tuple[tuple[object, ...], object, object]] = [((), given, read)]
    while pending:
        place, ours, theirs = pending.pop()
        if not _are_of_a_kind(ours, theirs):
            return Apart(_dotted(place), ours, theirs, _annotated(ours, theirs))
        kind: object = type(ours)
        for name, mine, other, fix in _beside(ours, theirs) if _has_more(kind) else ():
            return Apart(_dotted((*place, name)), mine, other, fix)
        parts = _pairing(kind)(ours, theirs)
        if parts is None:
            return Apart(_dotted(place), ours, theirs, _keyed(ours, theirs))
        # Most parts of a large state are atoms, and told at once.
        further = [
            ((*place, name), mine, other)
            for name, mine, other in parts
            if type(mine) not in _ATOMS or type(mine) is not type(other) or mine != other
        ]
        pending.extend(reversed(further))
    return None


def _dotted(place: tuple[object, ...]) -> str:
    return ".".join(map(str, place))


def _are_of_a_kind(given: object, read: object) -> bool:
    """Whether a type stays; a whole number is read as a float where its field is one."""
    ours, theirs = type(given), type(read)
    return ours is theirs or (ours is int and theirs is float) or _origin(ours) is _origin(theirs)


def _origin(kind: type[object]) -> type[object]:
    """Return the generic model that a model with types for its parameters was made of."""
    if not issubclass(kind, BaseModel):
        return kind
    return kind.__pydantic_generic_metadata__["origin"] or kind


def _annotated(given: object, read: object) -> str:
    """Return what helps where something would be read as another type."""
    kind = f"annotate it as `{_named(given)}`"
    return kind if read is None else f"{kind}, or give a plain `{type(read).__name__}`"


def _keyed(given: object, read: object) -> str:
    """Return what helps where a mapping would be read with keys of another type."""
    if not isinstance(given, Mapping) or not isinstance(read, Mapping):
        return ""
    ours, theirs = cast("Mapping[object, object]", given), cast("Mapping[object, object]", read)
    for mine, other in zip(ours, theirs, strict=False):
        if type(mine) is not type(other):
            keys = f"annotate its keys as `{_named(mine)}`"
            return f"{keys}, or give it keys that are a plain `{type(other).__name__}`"
    return ""


def _named(value: object) -> str:
    """Return the type of a value as it is written in code, as far as the value tells."""
    kind = "None" if value is None else type(value).__name__
    if isinstance(value, Counter):
        return f"{kind}[...]"
    if isinstance(value, Mapping) or type(value) is tuple:
        return f"{kind}[..., ...]"
    return f"{kind}[...]" if isinstance(value, list | set | frozenset | deque) else kind


@lru_cache
def _has_more(kind: object) -> bool:
    return issubclass(cast("type[object]", kind), deque | defaultdict | datetime | time)


def _beside(given: object, read: object) -> Iterator[tuple[str, object, object, str]]:
    """Yield what differs beside the parts of two values, and what helps."""
    if isinstance(given, deque) and isinstance(read, deque):
        if given.maxlen != read.maxlen:
            limit = "give it no `maxlen`: no journal holds one"
            yield "maxlen", given.maxlen, read.maxlen, limit
    elif isinstance(given, defaultdict) and isinstance(read, defaultdict):
        ours, theirs = given.default_factory, read.default_factory
        if ours != theirs:
            name = getattr(theirs, "__name__", repr(theirs))
            factory = f"give it the default factory `{name}`, which the type of its values has"
            yield "default_factory", ours, theirs, factory
    elif isinstance(given, datetime | time) and isinstance(read, datetime | time):
        utc = "give it in UTC (`.astimezone(UTC)`), and keep the name of a zone beside it, as text"
        if not _are_of_a_zone(given.tzinfo, read.tzinfo):
            yield "tzinfo", given.tzinfo, read.tzinfo, utc
        elif given.tzinfo is None and given.fold != read.fold:
            yield "fold", given.fold, read.fold, utc


def _are_of_a_zone(given: tzinfo | None, read: tzinfo | None) -> bool:
    """Whether clocks agree for ever: there is one zone, or one offset that never changes."""
    if given is None or read is None or given == read:
        return given is read or given == read
    offset = _offset(given)
    return offset is not None and offset == _offset(read)


def _offset(zone: tzinfo) -> timedelta | None:
    try:
        return zone.utcoffset(None)
    except Exception:  # noqa: BLE001 - a zone of the user's own, which asks when
        return None


@lru_cache
def _pairing(of: object) -> Callable[[Any, Any], Iterable[_Part] | None]:
    """Return what pairs the parts of two values of a type; it returns None if they differ."""
    kind = cast("type[Any]", of)
    if issubclass(kind, BaseModel):
        return _of_models
    if is_dataclass(kind):
        names = tuple([one.name for one in fields(kind)])
        return lambda given, read: [
            (name, getattr(given, name, None), getattr(read, name, None)) for name in names
        ]
    if issubclass(kind, Mapping):
        return _of_mappings
    if issubclass(kind, list | tuple | deque):
        return _of_rows
    if issubclass(kind, set | frozenset):
        return _of_sets
    return lambda given, read: () if _are_equal(given, read) else None


def _of_models(given: BaseModel, read: BaseModel) -> Iterable[_Part] | None:
    # Its `__dict__` holds what was computed, too; and what is deprecated warns who asks for it.
    ours, theirs = given.__dict__, read.__dict__
    parts: list[_Part] = [
        (name, ours.get(name), theirs.get(name)) for name in type(given).model_fields
    ]
    extra = _side_by_side(given.__pydantic_extra__ or {}, read.__pydantic_extra__ or {})
    private = _side_by_side(given.__pydantic_private__ or {}, read.__pydantic_private__ or {})
    return None if extra is None or private is None else [*parts, *extra, *private]


def _side_by_side(given: Mapping[Any, object], read: Mapping[Any, object]) -> list[_Part] | None:
    if given.keys() != read.keys():
        return None
    return [(name, part, read[name]) for name, part in given.items()]


def _of_sets(given: Collection[object], read: Collection[object]) -> Iterable[_Part] | None:
    pairs = _pairs(given, read)
    return None if pairs is None else [("<item>", *pair) for pair in pairs]


def _of_rows(given: _Row, read: _Row) -> Iterable[_Part] | None:
    if len(given) != len(read):
        return None
    kinds = list(map(type, given))
    if _ATOMS.issuperset(kinds) and kinds == list(map(type, read)) and given == read:
        return ()
    return list(zip(range(len(given)), given, read, strict=True))


def _of_mappings(
    given: Mapping[object, object], read: Mapping[object, object]
) -> Iterable[_Part] | None:
    if {str} == {*map(type, given), *map(type, read)}:
        return _side_by_side(given, read)
    keys = _pairs(given, read)
    if keys is None:
        return None
    values = [(mine, given[mine], read[other]) for mine, other in keys]
    return [*[("<key>", *pair) for pair in keys], *values]


def _pairs(
    given: Iterable[object], read: Iterable[object]
) -> Sequence[tuple[object, object]] | None:
    """Return what stands for what, of items that have no order; None if something is left over."""
    theirs = {item: item for item in read}
    items = list(given)
    pairs = [(item, theirs.pop(item)) for item in items if item in theirs]
    if len(pairs) == len(items):
        return None if theirs else pairs
    # What is equal to itself alone goes by what is written of it.
    paired = {id(mine) for mine, _ in pairs}
    try:
        written = {to_json(item): item for item in theirs}
        more = [
            (item, written.pop(to_json(item), _NONE)) for item in items if id(item) not in paired
        ]
    except PydanticSerializationError:
        return None
    return None if written or any(other is _NONE for _, other in more) else [*pairs, *more]


def _are_equal(given: object, read: object) -> bool:
    """Whether two values without parts are equal, as far as anybody can tell."""
    try:
        equal = bool(given == read)
        # What is not equal to itself (NaN) tells nothing, nor what compares by identity alone.
        tells = (given == given or read == read) and type(given).__eq__ is not object.__eq__  # noqa: PLR0124
    except Exception:  # noqa: BLE001 - arrays, and whatever else the user's own types raise
        equal = tells = False
    return equal or (not tells and _are_written_alike(given, read))


def _are_written_alike(given: object, read: object) -> bool:
    """Whether the same is written of two values; of what only its field can write, nobody knows."""
    try:
        return to_json(given) == to_json(read)
    except PydanticSerializationError:
        return True
