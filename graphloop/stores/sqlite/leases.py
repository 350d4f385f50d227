"""The SQL statements for claims and leases of runs; the caller begins and ends the transaction.

    unclaimed --claim--> owner, epoch + 1 --release--> unclaimed (any store may append)
                           |
                           +-- lease runs out --claim by another store--> owner', epoch + 2
                           +-- release failed --written by a later renewal--> unclaimed
                           +-- event loop closed --written by a later renewal--> lease runs out

The lease says when another driver may take a run from its owner. The epoch, not a clock, keeps
the old owner from writing: its next append finds a higher epoch and raises `Fenced`.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import final

from msgspec import Struct
from msgspec.json import encode

from ...errors import RunBusy, StoreError
from ..backlog import refusals_after, refuse_full
from ..base import Refusal, RunStatus
from ..mailbox import news_key, tells_parent
from ..memory import Claims
from ..rows import LeftAs, fenced, refusals_in
from ..run_ids import above

__all__ = [
    "Holder",
    "LapsedClaim",
    "abandon",
    "claim",
    "fence",
    "give_back",
    "give_up",
    "is_dead",
    "release",
    "renew",
]


class LapsedClaim(Struct, frozen=True, gc=False):
    """A claim that its driver gave up, but whose release is not in the database yet.

    Attributes:
        epoch: the epoch of the claim.
        standing: the status and questions to store; None leaves the stored values unchanged.
    """

    epoch: int
    standing: LeftAs | None = None


@final
class Holder:
    """The identity of one store object in the database, and the claims of its drivers.

    Only the writing thread changes `epochs` and `left`, after a transaction. Commits change
    `numbers`, one after the other.

    Attributes:
        name: the unique name by which the database stores the owner of a claim.
        lease_s: the duration of a lease, in seconds.
        clock: returns the current Unix time.
        epochs: maps the id of a claimed run to the epoch of the claim. A claim that another store
            took over stays here, so that an append under it is refused.
        numbers: maps the id of a claimed run to the number of its row, once it has an event. A
            wrong number does no harm: the append then looks for the row by the run's id.
        left: maps a run id to a claim whose release could not be written yet.
        claims: the claims of the drivers within this process.
        serves: maps the agents of this process's workers to the revisions of their pins.
    """

    def __init__(self, lease_s: float, clock: Callable[[], float]) -> None:
        self.name = f"{socket.gethostname()}, pid {os.getpid()}, store {uuid.uuid4().hex[:12]}"
        self.lease_s = lease_s
        self.clock = clock
        self.epochs: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.left: dict[str, LapsedClaim] = {}
        self.claims = Claims()
        self.serves: dict[str, str] = {}

    def leave(self, run_id: str, standing: LeftAs | None) -> None:
        """Move a run's claim to `left`, because its release could not be written."""
        if (epoch := self.epochs.pop(run_id, None)) is not None:
            self.left[run_id] = LapsedClaim(epoch, standing)

    def forget(self, run_id: str, left: LapsedClaim) -> None:
        """Remove the claim `left` after its release was written, unless a newer one replaced it."""
        if self.left.get(run_id) is left:
            del self.left[run_id]

    def until(self) -> float:
        """Return the Unix time at which a lease that begins now runs out."""
        return self.clock() + self.lease_s


