"""Connections to a journal's database: its tables, its pragmas, and the check that it is ours.

Only this module makes connections. It is the seam for another SQLite than the interpreter's own
(the `apsw` wheel brings a newer one).

A database is ours by its `application_id`; `user_version` counts the schema. Both are written in
one transaction with the tables, so a file is either empty or complete.

SQLite up to 3.51.2 can damage a file when one connection checkpoints while another commits (the
WAL-reset bug, fixed in 3.51.3, https://sqlite.org/wal.html). Most Python builds link an older one.
So there every commit, with the checkpoint it may bring, happens under a lock, in all processes.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ..errors import StoreError

__all__ = [
    "SCHEMA_VERSION",
    "SEQ_BITS",
    "Durability",
    "commits_need_lock",
    "entry_id",
    "open_reader",
    "open_writer",
]

Durability: TypeAlias = Literal["power", "process"]

APPLICATION_ID: Final = 0x67726C70
SCHEMA_VERSION: Final = 2
BUSY_TIMEOUT_S: Final = 30.0
RESET_BUG_FIXED: Final = (3, 51, 3)
JOURNAL_BYTES_MAX: Final = 64 * 1024 * 1024

SEQ_BITS: Final = 32
"""How many bits of an entry's id are its number in its run; the others are the run's."""

# The last driver sets `status`, or the next claim if that driver died. "running" follows from
# owner and lease, and so does "interrupted" until the next claim.
# `entry` has one B-tree and no index: the events of a run are neighbours by their ids (`entry_id`).
# WITHOUT ROWID keeps at most a quarter of a page in a row, and a page more for what is longer.
TABLES: Final = (
    """CREATE TABLE run(
         number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, graph TEXT NOT NULL DEFAULT '',
         status TEXT NOT NULL DEFAULT 'ready'
           CHECK(status IN('ready', 'interrupted', 'parked', 'done', 'failed', 'cancelled')),
         owner TEXT, epoch INTEGER NOT NULL DEFAULT 0, lease_until REAL NOT NULL DEFAULT 0,
         next_seq INTEGER NOT NULL DEFAULT 1, asks BLOB NOT NULL DEFAULT x'5b5d',
         target TEXT NOT NULL DEFAULT '', created REAL NOT NULL, updated REAL NOT NULL) STRICT""",
    "CREATE INDEX run_owner ON run(owner) WHERE owner IS NOT NULL",
    """CREATE TABLE entry(
         id INTEGER PRIMARY KEY, kind TEXT NOT NULL, data BLOB NOT NULL,
         ts REAL NOT NULL) STRICT""",
    """CREATE TABLE signal(
         run_id TEXT NOT NULL REFERENCES run(run_id), key TEXT NOT NULL, signal_id TEXT NOT NULL,
         data TEXT NOT NULL, ts REAL NOT NULL,
         PRIMARY KEY(run_id, key)) STRICT, WITHOUT ROWID""",
)


def entry_id(number: int, seq: int) -> int:
    """Return the id of an event: number `seq` of the run whose row has this number."""
    return (number << SEQ_BITS) + seq


def commits_need_lock(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether this SQLite has the WAL-reset bug."""
    return version < RESET_BUG_FIXED


def open_writer(path: Path, durability: Durability) -> sqlite3.Connection:
    """Open a database for writing, and make it if there is none.

    The caller keeps other processes out meanwhile: SQLite's change to WAL mode does not wait.

    Raises:
        StoreError: it cannot be made or opened, or is not a journal this graphloop can write.
    """
    try:
        _make_private(path)
        connection = _connect(path)
        try:
            _set_up(connection, path, durability)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise _cannot_open(path, error) from error
    return connection


def open_reader(path: Path) -> sqlite3.Connection | None:
    """Open a database for reading, or return None where there is none yet.

    Raises:
        StoreError: it cannot be opened, or is not a journal this graphloop can read.
    """
    if not path.exists():
        return None
    try:
        try:
            return _reader(path)
        except sqlite3.Error as error:
            named: object = getattr(error, "sqlite_errorname", "")
            if named != "SQLITE_READONLY_DIRECTORY" or Path(f"{path}-wal").exists():
                raise
            # A reader needs files beside the log; without a log, the file has all events.
            return _reader(path, "mode=ro&immutable=1")
    except sqlite3.Error as error:
        raise _cannot_open(path, error) from error


def _reader(path: Path, mode: str = "mode=rw") -> sqlite3.Connection | None:
    connection = _connect(path, mode)
    made = False
    try:
        # A second connection that checkpoints is half of SQLite's WAL-reset bug.
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA query_only=ON")
        made = _is_made(connection, path)
    finally:
        if not made:
            connection.close()
    return connection if made else None


def _make_private(path: Path) -> None:
    """Make the file, with mode 0600, if it is missing; SQLite gives its other files that mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Only a new file: to open one beside SQLite and close it drops this process's locks on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _connect(path: Path, mode: str = "mode=rw") -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        cached_statements=64,
    )


def _set_up(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    made = _is_made(connection, path)
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path} cannot have a write-ahead log (journal mode {mode!r})")
    synchronous = {"power": "FULL", "process": "NORMAL"}[durability]
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA wal_autocheckpoint=1000")
    connection.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES_MAX}")
    connection.execute("PRAGMA mmap_size=0")
    if made:
        return
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _is_made(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the tables are there; refuse a foreign database and another schema."""
    connection.execute("BEGIN")  # One snapshot: another process may be making them just now.
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    connection.execute("ROLLBACK")
    if application == version == tables == 0:
        return False
    if application != APPLICATION_ID:
        raise StoreError(
            f"{path} is a database, but not one of graphloop's journals. Fix: give another file."
        )
    if version != SCHEMA_VERSION:
        fix = (
            "upgrade graphloop"
            if version > SCHEMA_VERSION
            else "end its runs with the graphloop that wrote it, and give another file here"
        )
        raise StoreError(
            f"{path} has schema version {version}, expected {SCHEMA_VERSION}. Fix: {fix}."
        )
    return True


def _cannot_open(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"cannot open {path} as a journal database (SQLite {sqlite3.sqlite_version}): {error}"
    )
