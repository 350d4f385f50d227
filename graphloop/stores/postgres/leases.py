"""The SQL statements for workers and their claims; the caller begins and ends the transaction.

A lease is a row of a worker, not of a run, so that nothing is renewed for each run. A worker is
dead if its session lock is free (its process or its host is gone) or if its beat is older than its
lease (it stalls). The sweep frees each run whose owner has no row in `worker`: also a run that a
stalled worker claims after its row is gone. `database/claims.py` has the rest of a claim's life.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, LiteralString

from msgspec.json import encode

from ...errors import RunBusy
from ..backlog import refuse_full
from ..database.claims import HeldRun, Holder
from ..database.jobs import Asking
from .schema import LOCK_CLASS, PostgresLink

__all__ = ["IS_DUE", "beat", "claim", "end_row", "interrupt", "sweep", "take_row"]

# FOR KEY SHARE: a sweep cannot delete the worker's row before the claim is committed.
CLAIM: Final[LiteralString] = (
    "WITH me AS (SELECT name FROM worker WHERE name = %(name)s FOR KEY SHARE) "
    "INSERT INTO run AS r (run_id, owner, epoch) SELECT %(run_id)s, name, 1 FROM me "
    "WHERE %(has_room)s OR NOT EXISTS(SELECT FROM run JOIN queue ON name = queue "
    "WHERE run_id = %(run_id)s AND running IS NOT NULL AND agent <> '') "
    "ON CONFLICT(run_id) DO UPDATE SET owner = excluded.owner, epoch = r.epoch + 1, "
    "asks = CASE WHEN r.owner IS NULL THEN r.asks ELSE '[]' END, "
    "status = CASE WHEN r.owner IS NULL THEN r.status ELSE 'interrupted' END "
    "WHERE r.owner IS NULL OR r.owner = excluded.owner RETURNING number, epoch"
)
UNDER_WAY: Final[LiteralString] = (
    "SELECT count(*) FROM run WHERE owner IS NOT NULL AND queue = %s AND agent <> '' "
    "AND run_id <> %s"
)
IS_DUE: Final[LiteralString] = (
    "SELECT EXISTS(SELECT FROM worker WHERE name NOT IN (SELECT name FROM live)) "
    "OR EXISTS(SELECT FROM run r WHERE owner IS NOT NULL "
    "AND NOT EXISTS(SELECT FROM worker w WHERE w.name = r.owner))"
)
SWEEPER: Final = 0
"""The second number of the lock that lets one process sweep at a time."""


def take_row(link: PostgresLink, holder: Holder) -> None:
    """Insert the worker's row and take its session lock, unless the worker has a row.

    A worker whose row is gone was declared dead, and goes on under a new name only.
    """
    known = link.execute("SELECT 1 FROM worker WHERE name = %s FOR KEY SHARE", (holder.name,))
    if known.fetchone() is not None:
        return
    holder.rename()
    row = link.execute(
        "INSERT INTO worker(name, lease_s, beat, serves) VALUES(%s, %s, now_s(), %s) "
        "RETURNING lock_id",
        (holder.name, holder.lease_s, encode(holder.serves).decode()),
    ).fetchone()
    assert row is not None, "an INSERT returns its row"
    link.execute("SELECT pg_advisory_lock(%s, %s)", (LOCK_CLASS, row[0]))
    holder.is_announced = True


def beat(link: PostgresLink, holder: Holder) -> bool:
    """Tell that the worker is live; False if it was declared dead.

    A new session takes the lock again, which the end of the old one has freed.
    """
    taken = link.execute(
        "UPDATE worker SET beat = now_s(), lease_s = %s WHERE name = %s "
        "AND (pg_try_advisory_lock(%s, lock_id)) RETURNING 1",
        (holder.lease_s, holder.name, LOCK_CLASS),
    ).fetchone()
    return taken is not None


def claim(link: PostgresLink, holder: Holder, run_id: str) -> Asking[HeldRun]:
    """Make the holder the owner of a run, and return the claim.

    A single statement does it if the worker has its row, the run no owner, and its queue no limit.

    Raises:
        RunBusy: a live worker owns the run, or its queue is full (`QueueFull`).
    """
    given = {"name": holder.name, "run_id": run_id, "has_room": False}
    answer = link.execute(CLAIM, given)
    yield
    if (row := answer.fetchone()) is not None:
        return HeldRun(*row)
    with link.transaction():
        return _claim_with_care(link, holder, run_id)


def _claim_with_care(link: PostgresLink, holder: Holder, run_id: str) -> HeldRun:
    take_row(link, holder)
    _refuse_full(link, run_id)
    if (held := _held_or_none(link, holder, run_id)) is not None:
        return held
    sweep(link)
    if (held := _held_or_none(link, holder, run_id)) is not None:
        return held
    row = link.execute("SELECT owner FROM run WHERE run_id = %s", (run_id,)).fetchone()
    raise RunBusy(
        f"run {run_id!r} is being driven by {row and row[0]}. "
        "Fix: wait until that driver releases it, or dies."
    )


def _refuse_full(link: PostgresLink, run_id: str) -> None:
    """Refuse the claim if the run's queue is full; no other claim in the queue goes on meanwhile.

    Raises:
        QueueFull: the queue is full.
    """
    limited = link.execute(
        "SELECT q.name, q.running FROM run r JOIN queue q ON q.name = r.queue WHERE r.run_id = %s "
        "AND q.running IS NOT NULL AND r.agent <> '' FOR UPDATE OF q",
        (run_id,),
    ).fetchone()
    if limited is None:
        return
    # A statement of its own: it sees the claims whose transactions had the lock before.
    name, running = limited
    (under_way,) = link.execute(UNDER_WAY, (name, run_id)).fetchone() or (0,)
    if under_way >= running:
        sweep(link)
        (under_way,) = link.execute(UNDER_WAY, (name, run_id)).fetchone() or (0,)
    refuse_full(run_id, name, running, under_way)


def _held_or_none(link: PostgresLink, holder: Holder, run_id: str) -> HeldRun | None:
    given = {"name": holder.name, "run_id": run_id, "has_room": True}
    row = link.execute(CLAIM, given).fetchone()
    return None if row is None else HeldRun(*row)


def interrupt(link: PostgresLink, holder: Holder, gone: Iterable[HeldRun]) -> None:
    """Free the runs of drivers of this process that have gone without a release."""
    for held in sorted(gone, key=lambda held: held.number):
        link.execute(
            "UPDATE run SET owner = NULL, epoch = epoch + 1, status = 'interrupted', asks = '[]' "
            "WHERE number = %s AND owner = %s AND epoch = %s",
            (held.number, holder.name, held.epoch),
        )
        _forget_empty(link, held.number)


def end_row(link: PostgresLink, holder: Holder) -> None:
    """Delete the worker's row, because its store closes, and free its runs."""
    link.execute("DELETE FROM worker WHERE name = %s", (holder.name,))
    sweep(link)


