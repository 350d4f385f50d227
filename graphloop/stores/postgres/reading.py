"""The queries of a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final, LiteralString

from ...errors import StoreError, UnknownRun
from ...events import Event
from ..base import RunRecord
from ..beginnings import Beginnings
from ..blobs import checked_blob
from ..codec import Codec
from ..journals import COMMANDS_FROM, COMMANDS_UPTO
from ..rows import WantedPage, records_of, within_bounds
from .journal import stored_text
from .leases import sweep
from .schema import Link

__all__ = [
    "found_record",
    "known_ids",
    "listed_runs",
    "load_events",
    "posted_answers",
    "posted_commands",
    "waiting_ids",
    "wanted_page",
]

RECORDS: Final[LiteralString] = (
    "SELECT run_id, graph, CASE WHEN owner IS NULL THEN status "
    "WHEN owner IN (SELECT name FROM live) THEN 'running' ELSE 'interrupted' END, "
    "e.seq, created, greatest(updated, e.ts), "
    "CASE WHEN owner IS NULL OR owner IN (SELECT name FROM live) THEN asks ELSE '[]' END, "
    "target, refusals, deadline - now_s() "
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

# Only a root run may be new, and no child run that its parent drives has an agent.
# A row that another transaction changes now is another worker's.
READY: Final[LiteralString] = (
    "WITH busy AS (SELECT tenant, count(*) AS runs FROM run WHERE owner IS NOT NULL "
    "AND agent <> '' GROUP BY tenant), "
    "line AS (SELECT number, tenant, priority, updated, run_id, "
    "CASE WHEN status IN('interrupted', 'blocked') THEN 0 "
    "WHEN status = 'ready' AND asks = '[]' AND epoch = 0 AND strpos(run_id, '/') = 0 "
    "AND coalesce(wake_at > now_s(), true) THEN 2 ELSE 1 END AS band "
    "FROM run WHERE begun AND owner IS NULL AND agent = ANY(%(graphs)s) "
    "AND (status IN('ready', 'interrupted') "
    "OR (status = 'parked' AND wake_at <= now_s()) "
    "OR (status = 'blocked' AND %(revisions)s::text[] <> '{}' AND NOT EXISTS(SELECT 1 "
    "FROM unnest(%(revisions)s::text[]) r WHERE position(convert_to(r, 'UTF8') IN refusals) > 0)))"
    "), ranked AS (SELECT number, band, coalesce(busy.runs, 0) + row_number() OVER (PARTITION BY "
    "tenant ORDER BY band, line.priority DESC, updated, run_id) AS turn "
    "FROM line LEFT JOIN busy USING(tenant)) "
    "SELECT run_id FROM ranked JOIN run USING(number) WHERE owner IS NULL "
    "ORDER BY band, priority DESC, turn, updated, run_id LIMIT %(limit)s "
    "FOR UPDATE OF run SKIP LOCKED"
)


CHAIN: Final[LiteralString] = (
    "WITH RECURSIVE found AS (SELECT digest, data FROM blob WHERE digest = %s UNION ALL "
    "SELECT b.digest, b.data FROM found f JOIN blob b "
    "ON b.digest = encode(substr(f.data, 12, 71), 'escape')) SELECT digest, data FROM found"
)
"""A blob, and all parts of a conversation before it: a part begins with `{"before":"sha256:…"`."""


def load_events(link: Link, codec: Codec, beginnings: Beginnings, run_id: str) -> tuple[Event, ...]:
    """Return the events of a run after checking each; an empty tuple if the run does not exist.

    Raises:
        StoreError: an event is missing or damaged.
    """
    rows = link.execute(
        "SELECT seq, kind, data FROM entry WHERE run = (SELECT number FROM run "
        "WHERE run_id = %s AND begun) ORDER BY seq",
        (run_id,),
        binary=True,
    ).fetchall()
    events: list[Event] = []
    codec = codec.of(run_id)
    blobs = partial(_blob, link, {})
    for at, (seq, kind, data) in enumerate(rows, 1):
        if seq != at:
            raise StoreError(f"run {run_id!r}: event {at} is missing, {seq} is there")
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
    return tuple(events)


def _blob(link: Link, known: dict[str, bytes], digest: str) -> bytes:
    if digest not in known:
        known.update(link.execute(CHAIN, (digest,), binary=True).fetchall())
    return checked_blob(digest, known.get(digest), "the store's table `blob`")


def known_ids(link: Link) -> list[str]:
    """Return the ids of all runs with events, in the order of code points."""
    return [
        run_id for (run_id,) in link.execute("SELECT run_id FROM run WHERE begun ORDER BY run_id")
    ]


def posted_answers(link: Link, run_id: str) -> Mapping[str, str]:
    """Map the key of each answered question of a run to the accepted answer."""
    rows = link.execute(
        "SELECT key, data FROM signal WHERE run = (SELECT number FROM run WHERE run_id = %s) "
        "ORDER BY ts, key",
        (run_id,),
    ).fetchall()
    return dict(rows)


def posted_commands(link: Link, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Map the id of each of these runs that has commands to them, by key."""
    found: dict[str, dict[str, str]] = {}
    for run_id, key, data in link.execute(
        "SELECT run_id, key, s.data FROM run JOIN signal s ON s.run = number "
        "WHERE run_id = ANY(%s) AND key >= %s AND key < %s ORDER BY ts, key",
        ([*run_ids], COMMANDS_FROM, COMMANDS_UPTO),
    ):
        found.setdefault(run_id, {})[key] = data
    return found


