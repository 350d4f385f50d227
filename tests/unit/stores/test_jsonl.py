"""JsonlStore: what is left in the file when something goes wrong."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import IO, cast

import pytest

from graphloop.errors import RunBusy, StoreError, UnknownRun
from graphloop.events import Cancelled, Event, Setup, Started
from graphloop.stores.codec import Codec
from graphloop.stores.jsonl import JsonlStore

EVENTS = [Cancelled(float(number), "…") for number in range(1, 4)]


def filled(directory: Path, count: int = 3) -> JsonlStore:
    """Return a store with events of one run."""
    store = JsonlStore(directory)
    for seq, event in enumerate(EVENTS[:count], 1):
        asyncio.run(store.append("r", seq, event))
    return store


def loaded(directory: Path) -> list[Event]:
    """Return what another process reads; nothing where there is no run."""
    try:
        return list(asyncio.run(JsonlStore(directory).load("r")))
    except UnknownRun:
        return []


def test_a_file_torn_at_any_byte_loses_at_most_its_last_event(tmp_path: Path) -> None:
    """And the next append goes on after the last whole one."""
    filled(tmp_path)
    path = tmp_path / "r.jsonl"
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]

    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        assert EVENTS[:kept] == loaded(tmp_path)
        asyncio.run(JsonlStore(tmp_path).append("r", kept + 1, EVENTS[kept]))
        assert EVENTS[: kept + 1] == loaded(tmp_path)


def test_an_append_that_failed_half_way_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves half a line; the next event must not be glued to it."""
    store = filled(tmp_path, 2)
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[: len(data) // 2])

    with monkeypatch.context() as full:
        full.setattr(os, "write", half)
        with pytest.raises(StoreError, match="bytes could be written"):
            asyncio.run(store.append("r", 3, EVENTS[2]))
        with pytest.raises(StoreError, match="bytes could be written"):
            asyncio.run(store.append("r", 3, *[EVENTS[2]] * 4))
    assert EVENTS[:2] == loaded(tmp_path)
    asyncio.run(store.append("r", 3, EVENTS[2]))

    assert EVENTS == loaded(tmp_path)


def test_an_event_that_cannot_be_written_makes_no_file(tmp_path: Path) -> None:
    """The file is made when there is something to put into it."""
    with pytest.raises(StoreError, match="cannot be written as JSON"):
        asyncio.run(
            JsonlStore(tmp_path).append("r", 1, Started(1.0, "r", "g", (), Setup(), RLock()))
        )

    assert [] == list(tmp_path.iterdir())


def headless(text: bytes) -> bytes:
    """Cut off the beginning."""
    return text[10:]


def renumbered(text: bytes) -> bytes:
    """Give the second event another number, and the checksum of that."""
    lines = text.splitlines(keepends=True)
    return b"".join([lines[0], Codec().encode(7, EVENTS[1]) + b"\n", *lines[2:]])


def edited(text: bytes) -> bytes:
    """Change a digit of the second event."""
    return text.replace(b'"at":2.0', b'"at":3.0')


def hollow(text: bytes) -> bytes:
    """Begin with an empty line."""
    return b"\n" + text


def twice(text: bytes) -> bytes:
    """Repeat the second line."""
    lines = text.splitlines(keepends=True)
    return b"".join([*lines[:2], *lines[1:]])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (headless, "line 1"),
        (renumbered, "line 2: has event 7, expected 2"),
        (edited, "line 2: damaged: its checksum is wrong"),
        (twice, "line 3: has event 2, expected 3"),
        (hollow, "line 1"),
    ],
)
def test_damage_in_the_middle_is_never_passed_over(
    tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    """A journal with a hole leads to a run that never was."""
    filled(tmp_path)
    path = tmp_path / "r.jsonl"
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(StoreError, match=message):
        loaded(tmp_path)
    with pytest.raises(StoreError, match=message):
        asyncio.run(JsonlStore(tmp_path).append("r", 4, EVENTS[0]))


def test_a_taken_run_id_is_told_from_a_second_writer(tmp_path: Path) -> None:
    """They are mended differently."""
    filled(tmp_path)

    with pytest.raises(StoreError, match="this run id is taken"):
        asyncio.run(JsonlStore(tmp_path).append("r", 1, EVENTS[0]))
    with pytest.raises(StoreError, match="another driver is writing to it"):
        asyncio.run(JsonlStore(tmp_path).append("r", 3, EVENTS[0]))


@pytest.mark.parametrize("run_id", ["a" * 300, "r"])
def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path, run_id: str) -> None:
    """Whatever the file system's reason."""
    directory = tmp_path if len(run_id) > 1 else tmp_path / "file"
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")

    with pytest.raises(StoreError, match="cannot append"):
        asyncio.run(JsonlStore(directory).append(run_id, 1, EVENTS[0]))


