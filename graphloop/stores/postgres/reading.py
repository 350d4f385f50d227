"""The queries of a PostgreSQL store, and the connections that ask them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, LiteralString, TypeVar, final

import psycopg
from psycopg import IsolationLevel

from ...errors import UnknownRun
from ...events import Event
from ..base import RunRecord, RunStatus
from ..beginnings import Beginnings
from ..blobs import checked_blob
from ..codec import Codec
from ..mailbox import COMMANDS_FROM, COMMANDS_UPTO
from ..rows import checked_events, records_of, within_bounds
from .journal import stored_text
from .leases import sweep
from .schema import Link, opened
from .writer import persist

# ruff: noqa: S608 - the queries are made of constants

T = TypeVar("T")

__all__ = [
    "Readers",
    "commands_to",
    "existing",
    "one_record",
    "overview",
    "page_of",
    "read_journal",
    "ready",
    "run_ids",
    "signals",
]

RECORDS: Final[LiteralString] = (
    "SELECT run_id, graph, CASE WHEN owner IS NULL THEN status "
    "WHEN owner IN (SELECT name FROM live) THEN 'running' ELSE 'interrupted' END, "
    "e.seq, created, greatest(updated, e.ts), "
    "CASE WHEN owner IS NULL OR owner IN (SELECT name FROM live) THEN asks ELSE '[]' END, "
    "target, refusals, deadline - now_s(), revision, queue, ending "
    "FROM run CROSS JOIN LATERAL (SELECT seq, ts FROM entry WHERE run = number "
    "ORDER BY seq DESC LIMIT 1) e WHERE begun "
)
WITHIN: Final[LiteralString] = "AND (run_id IN (%s, %s) OR (run_id >= %s AND run_id < %s)) "
IN_ORDER: Final[LiteralString] = "ORDER BY number"
NUMBERS_OF_ALL: Final[LiteralString] = (
    "SELECT number FROM run WHERE begun AND number > %(after)s "
    "AND (%(graph)s::text IS NULL OR graph = %(graph)s) ORDER BY number LIMIT %(limit)s"
)
# The order is that of the index: a rare status is found without a look at the others.
NUMBERS_LEFT: Final[LiteralString] = (
    "SELECT number FROM run WHERE status = %(status)s AND owner IS NULL AND begun "
    "AND number > %(after)s AND (%(graph)s::text IS NULL OR graph = %(graph)s) "
    "ORDER BY status, number LIMIT %(limit)s"
)
# Few runs have an owner.
NUMBERS_OWNED: Final[LiteralString] = (
    "SELECT number FROM run WHERE owner IS NOT NULL AND number > %(after)s AND begun "
    "AND (%(graph)s::text IS NULL OR graph = %(graph)s) AND (CASE WHEN owner IN "
    "(SELECT name FROM live) THEN 'running' ELSE 'interrupted' END) = ANY(%(statuses)s)"
)

# No child run that its parent drives has an agent. A run waits in the line of its queue, agent and
# tenant, which an index has in its order. A look jumps from the head of a line to the next, and
# sorts the heads: of N wanted runs, those that the worker takes are in the first N lines of a
# queue. It reads at most so many runs of each as could be taken.
WAITS: Final[LiteralString] = (
    "status IN('ready', 'interrupted') AND owner IS NULL AND begun AND agent <> ''"
)
MINE: Final[LiteralString] = "revision = ANY(coalesce(%(pins)s::text[], ARRAY[revision]))"
"""Whether a run fits a pinned worker; each fits a worker without pins."""
LINES: Final[LiteralString] = (
    "WITH RECURSIVE line(queue, agent, tenant) AS ((SELECT queue, agent, tenant FROM run "
    f"WHERE {WAITS} AND queue >= coalesce(%(queue)s, '') ORDER BY queue, agent, tenant LIMIT 1) "
    "UNION ALL SELECT n.queue, n.agent, n.tenant FROM line CROSS JOIN LATERAL "
    f"(SELECT queue, agent, tenant FROM run WHERE {WAITS} "
    "AND (queue, agent, tenant) > (line.queue, line.agent, line.tenant) "
    "ORDER BY queue, agent, tenant LIMIT 1) n WHERE n.queue = coalesce(%(queue)s, n.queue)), "
)
# `busy` counts the runs under way, and `open` how many more runs of a queue may go on.
ROOM: Final[LiteralString] = (
    "busy AS (SELECT queue, tenant, count(*) AS runs FROM run WHERE owner IS NOT NULL "
    "AND agent <> '' GROUP BY queue, tenant), "
    "open AS (SELECT name, coalesce(running - (SELECT sum(runs) FROM busy WHERE queue = name), "
    "running, %(limit)s) AS runs, weights FROM queue), "
)
COLUMNS: Final[LiteralString] = "number, queue, tenant, band, priority, updated, run_id"
HEADS: Final[LiteralString] = (
    "head AS (SELECT line.*, row_number() OVER (PARTITION BY queue ORDER BY band, priority DESC, "
    "(coalesce(busy.runs, 0) + 1) / coalesce((open.weights->>tenant)::float8, 1), updated, run_id) "
    "AS place FROM line CROSS JOIN LATERAL (SELECT band, priority, updated, run_id FROM run "
    f"WHERE {WAITS} AND queue = line.queue AND agent = line.agent AND tenant = line.tenant "
    f"AND {MINE} ORDER BY band, priority DESC, updated, run_id LIMIT 1) h "
    "LEFT JOIN busy USING(queue, tenant) LEFT JOIN open ON name = queue "
    "WHERE agent = ANY(%(agents)s) AND coalesce(open.runs, 1) > 0), "
)
FOUND: Final[LiteralString] = (
    f"found AS (SELECT r.* FROM head CROSS JOIN LATERAL (SELECT {COLUMNS} FROM run "
    f"WHERE {WAITS} AND queue = head.queue AND agent = head.agent AND tenant = head.tenant "
    f"AND {MINE} ORDER BY band, priority DESC, updated, run_id LIMIT %(limit)s + 1 - place) r "
    "WHERE place <= %(limit)s UNION ALL SELECT number, queue, tenant, least(band, 1), priority, "
    "updated, run_id FROM run WHERE wake_at <= now_s() AND status IN('parked', 'ready') "
    "AND owner IS NULL AND begun AND agent <> '' AND agent = ANY(%(agents)s) "
    f"AND queue = coalesce(%(queue)s, queue) AND {MINE} "
    f"UNION ALL SELECT {COLUMNS} FROM run WHERE status = 'blocked' AND owner IS NULL AND begun "
    "AND agent <> '' AND agent = ANY(%(agents)s) AND %(revisions)s::text[] <> '{}' "
    f"AND queue = coalesce(%(queue)s, queue) AND {MINE} AND NOT EXISTS(SELECT 1 "
    "FROM unnest(%(revisions)s::text[]) r WHERE position(convert_to(r, 'UTF8') IN refusals) > 0)), "
    # A run may wait for two reasons: for an answer that came, and for a time that has come.
    f"waiting AS (SELECT DISTINCT ON (number) {COLUMNS} FROM found ORDER BY number, band), "
)
READY: Final[LiteralString] = (
    LINES + ROOM + HEADS + FOUND + "ranked AS (SELECT waiting.*, (coalesce(busy.runs, 0) + "
    "row_number() OVER (PARTITION BY queue, tenant ORDER BY band, priority DESC, updated, run_id)) "
    "/ coalesce((open.weights->>tenant)::float8, 1) AS turn, open.runs AS room "
    "FROM waiting LEFT JOIN busy USING(queue, tenant) LEFT JOIN open ON name = queue), "
    "chosen AS (SELECT *, row_number() OVER (PARTITION BY queue ORDER BY band, priority DESC, "
    "turn, updated, run_id) AS place FROM ranked) "
    "SELECT run.run_id FROM (SELECT * FROM chosen WHERE room IS NULL OR place <= room "
    "ORDER BY band, priority DESC, turn, updated, run_id LIMIT 2 * %(limit)s) best "
    "JOIN run USING(number) WHERE owner IS NULL ORDER BY best.band, best.priority DESC, turn, "
    "best.updated, run.run_id LIMIT %(limit)s "
    # A row that another transaction changes now is another worker's.
    "FOR UPDATE OF run SKIP LOCKED"
)

CHAIN: Final[LiteralString] = (
    "WITH RECURSIVE found AS (SELECT digest, data FROM blob WHERE digest = %s UNION ALL "
    "SELECT b.digest, b.data FROM found f JOIN blob b "
    "ON b.digest = encode(substr(f.data, 12, 71), 'escape')) SELECT digest, data FROM found"
)
"""A blob, and all parts of a conversation before it: a part begins with `{"before":"sha256:…"`."""


def read_journal(
    link: Link, codec: Codec, beginnings: Beginnings, run_id: str
) -> tuple[Event, ...]:
    """Return the events of a run after checking each; an empty tuple if the run does not exist.

    Media of a run that is deleted just then are missing: a snapshot would cost each leg two waits.

    Raises:
        StoreError: an event is missing or damaged.
    """
    rows = link.execute(
        "SELECT seq, kind, data FROM entry WHERE run = (SELECT number FROM run "
        "WHERE run_id = %s AND begun) ORDER BY seq",
        (run_id,),
        binary=True,
    ).fetchall()
    return checked_events(codec, beginnings, run_id, rows, partial(_blob, link, {}))


def _blob(link: Link, known: dict[str, bytes], digest: str) -> bytes:
    if digest not in known:
        known.update(link.execute(CHAIN, (digest,), binary=True).fetchall())
    return checked_blob(digest, known.get(digest), "the store's table `blob`")


def run_ids(link: Link) -> list[str]:
    """Return the ids of all runs with events, in the order of code points."""
    return [
        run_id for (run_id,) in link.execute("SELECT run_id FROM run WHERE begun ORDER BY run_id")
    ]


def signals(link: Link, run_id: str) -> Mapping[str, str]:
    """Map the key of each answered question of a run to the accepted answer."""
    rows = link.execute(
        "SELECT key, data FROM signal WHERE run = (SELECT number FROM run WHERE run_id = %s) "
        "ORDER BY ts, key",
        (run_id,),
    ).fetchall()
    return dict(rows)


def commands_to(link: Link, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Map the id of each of these runs that has commands to them, by key."""
    found: dict[str, dict[str, str]] = {}
    for run_id, key, data in link.execute(
        "SELECT run_id, key, s.data FROM run JOIN signal s ON s.run = number "
        "WHERE run_id = ANY(%s) AND key >= %s AND key < %s ORDER BY ts, key",
        ([*run_ids], COMMANDS_FROM, COMMANDS_UPTO),
    ):
        found.setdefault(run_id, {})[key] = data
    return found


