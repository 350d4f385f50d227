"""The SQL statements that append the events of runs and read them; appends need a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, LiteralString

from msgspec.json import encode

from ...errors import StoreError
from ...events import Event
from ..beginnings import Beginnings
from ..blobs import checked_blob
from ..codec import Codec
from ..database.claims import HeldRun, Holder, give_place
from ..journals import out_of_order
from ..rows import Addition, checked_events, fenced
from .schema import PostgresLink

__all__ = ["append_claimed", "append_unclaimed", "read_journal", "why_refused"]

ENTRIES: Final[LiteralString] = (
    "SELECT seq, kind, data FROM entry WHERE run = (SELECT number FROM run "
    "WHERE run_id = %s AND begun) ORDER BY seq"
)
CHAIN: Final[LiteralString] = (
    "WITH RECURSIVE found AS (SELECT digest, data FROM blob WHERE digest = %s UNION ALL "
    "SELECT b.digest, b.data FROM found f JOIN blob b "
    "ON b.digest = encode(substr(f.data, 12, 71), 'escape')) SELECT digest, data FROM found"
)
"""A blob, and all parts of a conversation before it: a part begins with `{"before":"sha256:…"`."""
THERE: Final[LiteralString] = (
    "WITH locked AS (INSERT INTO blob(digest, data) SELECT '', '' WHERE false) "
    "SELECT digest FROM blob WHERE digest = ANY(%s)"
)
"""Which blobs are there, and stay: the insertion of nothing locks the table against a prune."""


def append_claimed(
    link: PostgresLink, additions: Sequence[tuple[Addition, HeldRun]]
) -> frozenset[str]:
    """Append events to claimed runs, each to another run, and return the ids of those written.

    A single statement writes them all, and locks no row: the epoch and the number before decide. An
    old owner's statement that began before the new owner's claim may write as well. It writes
    before the new owner: of two writers of a number, the primary key lets one through, and the
    other's statement is done again, and then refused.
    """
    first = [(held, each.graph) for each, held in additions if each.seq == 1]
    if first:
        link.execute(
            "UPDATE run SET begun = true, graph = e.graph, updated = now_s(), "
            "agent = CASE WHEN strpos(run_id, '/') = 0 THEN e.graph ELSE '' END "
            "FROM (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) "
            "e(number, epoch, graph) ORDER BY 1) e "
            "WHERE run.number = e.number AND run.epoch = e.epoch AND NOT begun",
            (
                [held.number for held, _ in first],
                [held.epoch for held, _ in first],
                [link.name_of(graph) for _, graph in first],
            ),
        )
    if told := [(held, each.revision) for each, held in additions if each.revision]:
        link.execute(
            "UPDATE run SET revision = e.revision "
            "FROM (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) "
            "e(number, epoch, revision) ORDER BY 1) e "
            "WHERE run.number = e.number AND run.epoch = e.epoch AND run.revision = ''",
            (
                [held.number for held, _ in told],
                [held.epoch for held, _ in told],
                [revision for _, revision in told],
            ),
        )
    _keep_blobs(link, [each for each, _ in additions])
    # One JSON text in place of five arrays, whose members psycopg would write one by one.
    rows = [
        {"run": held.number, "epoch": held.epoch, "first": each.seq, "seq": seq, "kind": kind}
        for each, held in additions
        for seq, (kind, _) in enumerate(each.events, each.seq)
    ]
    lines = [data for each, _ in additions for _, data in each.events]
    written = link.execute(
        "INSERT INTO entry(run, seq, kind, data) SELECT e.run, e.seq, e.kind, e.data "
        "FROM ROWS FROM (json_to_recordset(%s::json) "
        "AS (run bigint, epoch bigint, first int, seq int, kind text), unnest(%b::bytea[])) "
        "e(run, epoch, first, seq, kind, data) "
        "JOIN run r ON r.number = e.run AND r.epoch = e.epoch "
        "WHERE (e.first = 1 OR EXISTS(SELECT 1 FROM entry p WHERE p.run = e.run "
        "AND p.seq = e.first - 1)) AND NOT EXISTS(SELECT 1 FROM entry p WHERE p.run = e.run "
        "AND p.seq = e.first) RETURNING run",
        (encode(rows).decode(), lines),
    ).fetchall()
    numbers = {number for (number,) in written}
    return frozenset([each.run_id for each, held in additions if held.number in numbers])


def why_refused(link: PostgresLink, addition: Addition, held: HeldRun) -> StoreError | None:
    """Return why a claimed append was refused; None if an attempt before has written it."""
    row = link.execute(
        "SELECT owner, epoch, (SELECT coalesce(max(seq), 0) FROM entry WHERE run = number) "
        "FROM run WHERE number = %s",
        (held.number,),
    ).fetchone()
    owner, epoch, count = (None, 0, 0) if row is None else row
    if link.is_again and addition.seq <= count and _is_written(link, addition, held):
        return None
    if epoch != held.epoch:
        return fenced(addition.run_id, owner, epoch, held.epoch)
    return out_of_order(f"run {addition.run_id!r}", count + 1, addition.seq)


def _is_written(link: PostgresLink, addition: Addition, held: HeldRun) -> bool:
    kept = link.execute(
        "SELECT data FROM entry WHERE run = %s AND seq >= %s AND seq < %s ORDER BY seq",
        (held.number, addition.seq, addition.seq + len(addition.events)),
    ).fetchall()
    return [data for (data,) in kept] == [data for _, data in addition.events]


def append_unclaimed(link: PostgresLink, holder: Holder, addition: Addition) -> None:
    """Append events to a run that no other store drives; its first event creates the run.

    Raises:
        Fenced: another store has claimed the run.
        StoreError: the first of the events is not the next event of the run.
    """
    run_id, seq = addition.run_id, addition.seq
    if seq == 1:
        link.execute("INSERT INTO run(run_id) VALUES(%s) ON CONFLICT DO NOTHING", (run_id,))
    row = link.execute(
        "SELECT number, owner, epoch FROM run WHERE run_id = %s FOR UPDATE", (run_id,)
    ).fetchone()
    if row is None:
        raise out_of_order(f"run {run_id!r}", 1, seq)
    number, owner, epoch = row
    held = holder.held.get(run_id)
    if (owner, epoch) != ((None, epoch) if held is None else (holder.name, held.epoch)):
        raise fenced(run_id, owner, epoch, None if held is None else held.epoch)
    (count,) = link.execute(
        "SELECT coalesce(max(seq), 0) FROM entry WHERE run = %s", (number,)
    ).fetchone() or (0,)
    if link.is_again and seq <= count and _is_written(link, addition, HeldRun(number, epoch)):
        return
    if seq != count + 1:
        raise out_of_order(f"run {run_id!r}", count + 1, seq)
    _keep_blobs(link, [addition])
    link.cursor().executemany(
        "INSERT INTO entry(run, seq, kind, data) VALUES(%s, %s, %s, %s)",
        [(number, seq + at, kind, data) for at, (kind, data) in enumerate(addition.events)],
    )
    if addition.place is not None:  # The row says all of a run when its trigger sees it begin.
        give_place(link, number, addition.place)
    link.execute(
        "UPDATE run SET begun = true, updated = now_s(), "
        "graph = CASE WHEN begun THEN graph ELSE %(graph)s END, "
        "agent = CASE WHEN begun OR strpos(run_id, '/') > 0 THEN agent ELSE %(graph)s END, "
        "revision = CASE revision WHEN '' THEN %(revision)s ELSE revision END "
        "WHERE number = %(number)s",
        {
            "graph": link.name_of(addition.graph),
            "revision": addition.revision,
            "number": number,
        },
    )


def _keep_blobs(link: PostgresLink, additions: Sequence[Addition]) -> None:
    known = {each.known for each in additions if each.known}
    there = {digest for (digest,) in link.execute(THERE, ([*known],))} if known else known
    missing = known - there
    blobs = sorted(
        {
            one
            for each in additions
            for one in (each.every_blob if each.known in missing else each.blobs).items()
        }
    )
    if blobs:
        # In one order, so that two writers of the same media do not wait for each other.
        link.cursor().executemany(
            "INSERT INTO blob(digest, data) VALUES(%s, %s) ON CONFLICT DO NOTHING", blobs
        )


def read_journal(
    link: PostgresLink, codec: Codec, beginnings: Beginnings, run_id: str
) -> tuple[Event, ...]:
    """Return the events of a run after checking each; an empty tuple if the run does not exist.

    Media of a run that is deleted just then are missing: the run does not exist any more. A
    snapshot would tell it, too, but cost each leg two waits.

    Raises:
        StoreError: an event is missing or damaged.
    """
    rows = link.execute(ENTRIES, (run_id,), binary=True).fetchall()
    try:
        return checked_events(codec, beginnings, run_id, rows, partial(_checked_blob, link, {}))
    except StoreError:
        if link.execute(ENTRIES, (run_id,), binary=True).fetchone() is None:
            return ()
        raise


def _checked_blob(link: PostgresLink, known: dict[str, bytes], digest: str) -> bytes:
    if digest not in known:
        known.update(link.execute(CHAIN, (digest,), binary=True).fetchall())
    return checked_blob(digest, known.get(digest), "the store's table `blob`")
