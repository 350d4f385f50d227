"""The SQL statements for leases of runs; the caller begins and ends the transaction.

A lease is a part of a run's row: a claim and each append prolong it, and so does a beat of the
writing thread. Once it has run out, another driver may claim the run. So it may at once if the
process of the owner no longer exists on this machine. `database/claims.py` has the rest of a
claim's life.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from ...errors import RunBusy
from ..backlog import refuse_full
from ..database.claims import HeldRun, Holder, give_back
from ..database.jobs import Asking, at_once
from ..rows import fenced
from .schema import SqliteLink, is_dead

__all__ = ["claim", "fence", "give_up", "renew"]

# `epoch` is the stored value; `excluded.epoch` would be 1, from the row of this INSERT.
CLAIM: Final = (
    "INSERT INTO run(run_id, owner, epoch, lease_until, created, updated) VALUES(?,?,1,?,?,?) "
    "ON CONFLICT(run_id) DO UPDATE SET owner = excluded.owner, epoch = epoch + 1, "
    "lease_until = excluded.lease_until, status = iif(owner IS NULL, status, 'interrupted'), "
    "asks = iif(owner IS NULL, asks, '[]') RETURNING number, epoch"
)


def claim(link: SqliteLink, holder: Holder, run_id: str) -> Asking[HeldRun]:
    """Make the holder the owner of a run, and return the claim.

    If a dead driver still owned the run, the run's status becomes "interrupted". A row that this
    holder owns is from a dead driver, because the store refuses a run that it still drives.

    Raises:
        RunBusy: another live store owns the run, and its lease has not run out.
    """
    now = holder.clock()
    row: tuple[str | None, float] | None = link.execute(
        "SELECT owner, lease_until FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    owner, lease_until = (None, 0.0) if row is None else row
    if owner not in (None, holder.name) and lease_until > now and not is_dead(owner):
        until = datetime.fromtimestamp(lease_until, UTC).isoformat(timespec="seconds")
        raise RunBusy(
            f"run {run_id!r} is being driven by {owner}, whose lease runs until {until}. "
            "Fix: wait until that driver releases it, or dies."
        )
    _refuse_full(link, holder, run_id)
    given = run_id, holder.name, now + holder.lease_s, now, now
    answer = link.execute(CLAIM, given)
    yield
    return HeldRun(*answer.fetchone())


def fence(holder: Holder, run_id: str, row: tuple[str | None, int] | None) -> None:
    """Raise unless the holder has the latest claim on a run, or no other store has a claim.

    Args:
        holder: the store object that wants to write.
        run_id: the run's id.
        row: the owner and the epoch in the run's row; None if there is no row.

    Raises:
        Fenced: the holder lost its claim, or another store owns the run.
    """
    owner, epoch = (None, 0) if row is None else row
    held = holder.held.get(run_id)
    mine = None if held is None else held.epoch
    if mine is None and owner in (None, holder.name):
        return
    if mine == epoch and owner == holder.name:
        return
    raise fenced(run_id, owner, epoch, mine)


def renew(link: SqliteLink, holder: Holder) -> None:
    """Extend the leases of the holder's live drivers, and end the leases of its dead drivers.

    A driver is dead if its event loop is closed. Leases that another store has taken do not change.
    """
    until, is_live = holder.clock() + holder.lease_s, holder.claims.is_live
    link.executemany(
        "UPDATE run SET lease_until = ? WHERE run_id = ? AND owner = ? AND epoch = ?",
        [
            (until if is_live(run_id) else 0.0, run_id, holder.name, held.epoch)
            for run_id, held in holder.held.items()
        ],
    )


def give_up(link: SqliteLink, holder: Holder) -> None:
    """End all leases of the holder at once, because its store closes."""
    for run_id, lapsed in holder.lapsed.items():
        at_once(give_back(link, holder, run_id, lapsed))
    link.execute("UPDATE run SET lease_until = 0 WHERE owner = ?", (holder.name,))
    link.execute("DELETE FROM worker WHERE name = ?", (holder.name,))


def _refuse_full(link: SqliteLink, holder: Holder, run_id: str) -> None:
    limited = link.execute(
        "SELECT name, running FROM run JOIN queue ON name = queue WHERE run_id = ? "
        "AND running IS NOT NULL AND agent <> ''",
        (run_id,),
    ).fetchone()
    if limited is None:
        return
    name, running = limited
    owners = link.execute(
        "SELECT owner FROM run WHERE owner IS NOT NULL AND lease_until > ? AND queue = ? "
        "AND agent <> '' AND run_id <> ?",
        (holder.clock(), name, run_id),
    )
    refuse_full(run_id, name, running, sum(not is_dead(owner) for (owner,) in owners))
