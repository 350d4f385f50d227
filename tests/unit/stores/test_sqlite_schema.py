"""How a database is opened: what is made, what is set, and what is refused untouched."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from graphloop.errors import StoreError
from graphloop.stores.sqlite.schema import (
    SCHEMA_VERSION,
    Durability,
    commits_need_lock,
    fix_of,
    open_direct,
    open_reader,
    open_writer,
)

WAYS: list[Callable[[Path], sqlite3.Connection | None]] = [
    lambda path: open_writer(path, "power"),
    open_reader,
]


@pytest.mark.parametrize(("durability", "synchronous"), [("power", 2), ("process", 1)])
def test_a_database_is_opened_as_the_specification_says(
    tmp_path: Path, durability: Durability, synchronous: int
) -> None:
    """Without FULL, a loss of power takes acknowledged events along."""
    expected: dict[str, object] = {
        "journal_mode": "wal",
        "synchronous": synchronous,
        "busy_timeout": 30_000,
        "foreign_keys": 1,
        "wal_autocheckpoint": 1000,
        "journal_size_limit": 64 * 1024 * 1024,
    }

    for _ in ("made", "opened again"):
        with closing(open_writer(tmp_path / "deep" / "runs.db", durability)) as connection:
            found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}
        assert expected == found


def test_a_database_makes_the_folders_above_it(tmp_path: Path) -> None:
    """A path that a program was given need not be prepared by its user."""
    path = tmp_path / "a" / "b" / "runs.db"

    open_writer(path, "process").close()

    assert path.exists()


def test_a_database_is_for_its_owner_only(tmp_path: Path) -> None:
    """Its log too: conversations are nobody else's business."""
    with closing(open_writer(tmp_path / "runs.db", "power")):
        modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}

    assert {0o600} == modes


def test_a_direct_connection_opens_while_others_close(tmp_path: Path) -> None:
    """SQLite locks the file for a moment then; only the commits may not wait for a lock."""
    path = tmp_path / "runs.db"

    def read() -> None:
        for _ in range(500):
            reader = open_reader(path)
            assert reader is not None
            reader.close()

    with closing(open_writer(path, "process")):
        threads = [Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            with closing(open_direct(path)) as connection:
                assert connection.execute("PRAGMA busy_timeout").fetchone() == (0,)


def test_a_reader_neither_writes_nor_checkpoints(tmp_path: Path) -> None:
    """Only writers do, and they under the lock."""
    path = tmp_path / "runs.db"
    open_writer(path, "power").close()
    reader = open_reader(path)
    assert reader is not None

    with closing(reader):
        assert (0,) == reader.execute("PRAGMA wal_autocheckpoint").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM run")


def test_a_reader_finds_nothing_in_a_file_that_is_not_made_yet(tmp_path: Path) -> None:
    """Neither an absent nor an empty one is an error: another process may be making it."""
    path = tmp_path / "runs.db"

    assert open_reader(path) is None
    path.touch()

    assert open_reader(path) is None


def test_what_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    """A misspelled path may name anything."""
    path = tmp_path / "runs.db"
    path.write_text("Dear diary, " * 100, encoding="utf-8")

    for opening in WAYS:
        with pytest.raises(StoreError, match="file is not a database"):
            opening(path)

    assert "Dear diary, " * 100 == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kept", "fix"), [(b"Dear diary, ", "give another file"), (None, "restore .* backup")]
)
def test_a_file_that_is_no_whole_database_has_a_fix(
    tmp_path: Path, kept: bytes | None, fix: str
) -> None:
    """Another program's file, or one whose end is lost."""
    path = tmp_path / "runs.db"
    open_writer(path, "power").close()
    path.write_bytes(path.read_bytes()[:5000] if kept is None else kept * 100)

    for opening in WAYS:
        with pytest.raises(StoreError, match=f"Fix: {fix}"):
            opening(path)


def test_missing_rights_have_a_fix(tmp_path: Path) -> None:
    """The file's, the folder's, or those of a file system that is mounted for reading."""
    with closing(open_writer(tmp_path / "runs.db", "power")) as link:
        link.execute("PRAGMA query_only=ON")
        with pytest.raises(sqlite3.OperationalError) as refused:
            link.execute("DELETE FROM run")
    assert "read and write" in fix_of(refused.value)
    assert "read and write" in fix_of(PermissionError(13, "Permission denied"))
    with pytest.raises(StoreError, match="read and write"):
        open_reader(tmp_path)


def test_a_database_of_something_else_is_refused_untouched(tmp_path: Path) -> None:
    """Somebody's bookmarks are not ours to add tables to."""
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmark(url)")
    before = path.read_bytes()

    for opening in WAYS:
        with pytest.raises(StoreError, match="not one of graphloop's journals"):
            opening(path)

    assert before == path.read_bytes()


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        (SCHEMA_VERSION - 1, "end its runs with the graphloop that wrote it"),
        (SCHEMA_VERSION + 1, "upgrade graphloop"),
    ],
)
def test_another_schema_is_refused_untouched(tmp_path: Path, version: int, fix: str) -> None:
    """It says what to do; nothing reads or changes the file."""
    path = tmp_path / "runs.db"
    with closing(open_writer(path, "power")) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    before = path.read_bytes()

    for opening in WAYS:
        said = f"version {version}, expected {SCHEMA_VERSION}. Fix: {fix}"
        with pytest.raises(StoreError, match=said):
            opening(path)

    assert before == path.read_bytes()


def test_a_place_that_cannot_be_opened_is_a_store_error(tmp_path: Path) -> None:
    """Whatever the system's reason; it names SQLite's version."""
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match=r"cannot open .*SQLite 3"):
        open_writer(tmp_path / "file" / "runs.db", "power")
    with pytest.raises(StoreError, match=r"cannot open .*SQLite 3"):
        open_reader(tmp_path)


@pytest.mark.parametrize(
    ("version", "needed"),
    [((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 54, 0), False)],
)
def test_only_sqlite_with_the_reset_bug_needs_a_lock_for_commits(
    version: tuple[int, ...], *, needed: bool
) -> None:
    """It costs the processes their concurrency, which SQLite mended in 3.51.3."""
    assert needed == commits_need_lock(version)
