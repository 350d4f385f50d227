"""Opens the SQLite database of a store: creates its tables, sets pragmas, and checks the file.

Only this module opens connections, so another SQLite library (such as `apsw`) could be used here.

A database of graphloop has a fixed `application_id`; its `user_version` is the schema version. Both
are written in one transaction with the tables, so a file is either empty or complete.

SQLite up to 3.51.2 can damage a file when one connection checkpoints while another commits (the
WAL-reset bug, fixed in 3.51.3, https://sqlite.org/wal.html). Most Python builds have such a
version. With it, every process holds a file lock during each commit and its checkpoint.
"""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

from msgspec.json import encode

from ...errors import StoreError
from ..rows import other_schema

__all__ = [
    "SCHEMA_VERSION",
    "SEQ_BITS",
    "Clock",
    "Durability",
    "SqliteLink",
    "commits_need_lock",
    "entry_id",
    "fix_of",
    "is_dead",
    "open_direct",
    "open_reader",
    "open_writer",
]

Clock: TypeAlias = Callable[[], float]
Durability: TypeAlias = Literal["power", "process"]

APPLICATION_ID: Final = 0x67726C70
SCHEMA_VERSION: Final = 9
BUSY_TIMEOUT_S: Final = 30.0
RESET_BUG_FIXED: Final = (3, 51, 3)
JOURNAL_BYTES_MAX: Final = 64 * 1024 * 1024

SEQ_BITS: Final = 32
"""The number of low bits of an `entry` id for the event's number; the high bits are the run's."""

