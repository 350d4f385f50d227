"""The SQL statements that write events and answers; the caller begins and ends the transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from sqlite3 import Connection

from msgspec.json import encode

from ...errors import UnknownRun
from ..backlog import QueueLimits, Submission
from ..base import Posted
from ..journals import out_of_order
from ..rows import Addition, said_before
from .leases import Holder, fence
from .schema import entry_id

__all__ = [
    "append",
    "forget_refusals",
    "note_queues",
    "note_target",
    "place_run",
    "post",
]


def append(connection: Connection, holder: Holder, additions: Sequence[Addition]) -> None:
    """Append events to one or several runs, and renew the leases of those that are claimed."""
    for addition in additions:
        number = _advance(connection, holder, addition)
        if number is None:
            _admit(connection, holder, addition)
            number = _advance(connection, holder, addition)
        assert number is not None, "it has been admitted"
        if addition.blobs:
            # Media that another run has shown are there already.
            connection.executemany(
                "INSERT INTO blob(digest, data) VALUES(?, ?) ON CONFLICT DO NOTHING",
                addition.blobs.items(),
            )
        if addition.place is not None:
            _give_place(connection, holder, number, addition.place)
        if addition.revision:
            connection.execute(
                "UPDATE run SET revision = ? WHERE number = ? AND revision = ''",
                (addition.revision, number),
            )
        now, first = holder.clock(), entry_id(number, addition.seq)
        connection.executemany(
            "INSERT INTO entry(id, kind, data, ts) VALUES(?, ?, ?, ?)",
            [(first + at, kind, data, now) for at, (kind, data) in enumerate(addition.events)],
        )


def _advance(connection: Connection, holder: Holder, addition: Addition) -> int | None:
    """Add the events to the count in their run's row, and return the row's number, or None.

    The result is None, and nothing changes, unless the first event is the run's next event and the
    holder may write. It may write if it has the latest claim, or if no other store has a claim. A
    single statement does all of this, so that an append needs no read before it.
    """
    run_id, epoch, seq = addition.run_id, holder.epochs.get(addition.run_id), addition.seq
    now, after = holder.clock(), seq + len(addition.events)
    until, number = now + holder.lease_s, holder.numbers.get(run_id)
    if epoch is not None and number is not None and seq > 1:
        # The common case: no look into an index, and no change of the graph.
        updated = connection.execute(
            "UPDATE run SET next_seq = ?, updated = ?, lease_until = ? WHERE number = ? "
            "AND run_id = ? AND next_seq = ? AND owner = ? AND epoch = ?",
            (after, now, until, number, run_id, seq, holder.name, epoch),
        )
        if updated.rowcount == 1:
            return number
    row: tuple[int] | None = connection.execute(
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
            "epoch": epoch,
            "me": holder.name,
        },
    ).fetchone()
    if row is None:
        return None
    if epoch is not None:
        holder.numbers[run_id] = row[0]
    return row[0]


def _admit(connection: Connection, holder: Holder, addition: Addition) -> None:
    """Insert the row of a new run; raise if `_advance` failed for any other reason.

    Raises:
        Fenced: another driver has claimed the run.
        StoreError: the first of the events is not the next event of the run.
    """
    run_id, seq, now = addition.run_id, addition.seq, holder.clock()
    row: tuple[str | None, int, int] | None = connection.execute(
        "SELECT owner, epoch, next_seq FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    fence(holder, run_id, None if row is None else row[:2])
    expected = 1 if row is None else row[2]
    if seq != expected:
        raise out_of_order(f"run {run_id!r}", expected, seq)
    connection.execute(
        "INSERT INTO run(run_id, created, updated) VALUES(?, ?, ?)", (run_id, now, now)
    )


def post(
    connection: Connection, holder: Holder, run_id: str, key: str, signal: tuple[str, str]
) -> Posted:
    """Store `signal`, the id and the text of an answer, unless the key has an answer already."""
    _require(connection, run_id)
    signal_id, data = signal
    written = connection.execute(
        "INSERT INTO signal(run_id, key, signal_id, data, ts) VALUES(?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (run_id, key, signal_id, data, holder.clock()),
    )
    if written.rowcount == 1:
        connection.execute(
            "UPDATE run SET status = 'ready', updated = ? WHERE run_id = ? AND status = 'parked' "
            "AND owner IS NULL",
            (holder.clock(), run_id),
        )
        return "accepted"
    (first,) = connection.execute(
        "SELECT signal_id FROM signal WHERE run_id = ? AND key = ?", (run_id, key)
    ).fetchone()
    return said_before(first, signal_id)


def note_target(connection: Connection, run_id: str, target: str) -> None:
    """Store the target of `graphloop run` that started the run."""
    _require(connection, run_id)
    connection.execute("UPDATE run SET target = ? WHERE run_id = ?", (target, run_id))


def note_queues(connection: Connection, queues: Mapping[str, QueueLimits]) -> None:
    """Store the limits and weights of queues."""
    connection.executemany(
        "INSERT OR REPLACE INTO queue(name, running, weights) VALUES(?, ?, ?)",
        [(name, queue.running, encode(queue.weights)) for name, queue in queues.items()],
    )


def place_run(connection: Connection, run_id: str) -> None:
    """Let the workers of the root's agent take a child run, in its root's place in line."""
    placed = connection.execute(
        "UPDATE run SET (agent, tenant, priority, queue, revision) = "
        "(SELECT agent, tenant, priority, queue, revision FROM run "
        "WHERE run_id = ?) WHERE run_id = ? AND agent = '' AND next_seq > 1",
        (run_id.partition("/")[0], run_id),
    )
    if placed.rowcount == 0:
        _require(connection, run_id)


def forget_refusals(connection: Connection, revisions: Collection[str]) -> None:
    """Forget the refusals of blocked runs that have one of these revisions."""
    connection.executemany(
        "UPDATE run SET refusals = x'5b5d' WHERE status = 'blocked' "
        "AND instr(refusals, CAST(? AS BLOB)) > 0",
        [(revision,) for revision in revisions],
    )


def _give_place(connection: Connection, holder: Holder, number: int, place: Submission) -> None:
    ends = None if place.deadline_s is None else holder.clock() + place.deadline_s
    connection.execute(
        "UPDATE run SET tenant = ?, priority = ?, deadline = ?, wake_at = ?, queue = ? "
        "WHERE number = ?",
        (place.tenant, place.priority, ends, ends, place.queue, number),
    )


def _require(connection: Connection, run_id: str) -> None:
    known = connection.execute(
        "SELECT 1 FROM run WHERE run_id = ? AND next_seq > 1", (run_id,)
    ).fetchone()
    if known is None:
        raise UnknownRun(f"no run {run_id!r} in this store")
