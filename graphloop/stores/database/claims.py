"""The statements of claims, answers and places in line; the caller begins and ends the transaction.

    unclaimed --claim--> owner, epoch + 1 --release--> unclaimed
                           |
                           +-- owner dead --claim or sweep of another--> interrupted, epoch + 1
                           +-- release failed --written by a later beat--> unclaimed

The epoch, not a clock, keeps an old owner from writing: its next append finds a higher epoch and
raises `Fenced`. Whether an owner is dead, each database tells its own way (`leases.py`).

An answer, a command and news of a child run are signals: rows in a run's mailbox. A trigger on the
table `signal` counts them in the run's row (`posts`), and makes a parked run ready. A release
compares that count with the signals that its driver has read. Both change the run's row, so the
second sees the first, and no wake-up is lost. Another trigger tells the workers, if the database
can, of each run that begins to wait for a driver.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, final

from msgspec import Struct
from msgspec.json import encode

from ...errors import StoreError
from ..backlog import QueueLimits, Submission, refusals_after
from ..base import Posted, RunStatus
from ..mailbox import news_key, tells_parent
from ..memory import Claims
from ..rows import Standing, fenced, refusals_in, said_before
from ..run_ids import ancestors_of, unknown_run
from .jobs import Asking
from .link import SqlLink

# ruff: noqa: S608 - the statements are made of constants

__all__ = [
    "HeldRun",
    "Holder",
    "LapsedClaim",
    "forget_refusals",
    "give_back",
    "give_place",
    "note_queues",
    "note_target",
    "place_run",
    "post",
    "release",
]

MINE: Final = "WHERE run_id = :run_id AND owner = :owner AND epoch = :epoch RETURNING begun"
RELEASE: Final = (
    "UPDATE run SET owner = NULL, asks = :asks, refusals = :refusals, ending = :ending, "
    "wake_at = CASE WHEN deadline < now_s() + :wake_s THEN deadline "
    "ELSE coalesce(now_s() + :wake_s, deadline) END, updated = now_s(), "
    f"status = CASE WHEN :status = 'parked' AND :seen < posts THEN 'ready' ELSE :status END {MINE}"
)
ABANDON: Final = f"UPDATE run SET owner = NULL {MINE}"
# In one order, those above first, as every writer locks a family.
FAMILY: Final = (
    "SELECT run_id, agent, status, asks, refusals FROM run WHERE run_id = ANY(:run_ids) "
    "ORDER BY number FOR UPDATE"
)
TO_MAILBOX: Final = (
    "INSERT INTO signal(run, key, signal_id, data, ts) "
    "SELECT number, :key, :signal_id, :data, now_s() FROM run "
)
POST: Final = f"{TO_MAILBOX} WHERE run_id = :run_id AND begun ON CONFLICT DO NOTHING"
NEWS: Final = (
    f"{TO_MAILBOX} WHERE run_id = ANY(:run_ids) AND begun AND agent <> '' "
    "ORDER BY length(run_id) DESC LIMIT 1 ON CONFLICT DO NOTHING"
)
PLACE: Final = (
    "UPDATE run AS c SET agent = r.agent, tenant = r.tenant, priority = r.priority, "
    "queue = r.queue, revision = r.revision FROM run r "
    "WHERE r.run_id = :root AND c.run_id = :run_id AND c.agent = '' AND c.begun"
)


class HeldRun(Struct, frozen=True, gc=False):
    """A claim of a store object.

    Attributes:
        number: the number of the run's row.
        epoch: the epoch of the claim.
    """

    number: int
    epoch: int


class LapsedClaim(Struct, frozen=True, gc=False):
    """A claim that its driver gave up, but whose release is not in the database yet.

    Attributes:
        held: the claim.
        standing: the status and questions to store; None leaves the stored values unchanged.
    """

    held: HeldRun
    standing: Standing | None = None


@final
class Holder:
    """The identity of one store object in the database, and the claims of its drivers.

    Only the writing thread changes it, after a transaction.

    Attributes:
        name: the unique name by which the database stores the owner of a claim.
        lease_s: the seconds after which a driver that does not beat is dead.
        clock: returns this machine's Unix time, by which questions expire.
        is_announced: whether a row with this name was inserted, which a rollback may have undone.
        is_registered: whether the table `worker` has had a row with this name.
        held: maps the id of a claimed run to its claim. A lost claim stays here, so that an append
            under it is refused.
        lapsed: maps a run id to a claim whose release could not be written yet.
        claims: the claims of the drivers within this process.
        serves: maps the agents of this object's workers to the pin of each worker.
    """

    def __init__(self, lease_s: float, clock: Callable[[], float]) -> None:
        self.lease_s = lease_s
        self.clock = clock
        self.held: dict[str, HeldRun] = {}
        self.lapsed: dict[str, LapsedClaim] = {}
        self.claims = Claims()
        self.serves: dict[str, list[str]] = {}
        self.name = ""
        self.rename()

    def rename(self) -> None:
        """Take a new name: a worker that was declared dead does not go on under its old one."""
        self.name = f"{socket.gethostname()}, pid {os.getpid()}, store {uuid.uuid4().hex[:12]}"
        self.is_announced = self.is_registered = False

    def leave(self, run_id: str, standing: Standing | None) -> None:
        """Move a run's claim to `lapsed`, because its release could not be written."""
        if (held := self.held.pop(run_id, None)) is not None:
            self.lapsed[run_id] = LapsedClaim(held, standing)

    def forget(self, run_id: str, lapsed: LapsedClaim) -> None:
        """Remove a claim after its release was written, unless a newer one replaced it."""
        if self.lapsed.get(run_id) is lapsed:
            del self.lapsed[run_id]