# `status` is set by the last driver, or by the next claim if that driver died. "running" is never
# stored: it follows from the owner and the lease. So does "interrupted" until the next claim.
# `agent` is the name of the agent whose workers take the run: that of the root's graph. It is empty
# for a child run that its parent drives.
# `wake_at` is the time at which a driver is to take a waiting run: a question of it expires then, a
# model may be asked again, or it is the run's `deadline`.
# `band` is the first order of runs that wait; a run whose time has come is in band 1 as well. Only
# a root run may be new, in band 2.
# `refusals` tells why a blocked run is blocked, as JSON, and by the code of which revisions.
# `revision` is that of the code that began the run; it is empty until the journal tells it.
# `worker` tells an operator which agents' runs live workers take, with the revisions of pins.
# `ending` tells why the run ended; it is empty if it just completed.
# `posts` counts the signals of the run: answers, commands and news.
# `known` and `record` are what `stores/database` reads. `drivers` counts owners of runs.
# `entry` needs no index, because its ids put the events of a run side by side (`entry_id`).
# `blob` has media and first messages, to which the lines of events refer by digest.
# `entry` keeps its rowid: WITHOUT ROWID would use one more page for each row of over 1/4 page.
TABLES: Final = (
    """CREATE TABLE run(
         number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, graph TEXT NOT NULL DEFAULT '',
         agent TEXT NOT NULL DEFAULT '',
         status TEXT NOT NULL DEFAULT 'ready'
           CHECK(status IN('ready', 'interrupted', 'parked', 'blocked', 'done', 'failed',
             'cancelled')),
         owner TEXT, epoch INTEGER NOT NULL DEFAULT 0, lease_until REAL NOT NULL DEFAULT 0,
         next_seq INTEGER NOT NULL DEFAULT 1, begun INTEGER AS (next_seq > 1) VIRTUAL,
         posts INTEGER NOT NULL DEFAULT 0, asks TEXT NOT NULL DEFAULT '[]',
         refusals TEXT NOT NULL DEFAULT '[]', wake_at REAL, target TEXT NOT NULL DEFAULT '',
         tenant TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0, deadline REAL,
         queue TEXT NOT NULL DEFAULT 'default', revision TEXT NOT NULL DEFAULT '',
         band INTEGER AS (iif(status IN('interrupted', 'blocked'), 0,
           1 + (asks = '[]' AND epoch = 0 AND instr(run_id, '/') = 0))) VIRTUAL,
         ending TEXT NOT NULL DEFAULT '',
         created REAL NOT NULL, updated REAL NOT NULL) STRICT""",
    "CREATE INDEX run_owner ON run(owner) WHERE owner IS NOT NULL",
    # The line of each tenant in its order: a look reads the heads of the lines only.
    "CREATE INDEX run_line ON run(queue, agent, tenant, band, priority DESC, updated, run_id) "
    "WHERE status IN('ready', 'interrupted') AND owner IS NULL AND agent <> ''",
    "CREATE INDEX run_blocked ON run(agent) WHERE status = 'blocked'",
    "CREATE INDEX run_wake ON run(wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX run_status ON run(status, number)",
    """CREATE TABLE entry(
         id INTEGER PRIMARY KEY, kind TEXT NOT NULL, data BLOB NOT NULL,
         ts REAL NOT NULL) STRICT""",
    "CREATE TABLE blob(digest TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT",
    """CREATE TABLE signal(
         run INTEGER NOT NULL REFERENCES run(number), key TEXT NOT NULL, signal_id TEXT NOT NULL,
         data TEXT NOT NULL, ts REAL NOT NULL,
         PRIMARY KEY(run, key)) STRICT, WITHOUT ROWID""",
    """CREATE TRIGGER signal_wakes AFTER INSERT ON signal BEGIN
         UPDATE run SET posts = posts + 1 WHERE number = NEW.run;
         UPDATE run SET status = 'ready', updated = NEW.ts
           WHERE number = NEW.run AND owner IS NULL AND status = 'parked';
       END""",
    """CREATE TABLE queue(
         name TEXT PRIMARY KEY, running INTEGER, weights TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    "CREATE TABLE worker(name TEXT PRIMARY KEY, serves TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE meter(name TEXT PRIMARY KEY, at REAL NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE VIEW live AS SELECT name FROM worker WHERE NOT is_dead(name)",
    """CREATE VIEW known AS SELECT *, CASE WHEN owner IS NULL THEN status
         WHEN lease_until > now_s() AND NOT is_dead(owner) THEN 'running'
         ELSE 'interrupted' END AS told FROM run WHERE begun""",
    """CREATE VIEW record AS SELECT number, run_id, graph, told, next_seq - 1 AS events, created,
         updated AS changed, iif(owner IS NULL OR told = 'running', asks, '[]') AS open_asks,
         target, refusals, deadline - now_s() AS remaining_s, revision, queue, ending
         FROM known""",
    """CREATE VIEW drivers AS SELECT count(DISTINCT owner) FILTER (WHERE told = 'running') AS live,
         count(DISTINCT owner) FILTER (WHERE told = 'interrupted') AS lapsed
         FROM known WHERE owner IS NOT NULL""",
)

RIGHTS: Final = "check that this user may read and write the file and its folder"
FIXES: Final = {
    "SQLITE_NOTADB": "give another file",
    "SQLITE_CORRUPT": "restore the file from a backup",
    **dict.fromkeys(("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_READONLY"), RIGHTS),
}
LIST: Final = re.compile(r"= ANY\((:\w+)\)")


@final
class SqliteLink(sqlite3.Connection):
    """A connection to the database, with the functions that shared statements and views call."""

    is_again = False

    def ask(self, statement: str, **given: object) -> sqlite3.Cursor:
        """Execute a shared statement with these values."""
        for name, value in given.items():
            if type(value) is list:
                given[name] = encode(value).decode()
        return self.execute(_worded(statement), given)

    def name_of(self, name: str) -> str:
        """Return the name as it is: this database holds each text."""
        return name


@cache
def _worded(statement: str) -> str:
    return LIST.sub(r"IN (SELECT value FROM json_each(\1))", statement).replace(" FOR UPDATE", "")


def is_dead(owner: str) -> bool:
    """Whether the owner is a process of this machine that no longer exists.

    Such an owner's lease ends at once. A live process in another PID namespace also looks dead;
    its next append then raises `Fenced`, as for every lost claim.
    """
    host, _, rest = owner.partition(", pid ")
    pid = rest.partition(",")[0]
    if os.name != "posix" or host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def entry_id(number: int, seq: int) -> int:
    """Return the `entry` id of event `seq` of the run whose row in `run` has this number."""
    return (number << SEQ_BITS) + seq


def commits_need_lock(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether commits need a file lock, because this SQLite version has the WAL-reset bug."""
    return version < RESET_BUG_FIXED


def open_writer(path: Path, durability: Durability, clock: Clock = time.time) -> SqliteLink:
    """Open a store's database for writing; create the file and the tables if they are missing.

    The caller must hold the store's file lock, because SQLite's change to WAL mode does not wait
    for other processes.

    Raises:
        StoreError: the file cannot be created or opened, or this version of graphloop cannot write
            it.
    """
    try:
        _make_private(path)
        connection = _connect(path, clock)
        try:
            _set_up(connection, path, durability)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise _cannot_open(path, error) from error
    return connection


def open_direct(path: Path, clock: Clock = time.time) -> SqliteLink:
    """Open a database that has its tables, for commits that wait for nothing.

    The connection makes no checkpoint, and does not wait for locks.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    connection = _connect(path, clock)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("PRAGMA mmap_size=0")
    # The last pragma, because those before read the file, which another connection may just close.
    connection.execute("PRAGMA busy_timeout=0")
    return connection


def open_reader(path: Path, clock: Clock = time.time) -> SqliteLink | None:
    """Open a store's database for reading; return None if it does not exist yet.

    Raises:
        StoreError: the file cannot be opened, or this version of graphloop cannot read it.
    """
    if not path.exists():
        return None
    try:
        try:
            return _reader(path, clock)
        except sqlite3.Error as error:
            named: object = getattr(error, "sqlite_errorname", "")
            if named != "SQLITE_READONLY_DIRECTORY" or Path(f"{path}-wal").exists():
                raise
            # SQLite cannot create its WAL files in a read-only folder. Without a WAL file, the
            # database file has all events and can be opened as immutable.
            return _reader(path, clock, "mode=ro&immutable=1")
    except sqlite3.Error as error:
        raise _cannot_open(path, error) from error


def _reader(path: Path, clock: Clock, mode: str = "mode=rw") -> SqliteLink | None:
    connection = _connect(path, clock, mode)
    made = False
    try:
        # A checkpoint by a reader could trigger SQLite's WAL-reset bug.
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA query_only=ON")
        made = _is_made(connection, path)
    finally:
        if not made:
            connection.close()
    return connection if made else None


def _make_private(path: Path) -> None:
    """Create the file with mode 0600 if it is missing; SQLite's other files get the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # O_EXCL, because closing an existing file would drop SQLite's locks of this process on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _connect(path: Path, clock: Clock, mode: str = "mode=rw") -> SqliteLink:
    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        check_same_thread=False,  # Another thread may close a connection than the one that uses it.
        isolation_level=None,
        cached_statements=64,
        factory=SqliteLink,
    )
    connection.create_function("now_s", 0, clock)
    connection.create_function("is_dead", 1, is_dead)
    connection.create_function("strpos", 2, _strpos)
    return connection


def _strpos(text: str, part: str) -> int:
    return text.find(part) + 1


def _set_up(connection: SqliteLink, path: Path, durability: Durability) -> None:
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


def _is_made(connection: SqliteLink, path: Path) -> bool:
    """Whether the database has its tables; raise if it has another program's or schema's tables.

    Raises:
        StoreError: the database is not graphloop's, or has another schema (`OtherSchema`).
    """
    # Both reads see one snapshot: another process may be creating the tables.
    connection.execute("BEGIN")
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
        raise other_schema(str(path), version, SCHEMA_VERSION, "give another file")
    return True


def _cannot_open(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"cannot open {path} as a journal database (SQLite {sqlite3.sqlite_version}): {error}"
        f"{fix_of(error)}"
    )


def fix_of(error: Exception) -> str:
    """Return the end of the message of an error of SQLite or the disk; empty if none is known."""
    named = str(getattr(error, "sqlite_errorname", ""))
    kind = "SQLITE_PERM" if isinstance(error, PermissionError) else "_".join(named.split("_")[:2])
    return f". Fix: {FIXES[kind]}." if kind in FIXES else ""