def test_a_claim_that_cannot_be_noted_is_no_claim(tmp_path: Path) -> None:
    """Once the place is mended, the run can be driven; a second store object is another driver."""
    place = tmp_path / "file"
    place.write_text("not a directory", encoding="utf-8")
    store = JsonlStore(place)

    with pytest.raises(StoreError, match="cannot claim run 'r' by"):
        asyncio.run(store.claim("r"))
    place.unlink()
    other = JsonlStore(place)

    async def scenario() -> None:
        await other.claim("r")
        with pytest.raises(RunBusy, match=f"pid {os.getpid()}"):
            await store.claim("r")
        await other.release("r", "done", ())
        await store.claim("r")
        await store.release("r", "done", ())

    asyncio.run(scenario())


def test_a_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """Conversations are nobody else's business."""
    filled(tmp_path, 1)

    assert 0o600 == (tmp_path / "r.jsonl").stat().st_mode & 0o777


def test_every_append_can_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only then does a run survive a loss of power; it costs too much to be the default."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    filled(tmp_path)
    assert [] == synced
    asyncio.run(JsonlStore(tmp_path, fsync=True).append("s", 1, EVENTS[0]))

    assert 1 == len(synced)


def test_a_file_that_is_no_journal_keeps_no_run_from_being_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of that name is no run; a run that may not be read is one, and says so."""
    store = filled(tmp_path, 1)
    (tmp_path / "directory.jsonl").mkdir()
    (tmp_path / "secret.jsonl").write_bytes(b"{}\n")
    begin = Path.open

    def guarded(path: Path, mode: str) -> IO[bytes]:
        if path.name == "secret.jsonl":
            raise PermissionError(13, "Permission denied")
        return cast("IO[bytes]", begin(path, mode))

    monkeypatch.setattr(Path, "open", guarded)

    assert ["r", "secret"] == asyncio.run(store.runs())
    with pytest.raises(UnknownRun, match="no run 's' in"):
        asyncio.run(store.load("s"))
    with pytest.raises(UnknownRun):
        asyncio.run(store.load("directory"))


def test_a_journal_that_cannot_be_read_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that cannot be written."""

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    store = filled(tmp_path, 1)
    monkeypatch.setattr(Path, "read_bytes", refuse)

    with pytest.raises(StoreError, match=r"cannot read .*r\.jsonl: "):
        asyncio.run(store.load("r"))


@pytest.mark.parametrize("size", [0, 10, 100_000])
def test_a_run_is_listed_once_its_first_event_is_whole(tmp_path: Path, size: int) -> None:
    """However long the event is: it holds the whole conversation."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"x" * size)
    store = JsonlStore(tmp_path)

    assert [] == asyncio.run(store.runs())
    path.write_bytes(b"x" * size + b"\n")
    assert ["r"] == asyncio.run(store.runs())
    path.unlink()
    assert [] == asyncio.run(store.runs())
    path.write_bytes(b"x")
    assert [] == asyncio.run(store.runs())


def test_a_journal_is_looked_into_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are listed often, and there are thousands of them."""
    store, begin = filled(tmp_path, 1), Path.open
    looked: list[Path] = []

    def noted(path: Path, mode: str) -> IO[bytes]:
        looked.append(path)
        return cast("IO[bytes]", begin(path, mode))

    with monkeypatch.context() as watched:
        watched.setattr(Path, "open", noted)
        assert ["r"] == asyncio.run(store.runs()) == asyncio.run(store.runs())

    assert 1 == len(looked)
