"""Values of single fields: read from, and written into, a user's state of any kind."""

from __future__ import annotations

import copy
import typing
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from dataclasses import replace as dataclass_replace
from functools import lru_cache
from typing import Annotated, Any, cast, get_args, get_origin

import pydantic
from msgspec import Struct, structs

from ..errors import ConfigError, nearest
from .state import fields_of

__all__ = ["adapter_of", "annotation_of", "bare_type", "field_value", "with_value", "word_for"]


@lru_cache(maxsize=256)
def adapter_of(kind: object) -> pydantic.TypeAdapter[object]:
    """Return what reads a value of a type from JSON; the same one for the same type."""
    return pydantic.TypeAdapter(cast("type[object]", kind))


def field_value(state: object, field: str) -> object:
    """Return what a field of the state holds.

    Raises:
        ConfigError: the state has no such field.
    """
    if isinstance(state, Mapping):
        # isinstance leaves the types of keys and values open.
        values = cast("Mapping[str, object]", state)
        if field in values:
            return values[field]
        known_fields: Iterable[str] = values
    elif hasattr(state, field):
        return cast("object", getattr(state, field))
    else:
        known_fields = fields_of(type(state)) or ()
    raise ConfigError(
        f"expected a field of the state ({', '.join(sorted(known_fields)) or 'it has none'}), "
        f"found {field!r}.{nearest(field, known_fields)} Fix: name one of its fields"
    )


def with_value(state: object, field: str, value: object) -> object:
    """Return a copy of the state with another value in a field.

    Raises:
        ConfigError: the state has no such field.
    """
    field_value(state, field)
    if isinstance(state, Mapping):
        return {**cast("Mapping[str, object]", state), field: value}
    if isinstance(state, pydantic.BaseModel):
        return state.model_copy(update={field: value})
    if isinstance(state, Struct):
        return structs.replace(state, **{field: value})
    if is_dataclass(state) and not isinstance(state, type):
        return dataclass_replace(state, **{field: value})
    if isinstance(state, tuple):
        changed: object = cast("Any", state)._replace(**{field: value})  # A named tuple.
        return changed
    changed = copy.copy(state)
    setattr(changed, field, value)
    return changed


def annotation_of(kind: object, field: str) -> object:
    """Return the annotation of a field with its metadata; `Any` where the type has none.

    Raises:
        ConfigError: an annotation names a type that cannot be found.
    """
    if not isinstance(kind, type):
        return Any
    try:
        return _type_hints(kind).get(field, Any)
    except (NameError, TypeError) as error:
        raise ConfigError(
            f"the annotations of {kind.__name__} cannot be resolved: {error}. Fix: define or "
            "import the types at module level, outside `if TYPE_CHECKING`"
        ) from error


@lru_cache(maxsize=64)
def _type_hints(kind: type[object]) -> Mapping[str, object]:
    return typing.get_type_hints(kind, include_extras=True)


def bare_type(annotation: object) -> object:
    """Return the type in an annotation, without its metadata."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def word_for(kind: object) -> str:
    """Return a type as a message names it."""
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