def overview(link: Link, root: str | None) -> Sequence[RunRecord]:
    """Return the records of all runs with events, in the order of their creation.

    With a `root`, the result has only that run and its descendants.
    """
    if root is None:
        return records_of(link.execute(RECORDS + IN_ORDER).fetchall(), None)
    rows = link.execute(RECORDS + WITHIN + IN_ORDER, within_bounds(root)).fetchall()
    return records_of(rows, root)


def existing(link: Link, run_ids: Collection[str]) -> Collection[str]:
    """Return those of these runs that have an event."""
    asked = "SELECT run_id FROM run WHERE begun AND run_id = ANY(%s)"
    return {run_id for (run_id,) in link.execute(asked, ([*run_ids],))}


def one_record(link: Link, run_id: str) -> RunRecord | None:
    """Return the record of one run; None if the run does not exist."""
    # With its parent, whose id the record tells if the parent exists.
    ids = run_id, run_id.rpartition("/")[0]
    found = records_of(link.execute(RECORDS + "AND run_id IN (%s, %s)", ids).fetchall(), run_id)
    return found[0] if found else None


def page_of(
    link: Link, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
) -> Sequence[RunRecord]:
    """Return a page of a listing.

    Raises:
        UnknownRun: there is no run after which it could begin.
    """
    row: tuple[int] | None = (0,)
    if after:
        known = "SELECT number FROM run WHERE run_id = %s AND begun"
        row = link.execute(known, (after,)).fetchone()
    if row is None:
        raise UnknownRun(f"no run {after!r} in this store: expected the last of a page.")
    given = {
        "after": row[0],
        "graph": None if graph is None else stored_text(graph),
        "statuses": [*statuses],
        "limit": limit,
    }
    numbers = [*link.execute(NUMBERS_OWNED if statuses else NUMBERS_OF_ALL, given)]
    for status in statuses:
        numbers += link.execute(NUMBERS_LEFT, {**given, "status": status})
    chosen = sorted([number for (number,) in numbers])[:limit]
    rows = link.execute(RECORDS + "AND number = ANY(%s) " + IN_ORDER, (chosen,)).fetchall()
    return records_of(rows, None, cut=True)


