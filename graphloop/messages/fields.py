"""Fields: reads the fields of a caller's mapping, and names the place of a wrong field."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import cast

from ..errors import ConfigError, not_among
from ..media import MediaPart, Url, received

__all__ = [
    "as_fields",
    "media_at",
    "media_in",
    "refuse_other_fields",
    "text_field",
    "text_or_empty",
]


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
        raise ConfigError(f"{place}: expected `{name}` to be a string, found {value!r:.80}")
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


def media_at(place: str, url: str, media_type: str, name: str = "") -> MediaPart:
    """Return the media at a URL; a data URL holds the bytes and their type itself.

    Raises:
        ConfigError: a data URL is damaged, or lacks its media type.
    """
    if not url.startswith("data:"):
        return MediaPart(media_type, Url(url), name)
    kind, separator, data = url.removeprefix("data:").partition(";base64,")
    if not separator:
        raise ConfigError(f"{place}: expected 'data:<type>;base64,…', found {url[:80]!r}")
    return media_in(place, data, kind or media_type, name)


def media_in(place: str, data: str, media_type: str, name: str = "") -> MediaPart:
    """Return the media in base64 text.

    Raises:
        ConfigError: the text is damaged, or its media type is missing.
    """
    if not media_type or media_type.endswith("/*"):
        raise ConfigError(
            f"{place}: expected the media type of data given as base64, found "
            f"{media_type or 'none'!r}. Fix: add it, such as 'image/png'."
        )
    try:
        return received(b64decode(data, validate=True), media_type, name)
    except ValueError as error:
        raise ConfigError(f"{place}: expected base64, found {data[:80]!r}: {error}") from error
