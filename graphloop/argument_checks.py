"""Argument checks: what validators say of arguments beside a JSON Schema.

Pydantic's compiled description of a type names every function that may refuse a value. It also
names places in memory and inner wrappers, which differ between two versions of one file; here each
function stands under the field and the name that a reader knows it by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final, cast

from pydantic import BaseModel, PydanticUserError

__all__ = ["checks_in", "checks_of", "readings_in"]

ASIDE: Final = frozenset({"serialization", "metadata", "ref", "schema_ref"})
"""What says nothing of which values are taken."""

MADE: Final = "init"
"""What a class does by itself when it makes an object, among its entries."""

LIBRARIES: Final = frozenset({"abc", "builtins", "pydantic", "typing"})

CONFIGURED: Final = frozenset({"_abc_impl", "model_config"})
"""What classes hold that says nothing of how their objects are made, or is told elsewhere."""

STARTS: Final = frozenset({"__init__", "__new__", "__post_init__"})
"""Methods that may refuse what an object is made of, beside `model_post_init`."""

READINGS: Final = frozenset({"strict", "default_factory", "extra_behavior"})
"""What says how a value is read, and stands in no JSON Schema."""


def checks_in(described: object) -> dict[str, object]:
    """Return the functions that may refuse a value, by field and name.

    Args:
        described: pydantic's description of a type, as `TypeAdapter.core_schema` holds it.
    """
    found: dict[str, object] = {}
    for place, key, one in _walked(described, ""):
        if key == "function" and callable(one):
            _put(found, f"{place}:{getattr(one, '__name__', type(one).__name__)}", one)
        elif key == MADE and isinstance(one, type):
            _put(found, f"{place}:{MADE}", _brought(one))
    return found


def readings_in(described: object) -> dict[str, object]:
    """Return how values are read beside a JSON Schema, by field and name."""
    found: dict[str, object] = {}
    for place, key, one in _walked(described, ""):
        if key in READINGS:
            _put(found, f"{place}:{key}", one)
    return found


def checks_of(kind: type) -> dict[str, object]:
    """Return what a pydantic model says beside its annotations; nothing of other classes."""
    if not issubclass(kind, BaseModel):
        return {}
    try:
        described: object = kind.__pydantic_core_schema__
        return {**checks_in(described), **readings_in(described)}
    except (AttributeError, PydanticUserError):
        # It is not built yet, or abstract.
        return {}


def _walked(described: object, place: str) -> Iterator[tuple[str, str, object]]:
    """Yield each entry that is no description itself, with the field or class that it is of."""
    if isinstance(described, list | tuple):
        # isinstance cannot tell what is in it.
        for one in cast("list[object]", described):
            yield from _walked(one, place)
    if not isinstance(described, Mapping):
        return
    entries = cast("Mapping[str, object]", described)
    kind = entries.get("cls")
    inner = kind.__qualname__ if isinstance(kind, type) else place
    if entries.get("post_init") or entries.get("custom_init"):
        yield inner, MADE, kind
    for key, one in entries.items():
        if key == "fields" and isinstance(one, Mapping):
            for name, field in cast("Mapping[str, object]", one).items():
                yield from _walked(field, f"{inner}.{name}")
        elif key not in ASIDE:
            yield inner, key, one
            yield from _walked(one, inner)


def _brought(kind: type) -> dict[str, object]:
    """Return what a class says of how its objects are made: these methods may call any of it."""
    made = is_dataclass(kind)
    named = {one.name for one in fields(kind)} if made else set[str]()
    starts = STARTS - {"__init__"} if made else STARTS
    return {
        name: one
        for base in reversed(kind.__mro__)
        if base.__module__.partition(".")[0] not in LIBRARIES
        for name, one in vars(base).items()
        if name in starts or not (name.startswith("__") or name in named or name in CONFIGURED)
    }


def _put(found: dict[str, object], name: str, one: object) -> None:
    number, key = 2, name
    while key in found:
        number, key = number + 1, f"{name} ({number})"
    found[key] = one
