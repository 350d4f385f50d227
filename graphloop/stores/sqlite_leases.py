"""Claims, leases and the fence of runs, as statements within the caller's transaction.

    free --claim--> owner, epoch + 1 --release--> free
                      |                             (append: any, in order)
                      +-- lease runs out --claim by another--> owner', epoch + 2
                      +-- left: its release failed --written at a later beat--> free
                      +-- its event loop is gone --written at a later beat--> lease runs out

The lease says when another driver may take a run from its owner. The epoch, not a clock, keeps
the old owner from writing: its next append finds a higher epoch and is `Fenced`.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import TypeAlias, final

from msgspec import Struct
from msgspec.json import encode

from ..errors import Fenced, RunBusy, StoreError
from .base import Ask, ReleaseStatus
from .memory import Claims

__all__ = [
    "LapsedClaim",
    "Standing",
    "Tenant",
    "abandon",
    "claim",
    "fence",
    "give_back",
    "give_up",
    "release",
    "renew",
]


Standing: TypeAlias = tuple[ReleaseStatus, tuple[Ask, ...]]
"""The status of a released run, and its open questions."""


class LapsedClaim(Struct, frozen=True, gc=False):
    """A claim whose driver is gone, with the status it left, or None for no change."""

    epoch: int
    standing: Standing | None = None


@final
class Tenant:
    """A store object as the database knows it, and the epochs of its claims.

    `epochs` keeps lost claims too: only a new claim makes this store a driver again. A claim that
    could not be released moves to `left` until the database takes it. The writing thread changes
    both, after the commit.
    """

    def __init__(self, lease_s: float, clock: Callable[[], float]) -> None:
        self.name = f"{socket.gethostname()}, pid {os.getpid()}, store {uuid.uuid4().hex[:12]}"
        self.lease_s = lease_s
        self.clock = clock
        self.epochs: dict[str, int] = {}
        self.left: dict[str, LapsedClaim] = {}
        self.claims = Claims()

    def leave(self, run_id: str, standing: Standing | None) -> None:
        """Stop driving a run whose release could not be written."""
        if (epoch := self.epochs.pop(run_id, None)) is not None:
            self.left[run_id] = LapsedClaim(epoch, standing)

    def forget(self, run_id: str, left: LapsedClaim) -> None:
        """Drop a written release; the run may have been claimed and left again since."""
        if self.left.get(run_id) is left:
            del self.left[run_id]

    def until(self) -> float:
        """Return when a lease taken now runs out."""
        return self.clock() + self.lease_s


def claim(connection: Connection, tenant: Tenant, run_id: str) -> int:
    """Make the tenant the only driver of a run, and return the epoch of its claim.

    The store refuses runs that it drives itself: a claim of its own here is a dead driver's.
    A run that a dead driver left is noted as interrupted.
    """
    now = tenant.clock()
    row: tuple[str | None, int, float] | None = connection.execute(
        "SELECT owner, epoch, lease_until FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    owner, epoch, lease_until = (None, 0, 0.0) if row is None else row
    if owner not in (None, tenant.name) and lease_until > now and not _is_dead(owner):
        until = datetime.fromtimestamp(lease_until, UTC).isoformat(timespec="seconds")
        raise RunBusy(
            f"run {run_id!r} is being driven by {owner}, whose lease runs until {until}. "
            "Fix: wait until that driver releases it, or dies."
        )
    # Not `excluded`: the new epoch counts on from the stored one, whichever process wrote it.
    (epoch,) = connection.execute(
        "INSERT INTO run(run_id, owner, epoch, lease_until, created, updated) VALUES(?,?,1,?,?,?) "
        "ON CONFLICT(run_id) DO UPDATE SET owner = excluded.owner, epoch = epoch + 1, "
        "lease_until = excluded.lease_until, status = iif(owner IS NULL, status, 'interrupted'), "
        "asks = iif(owner IS NULL, asks, x'5b5d') RETURNING epoch",
        (run_id, tenant.name, tenant.until(), now, now),
    ).fetchone()
    return int(epoch)


def release(
    connection: Connection,
    tenant: Tenant,
    run_id: str,
    standing: Standing | None,
) -> None:
    """End the tenant's claim and write the status, if any; a run without events is removed."""
    if run_id not in tenant.epochs:
        raise StoreError(f"run {run_id!r} is not claimed by this store, so it cannot be released.")
    row = connection.execute("SELECT owner, epoch FROM run WHERE run_id = ?", (run_id,)).fetchone()
    fence(tenant, run_id, row)
    give_back(connection, tenant, run_id, LapsedClaim(tenant.epochs[run_id], standing))


