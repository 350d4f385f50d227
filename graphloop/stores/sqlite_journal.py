"""The statements that write events and answers, within the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from msgspec import Struct

from ..errors import UnknownRun
from .base import Posted
from .journals import out_of_order
from .sqlite_leases import Tenant, fence

__all__ = ["Entry", "append", "note_target", "post"]


class Entry(Struct, frozen=True, gc=False):
    """An encoded event; only the first event of a run uses `graph`."""

    run_id: str
    seq: int
    kind: str
    data: bytes
    graph: str = ""


def append(connection: Connection, tenant: Tenant, entries: Sequence[Entry]) -> None:
    """Write the entries of one or several runs, and renew the leases of claimed runs."""
    for entry in entries:
        _append(connection, tenant, entry)


def _append(connection: Connection, tenant: Tenant, entry: Entry) -> None:
    run_id, seq, now = entry.run_id, entry.seq, tenant.clock()
    row = connection.execute(
        "SELECT owner, epoch, next_seq FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    fence(tenant, run_id, None if row is None else row[:2])
    expected = 1 if row is None else row[2]
    if seq != expected:
        raise out_of_order(f"run {run_id!r}", expected, seq)
    if seq == 1:
        connection.execute(
            "INSERT INTO run(run_id, graph, created, updated) VALUES(?, ?, ?, ?) "
            "ON CONFLICT(run_id) DO UPDATE SET graph = excluded.graph",
            (run_id, entry.graph, now, now),
        )
    connection.execute(
        "INSERT INTO entry(run_id, seq, kind, data, ts) VALUES(?, ?, ?, ?, ?)",
        (run_id, seq, entry.kind, entry.data, now),
    )
    connection.execute(
        "UPDATE run SET next_seq = ?, updated = ?, "
        "lease_until = iif(owner IS NULL, 0.0, ?) WHERE run_id = ?",
        (seq + 1, now, tenant.until(), run_id),
    )


def post(
    connection: Connection, tenant: Tenant, run_id: str, key: str, signal: tuple[str, str]
) -> Posted:
    """Write an answer (its id and data), unless the run has one for this key."""
    _require(connection, run_id)
    signal_id, data = signal
    written = connection.execute(
        "INSERT INTO signal(run_id, key, signal_id, data, ts) VALUES(?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (run_id, key, signal_id, data, tenant.clock()),
    )
    if written.rowcount == 1:
        return "accepted"
    (first,) = connection.execute(
        "SELECT signal_id FROM signal WHERE run_id = ? AND key = ?", (run_id, key)
    ).fetchone()
    return "duplicate" if first == signal_id else "answered"


def note_target(connection: Connection, run_id: str, target: str) -> None:
    """Write the target that a run was started from."""
    _require(connection, run_id)
    connection.execute("UPDATE run SET target = ? WHERE run_id = ?", (target, run_id))


def _require(connection: Connection, run_id: str) -> None:
    known = connection.execute(
        "SELECT 1 FROM run WHERE run_id = ? AND next_seq > 1", (run_id,)
    ).fetchone()
    if known is None:
        raise UnknownRun(f"no run {run_id!r} in this store")
