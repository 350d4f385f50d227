"""Make media parts of files, bytes and URLs; the first bytes decide the media type.

`image`, `audio`, `video` and `file` differ only in the types that they take. A file's name makes a
type more exact (CSV rather than plain text) only where the bytes agree; it never decides alone.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from ..errors import ConfigError
from .part import KINDS, FileId, Inline, MediaPart, MediaSource, Url

__all__ = ["MediaInput", "audio", "file", "image", "received", "video"]

MediaInput: TypeAlias = str | Path | bytes | MediaSource
"""A URL, the path of a file to read, the bytes themselves, or a ready source."""

HEAD_BYTES: Final = 1024
"""The number of first bytes that decide the type."""

MARKS: Final = tuple(
    (re.compile(pattern, re.DOTALL).match, media_type)
    for pattern, media_type in (
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF.{4}WEBP", "image/webp"),
        (rb"RIFF.{4}WAVE", "audio/wav"),
        (rb"RIFF.{4}AVI ", "video/x-msvideo"),
        (rb"BM.{4}\0{4}", "image/bmp"),
        (rb"II\*\0|MM\0\*", "image/tiff"),
        (rb".{4}ftyp(heic|heix|hevc|mif1)", "image/heic"),
        (rb".{4}ftypavif", "image/avif"),
        (rb".{4}ftypM4[AB] ", "audio/mp4"),
        (rb".{4}ftypqt  ", "video/quicktime"),
        (rb".{4}ftyp", "video/mp4"),
        (rb"\x1aE\xdf\xa3.{0,60}webm", "video/webm"),
        (rb"\x1aE\xdf\xa3", "video/x-matroska"),
        (rb"OggS.{0,60}theora", "video/ogg"),
        (rb"OggS", "audio/ogg"),
        (rb"fLaC", "audio/flac"),
        (rb"FORM.{4}AIF[FC]", "audio/aiff"),
        (rb"ID3|\xff[\xfb\xfa\xf3\xf2]", "audio/mpeg"),
        (rb"\xff[\xf1\xf9]", "audio/aac"),
        (rb"(\xef\xbb\xbf)?\s*%PDF-", "application/pdf"),
        (rb"PK\x03\x04", "application/zip"),
    )
)
"""The beginnings of files, and the media type of each; the first that fits decides."""

_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
BY_NAME: Final[Mapping[str, Mapping[str, str]]] = {
    "text/plain": {
        ".csv": "text/csv",
        ".htm": "text/html",
        ".html": "text/html",
        ".json": "application/json",
        ".md": "text/markdown",
        ".svg": "image/svg+xml",
        ".xml": "text/xml",
    },
    "application/zip": {
        ".docx": f"{_OFFICE}.wordprocessingml.document",
        ".pptx": f"{_OFFICE}.presentationml.presentation",
        ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    },
}
"""For a type that the bytes tell: the more exact type that a name's ending adds."""

UNKNOWN_TYPE: Final = "application/octet-stream"
CERTAIN: Final = (
    *("image/png", "image/jpeg", "image/gif", "image/webp"),
    *("audio/wav", "application/pdf"),
)
"""Types whose first bytes belong to no other type."""

SAME_BYTES: Final = ("mp4", "ogg", "webm")
"""Containers of sound or video, whose first bytes do not tell which of the two they hold."""

SPELLINGS: Final = {
    "audio/mp3": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
}
"""Other spellings of media types, and the spelling that wires take."""

is_media_type: Final = re.compile(r"[a-z]+/(\*|[\w.+-]+)").fullmatch


def image(
    source: MediaInput,
    media_type: str | None = None,
    *,
    name: str = "",
    extra: Mapping[str, object] | None = None,
) -> MediaPart:
    """Return a picture as a part of a message.

        agent.generate(["What is on it?", image(Path("receipt.jpg"))])
        image("https://example.org/chart.png", extra={"detail": "low"})

    Args:
        source: a URL, the `Path` of a file, the bytes, or a `FileId` of an uploaded file.
        media_type: the type, such as `"image/png"`; the first bytes decide if it is missing.
        name: the name for the model; a path gives its own.
        extra: fields that only one wire knows, such as `{"detail": "low"}` of chat completions.

    Raises:
        ConfigError: the file cannot be read, the bytes are no picture, or the text is no URL.
    """
    return _make_part("image", source, media_type, name, extra)


def audio(
    source: MediaInput,
    media_type: str | None = None,
    *,
    name: str = "",
    extra: Mapping[str, object] | None = None,
) -> MediaPart:
    """Return sound as a part of a message; the arguments and errors are those of `image`.

    agent.generate(["Write down what is said.", audio(Path("call.wav"))])
    """
    return _make_part("audio", source, media_type, name, extra)


def video(
    source: MediaInput,
    media_type: str | None = None,
    *,
    name: str = "",
    extra: Mapping[str, object] | None = None,
) -> MediaPart:
    """Return video as a part of a message; the arguments and errors are those of `image`.

    agent.generate(["When does the door open?", video(Path("gate.mp4"))])
    """
    return _make_part("video", source, media_type, name, extra)


