"""frozen_fields: a base class that keeps the fields of node dataclasses immutable and hashable."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, cast

from ..errors import ConfigError

__all__ = ["FrozenFields"]


class FrozenFields:
    """Base of frozen node dataclasses: turns list fields into tuples, refuses unhashable fields.

    Raises:
        ConfigError: a field's value can be changed in place, so it has no hash.
    """

    def __post_init__(self) -> None:
        """Turn lists into tuples, and refuse other unhashable values: tables use nodes as keys."""
        odd: tuple[Field[object], object] | None = None
        for one in fields(cast("Any", self)):  # Each subclass is a dataclass.
            # A user's subclass of a library node may set its own fields later, or never.
            value: object = getattr(self, one.name, None)
            if isinstance(value, list):
                value = tuple(cast("list[object]", value))
                object.__setattr__(self, one.name, value)
            is_hashed = one.compare if one.hash is None else one.hash
            if odd is None and is_hashed and not _has_hash(value):
                odd = (one, value)
        # A user's subclass may define its own `__hash__`, which ignores the field.
        if odd is not None and not _has_hash(self):
            one, value = odd
            raise ConfigError(
                f"`{one.name}` of {type(self).__name__}: expected the type {one.type}, found "
                f"{value!r:.80}, which can be changed later. Fix: give what cannot, such as a "
                "tuple"
            )


def _has_hash(value: object) -> bool:
    """Whether the value has a hash; false if its hash needs an attribute that is not set yet."""
    try:
        hash(value)
    except (TypeError, AttributeError):
        return False
    return True