def release(
    link: SqlLink, holder: Holder, run_id: str, held: HeldRun | None, standing: Standing | None
) -> Asking[None]:
    """End a claim that the holder had, and store the status unless it is None.

    Raises:
        StoreError: the holder has not claimed the run.
        Fenced: another store has claimed the run since.
    """
    if held is None:
        raise StoreError(
            f"run {run_id!r}: expected a claim of this store, found none. Fix: claim it."
        )
    if (yield from give_back(link, holder, run_id, LapsedClaim(held, standing))):
        return
    owner, epoch = link.ask(
        "SELECT owner, epoch FROM run WHERE run_id = :run_id", run_id=run_id
    ).fetchone() or (None, 0)
    if not (link.is_again and owner is None and epoch in (0, held.epoch)):
        raise fenced(run_id, owner, epoch, held.epoch)


def give_back(link: SqlLink, holder: Holder, run_id: str, lapsed: LapsedClaim) -> Asking[bool]:
    """End a claim, and store its status; change nothing, and return False, if it is lost.

    A run without events is deleted. A parked run with an unread signal becomes ready. The end of a
    child run that workers take, and its questions, wake the run above. For a run without one, this
    is one statement, unless the run is blocked.
    """
    mine = {"run_id": run_id, "owner": holder.name, "epoch": lapsed.held.epoch}
    if (standing := lapsed.standing) is None:
        answer = link.ask(ABANDON, **mine)
        yield
        return _is_ended(link, run_id, answer.fetchone())
    run_ids, asks, told = ancestors_of(run_id), encode(standing.asks).decode(), standing.refusal
    found: tuple[str, RunStatus, str, str] = "", "ready", "[]", "[]"
    if run_ids or told is not None:
        rows = link.ask(FAMILY, run_ids=[run_id, *run_ids]).fetchall()
        found = next((row[1:] for row in rows if row[0] == run_id), found)
    agent, status, asked, kept = found
    refusals = () if told is None else refusals_after(refusals_in(kept), told)
    # This machine's clock has stamped the question: the store's clock counts only the rest.
    wakes = standing.wake_at
    answer = link.ask(
        RELEASE,
        asks=asks,
        refusals=encode(refusals).decode(),
        ending=standing.ending,
        wake_s=None if wakes is None else wakes - holder.clock(),
        status=standing.status,
        seen=standing.seen,
        **mine,
    )
    yield
    row = answer.fetchone()
    if row is not None and agent and tells_parent((standing.status, asks), (status, asked)):
        news = news_key(run_id, lapsed.held.epoch)
        link.ask(NEWS, run_ids=[*run_ids], key=news, signal_id="", data="")
    return _is_ended(link, run_id, row)


def _is_ended(link: SqlLink, run_id: str, row: tuple[Any, ...] | None) -> bool:
    """Whether a claim has ended with this row; a run without events is deleted then."""
    if row is not None and not row[0]:
        link.ask(
            "DELETE FROM run WHERE run_id = :run_id AND NOT begun AND owner IS NULL", run_id=run_id
        )
    return row is not None


def post(link: SqlLink, run_id: str, key: str, signal_id: str, data: str) -> Asking[Posted]:
    """Store an answer, its id and its text, unless the key has an answer already."""
    given = {"run_id": run_id, "key": key}
    answer = link.ask(POST, signal_id=signal_id, data=data, **given)
    yield
    if answer.rowcount == 1:
        return "accepted"
    row = link.ask(
        "SELECT signal_id FROM run JOIN signal ON signal.run = number "
        "WHERE run_id = :run_id AND key = :key",
        **given,
    ).fetchone()
    if row is None:
        raise unknown_run(run_id)
    return said_before(row[0], signal_id)


def place_run(link: SqlLink, run_id: str) -> None:
    """Let the workers of the root's agent take a child run, in its root's place in line."""
    if not link.ask(PLACE, root=run_id.partition("/")[0], run_id=run_id).rowcount:
        known = "SELECT number FROM run WHERE run_id = :run_id AND begun"
        if link.ask(known, run_id=run_id).fetchone() is None:
            raise unknown_run(run_id)


def give_place(link: SqlLink, number: int, place: Submission) -> None:
    """Put a run that is submitted into its line."""
    link.ask(
        "UPDATE run SET tenant = :tenant, priority = :priority, deadline = now_s() + :deadline_s, "
        "wake_at = now_s() + :deadline_s, queue = :queue WHERE number = :number",
        number=number,
        tenant=link.name_of(place.tenant),
        priority=place.priority,
        deadline_s=place.deadline_s,
        queue=link.name_of(place.queue),
    )


def note_target(link: SqlLink, run_id: str, target: str) -> None:
    """Store the target of `graphloop run` that started the run."""
    known = "UPDATE run SET target = :target WHERE run_id = :run_id AND begun"
    if not link.ask(known, target=target, run_id=run_id).rowcount:
        raise unknown_run(run_id)


def note_queues(link: SqlLink, queues: Mapping[str, QueueLimits]) -> None:
    """Store the limits and weights of queues."""
    for name, queue in sorted(queues.items()):
        link.ask(
            "INSERT INTO queue(name, running, weights) VALUES(:name, :running, :weights) "
            "ON CONFLICT(name) DO UPDATE "
            "SET running = excluded.running, weights = excluded.weights",
            name=link.name_of(name),
            running=queue.running,
            weights=encode(queue.weights).decode(),
        )


def forget_refusals(link: SqlLink, revisions: Collection[str]) -> None:
    """Forget the refusals of blocked runs that have one of these revisions."""
    for revision in revisions:
        link.ask(
            "UPDATE run SET refusals = '[]' WHERE status = 'blocked' "
            "AND strpos(refusals, :revision) > 0",
            revision=revision,
        )