def ready(
    link: Link,
    agents: Collection[str],
    limit: int,
    revisions: Collection[str],
    queue: str | None,
    *,
    pinned: bool,
) -> list[str]:
    """Free the runs of dead workers, and return ids of runs that wait for a driver."""
    sweep(link)
    named = [stored_text(agent) for agent in agents]
    given = {
        "agents": named,
        "limit": limit,
        "revisions": [*revisions],
        "queue": None if queue is None else stored_text(queue),
        "pins": ["", *revisions] if pinned else None,
    }
    rows = link.execute(READY, given).fetchall()
    return [run_id for (run_id,) in rows]


def _reader(dsn: str) -> Link:
    link = opened(dsn)
    link.isolation_level, link.read_only = IsolationLevel.REPEATABLE_READ, True
    return link


@final
class Readers:
    """The connections that wait for the next reader."""

    def __init__(self, dsn: str, patience_s: float) -> None:
        self._dsn = dsn
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._idle: list[Link] = []
        self._was_open = False

    def do(self, work: Callable[[Link], T], *, in_snapshot: bool = False) -> T:
        """Run `work`; its statements see the same state of the database if it is `in_snapshot`.

        Raises:
            StoreError: the database cannot be read, or is damaged.
        """

        def attempt(_: bool) -> T:  # noqa: FBT001 - the parameter of a callback
            with self._lock:
                link = self._idle.pop() if self._idle else None
            link = link or _reader(self._dsn)
            self._was_open = True
            try:
                with link.transaction() if in_snapshot else nullcontext():
                    result = work(link)
            except psycopg.OperationalError:
                link.close()
                raise
            except BaseException:
                self._put_back(link)
                raise
            self._put_back(link)
            return result

        return persist(self._dsn, self._patience_s if self._was_open else 0.0, attempt)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def _put_back(self, link: Link) -> None:
        with self._lock:
            self._idle.append(link)
