"""The SQL statements that append the events of runs and read them; appends need a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from ...errors import StoreError
from ...events import Event
from ..beginnings import Beginnings
from ..blobs import checked_blob
from ..codec import Codec
from ..database.claims import Holder, give_place
from ..journals import out_of_order
from ..rows import Addition, checked_events
from .leases import fence
from .schema import SqliteLink, entry_id

__all__ = ["append", "read_journal"]


def append(link: SqliteLink, holder: Holder, additions: Sequence[Addition]) -> None:
    """Append events to one or several runs, and renew the leases of those that are claimed."""
    for addition in additions:
        number = _advance(link, holder, addition)
        if number is None:
            _admit(link, holder, addition)
            number = _advance(link, holder, addition)
        assert number is not None, "it has been admitted"
        is_pruned = addition.known and not _has_blob(link, addition.known)
        if blobs := addition.every_blob if is_pruned else addition.blobs:
            # Media that another run has shown are there already.
            link.executemany(
                "INSERT INTO blob(digest, data) VALUES(?, ?) ON CONFLICT DO NOTHING",
                blobs.items(),
            )
        if addition.place is not None:
            give_place(link, number, addition.place)
        if addition.revision:
            link.execute(
                "UPDATE run SET revision = ? WHERE number = ? AND revision = ''",
                (addition.revision, number),
            )
        now, first = holder.clock(), entry_id(number, addition.seq)
        link.executemany(
            "INSERT INTO entry(id, kind, data, ts) VALUES(?, ?, ?, ?)",
            [(first + at, kind, data, now) for at, (kind, data) in enumerate(addition.events)],
        )


def _has_blob(link: SqliteLink, digest: str) -> bool:
    found = link.execute("SELECT 1 FROM blob WHERE digest = ?", (digest,)).fetchone()
    return found is not None


def _advance(link: SqliteLink, holder: Holder, addition: Addition) -> int | None:
    """Add the events to the count in their run's row, and return the row's number, or None.

    The result is None, and nothing changes, unless the first event is the run's next event and the
    holder may write. It may write if it has the latest claim, or if no other store has a claim. A
    single statement does all of this, so that an append needs no read before it.
    """
    run_id, held, seq = addition.run_id, holder.held.get(addition.run_id), addition.seq
    now, after = holder.clock(), seq + len(addition.events)
    until = now + holder.lease_s
    if held is not None and seq > 1:
        # The common case: no look into an index, and no change of the graph.
        updated = link.execute(
            "UPDATE run SET next_seq = ?, updated = ?, lease_until = ? WHERE number = ? "
            "AND run_id = ? AND next_seq = ? AND owner = ? AND epoch = ?",
            (after, now, until, held.number, run_id, seq, holder.name, held.epoch),
        )
        return held.number if updated.rowcount == 1 else None
    row: tuple[int] | None = link.execute(
        "UPDATE run SET next_seq = :after, updated = :now, "
        "lease_until = iif(owner IS NULL, 0.0, :until), graph = iif(next_seq = 1, :graph, graph), "
        "agent = iif(next_seq = 1 AND instr(run_id, '/') = 0, :graph, agent) "
        "WHERE run_id = :run_id AND next_seq = :seq "
        "AND iif(:epoch IS NULL, owner IS NULL OR owner = :me, owner = :me AND epoch = :epoch) "
        "RETURNING number",
        {
            "after": after,
            "now": now,
            "until": until,
            "graph": addition.graph,
            "run_id": run_id,
            "seq": seq,
            "epoch": None if held is None else held.epoch,
            "me": holder.name,
        },
    ).fetchone()
    return None if row is None else row[0]


def _admit(link: SqliteLink, holder: Holder, addition: Addition) -> None:
    """Insert the row of a new run; raise if `_advance` failed for any other reason.

    Raises:
        Fenced: another driver has claimed the run.
        StoreError: the first of the events is not the next event of the run.
    """
    run_id, seq, now = addition.run_id, addition.seq, holder.clock()
    row: tuple[str | None, int, int] | None = link.execute(
        "SELECT owner, epoch, next_seq FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    fence(holder, run_id, None if row is None else row[:2])
    expected = 1 if row is None else row[2]
    if seq != expected:
        raise out_of_order(f"run {run_id!r}", expected, seq)
    link.execute("INSERT INTO run(run_id, created, updated) VALUES(?, ?, ?)", (run_id, now, now))


def read_journal(
    link: SqliteLink, codec: Codec, beginnings: Beginnings, run_id: str
) -> tuple[Event, ...]:
    """Return the events of a run after checking each; an empty tuple if the run does not exist.

    Raises:
        StoreError: an event is missing or damaged.
    """
    row: tuple[int, int] | None = link.execute(
        "SELECT number, next_seq - 1 FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    if row is None:
        return ()
    number, expected = row
    first = entry_id(number, 1)
    found: list[tuple[int, str, bytes]] = link.execute(
        "SELECT id, kind, data FROM entry WHERE id >= ? AND id < ? ORDER BY id",
        (first, entry_id(number + 1, 0)),
    ).fetchall()
    rows = ((entry - first + 1, kind, data) for entry, kind, data in found)
    blobs = cache(partial(_checked_blob, link))
    events = checked_events(codec, beginnings, run_id, rows, blobs)
    if len(events) != expected:
        raise StoreError(f"run {run_id!r} has {len(events)} event(s) of {expected}: some are lost")
    return events


def _checked_blob(link: SqliteLink, digest: str) -> bytes:
    row = link.execute("SELECT data FROM blob WHERE digest = ?", (digest,)).fetchone()
    return checked_blob(digest, None if row is None else row[0], "the store's table `blob`")