def give_back(
    connection: Connection, tenant: Tenant, run_id: str, left: LapsedClaim
) -> LapsedClaim:
    """End a claim without a driver and write its status, unless another driver has the run.

    A run without events is removed.

    Returns:
        The claim that was written.
    """
    if left.standing is None:
        abandon(connection, tenant, run_id, left.epoch)
        return left
    status, asks = left.standing
    connection.execute(
        "UPDATE run SET owner = NULL, lease_until = 0, status = ?, asks = ?, updated = ? "
        "WHERE run_id = ? AND owner = ? AND epoch = ?",
        (status, encode(asks), tenant.clock(), run_id, tenant.name, left.epoch),
    )
    _forget_empty(connection, run_id)
    return left


def fence(tenant: Tenant, run_id: str, row: tuple[str | None, int] | None) -> None:
    """Refuse a tenant that has lost its claim, or never claimed a run that another drives.

    Args:
        tenant: the store object that writes.
        run_id: the run that it writes to.
        row: the run's owner and epoch, or None where there is no such run.
    """
    owner, epoch = (None, 0) if row is None else row
    mine = tenant.epochs.get(run_id)
    if mine is None and owner in (None, tenant.name):
        return
    if mine == epoch and owner == tenant.name:
        return
    holder = f"is driven by {owner}" if owner else "has no driver"
    raise Fenced(
        f"run {run_id!r} {holder} now, in epoch {epoch}; this driver "
        + ("never claimed it" if mine is None else f"claimed it in epoch {mine} and must stop")
    )


def renew(connection: Connection, tenant: Tenant) -> None:
    """Prolong the leases of the tenant's live drivers; those of closed event loops run out.

    A lease that another driver took meanwhile stays with that driver.
    """
    until, is_live = tenant.until(), tenant.claims.is_live
    connection.executemany(
        "UPDATE run SET lease_until = ? WHERE run_id = ? AND owner = ? AND epoch = ?",
        [
            (until if is_live(run_id) else 0.0, run_id, tenant.name, epoch)
            for run_id, epoch in tenant.epochs.items()
        ],
    )


def give_up(connection: Connection, tenant: Tenant) -> None:
    """Let all leases of the tenant run out at once: it will not write again."""
    for run_id, left in tenant.left.items():
        give_back(connection, tenant, run_id, left)
    connection.execute("UPDATE run SET lease_until = 0 WHERE owner = ?", (tenant.name,))


def abandon(connection: Connection, tenant: Tenant, run_id: str, epoch: int) -> None:
    """Undo a claim; the run keeps its status."""
    connection.execute(
        "UPDATE run SET owner = NULL, lease_until = 0 WHERE run_id = ? AND owner = ? AND epoch = ?",
        (run_id, tenant.name, epoch),
    )
    _forget_empty(connection, run_id)


def _is_dead(owner: str) -> bool:
    """Whether an owner was a process of this machine that has died.

    No driver waits for its lease. A process in another namespace may only seem dead: it is fenced
    like any driver that lost its claim.
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


def _forget_empty(connection: Connection, run_id: str) -> None:
    connection.execute(
        "DELETE FROM run WHERE run_id = ? AND next_seq = 1 AND owner IS NULL", (run_id,)
    )
