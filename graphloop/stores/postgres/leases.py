"""The SQL statements for workers and their claims; the caller begins and ends the transaction.

    unclaimed --claim--> owner, epoch + 1 --release--> unclaimed
                           |
                           +-- owner dead --sweep--> interrupted, epoch + 1 --> unclaimed

A lease is a row of a worker, not of a run, so that nothing is renewed for each run. A worker is
dead if its session lock is free (its process or its host is gone) or if its beat is older than its
lease (it stalls). The sweep frees each run whose owner has no row in `worker`: also a run that a
stalled worker claims after its row is gone. The epoch keeps the old owner from writing.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterable
from typing import Final, LiteralString, final

from msgspec import Struct
from msgspec.json import encode

from ...errors import RunBusy, StoreError
from ..backlog import refusals_after, refuse_full
from ..mailbox import news_key, tells_parent
from ..memory import Claims
from ..rows import LeftAs, fenced, refusals_in
from ..run_ids import above
from .schema import CHANNEL, LOCK_CLASS, Link

__all__ = [
    "HeldRun",
    "Holder",
    "beat",
    "claim",
    "end_row",
    "give_back",
    "interrupt",
    "notify",
    "release",
    "sweep",
    "take_row",
]

# The worker's row stays as long as the claim is not committed: a sweep waits for it.
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


class HeldRun(Struct, frozen=True, gc=False):
    """A claim of this store object.

    Attributes:
        number: the number of the run's row.
        epoch: the epoch of the claim.
    """

    number: int
    epoch: int


@final
class Holder:
    """The identity of one store object in the database, and the claims of its drivers.

    Only the writing thread changes it, after a transaction.

    Attributes:
        name: the name of the worker's row; a worker that was declared dead takes a new one.
        lease_s: the seconds after which a worker that does not beat is dead.
        clock: returns this machine's Unix time, by which questions expire.
        is_registered: whether the worker has had a row under this name.
        held: maps the id of a claimed run to its claim. A lost claim stays here, so that an append
            under it is refused.
        claims: the claims of the drivers within this process.
        serves: maps the agents of this process's workers to the revisions of their pins.
    """

    def __init__(self, lease_s: float, clock: Callable[[], float]) -> None:
        self.lease_s = lease_s
        self.clock = clock
        self.is_registered = False
        self.held: dict[str, HeldRun] = {}
        self.claims = Claims()
        self.serves: dict[str, str] = {}
        self.name = ""
        self.rename()

    def rename(self) -> None:
        """Take a new name: a worker that was declared dead does not go on under its old one."""
        self.name = f"{socket.gethostname()}, pid {os.getpid()}, store {uuid.uuid4().hex[:12]}"
        self.is_registered = False


def take_row(link: Link, holder: Holder) -> None:
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
    holder.is_registered = True


def beat(link: Link, holder: Holder) -> bool:
    """Tell that the worker is live; False if it was declared dead.

    A new session takes the lock again, which the end of the old one has freed.
    """
    taken = link.execute(
        "UPDATE worker SET beat = now_s(), lease_s = %s WHERE name = %s "
        "AND (pg_try_advisory_lock(%s, lock_id)) RETURNING 1",
        (holder.lease_s, holder.name, LOCK_CLASS),
    ).fetchone()
    return taken is not None


def claim(link: Link, holder: Holder, run_id: str) -> HeldRun:
    """Make the holder the owner of a run, and return the claim.

    A single statement does it if the worker has its row, the run no owner, and its queue no limit.

    Raises:
        RunBusy: a live worker owns the run, or its queue is full (`QueueFull`).
    """
    if (held := _claimed(link, holder, run_id, has_room=False)) is not None:
        return held
    with link.transaction():
        return _claim_with_care(link, holder, run_id)


def _claim_with_care(link: Link, holder: Holder, run_id: str) -> HeldRun:
    take_row(link, holder)
    _refuse_full(link, run_id)
    if (held := _claimed(link, holder, run_id)) is not None:
        return held
    sweep(link)
    if (held := _claimed(link, holder, run_id)) is not None:
        return held
    row = link.execute("SELECT owner FROM run WHERE run_id = %s", (run_id,)).fetchone()
    raise RunBusy(
        f"run {run_id!r} is being driven by {row and row[0]}. "
        "Fix: wait until that driver releases it, or dies."
    )


def _refuse_full(link: Link, run_id: str) -> None:
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


def _claimed(link: Link, holder: Holder, run_id: str, *, has_room: bool = True) -> HeldRun | None:
    given = {"name": holder.name, "run_id": run_id, "has_room": has_room}
    row = link.execute(CLAIM, given).fetchone()
    return None if row is None else HeldRun(row[0], row[1])


def release(
    link: Link, holder: Holder, run_id: str, standing: LeftAs | None, *, is_again: bool = False
) -> None:
    """End the holder's claim, and store the status unless it is None.

    The row is locked first, by a statement of its own: the next statement then sees each answer
    whose transaction held the lock before (`journal.post_answer`). So no wake-up is lost.

    Args:
        link: the connection.
        holder: the store object.
        run_id: the run's id.
        standing: the status to store; None leaves it unchanged.
        is_again: whether an attempt before may have been committed without an answer.

    Raises:
        StoreError: the holder has not claimed the run.
        Fenced: the claim is lost.
    """
    held = holder.held.get(run_id)
    if held is None:
        raise StoreError(f"run {run_id!r} is not claimed by this store, so it cannot be released.")
    if "/" in run_id:  # In one order, those above first, as every writer locks a family.
        family = [run_id, *above(run_id)]
        link.execute("SELECT FROM run WHERE run_id = ANY(%s) ORDER BY number FOR UPDATE", (family,))
    row = link.execute(
        "SELECT owner, epoch, begun, refusals, agent, status, asks FROM run WHERE number = %s "
        "FOR UPDATE",
        (held.number,),
    ).fetchone()
    gone = None, 0, False, b"[]", "", "ready", b"[]"
    owner, epoch, begun, refusals, agent, status, asked = row or gone
    if (owner, epoch) != (holder.name, held.epoch):
        if is_again and owner is None and epoch in (0, held.epoch):
            return
        raise fenced(run_id, owner, epoch, held.epoch)
    if standing is None:
        give_back(link, holder, held)
        return
    told, others, asks = standing.refusal, refusals_in(refusals), encode(standing.asks)
    # This machine's clock has stamped the question: the server's clock counts only the rest.
    wakes = standing.wake_at
    row = link.execute(
        "UPDATE run SET owner = NULL, asks = %(asks)s, updated = now_s(), ending = %(ending)s, "
        "wake_at = least(now_s() + %(wake)s, deadline), refusals = %(refusals)s, "
        "status = CASE WHEN %(status)s = 'parked' AND %(seen)s < "
        "(SELECT count(*) FROM signal WHERE run = number) THEN 'ready' ELSE %(status)s END "
        "WHERE number = %(number)s RETURNING status",
        {
            "asks": asks,
            "refusals": encode(() if told is None else refusals_after(others, told)),
            "ending": standing.ending,
            "wake": None if wakes is None else wakes - holder.clock(),
            "status": standing.status,
            "seen": standing.seen,
            "number": held.number,
        },
    ).fetchone()
    if not begun:
        _forget_empty(link, held.number)
    if agent and tells_parent((standing.status, asks), (status, asked)):
        _wake_above(link, run_id, held.epoch)
    if row is not None and row[0] in ("ready", "interrupted", "blocked"):
        notify(link)


def _wake_above(link: Link, run_id: str, epoch: int) -> None:
    """Leave news of a child run in the mailbox of the next run above that workers take."""
    parent = link.execute(
        "SELECT number, owner, status FROM run WHERE run_id = ANY(%s) AND begun AND agent <> '' "
        "ORDER BY length(run_id) DESC LIMIT 1",
        ([*above(run_id)],),
    ).fetchone()
    if parent is None:
        return
    number, owner, status = parent
    link.execute(
        "INSERT INTO signal(run, key, signal_id, data) VALUES(%s, %s, '', '') "
        "ON CONFLICT DO NOTHING",
        (number, news_key(run_id, epoch)),
    )
    if owner is None and status == "parked":
        link.execute(
            "UPDATE run SET status = 'ready', updated = now_s() WHERE number = %s", (number,)
        )
        notify(link)


def give_back(link: Link, holder: Holder, held: HeldRun) -> None:
    """End a claim without a change of the run's status."""
    link.execute(
        "UPDATE run SET owner = NULL WHERE number = %s AND owner = %s AND epoch = %s",
        (held.number, holder.name, held.epoch),
    )
    _forget_empty(link, held.number)


