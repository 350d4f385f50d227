"""What is read from a database: events are believed only if their checksum is right."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from graphloop.errors import StoreError, UnknownRun
from graphloop.events import Cancelled
from graphloop.stores.sqlite.ready import BLOCKED, DUE, LINE, NEXT_LINE, OWNED
from graphloop.stores.sqlite.store import SqliteStore


def damaged(path: Path, statement: str) -> SqliteStore:
    """Return a store of three events, after something happened to its file."""

    async def fill() -> None:
        store = SqliteStore(path)
        for seq in (1, 2, 3):
            await store.append("r", seq, Cancelled(float(seq), "reason"))
        await store.aclose()

    asyncio.run(fill())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    return SqliteStore(path)


def has_log(path: Path) -> bool:
    """Whether the database has a log, which goes with its last connection."""
    return Path(f"{path}-wal").exists()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE entry SET data = x'7b7d' WHERE id % 4 = 2", "event 2: expected a journal line"),
        (
            "UPDATE entry SET data = CAST(replace(data, '\"at\":3', '\"at\":4') AS BLOB)",
            "event 3: damaged: its checksum is wrong",
        ),
        ("UPDATE entry SET kind = 'Decided' WHERE id % 4 = 2", "event 2: expected Decided"),
        ("UPDATE entry SET id = id + 2 WHERE id % 4 = 3", "event 3 is missing, 5 is there"),
        ("DELETE FROM entry WHERE id % 4 = 1", "event 1 is missing, 2 is there"),
        ("DELETE FROM entry WHERE id % 4 = 3", r"has 2 event\(s\) of 3"),
        ("DELETE FROM entry", r"has 0 event\(s\) of 3"),
    ],
)
def test_damage_names_the_run_and_the_event(tmp_path: Path, statement: str, message: str) -> None:
    """A journal with a hole leads to a run that never was."""
    store = damaged(tmp_path / "runs.db", statement)

    with pytest.raises(StoreError, match=f"run 'r'.*{message}"):
        asyncio.run(store.load("r"))


def test_a_flipped_byte_in_the_file_is_found(tmp_path: Path) -> None:
    """Disks rot; SQLite itself has no checksums."""
    path = tmp_path / "runs.db"
    damaged(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    at = whole.rindex(b"reason")
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])

    with pytest.raises(StoreError, match=r"run 'r', event [123]: damaged"):
        asyncio.run(SqliteStore(path).load("r"))


def test_what_sqlite_cannot_read_is_a_store_error(tmp_path: Path) -> None:
    """Whoever reads a store knows one kind of error."""
    path = tmp_path / "runs.db"
    store = damaged(path, "DROP TABLE signal")

    with pytest.raises(StoreError, match=r"cannot read .*no such table"):
        asyncio.run(store.posted("r"))
    with pytest.raises(StoreError, match=r"cannot read .*surrogates"):
        asyncio.run(store.load("\ud800"))


async def test_reads_share_a_connection_that_ends_with_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening the file costs more than a read. The last connection that closes deletes the log."""
    path, opened = tmp_path / "runs.db", list[str]()
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def counted(name: str, **options: Any) -> sqlite3.Connection:
        opened.append(name)
        return connect(name, **options)

    monkeypatch.setattr(sqlite3, "connect", counted)
    store = SqliteStore(path)
    await store.append("r", 1, Cancelled(1.0, "reason"))
    await store.load("r")
    before = len(opened)
    await asyncio.gather(*[store.record("r") for _ in range(20)], store.posted("r"))
    shared = len(opened) - before
    with pytest.raises(UnknownRun):
        await store.record("q")
    await store.aclose()
    assert not has_log(path)
    assert "r" == (await store.record("r")).run_id
    assert not has_log(path)
    assert 0 == shared


def test_a_store_that_is_forgotten_closes_its_connections(tmp_path: Path) -> None:
    """A program may make a store for each request, and drop it."""
    path = tmp_path / "runs.db"

    async def read_beside_a_writer() -> None:
        writer, reader = SqliteStore(path), SqliteStore(path)
        await writer.append("r", 1, Cancelled(1.0, "reason"))
        await reader.load("r")
        await writer.aclose()
        assert has_log(path), "the reader's connection is open"

    asyncio.run(read_beside_a_writer())
    gc.collect()

    assert not has_log(path)


def test_a_database_in_a_directory_that_may_not_be_written_is_read() -> None:
    """As of a colleague, or of a backup: reading makes files beside the log, where there is one."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        asyncio.run(damaged(folder / "runs.db", "PRAGMA wal_checkpoint(TRUNCATE)").aclose())
        for name in ("runs.db", "runs.db-lock"):
            (folder / name).chmod(0o444)
        folder.chmod(0o555)
        user = os.geteuid()
        os.seteuid(65534 if user == 0 else user)  # A superuser may write anywhere.
        try:
            store = SqliteStore(folder / "runs.db")
            assert ["r"] == asyncio.run(store.runs())
            assert 3 == len(asyncio.run(store.load("r")))
            assert "ready" == asyncio.run(store.overview())[0].status
        finally:
            os.seteuid(user)
            folder.chmod(0o755)


@pytest.mark.parametrize(
    ("query", "given", "index"),
    [
        (NEXT_LINE, ("", "", ""), "run_line"),
        (LINE.format(mine="true"), ("default", "one", "", 9), "run_line"),
        (OWNED, (), "run_owner"),
        (DUE.format(agents="?", mine="true"), (1.0, "one"), "run_wake"),
        (BLOCKED.format(agents="?", mine="true", fit="true"), ("one",), "run_blocked"),
    ],
)
def test_a_look_asks_indexes_only(
    query: str, given: tuple[object, ...], index: str, tmp_path: Path
) -> None:
    """With a hundred thousand runs, each of its queries reads what it returns, and sorts none."""
    damaged(tmp_path / "runs.db", "ANALYZE")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        plan = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", given)]

    assert len(plan) == 1
    assert f"run USING INDEX {index}" in plan[0].replace("COVERING ", "")
