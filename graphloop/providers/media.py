"""The media that a wire takes: a table, one row for each form in which the wire sends media.

A wire encodes a `MediaPart` by the row that fits its type, its source and its place. A part that
fits no row raises an error before the request is sent, with all that the wire takes there. A new
wire writes its rows; this module needs no change for it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final

from msgspec import Struct

from ..errors import ConfigError
from ..media import FileId, Inline, MediaPart, MediaSource, Url
from .wire_json import JsonObject, object_in

__all__ = ["MediaPlace", "MediaRow", "MediaTable", "base64_text", "data_url", "file_name"]

MediaPlace: TypeAlias = Literal["user", "tool", "assistant"]
"""Where a part is: in a user's message, in a tool's result, or in the model's own reply."""

_PLACES: Final = {
    "user": "a user's message",
    "tool": "a tool's result",
    "assistant": "a reply of the model",
}
_SOURCES: Final = {Inline: "inline", Url: "URL", FileId: "file id"}


@final
class MediaRow(Struct, frozen=True):
    """A form in which a wire sends media.

    Attributes:
        types: the media types of this form; `"text/*"` means every type that starts with `text/`.
        sources: the sources of this form, of `Inline`, `Url` and `FileId`.
        encode: returns the wire's JSON of a part, from the part and the fields in its `extra`.
        extra: the names of the fields that `extra` may have.
        places: the messages in which the wire takes this form.
    """

    types: tuple[str, ...]
    sources: tuple[type[MediaSource], ...]
    encode: Callable[[MediaPart, JsonObject], JsonObject]
    extra: tuple[str, ...] = ()
    places: tuple[MediaPlace, ...] = ("user", "tool")

    def has_type(self, part: MediaPart) -> bool:
        """Whether a part's type is one of this row.

        A part elsewhere may have the type `"image/*"`, which fits each image type.
        """
        kind, _, rest = part.media_type.partition("/")
        is_open = rest == "*" and not isinstance(part.source, Inline)
        return any(
            part.media_type == known
            or (kind == known.partition("/")[0] and (is_open or known.endswith("/*")))
            for known in self.types
        )

    def __str__(self) -> str:
        """Return the types and the sources in words."""
        sources = ", ".join(_SOURCES[source] for source in self.sources)
        return f"{', '.join(self.types)} ({sources})"


@final
class MediaTable(Struct, frozen=True):
    """All that one wire takes of media.

    Attributes:
        wire: the wire's name in errors and in `FileId.wire`.
        rows: the forms; the first row that fits a part encodes it.
    """

    wire: str
    rows: tuple[MediaRow, ...]

    def json_of(self, part: MediaPart, place: MediaPlace) -> JsonObject:
        """Return the wire's JSON of a part.

        Raises:
            ConfigError: the wire cannot take this part there, or a field of its `extra`.
        """
        source = part.source
        for row in self.rows:
            if place in row.places and isinstance(source, row.sources) and row.has_type(part):
                break
        else:
            raise self._refusal_of(part, place)
        if isinstance(source, FileId) and source.wire not in ("", self.wire):
            raise ConfigError(
                f"{part.label}: expected a file id of the wire {self.wire!r}, found "
                f"{source.id!r} of the wire {source.wire!r}. Fix: give the bytes themselves, which "
                "every wire with this type takes."
            )
        return row.encode(part, self._extra(part, row))

    def _extra(self, part: MediaPart, row: MediaRow) -> JsonObject:
        if not part.extra:
            return {}
        extra = object_in(part.extra, place=f"`extra` of {part.label}")
        unknown = sorted(extra.keys() - set(row.extra))
        if unknown:
            raise ConfigError(
                f"{part.label}: expected an `extra` that the wire {self.wire!r} takes "
                f"({', '.join(row.extra) or 'no field'}), found {unknown[0]!r}. Fix: leave the "
                "field out for this model."
            )
        return extra

    def _refusal_of(self, part: MediaPart, place: MediaPlace) -> ConfigError:
        rows = [row for row in self.rows if place in row.places]
        taken = "; ".join(map(str, rows)) or "no media"
        is_known = any(row.has_type(part) for row in rows)
        fix = (
            "give it in another way that is listed"
            if is_known
            else "convert it to a listed type, send its text, or use a model of another wire"
        )
        return ConfigError(
            f"{_PLACES[place]}: expected media that the wire {self.wire!r} takes there: {taken}; "
            f"found {part.label} ({_SOURCES[type(part.source)]}). Fix: {fix}."
        )


def base64_text(source: Inline) -> str:
    """Return the bytes of a source as base64 text."""
    return b64encode(source.data).decode("ascii")


def file_name(part: MediaPart) -> str:
    """Return the name of a part, or a name made of its type: OpenAI refuses data without one."""
    ending = part.media_type.partition("/")[2]
    return part.name or f"file.{'txt' if ending == 'plain' else ending}"


def data_url(media_type: str, source: Inline) -> str:
    """Return the bytes of a source as a data URL of their type."""
    return f"data:{media_type};base64,{base64_text(source)}"
