"""A run as a file: out of one store and into another, or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop.errors import StoreError
from graphloop.events import Cancelled, Event, Setup, Started
from graphloop.stores.codec import Codec
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.stores.transfer import export, import_


def journal(run_id: str) -> list[Event]:
    return [Started(1.0, run_id, "g", (), Setup(), state=(1, 2)), Cancelled(2.0, "…")]


def exported(directory: Path) -> Path:
    """Return the file of a run with two events."""
    store, path = MemoryStore(), directory / "r.jsonl"
    asyncio.run(store.append_all({"r": journal("r")}))
    asyncio.run(export(store, "r", path))
    return path


def test_a_run_moves_from_store_to_store(tmp_path: Path) -> None:
    """Under its own name or another one; nothing of it is lost."""
    store = SqliteStore(tmp_path / "runs.db", codec=Codec(tuple))
    path = exported(tmp_path)

    assert "r" == asyncio.run(import_(store, path))
    assert "s" == asyncio.run(import_(store, str(path), run_id="s"))

    assert journal("r") == list(asyncio.run(store.load("r")))
    assert journal("s") == list(asyncio.run(store.load("s")))


def test_a_store_that_keeps_values_takes_the_codec_of_the_state(tmp_path: Path) -> None:
    """It has none of its own."""
    store = MemoryStore()

    asyncio.run(import_(store, exported(tmp_path), codec=Codec(tuple)))

    assert journal("r") == list(asyncio.run(store.load("r")))


def test_an_export_is_what_a_jsonl_store_writes(tmp_path: Path) -> None:
    """One form for journals: its files can be imported, and the other way round."""
    path = exported(tmp_path)

    assert journal("r") == list(asyncio.run(JsonlStore(tmp_path, codec=Codec(tuple)).load("r")))
    assert 2 == len(path.read_bytes().splitlines())


def test_an_export_overwrites_nothing(tmp_path: Path) -> None:
    """The file may be the only copy of another run."""
    path = exported(tmp_path)
    store = JsonlStore(tmp_path)

    with pytest.raises(StoreError, match="cannot export to"):
        asyncio.run(export(store, "r", path))
    with pytest.raises(StoreError, match="no run 's'"):
        asyncio.run(export(store, "s", tmp_path / "other"))


WHOLE = Codec().encode(1, Cancelled(0.0)) + b"\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "a journal begins with Started, found None"),
        (WHOLE, "a journal begins with Started, found Cancelled"),
        (WHOLE + b'{"v":1', "ends in half a line"),
        (b"Dear diary\n", "line 1: not a journal line"),
        (WHOLE + WHOLE, "line 2: has event 1, expected 2"),
    ],
)
def test_what_is_no_whole_journal_is_not_imported(
    tmp_path: Path, text: bytes, message: str
) -> None:
    """Half a run would resume to another one."""
    path, store = tmp_path / "r.jsonl", MemoryStore()
    path.write_bytes(text)

    with pytest.raises(StoreError, match=message):
        asyncio.run(import_(store, path))

    assert [] == asyncio.run(store.runs())


def test_a_taken_id_and_an_absent_file_are_told(tmp_path: Path) -> None:
    """The journal that is there stays."""
    path, store = exported(tmp_path), MemoryStore()
    asyncio.run(import_(store, path))

    with pytest.raises(StoreError, match="this run id is taken"):
        asyncio.run(import_(store, path))
    with pytest.raises(StoreError, match="cannot import"):
        asyncio.run(import_(store, tmp_path / "absent"))
