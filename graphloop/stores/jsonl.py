"""A store in a directory: one file `<run id>.jsonl` for each run, one line for each event.

One `write` appends all lines of an append. A killed process leaves at most one incomplete last
line, which loading ignores and the next append removes. If the first line is incomplete, the run
does not exist. If an append of several events is killed, its first events may stay. With
`fsync=True`, events also survive a loss of power. While a driver has a run, the file
`<run id>.lock` keeps other processes from driving it. Windows has no such lock: there, the second
of two writers is refused when it appends. The directory `blobs` has one file for each large picture
or document, and for each part of a conversation that runs begin with. Do not use a network file
system.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import final
from urllib.parse import quote, unquote

from ..errors import StoreError
from ..events import Event
from .base import Ask, Refusal, ReleaseStatus
from .beginnings import Beginnings
from .blobs import BlobFiles
from .codec import Codec
from .file_lock import locked
from .journals import out_of_order
from .memory import Claims
from .run_ids import unknown_run
from .run_lock import lock_run

__all__ = ["LOCK", "SUFFIX", "JsonlStore"]

SUFFIX = ".jsonl"
LOCK = ".lock"
BLOBS = "blobs"


@final
class JsonlStore:
    """A store that keeps each run in its own JSON-lines file; also implements `Leases`, `Lookup`.

    Args:
        directory: the directory of the files; the first claim or event creates it.
        codec: encodes and decodes events; pass a codec with the state type of your graph.
        fsync: whether every append waits until the disk has the data.
    """

    def __init__(
        self, directory: str | Path, *, codec: Codec | None = None, fsync: bool = False
    ) -> None:
        self._directory = Path(directory)
        self._codec = codec or Codec()
        self._fsync = fsync
        self._blobs = BlobFiles(self._directory / BLOBS, fsync=fsync)
        self._beginnings = Beginnings()
        self._known: dict[str, tuple[int, int]] = {}
        self._with_events: set[str] = set()
        self._claims = Claims()
        self._locks: dict[str, Callable[[], object]] = {}

    def __repr__(self) -> str:
        return f"<JsonlStore {str(self._directory)!r}>"

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Append events to a run's file; the first new event gets the number `seq`."""
        path = self._path_of(run_id)
        blobs: dict[str, bytes] = {}
        encode, beginnings = self._codec.encode, self._beginnings
        lines = [
            encode(at, event, blobs, beginnings) + b"\n" for at, event in enumerate(events, seq)
        ]
        try:
            if run_id not in self._known:
                self._directory.mkdir(parents=True, exist_ok=True)
            for digest, data in blobs.items():
                self._blobs.write(digest, data)
            beginnings.saved(blobs)
            flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT if seq == 1 else 0)
            with locked(path, flags) as descriptor:
                self._known[run_id] = self._append(descriptor, run_id, seq, lines)
        except FileNotFoundError as error:
            raise out_of_order(str(path), 1, seq) from error
        except OSError as error:
            raise StoreError(f"cannot append to {path}: {error}") from error

    def _append(
        self, descriptor: int, run_id: str, seq: int, lines: Sequence[bytes]
    ) -> tuple[int, int]:
        path, text = self._path_of(run_id), b"".join(lines)
        expected, size = self._end_of(run_id, path)
        if seq != expected:
            raise out_of_order(str(path), expected, seq)
        written = os.write(descriptor, text)
        if written != len(text):
            os.ftruncate(descriptor, size)
            raise OSError(f"only {written} of {len(text)} bytes could be written")
        if self._fsync:
            os.fsync(descriptor)
        return seq + len(lines), size + len(text)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run, in order."""
        events = tuple(self._read(self._path_of(run_id)))
        if not events:
            raise unknown_run(run_id, self._directory)
        return events

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs that have an event, in alphabetical order."""
        # Events are never removed, so a file that has an event need not be opened again.
        names = [name for name in self._file_names() if name.endswith(SUFFIX)]
        self._with_events = {
            name
            for name in names
            if name in self._with_events or _has_events(self._directory / name)
        }
        return sorted(unquote(name[: -len(SUFFIX)]) for name in self._with_events)

    async def existing(self, run_ids: Collection[str]) -> Collection[str]:
        """Return those of these runs that have an event."""
        return [run_id for run_id in run_ids if _has_events(self._path_of(run_id))]

    async def claim(self, run_id: str) -> None:
        """Claim a run against all other drivers on this machine; the run need not exist yet."""
        self._claims.take(run_id)
        path = self._beside(run_id, LOCK)
        try:
            if (left := self._locks.pop(run_id, None)) is not None:
                left()  # The earlier driver in this process died with its event loop.
            self._directory.mkdir(parents=True, exist_ok=True)
            self._locks[run_id] = lock_run(path, run_id)
        except (OSError, StoreError) as error:
            self._claims.give_back(run_id)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot claim run {run_id!r} by {path}: {error}") from error

    async def release(  # noqa: PLR0913
        self,
        run_id: str,
        status: ReleaseStatus | None,  # noqa: ARG002 - a journal has no place for a status.
        asks: Sequence[Ask],  # noqa: ARG002
        *,
        seen: int = 0,  # noqa: ARG002
        wake_s: float | None = None,  # noqa: ARG002
        refusal: Refusal | None = None,  # noqa: ARG002
        ending: str = "",  # noqa: ARG002
    ) -> None:
        """End the claim on a run; the status and the questions are not stored."""
        if (lock := self._locks.pop(run_id, None)) is not None:
            lock()
        self._claims.give_back(run_id)

    def _file_names(self) -> Sequence[str]:
        try:
            with os.scandir(self._directory) as entries:  # Twenty times as fast as `glob`.
                return [entry.name for entry in entries]
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def _path_of(self, run_id: str) -> Path:
        return self._beside(run_id, SUFFIX)

    def _beside(self, run_id: str, suffix: str) -> Path:
        return self._directory / f"{quote(run_id, safe='')}{suffix}"

    def _end_of(self, run_id: str, path: Path) -> tuple[int, int]:
        """Return the number of the next event, and the size of the file in bytes before it.

        If the size is not the size after this store's last append, the file is read again: another
        store wrote to it, or a write was incomplete.
        """
        known = self._known.get(run_id)
        if known is not None and path.is_file() and path.stat().st_size == known[1]:
            return known
        return self._repair(path)

    def _repair(self, path: Path) -> tuple[int, int]:
        """Remove an incomplete last line; return the next event's number and the file's size."""
        count = sum(1 for _ in self._read(path))
        raw = _read_bytes(path)
        whole = raw.rfind(b"\n") + 1
        if whole < len(raw):
            os.truncate(path, whole)
        return count + 1, whole

    def _read(self, path: Path) -> Iterator[Event]:
        lines = _read_bytes(path).split(b"\n")[:-1]
        codec = self._codec.of(unquote(path.name))
        decode = partial(
            codec.decode, read_blob=cache(self._blobs.read), beginnings=self._beginnings
        )
        return _events(lines, path, decode)


def _events(
    lines: Iterable[bytes], path: str | Path, decode: Callable[[bytes], tuple[int, Event]]
) -> Iterator[Event]:
    """Decode the lines of a journal, and yield their events.

    Raises:
        StoreError: a line is damaged, is not an event, has the wrong sequence number, or refers to
            blobs that are missing.
    """
    for number, line in enumerate(lines, 1):
        try:
            seq, event = decode(line)
        except StoreError as error:
            raise StoreError(f"{path}, line {number}: {error}") from error
        if seq != number:
            raise StoreError(f"{path}, line {number}: has event {seq}, expected {number}")
        yield event


def _read_bytes(path: Path) -> bytes:
    """Return the content of a journal's file; empty if the file does not exist."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error}") from error


def _has_events(path: Path) -> bool:
    """Whether a journal's file has a complete first event.

    The file may lack it if the process died during the first append. Only the first line is read,
    because there may be thousands of files. A file that cannot be read counts as having an event,
    so that `load` reports the error.
    """
    try:
        with path.open("rb") as journal:
            return journal.readline().endswith(b"\n")
    except FileNotFoundError:
        return False
    except OSError:
        return not path.is_dir()