def listed_runs(link: Link, root: str | None) -> Sequence[RunRecord]:
    """Return the records of all runs with events, in the order of their creation.

    With a `root`, the result has only that run and its descendants.
    """
    if root is None:
        return records_of(link.execute(RECORDS + IN_ORDER).fetchall(), None)
    rows = link.execute(RECORDS + WITHIN + IN_ORDER, within_bounds(root)).fetchall()
    return records_of(rows, root)


def found_record(link: Link, run_id: str) -> RunRecord | None:
    """Return the record of one run; None if the run does not exist."""
    # With its parent, whose id the record tells if the parent exists.
    ids = run_id, run_id.rpartition("/")[0]
    found = records_of(link.execute(RECORDS + "AND run_id IN (%s, %s)", ids).fetchall(), run_id)
    return found[0] if found else None


def wanted_page(link: Link, wanted: WantedPage) -> Sequence[RunRecord]:
    """Return a page of a listing.

    Raises:
        UnknownRun: there is no run after which it could begin.
    """
    row: tuple[int] | None = (0,)
    if wanted.after:
        known = "SELECT number FROM run WHERE run_id = %s AND begun"
        row = link.execute(known, (wanted.after,)).fetchone()
    if row is None:
        raise UnknownRun(f"no run {wanted.after!r} in this store: expected the last of a page.")
    given = {
        "after": row[0],
        "graph": None if wanted.graph is None else stored_text(wanted.graph),
        "statuses": [*wanted.statuses],
        "limit": wanted.limit,
    }
    numbers = [*link.execute(NUMBERS_OWNED if wanted.statuses else NUMBERS_OF_ALL, given)]
    for status in wanted.statuses:
        numbers += link.execute(NUMBERS_LEFT, {**given, "status": status})
    chosen = sorted([number for (number,) in numbers])[: wanted.limit]
    rows = link.execute(RECORDS + "AND number = ANY(%s) " + IN_ORDER, (chosen,)).fetchall()
    return records_of(rows, None, cut=True)


def waiting_ids(
    link: Link, graphs: Collection[str], limit: int, revisions: Collection[str]
) -> list[str]:
    """Free the runs of dead workers, and return ids of runs that wait for a driver."""
    sweep(link)
    named = [stored_text(graph) for graph in graphs]
    given = {"graphs": named, "limit": limit, "revisions": [*revisions]}
    rows = link.execute(READY, given).fetchall()
    return [run_id for (run_id,) in rows]