def interrupt(link: Link, holder: Holder, left: Iterable[HeldRun]) -> None:
    """Free the runs of drivers of this process that have gone without a release."""
    for held in sorted(left, key=lambda held: held.number):
        link.execute(
            "UPDATE run SET owner = NULL, epoch = epoch + 1, status = 'interrupted', asks = '[]' "
            "WHERE number = %s AND owner = %s AND epoch = %s",
            (held.number, holder.name, held.epoch),
        )
        _forget_empty(link, held.number)
    notify(link)


def end_row(link: Link, holder: Holder) -> None:
    """Delete the worker's row, because its store closes, and free its runs."""
    link.execute("DELETE FROM worker WHERE name = %s", (holder.name,))
    sweep(link)


def sweep(link: Link) -> None:
    """Delete the rows of dead workers, and free each run whose owner has no row.

    Two sweeps do no harm, but one at a time is enough. A run that another transaction changes now
    is left for the next sweep. Most sweeps find nothing to do, by a single statement.
    """
    if (link.execute(IS_DUE).fetchone() or (False,))[0]:
        with link.transaction():
            _free_orphans(link)


def _free_orphans(link: Link) -> None:
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
        notify(link)


def notify(link: Link) -> None:
    """Tell the workers, at the commit, that a run may wait for a driver."""
    link.execute("SELECT pg_notify(%s, '')", (CHANNEL,))


def _forget_empty(link: Link, number: int) -> None:
    link.execute("DELETE FROM run WHERE number = %s AND NOT begun AND owner IS NULL", (number,))
