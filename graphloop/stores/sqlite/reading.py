"""The queries of a SQLite store; each runs on a connection that cannot write."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final, TypeVar, final, get_args

from msgspec.json import Decoder

from ...errors import StoreError, UnknownRun
from ...events import Event
from ..backlog import PlaceInLine, QueueLimits, in_turn, places_wanted
from ..base import ReleaseStatus, RunRecord, RunStatus
from ..beginnings import Beginnings
from ..blobs import checked_blob
from ..codec import Codec
from ..mailbox import COMMANDS_FROM, COMMANDS_UPTO
from ..rows import checked_events, records_of, within_bounds
from .leases import is_dead
from .schema import entry_id, open_reader

__all__ = [
    "Reader",
    "commands_to",
    "existing",
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
# No child run that its parent drives has an agent. A run waits in the line of its queue, agent and
# tenant, which an index has in its order. The indexes are named: the planner knows no sizes.
WAITS: Final = "status IN('ready', 'interrupted') AND owner IS NULL AND agent <> ''"
NEXT_LINE: Final = (
    f"SELECT queue, agent, tenant FROM run INDEXED BY run_line WHERE {WAITS} "  # noqa: S608 - constants only
    "AND (queue, agent, tenant) > (?, ?, ?) ORDER BY queue, agent, tenant LIMIT 1"
)
PLACES: Final = "band, -priority, updated, run_id, queue, tenant"
LINE: Final = (
    f"SELECT {PLACES} FROM run INDEXED BY run_line WHERE {WAITS} "  # noqa: S608 - constants only
    "AND queue = ? AND agent = ? AND tenant = ? AND {mine} "
    "ORDER BY band, priority DESC, updated, run_id LIMIT ?"
)
# Few runs have an owner; one whose owner is dead waits.
OWNED: Final = (
    f"SELECT {PLACES}, agent, revision, owner, lease_until "  # noqa: S608 - constants only
    "FROM run INDEXED BY run_owner "
    "WHERE owner IS NOT NULL AND agent <> ''"
)
DUE: Final = (
    f"SELECT {PLACES} FROM run INDEXED BY run_wake WHERE wake_at <= ? "  # noqa: S608
    "AND status IN('parked', 'ready') AND owner IS NULL AND agent IN({agents}) AND {mine}"
)
BLOCKED: Final = (
    f"SELECT {PLACES} FROM run INDEXED BY run_blocked WHERE status = 'blocked' "  # noqa: S608
    "AND owner IS NULL AND agent IN({agents}) AND {mine} AND {fit}"
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
                # SQLite opens a file without a log as one that no process changes.
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
    found: list[tuple[int, str, bytes]] = connection.execute(
        "SELECT id, kind, data FROM entry WHERE id >= ? AND id < ? ORDER BY id",
        (first, entry_id(number + 1, 0)),
    ).fetchall()
    rows = ((entry - first + 1, kind, data) for entry, kind, data in found)
    blobs = cache(partial(_blob, connection))
    events = checked_events(codec, beginnings, run_id, rows, blobs)
    if len(events) != expected:
        raise StoreError(f"run {run_id!r} has {len(events)} event(s) of {expected}: some are lost")
    return events


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


def existing(connection: Connection, run_ids: Collection[str]) -> Collection[str]:
    """Return those of these runs that have an event."""
    wanted = ", ".join("?" * len(run_ids))
    asked = f"SELECT run_id FROM run WHERE next_seq > 1 AND run_id IN ({wanted})"  # noqa: S608
    return {run_id for (run_id,) in connection.execute(asked, (*run_ids,))}


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


def ready(  # noqa: PLR0913 - the options of a look
    connection: Connection,
    now: float,
    agents: Collection[str],
    limit: int,
    *,
    revisions: Collection[str],
    queue: str | None,
    pinned: bool,
) -> list[str]:
    """Return ids of runs that wait for a driver, or have a question that has expired."""
    owned = [
        (PlaceInLine(*place), agent, revision, _is_left(owner, lease_until <= now))
        for *place, agent, revision, owner, lease_until in connection.execute(OWNED)
    ]
    busy = [(place.queue, place.tenant) for place, _, _, is_left in owned if not is_left]
    waiting = [
        place._replace(band=0)
        for place, agent, revision, is_left in owned
        if is_left and agent in agents and (not pinned or revision in ("", *revisions))
    ]
    named, own = ", ".join("?" * len(agents)), tuple(revisions) if pinned else ()
    mine = f"revision IN('', {', '.join('?' * len(own))})" if pinned else "true"
    due = connection.execute(DUE.format(agents=named, mine=mine), (now, *agents, *own))
    waiting += [PlaceInLine(1, *place) for _, *place in due]
    if revisions:
        fit = " AND ".join(["instr(refusals, CAST(? AS BLOB)) = 0"] * len(revisions))
        blocked = BLOCKED.format(agents=named, mine=mine, fit=fit)
        rows = connection.execute(blocked, (*agents, *own, *revisions))
        waiting += [PlaceInLine(*row) for row in rows]
    queues = {
        name: QueueLimits(running=running, weights=WEIGHTS.decode(weights))
        for name, running, weights in connection.execute("SELECT name, running, weights FROM queue")
    }
    places = LINE.format(mine=mine)
    heads = [
        (line, PlaceInLine(*row))
        for line in _lines(connection, queue)
        if line[1] in agents
        for row in connection.execute(places, (*line, *own, 1))
    ]
    wanted = places_wanted([head for _, head in heads], busy, queues, limit)
    for line, head in heads:
        most = wanted.get((head.queue, head.tenant), 0)
        rows = connection.execute(places, (*line, *own, most))
        waiting += [PlaceInLine(*row) for row in rows]
    waiting = [place for place in waiting if queue in (None, place.queue)]
    return in_turn(waiting, busy, queues)[:limit]


def _lines(connection: Connection, queue: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the queue, agent and tenant of each line in which runs wait: a jump from each."""
    line = "" if queue is None else queue, "", ""
    while found := connection.execute(NEXT_LINE, line).fetchall():
        (line,) = found
        if queue not in (None, line[0]):
            return
        yield line


def _is_left(owner: str | None, is_expired: bool) -> bool:  # noqa: FBT001 - of a lease
    """Whether the driver of a run has gone without a release."""
    return owner is not None and (is_expired or is_dead(owner))


def _status(left_as: RunStatus, owner: str | None, *, is_left: bool) -> RunStatus:
    if owner is None:
        return left_as
    return "interrupted" if is_left else "running"
