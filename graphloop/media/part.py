"""MediaPart: a picture, a document, sound or video in a message, and where its bytes are.

Users, tools and models all use this one part. A wire encodes it, or refuses it before the request
is sent. The bytes are kept as bytes: a wire encodes them as base64, and a store keeps large ones
once, beside its journals.
"""

from __future__ import annotations

from hashlib import sha256
from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

__all__ = ["KINDS", "FileId", "Inline", "MediaPart", "MediaSource", "Url"]


class Inline(Struct, frozen=True, tag_field="type", tag="inline", gc=False):
    """The bytes themselves; a request carries them to the model's server."""

    data: bytes
    type: ClassVar[Literal["inline"]] = "inline"

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes, as `sha256:` and 64 hexadecimal digits."""
        return f"sha256:{sha256(self.data).hexdigest()}"

    def __repr__(self) -> str:
        """Return the size in place of the bytes, which may be millions."""
        return f"Inline(<{len(self.data)} bytes>)"


class Url(Struct, frozen=True, tag_field="type", tag="url", gc=False):
    """An address from which the model's server loads the bytes itself; graphloop never does."""

    url: str
    type: ClassVar[Literal["url"]] = "url"


class FileId(Struct, frozen=True, tag_field="type", tag="file_id", omit_defaults=True, gc=False):
    """The id of a file that the caller uploaded to the model's server before.

    `wire` names the only wire that the id is sent to, such as `"anthropic"`; empty for any wire.
    """

    id: str
    wire: str = ""
    type: ClassVar[Literal["file_id"]] = "file_id"


KINDS: Final = ("image", "audio", "video")
"""The kinds of media that have a word of their own; all other media are files."""

MediaSource: TypeAlias = Inline | Url | FileId


class MediaPart(Struct, frozen=True, tag_field="type", tag="media", omit_defaults=True, gc=False):
    """A picture, a document, sound or video for a model, or from a model.

    The functions `image`, `audio`, `video` and `file` make a part, and recognize its type.

    Attributes:
        media_type: the type, such as `"image/png"`; `"image/*"` for a picture at a URL whose exact
            type is unknown.
        source: the bytes, their URL, or the id of an uploaded file.
        name: the file's name for the model; may be empty.
        extra: JSON text of fields that one wire knows, such as `{"detail": "low"}`.
    """

    media_type: str
    source: MediaSource
    name: str = ""
    extra: str = ""
    type: ClassVar[Literal["media"]] = "media"

    @property
    def kind(self) -> str:
        """The kind in one word: `image`, `audio`, `video`, or `file` for all other types."""
        kind = self.media_type.partition("/")[0]
        return kind if kind in KINDS else "file"

    @property
    def is_text(self) -> bool:
        """Whether the bytes are text, which a model reads as such."""
        return self.media_type.startswith("text/") or self.media_type == "application/json"

    @property
    def identity(self) -> str:
        """A short text that differs for each source: a digest of the bytes, a URL, or a file id."""
        match self.source:
            case Inline():
                return self.source.digest
            case Url(url=url):
                return f"url:{url}"
            case FileId(id=file_id, wire=wire):
                return f"file_id:{wire}:{file_id}"

    @property
    def label(self) -> str:
        """The part in words, for errors and for models that read a transcript."""
        named = f" {self.name!r}" if self.name else ""
        return f"{self.kind}{named} of type {self.media_type!r}"
