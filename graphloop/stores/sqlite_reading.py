"""The queries of a SQLite store; each runs on a connection that cannot write."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final, TypeVar, final, get_args

from msgspec.json import Decoder

from ..errors import StoreError, UnknownRun
from ..events import Event
from .backlog import PlaceInLine, QueueLimits, in_turn
from .base import ReleaseStatus, RunRecord, RunStatus
from .beginnings import Beginnings
from .blobs import checked_blob
from .codec import Codec
from .journals import COMMANDS_FROM, COMMANDS_UPTO
from .rows import records_of, within_bounds
from .sqlite_leases import is_dead
from .sqlite_schema import entry_id, open_reader

__all__ = [
    "Reader",
    "commands_to",
    "one_record",
    "overview",
    "page_of",
    "read",
    "read_journal",
    "ready",
    "run_ids",
    "signals",
]

T = TypeVar("T")

RECORDS: Final = (
    "SELECT run_id, graph, status, next_seq - 1, created, updated, asks, target, refusals, "
    "deadline, revision, queue, ending, owner, lease_until FROM run WHERE next_seq > 1 "
)
WITHIN: Final = "AND (run_id IN (?, ?) OR (run_id >= ? AND run_id < ?)) "
# Only a root run may be new, and no child run that its parent drives has an agent.
# A run with an owner is interrupted if the owner is dead.
READY: Final = (
    "SELECT band, -priority, updated, run_id, queue, tenant, owner, lease_until FROM ("
    "SELECT *, iif(status = 'ready', 1 + (asks = x'5b5d' AND epoch = 0 AND "
    "instr(run_id, '/') = 0), 0) AS band "
    "FROM run WHERE status IN('ready', 'interrupted', 'blocked') "
    "AND (status <> 'blocked' OR ({fit})) AND owner IS NULL AND agent IN({graphs}) "
    "UNION ALL SELECT *, 1 FROM run WHERE wake_at <= ? AND status IN('parked', 'ready') "
    "AND owner IS NULL AND agent IN({graphs}) "
    "UNION ALL SELECT *, 0 FROM run WHERE owner IS NOT NULL AND agent IN({graphs})) "
    "WHERE next_seq > 1 AND (? IS NULL OR queue = ?) AND {mine}"
)
BUSY: Final = (
    "SELECT queue, tenant, owner, lease_until FROM run WHERE owner IS NOT NULL AND agent <> ''"
)
WEIGHTS: Final = Decoder(dict[str, float])
IN_ORDER: Final = "ORDER BY number"
STORED: Final = frozenset[str](("ready", *get_args(ReleaseStatus)))
"""The statuses that a row may have."""
PAGE_OF_ALL: Final = (
    "AND number > :after AND (:graph IS NULL OR graph = :graph) ORDER BY number LIMIT :limit"
)
# Each status has a branch, which an index reads in order; few runs have an owner.
PAGE: Final = (
    "AND number > :after AND (:graph IS NULL OR graph = :graph) AND number IN ({branches}"
    "SELECT number FROM run WHERE owner IS NOT NULL AND number > :after) ORDER BY number"
)
BRANCH: Final = (
    "SELECT number FROM (SELECT number FROM run WHERE status = '{status}' AND owner IS NULL "
    "AND next_seq > 1 AND number > :after AND (:graph IS NULL OR graph = :graph) "
    "ORDER BY number LIMIT :limit) UNION ALL "
)


@final
class Reader:
    """Reads single runs of a database in one thread, on a connection that stays open.

    More threads would be slower: each hand-over between threads waits for the interpreter's lock,
    and costs more than a read. A listing takes longer, so it has a thread and a connection of its
    own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "graphloop reads")
        # Reentrant, because the garbage collector may close a store in any thread.
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._is_closed = False

    async def do(self, work: Callable[[Connection], T], nothing: T) -> T:
        """Return the result of `read`, for work that reads little."""
        if self._is_closed:
            return await self.list(work, nothing)
        return await asyncio.wrap_future(self._thread.submit(self._read, work, nothing))

    async def list(self, work: Callable[[Connection], T], nothing: T) -> T:
        """Return the result of `read`, for work that may take long."""
        return await asyncio.to_thread(read, self._path, work, nothing)

    def close(self) -> None:
        """Close the connection; later reads open one each."""
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()
        self._thread.shutdown(wait=False)

    def _read(self, work: Callable[[Connection], T], nothing: T) -> T:
        with self._lock:
            connection, self._connection = self._connection or open_reader(self._path), None
            if connection is None:
                return nothing
            is_kept = False
            try:
                result = _read_by(connection, self._path, work)
                # A file without a log is opened as one that nobody changes.
                is_kept = not self._is_closed and Path(f"{self._path}-wal").exists()
            finally:
                if is_kept:
                    self._connection = connection
                else:
                    connection.close()
            return result


