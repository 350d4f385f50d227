"""A run as a file of JSON lines, as a `JsonlStore` writes it, to move or replay it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from ..codec import Codec
from ..errors import StoreError
from ..events import Event, Started
from .base import Store
from .journals import keep, read_lines, renamed

__all__ = ["export", "import_"]


async def export(store: Store, run_id: str, path: str | Path) -> None:
    """Write the journal of a run to a new file.

    Raises:
        StoreError: there is no such run, or the file exists or cannot be written.
    """
    codec = Codec()
    events = await store.load(run_id)
    lines = b"".join(codec.encode(seq, event) + b"\n" for seq, event in enumerate(events, 1))
    await asyncio.to_thread(_write, Path(path), lines)


async def import_(
    store: Store, path: str | Path, *, run_id: str = "", codec: Codec | None = None
) -> str:
    """Read the journal of a run from a file, and return the run's id.

    Args:
        store: the store that keeps it.
        path: a file that `export` or a `JsonlStore` wrote.
        run_id: its id in the store, if not its own.
        codec: give one with the graph's state type for a store that keeps values as they are.

    Raises:
        StoreError: the file is no whole journal, or the run id is taken.
    """
    text = await asyncio.to_thread(_read, Path(path))
    events = tuple(_events(text, path, codec or Codec()))
    first = events[0] if events else None
    if not isinstance(first, Started):
        raise StoreError(f"{path}: a journal begins with Started, found {first!r:.80}")
    kept_as = run_id or first.run_id
    await keep(store, {kept_as: renamed(events, kept_as)})
    return kept_as


def _write(path: Path, lines: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(lines)
    except OSError as error:
        raise StoreError(f"cannot export to {path}: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot import {path}: {error}") from error


def _events(text: bytes, path: str | Path, codec: Codec) -> Iterator[Event]:
    *lines, rest = text.split(b"\n")
    if rest:
        raise StoreError(f"{path} ends in half a line: {rest[:80]!r}; export it again")
    return read_lines(lines, path, codec)
