"""Blobs: bytes that a store keeps once, beside its journals: large media, parts of beginnings.

A line of a journal holds a reference, `sha256:` and 64 digits, in place of more than 16 KiB of
media, and lists its references in the field `blobs`. The same bytes have the same reference. So a
picture that ten runs of a chat show takes its room once, and a fork copies no bytes. The parts of
the conversation that a run begins with are blobs, too (`beginnings.py`).

A store makes a blob durable before, or together with, the event that names it. A killed process can
thus leave a blob without an event, which does no harm, but no event without its blob.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias, final
from uuid import uuid4

from ..errors import StoreError
from ..media import Inline

__all__ = [
    "INLINE_BYTES_MAX",
    "BlobFiles",
    "ReadBlob",
    "attached",
    "checked_blob",
    "detached",
    "unnamed",
]

ReadBlob: TypeAlias = Callable[[str], bytes]
"""Returns the bytes of a reference, or raises `StoreError`."""

INLINE_BYTES_MAX: Final = 16 * 1024
"""The most bytes of media that a line of a journal holds itself."""

MARK: Final = b'"type":"inline","data":"'
"""The JSON before the bytes of an `Inline`; inside a JSON text, its quotes would be escaped."""

REFERENCE: Final = MARK + b"sha256:"


def detached(line: bytes, blobs: MutableMapping[str, bytes]) -> bytes:
    """Return JSON with references in place of large media, and add their bytes to `blobs`."""
    if REFERENCE in line:
        return line  # A user's state looks like a reference, and must come back as it is.
    pieces: list[bytes] = []
    done = 0
    for start, end in _media_spans(line):
        text = line[start:end]
        try:
            data = b64decode(text, validate=True)
        except Error:
            continue  # A user's state may have these fields, too, with any text in them.
        if len(data) <= INLINE_BYTES_MAX or b64encode(data) != text:
            continue
        digest = Inline(data).digest
        blobs[digest] = data
        pieces += line[done:start], digest.encode()
        done = end
    return b"".join([*pieces, line[done:]]) if pieces else line


def attached(line: bytes, references: Collection[str], read: ReadBlob) -> bytes:
    """Return JSON with the bytes of media, as base64, in place of these references.

    Raises:
        StoreError: the bytes are missing or damaged.
    """
    pieces: list[bytes] = []
    done = 0
    for start, end in _media_spans(line):
        if (digest := line[start:end].decode(errors="replace")) in references:
            pieces += line[done:start], b64encode(read(digest))
            done = end
    return b"".join([*pieces, line[done:]])


def _media_spans(line: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of the text in each `Inline`."""
    at = line.find(MARK)
    while at >= 0:
        start = at + len(MARK)
        end = line.find(b'"', start)
        yield start, end
        at = line.find(MARK, end)


def checked_blob(digest: str, data: bytes | None, place: str) -> bytes:
    """Return the bytes of a reference if they are the bytes that were written.

    Raises:
        StoreError: there are none, or other ones.
    """
    if data is None:
        raise StoreError(
            f"{place}: expected the blob {digest}, which an event names, found none. Fix: restore "
            "it from a backup, together with the journals."
        )
    if Inline(data).digest != digest:
        raise StoreError(f"{place}: expected the blob {digest}, found damaged bytes")
    return data


def unnamed(
    kept: Iterable[str], named: Iterable[str], parts: Mapping[str, Iterable[str]]
) -> set[str]:
    """Return the blobs that no event needs.

    Args:
        kept: all blobs of a store.
        named: the references in its events.
        parts: the references in each part of a conversation.
    """
    needed, found = set[str](), [*named]
    while found:
        if (digest := found.pop()) not in needed:
            needed.add(digest)
            found += parts.get(digest, ())
    return set(kept) - needed


@final
class BlobFiles:
    """A directory with one file for each blob, whose name is the reference's digits.

    Args:
        directory: the directory; the first blob creates it.
        fsync: whether the disk has a blob before `write` returns.
    """

    def __init__(self, directory: Path, *, fsync: bool) -> None:
        self._directory = directory
        self._fsync = fsync

    def write(self, digest: str, data: bytes) -> None:
        """Write a blob unless it is there; a process that dies meanwhile leaves no half of it.

        Raises:
            OSError: the disk refuses the file.
        """
        path = self._path_of(digest)
        if not (path.is_file() and path.stat().st_size == len(data)):
            self._write(path, data)
        if self._fsync:
            # Also for a blob of a process that may have died before the disk had it.
            with path.open("r+b") as blob:
                os.fsync(blob.fileno())
            _fsync_names(self._directory)
            _fsync_names(self._directory.parent)

    def read(self, digest: str) -> bytes:
        """Return the bytes of a blob.

        Raises:
            StoreError: the file is missing, damaged, or cannot be read.
        """
        path = self._path_of(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error}") from error
        return checked_blob(digest, data, str(path))

    def _write(self, path: Path, data: bytes) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        half = self._directory / f"{uuid4().hex}.half"
        try:
            with open(half, "xb", opener=_open_private) as file:
                file.write(data)
            half.replace(path)
        except BaseException:
            with suppress(OSError):
                half.unlink()
            raise

    def _path_of(self, digest: str) -> Path:
        return self._directory / digest.removeprefix("sha256:")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # For the own user only: media are a user's data.


def _fsync_names(directory: Path) -> None:
    """Make the names of new files durable; Windows has no such call, and needs none."""
    with suppress(PermissionError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