def file(
    source: MediaInput,
    media_type: str | None = None,
    *,
    name: str = "",
    extra: Mapping[str, object] | None = None,
) -> MediaPart:
    """Return a document, or media of any other type, as a part of a message.

        agent.generate(["What is the total?", file(Path("invoice.pdf"))])
        file(FileId("file_011C"), "application/pdf")

    The arguments are those of `image`. A URL and a `FileId` need a `media_type`.

    Raises:
        ConfigError: the file cannot be read, its type is unknown, or the text is no URL.
    """
    return _make_part("", source, media_type, name, extra)


def received(data: bytes, media_type: str, name: str = "") -> MediaPart:
    """Return media that another program sent, such as the server of a tool.

    Its word for the type counts only if the bytes do not tell another one for certain.
    """
    told = _type_of_bytes(data)
    said = _usual_spelling(media_type, "")
    if told in CERTAIN or said == UNKNOWN_TYPE or not is_media_type(said):
        said = BY_NAME.get(told, {}).get(Path(name).suffix.lower(), told) or UNKNOWN_TYPE
    return MediaPart(said, Inline(data), name)


def _make_part(
    kind: str,
    given: MediaInput,
    media_type: str | None,
    name: str,
    extra: Mapping[str, object] | None,
) -> MediaPart:
    if isinstance(given, Path):
        name, given = name or given.name, _read(given)
    source, named = _source_of(given)
    media_type = _usual_spelling(media_type or named or _type_of(source, name, kind), kind)
    _check_media(source, media_type, kind)
    return MediaPart(media_type, source, name, json.dumps(dict(extra)) if extra else "")


def _usual_spelling(media_type: str, kind: str) -> str:
    """Return a media type in the spelling that wires take, and a container as the caller's kind."""
    media_type = media_type.partition(";")[0].strip().lower()  # Wires take no parameters.
    media_type = SPELLINGS.get(media_type, media_type)
    own, _, rest = media_type.partition("/")
    is_container = own in ("audio", "video") and rest in SAME_BYTES
    return f"{kind}/{rest}" if is_container and kind in ("audio", "video") else media_type


def _check_media(source: MediaSource, media_type: str, kind: str) -> None:
    """Raise an error for media of another kind, and for bytes that are not of their type."""
    if not is_media_type(media_type):
        raise ConfigError(
            f"`media_type`: expected a type such as 'application/pdf', found {media_type!r}. Fix: "
            "write it so."
        )
    own = media_type.partition("/")[0]
    if kind and own != kind:
        fix = own if own in KINDS else "file"
        raise ConfigError(
            f"`source`: expected media of type {kind}/…, found {media_type!r}. Fix: use {fix}(…)."
        )
    if not isinstance(source, Inline):
        return
    if not source.data:
        raise ConfigError("`source`: expected some bytes, found none. Fix: give the whole file.")
    told = _type_of_bytes(source.data)
    if told in CERTAIN and told != media_type:
        # Servers compare the two, and answer with an error.
        raise ConfigError(
            f"`media_type`: expected {told!r}, which the first bytes tell, found {media_type!r}. "
            "Fix: leave it out."
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"`source`: expected a file that can be read, found {str(path)!r}: {error.strerror}. "
            "Fix: check the path."
        ) from error


def _source_of(given: object) -> tuple[MediaSource, str]:
    """Return the source, and the media type that a data URL names; empty for all others."""
    match given:
        case Inline() | Url() | FileId():
            return given, ""
        case bytes():
            return Inline(given), ""
        case str() if given.startswith("data:"):
            head, separator, data = given.removeprefix("data:").partition(";base64,")
            try:
                return Inline(b64decode(data if separator else "?", validate=True)), head
            except ValueError as error:
                raise ConfigError(
                    f"`source`: expected 'data:<type>;base64,…', found {given[:80]!r}."
                ) from error
        case str() if "://" in given:
            return Url(given), ""
        case str():
            raise ConfigError(
                f"`source`: expected a URL, found {given[:80]!r}. Fix: for a file, give "
                f"Path({given[:80]!r})."
            )
        case _:
            raise ConfigError(
                "`source`: expected a URL, a Path, bytes or a FileId, found "
                f"{type(given).__name__}."
            )


def _type_of(source: MediaSource, name: str, kind: str) -> str:
    if not isinstance(source, Inline):
        if kind:
            return f"{kind}/*"
        raise ConfigError(
            f"`media_type`: expected the type of what {source!r} names, found None. Fix: add it, "
            "such as file(source, 'application/pdf')."
        )
    found = _type_of_bytes(source.data)
    if not found:
        raise ConfigError(
            f"`source`: expected bytes of a known type, found {source.data[:16]!r}… "
            f"({name or 'without a name'}). Fix: name the type with `media_type`."
        )
    return BY_NAME.get(found, {}).get(Path(name).suffix.lower(), found)


def _type_of_bytes(data: bytes) -> str:
    """Return the media type that the bytes tell; empty if they tell none."""
    head = data[:HEAD_BYTES]
    marked = next((media_type for match, media_type in MARKS if match(head)), "")
    if marked:
        return marked
    try:
        return "" if "\0" in data.decode("utf-8") else "text/plain"
    except UnicodeDecodeError:
        # A PDF may have other bytes before its mark, and a text may speak of the mark.
        return "application/pdf" if b"%PDF-" in head else ""
