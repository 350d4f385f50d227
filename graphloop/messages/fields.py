"""Fields: reads the fields of a caller's mapping, and names the place of a wrong field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from ..errors import ConfigError, not_among

__all__ = ["as_fields", "inline_data", "refuse_other_fields", "text_field", "text_or_empty"]


def as_fields(given: object) -> Mapping[str, object]:
    """Return a value that matched a mapping pattern as a mapping; patterns narrow no type."""
    return cast("Mapping[str, object]", given)


def text_field(place: str, fields: Mapping[str, object], name: str) -> str:
    """Return the text in a field.

    Raises:
        ConfigError: the field is missing, or is not a string.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise ConfigError(f"{place}: `{name}` is a string; found {value!r:.80}")
    return value


def text_or_empty(place: str, fields: Mapping[str, object], name: str) -> str:
    """Return the text in a field; empty if the field is missing or empty."""
    return text_field(place, fields, name) if fields.get(name) else ""


def refuse_other_fields(place: str, given: object, known: Sequence[str]) -> None:
    """Raise an error for unknown fields with a value; SDK dumps contain many empty fields.

    Raises:
        ConfigError: a field is unknown; the message lists such fields and the nearest known names.
    """
    fields = as_fields(given)
    unknown = [str(name) for name, value in fields.items() if value and name not in known]
    if unknown:
        found = not_among(unknown, known)
        raise ConfigError(
            f"{place}: unknown field {found} Known are {', '.join(known)}; leave others out"
        )


def inline_data(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 data of a data URL; None for any other text."""
    kind, separator, data = url.removeprefix("data:").partition(";base64,")
    return (kind, data) if separator else None
