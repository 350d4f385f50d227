"""GL11: the user's state can be written to a journal, and read again as what it was.

Events are graphloop's own and are written with a version. The state's type is walked: what no
file can hold is an error, and what could be anything is unknown. A state that can be made without
arguments is written and read once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from io import IOBase
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from ..codec import Codec
from ..errors import GraphloopError
from ..events import Setup, Started
from .ground import Ground
from .report import Finding, Unknown

__all__ = ["unwritable"]

S = TypeVar("S")

LIVING: Final[tuple[type[object], ...]] = (
    FunctionType,
    IOBase,
    ModuleType,
    threading.Event,
    threading.Thread,
    type(threading.Lock()),
    type(threading.RLock()),
)
"""Types of what lives in one process, and in no file."""

ABSTRACT: Final = frozenset({"AsyncIterator", "Awaitable", "Callable", "Coroutine", "Iterator"})
"""The same, in `collections.abc`: many classes are callable, so only these themselves are meant."""


def unwritable(ground: Ground[S]) -> Iterator[Finding | Unknown]:
    """Yield what of the state no journal can hold, and what could be anything."""
    state_type = cast("object", getattr(ground.graph, "state_type", None))
    if not isinstance(state_type, type):
        return
    problems = list(_walk(state_type, state_type.__name__, set()))
    yield from problems
    if not problems:
        yield from _round_trip(state_type)


def _walk(of: object, place: str, seen: set[object]) -> Iterator[Finding | Unknown]:
    if of is Any or of is object or isinstance(of, TypeVar):
        yield Unknown("GL11", f"{place} may hold anything: give it a type that says what it holds.")
        return
    origin = get_origin(of)
    kind = origin if isinstance(origin, type) else of
    if isinstance(kind, type) and _lives(kind):
        yield _wrong(place, f"is of type {_name(of)}, which no file can hold.")
        return
    for number, part in enumerate(get_args(of)):
        if isinstance(part, type) or get_origin(part) is not None or part is Any:
            yield from _walk(part, f"{place}[{number}]" if number else place, seen)
    if not isinstance(of, type) or of in seen or not _has_fields(of):
        return
    seen.add(of)
    try:
        hints = get_type_hints(of)
    except (NameError, TypeError) as error:
        yield Unknown("GL11", f"the types of {place} cannot be looked up: {error}.")
        return
    for name, hint in hints.items():
        yield from _walk(hint, f"{place}.{name}", seen)


def _has_fields(of: type[object]) -> bool:
    return issubclass(of, BaseModel) or is_dataclass(of) or hasattr(of, "__struct_fields__")


def _lives(of: type[object]) -> bool:
    abstract = of.__module__ == "collections.abc" and of.__name__ in ABSTRACT
    return abstract or issubclass(of, LIVING)


def _name(of: object) -> str:
    return of.__name__ if isinstance(of, type) else str(of)


def _round_trip(state_type: type[object]) -> Iterator[Finding | Unknown]:
    try:
        codec = Codec(state_type)
    except PydanticUserError as error:
        yield _wrong(state_type.__name__, f"has no written form: {error.message}")
        return
    make = cast("Callable[[], object]", state_type)
    try:
        state = make()
    except Exception:  # noqa: BLE001 - a state that needs arguments is the user's own affair
        return
    started = Started(0.0, "proof", "proof", (), Setup(""), state)
    try:
        _, read = codec.decode(codec.encode(1, started))
    except GraphloopError as error:
        yield _wrong(state_type.__name__, f"cannot be written and read again: {error}")
        return
    if isinstance(read, Started) and read.state != state:
        yield _wrong(
            state_type.__name__, f"is {state!r} before, and {read.state!r} after, it is written."
        )


def _wrong(place: str, message: str) -> Finding:
    fix = "keep state to dataclasses, pydantic models and JSON values."
    return Finding("GL11", "error", f"state {place!r}", message, (), fix)