def claim(connection: Connection, holder: Holder, run_id: str) -> int:
    """Make the holder the owner of a run, and return the epoch of the new claim.

    If a dead driver still owned the run, the run's status becomes "interrupted". A row that this
    holder owns is from a dead driver, because the store refuses a run that it still drives.

    Raises:
        RunBusy: another live store owns the run, and its lease has not run out.
    """
    now = holder.clock()
    row: tuple[str | None, int, float] | None = connection.execute(
        "SELECT owner, epoch, lease_until FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    owner, epoch, lease_until = (None, 0, 0.0) if row is None else row
    if owner not in (None, holder.name) and lease_until > now and not is_dead(owner):
        until = datetime.fromtimestamp(lease_until, UTC).isoformat(timespec="seconds")
        raise RunBusy(
            f"run {run_id!r} is being driven by {owner}, whose lease runs until {until}. "
            "Fix: wait until that driver releases it, or dies."
        )
    _refuse_full(connection, holder, run_id)
    # `epoch` is the stored value; `excluded.epoch` would be 1, from the row of this INSERT.
    (epoch,) = connection.execute(
        "INSERT INTO run(run_id, owner, epoch, lease_until, created, updated) VALUES(?,?,1,?,?,?) "
        "ON CONFLICT(run_id) DO UPDATE SET owner = excluded.owner, epoch = epoch + 1, "
        "lease_until = excluded.lease_until, "
        "status = iif(owner IS NULL, status, 'interrupted'), "
        "asks = iif(owner IS NULL, asks, x'5b5d') RETURNING epoch",
        (run_id, holder.name, holder.until(), now, now),
    ).fetchone()
    return int(epoch)


def release(
    connection: Connection,
    holder: Holder,
    run_id: str,
    standing: LeftAs | None,
) -> None:
    """End the holder's claim, and store the status unless it is None; delete a run without events.

    Raises:
        StoreError: the holder has not claimed the run.
        Fenced: another store has claimed the run since.
    """
    if run_id not in holder.epochs:
        raise StoreError(f"run {run_id!r} is not claimed by this store, so it cannot be released.")
    row = connection.execute("SELECT owner, epoch FROM run WHERE run_id = ?", (run_id,)).fetchone()
    fence(holder, run_id, row)
    give_back(connection, holder, run_id, LapsedClaim(holder.epochs[run_id], standing))


def give_back(
    connection: Connection, holder: Holder, run_id: str, left: LapsedClaim
) -> LapsedClaim:
    """End the claim `left`, and store its status; change nothing if another store owns the run.

    A run without events is deleted. A parked run with an unread answer becomes ready. The end of a
    child run that workers take, and its questions, wake the run above.

    Returns:
        The claim `left`, for the writer to remove.
    """
    holder.numbers.pop(run_id, None)
    if left.standing is None:
        abandon(connection, holder, run_id, left.epoch)
        return left
    standing, asks = left.standing, encode(left.standing.asks)
    status = standing.status
    refusals: tuple[Refusal, ...] = ()
    known = "SELECT refusals, agent, status, asks FROM run WHERE run_id = ?"
    found: tuple[bytes, str, RunStatus, bytes] = connection.execute(
        known, (run_id,)
    ).fetchone() or (b"[]", "", status, asks)
    kept, agent = found[:2]
    if standing.refusal is not None:
        refusals = refusals_after(refusals_in(kept), standing.refusal)
    released = connection.execute(
        "UPDATE run SET owner = NULL, lease_until = 0, refusals = ?, ending = ?, asks = ?, "
        "wake_at = min(coalesce(?, deadline), coalesce(deadline, ?)), updated = ?, "
        "status = iif(? = 'parked' AND ? < (SELECT count(*) FROM signal "
        "WHERE signal.run_id = run.run_id), 'ready', ?) "
        "WHERE run_id = ? AND owner = ? AND epoch = ?",
        (
            *(encode(refusals), standing.ending, asks, standing.wake_at, standing.wake_at),
            *(holder.clock(), status, standing.seen, status),
            *(run_id, holder.name, left.epoch),
        ),
    )
    if agent and released.rowcount and tells_parent((status, asks), found[2:]):
        _wake_above(connection, holder, run_id, left.epoch)
    _forget_empty(connection, run_id)
    return left


def _wake_above(connection: Connection, holder: Holder, run_id: str, epoch: int) -> None:
    """Leave news of a child run in the mailbox of the next run above that drivers take."""
    for parent in above(run_id):
        taken = connection.execute(
            "SELECT 1 FROM run WHERE run_id = ? AND agent <> '' AND next_seq > 1", (parent,)
        ).fetchone()
        if taken is not None:
            now = holder.clock()
            connection.execute(
                "INSERT INTO signal(run_id, key, signal_id, data, ts) VALUES(?, ?, '', '', ?) "
                "ON CONFLICT DO NOTHING",
                (parent, news_key(run_id, epoch), now),
            )
            connection.execute(
                "UPDATE run SET status = 'ready', updated = ? WHERE run_id = ? "
                "AND status = 'parked' AND owner IS NULL",
                (now, parent),
            )
            return


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
    mine = holder.epochs.get(run_id)
    if mine is None and owner in (None, holder.name):
        return
    if mine == epoch and owner == holder.name:
        return
    raise fenced(run_id, owner, epoch, mine)


def renew(connection: Connection, holder: Holder) -> None:
    """Extend the leases of the holder's live drivers, and end the leases of its dead drivers.

    A driver is dead if its event loop is closed. Leases that another store has taken do not change.
    """
    until, is_live = holder.until(), holder.claims.is_live
    connection.executemany(
        "UPDATE run SET lease_until = ? WHERE run_id = ? AND owner = ? AND epoch = ?",
        [
            (until if is_live(run_id) else 0.0, run_id, holder.name, epoch)
            for run_id, epoch in holder.epochs.items()
        ],
    )


def give_up(connection: Connection, holder: Holder) -> None:
    """End all leases of the holder at once, because its store closes."""
    for run_id, left in holder.left.items():
        give_back(connection, holder, run_id, left)
    connection.execute("UPDATE run SET lease_until = 0 WHERE owner = ?", (holder.name,))
    connection.execute("DELETE FROM worker WHERE name = ?", (holder.name,))


def abandon(connection: Connection, holder: Holder, run_id: str, epoch: int) -> None:
    """End the holder's claim on a run without a change of the run's status."""
    holder.numbers.pop(run_id, None)
    connection.execute(
        "UPDATE run SET owner = NULL, lease_until = 0 WHERE run_id = ? AND owner = ? AND epoch = ?",
        (run_id, holder.name, epoch),
    )
    _forget_empty(connection, run_id)


def is_dead(owner: str) -> bool:
    """Whether the owner is a process of this machine that no longer exists.

    Such an owner's lease ends at once. A live process in another PID namespace also looks dead;
    its next append then raises `Fenced`, as for every lost claim.
    """
    host, _, rest = owner.partition(", pid ")
    pid = rest.partition(",")[0]
    if os.name != "posix" or host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _refuse_full(connection: Connection, holder: Holder, run_id: str) -> None:
    limited = connection.execute(
        "SELECT name, running FROM run JOIN queue ON name = queue WHERE run_id = ? "
        "AND running IS NOT NULL AND agent <> ''",
        (run_id,),
    ).fetchone()
    if limited is None:
        return
    name, running = limited
    owners = connection.execute(
        "SELECT owner FROM run WHERE owner IS NOT NULL AND lease_until > ? AND queue = ? "
        "AND agent <> '' AND run_id <> ?",
        (holder.clock(), name, run_id),
    )
    refuse_full(run_id, name, running, sum(not is_dead(owner) for (owner,) in owners))


def _forget_empty(connection: Connection, run_id: str) -> None:
    connection.execute(
        "DELETE FROM run WHERE run_id = ? AND next_seq = 1 AND owner IS NULL", (run_id,)
    )