def read(path: Path, work: Callable[[Connection], T], nothing: T) -> T:
    """Run `work` in one read transaction; return `nothing` if the database does not exist yet.

    Raises:
        StoreError: the database cannot be read, or is damaged.
    """
    connection = open_reader(path)
    if connection is None:
        return nothing
    with closing(connection):
        return _read_by(connection, path, work)


def _read_by(connection: Connection, path: Path, work: Callable[[Connection], T]) -> T:
    try:
        connection.execute("BEGIN")
        result = work(connection)
        connection.execute("ROLLBACK")
    except (sqlite3.Error, ValueError) as error:
        raise StoreError(f"cannot read {path}: {error}") from error
    return result


def read_journal(
    connection: Connection, codec: Codec, beginnings: Beginnings, run_id: str
) -> tuple[Event, ...]:
    """Return the events of a run after checking each; an empty tuple if the run does not exist.

    Raises:
        StoreError: an event is missing or damaged.
    """
    row: tuple[int, int] | None = connection.execute(
        "SELECT number, next_seq - 1 FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    if row is None:
        return ()
    number, expected = row
    first = entry_id(number, 1)
    rows: list[tuple[int, str, bytes]] = connection.execute(
        "SELECT id, kind, data FROM entry WHERE id >= ? AND id < ? ORDER BY id",
        (first, entry_id(number + 1, 0)),
    ).fetchall()
    events: list[Event] = []
    codec = codec.of(run_id)
    blobs = cache(partial(_blob, connection))
    for at, (entry, kind, data) in enumerate(rows):
        seq = entry - first + 1
        if seq != at + 1:
            raise StoreError(f"run {run_id!r}: event {at + 1} is missing, {seq} is there")
        place = f"run {run_id!r}, event {seq}"
        try:
            told, event = codec.decode(data, blobs, beginnings)
        except StoreError as error:
            raise StoreError(f"{place}: {error}") from error
        if (told, type(event).__name__) != (seq, kind):
            raise StoreError(
                f"{place} ({kind}) is damaged: it says it is number {told}, {type(event).__name__}"
            )
        events.append(event)
    if len(events) != expected:
        raise StoreError(f"run {run_id!r} has {len(events)} event(s) of {expected}: some are lost")
    return tuple(events)


def _blob(connection: Connection, digest: str) -> bytes:
    row = connection.execute("SELECT data FROM blob WHERE digest = ?", (digest,)).fetchone()
    return checked_blob(digest, None if row is None else row[0], "the store's table `blob`")


def run_ids(connection: Connection) -> list[str]:
    """Return the ids of all runs with events, in the order of code points."""
    return sorted(
        run_id for (run_id,) in connection.execute("SELECT run_id FROM run WHERE next_seq > 1")
    )


def signals(connection: Connection, run_id: str) -> Mapping[str, str]:
    """Map the key of each answered question of a run to the accepted answer."""
    rows = connection.execute(
        "SELECT key, data FROM signal WHERE run_id = ? ORDER BY ts, key", (run_id,)
    )
    return dict(rows.fetchall())


def commands_to(
    connection: Connection, run_ids: Collection[str]
) -> Mapping[str, Mapping[str, str]]:
    """Map the id of each of these runs that has commands to them, by key."""
    named = ", ".join("?" * len(run_ids))
    found: dict[str, dict[str, str]] = {}
    for run_id, key, data in connection.execute(
        f"SELECT run_id, key, data FROM signal WHERE run_id IN ({named}) "  # noqa: S608 - marks only
        "AND key >= ? AND key < ? ORDER BY ts, key",
        (*run_ids, COMMANDS_FROM, COMMANDS_UPTO),
    ):
        found.setdefault(run_id, {})[key] = data
    return found


def overview(connection: Connection, now: float, root: str | None) -> Sequence[RunRecord]:
    """Return the records of all runs with events, in the order of their creation.

    With a `root`, the result has only that run and its descendants. Their ids are neighbours in an
    index, so the query does not read the other runs.
    """
    if root is None:
        rows = connection.execute(RECORDS + IN_ORDER).fetchall()
    else:
        rows = connection.execute(RECORDS + WITHIN + IN_ORDER, within_bounds(root)).fetchall()
    return records_of([_standing(row, now) for row in rows], root)


def one_record(connection: Connection, now: float, run_id: str) -> RunRecord | None:
    """Return the record of one run; None if the run does not exist."""
    # With its parent, whose id the record tells if the parent exists.
    rows = connection.execute(
        RECORDS + "AND run_id IN (?, ?)", (run_id, run_id.rpartition("/")[0])
    ).fetchall()
    found = records_of([_standing(row, now) for row in rows], run_id)
    return found[0] if found else None


def page_of(
    connection: Connection,
    now: float,
    statuses: Collection[RunStatus],
    graph: str | None,
    *,
    after: str,
    limit: int,
) -> Sequence[RunRecord]:
    """Return a page of a listing.

    Raises:
        UnknownRun: there is no run after which it could begin.
    """
    given = {"after": _number_of(connection, after), "graph": graph, "limit": limit}
    query = RECORDS + PAGE_OF_ALL
    if statuses:
        branches = [BRANCH.format(status=status) for status in statuses if status in STORED]
        query = RECORDS + PAGE.format(branches="".join(branches))
    # Whether the driver of a run is there, only this process can tell: "running" is not in a row.
    standing = (_standing(row, now) for row in connection.execute(query, given))
    told = (row for row in standing if row[2] in statuses or not statuses)
    return records_of([*islice(told, limit)], None, cut=True)


def _number_of(connection: Connection, run_id: str) -> int:
    if not run_id:
        return 0
    row = connection.execute(
        "SELECT number FROM run WHERE run_id = ? AND next_seq > 1", (run_id,)
    ).fetchone()
    if row is None:
        raise UnknownRun(f"no run {run_id!r} in this store: expected the last run of a page.")
    return int(row[0])


def _standing(row: tuple[Any, ...], now: float) -> tuple[Any, ...]:
    """Return a row of `RECORDS` as the record has it now: the driver may have gone."""
    run_id, graph, status, *times, asks, target, refusals, deadline = row[:-5]
    *told_of, owner, lease_until = row[-5:]
    remaining_s = None if deadline is None else deadline - now
    left = _is_left(owner, lease_until <= now)
    told = _status(status, owner, is_left=left)
    asked = b"[]" if left else asks
    return run_id, graph, told, *times, asked, target, refusals, remaining_s, *told_of


def ready(
    connection: Connection,
    now: float,
    graphs: Collection[str],
    revisions: Collection[str],
    queue: str | None,
    *,
    pinned: bool,
) -> list[str]:
    """Return ids of runs that wait for a driver, or have a question that has expired."""
    named = ", ".join("?" * len(graphs))
    fit = " AND ".join(["instr(refusals, CAST(? AS BLOB)) = 0"] * len(revisions)) or "false"
    mine = f"revision IN('', {', '.join('?' * len(revisions))})" if pinned else "true"
    rows: list[tuple[int, int, float, str, str, str, str | None, float]] = connection.execute(
        READY.format(graphs=named, fit=fit, mine=mine),
        (*revisions, *graphs, now, *graphs, *graphs, queue, queue, *(revisions if pinned else ())),
    ).fetchall()
    # A run may wait for two reasons: for an answer that came, and for a time that has come.
    line = [
        PlaceInLine(*row[:6]) for row in rows if row[6] is None or _is_left(row[6], row[7] <= now)
    ]
    busy = [
        (name, tenant)
        for name, tenant, owner, lease_until in connection.execute(BUSY)
        if not _is_left(owner, lease_until <= now)
    ]
    limits = "SELECT name, running, weights FROM queue"
    queues = {
        name: QueueLimits(running=running, weights=WEIGHTS.decode(weights))
        for name, running, weights in connection.execute(limits)
    }
    return in_turn(line, busy, queues)


def _is_left(owner: str | None, is_expired: bool) -> bool:  # noqa: FBT001 - of a lease
    """Whether the driver of a run has gone without a release."""
    return owner is not None and (is_expired or is_dead(owner))


def _status(left_as: RunStatus, owner: str | None, *, is_left: bool) -> RunStatus:
    if owner is None:
        return left_as
    return "interrupted" if is_left else "running"