def sweep(link: PostgresLink) -> None:
    """Delete the rows of dead workers, and free each run whose owner has no row.

    Two sweeps do no harm, but one at a time is enough. A run that another transaction changes now
    is left for the next sweep. Most sweeps find nothing to do, by a single statement.
    """
    if (link.execute(IS_DUE).fetchone() or (False,))[0]:
        with link.transaction():
            _interrupt_orphans(link)


def _interrupt_orphans(link: PostgresLink) -> None:
    (is_mine,) = link.execute(
        "SELECT pg_try_advisory_xact_lock(%s, %s)", (LOCK_CLASS, SWEEPER)
    ).fetchone() or (False,)
    if not is_mine:
        return
    link.execute("DELETE FROM worker WHERE name NOT IN (SELECT name FROM live)")
    freed = link.execute(
        "UPDATE run SET owner = NULL, epoch = epoch + 1, status = 'interrupted', asks = '[]' "
        "WHERE number IN (SELECT number FROM run r WHERE owner IS NOT NULL "
        "AND NOT EXISTS(SELECT 1 FROM worker w WHERE w.name = r.owner) "
        "ORDER BY number FOR UPDATE SKIP LOCKED) RETURNING number"
    ).fetchall()
    if freed:
        numbers = [number for (number,) in freed]
        link.execute("DELETE FROM run WHERE number = ANY(%s) AND NOT begun", (numbers,))


def _forget_empty(link: PostgresLink, number: int) -> None:
    link.execute("DELETE FROM run WHERE number = %s AND NOT begun AND owner IS NULL", (number,))
