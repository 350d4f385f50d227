"""frozen_fields: what a node is given stays as it is, so that the node can stand in a table."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, cast

from ..errors import ConfigError

__all__ = ["FrozenFields"]


class FrozenFields:
    """The base of frozen dataclasses whose parameters people write: a list is taken as a tuple.

    Raises:
        ConfigError: a parameter can be changed in place, so that it has no hash.
    """

    def __post_init__(self) -> None:
        """Take lists as tuples, and refuse what else has no hash: a table's rows go by it."""
        odd: tuple[Field[object], object] | None = None
        for one in fields(cast("Any", self)):  # Whatever derives from it is a dataclass.
            # A class that derives from the library's may set its own fields later, or never.
            value: object = getattr(self, one.name, None)
            if isinstance(value, list):
                value = tuple(cast("list[object]", value))
                object.__setattr__(self, one.name, value)
            is_hashed = one.compare if one.hash is None else one.hash
            if odd is None and is_hashed and not _has_hash(value):
                odd = (one, value)
        # A class of one's own may have its hash from elsewhere, and leave the field out.
        if odd is not None and not _has_hash(self):
            one, value = odd
            raise ConfigError(
                f"`{one.name}` of {type(self).__name__} is of the type {one.type}; found "
                f"{value!r:.80}, which can be changed later. Fix: give what cannot, such as a "
                "tuple"
            )


def _has_hash(value: object) -> bool:
    """Whether there is a hash; what is not set yet may be a part of it."""
    try:
        hash(value)
    except (TypeError, AttributeError):
        return False
    return True
