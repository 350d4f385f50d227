"""A store in memory, which loses its runs when the process ends, and claims within a process."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import Final, TypeVar, final
from weakref import ReferenceType, ref

from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import RunBusy, StoreError
from ..events import Event, Started
from .backlog import (
    PlaceInLine,
    QueueLimits,
    Submission,
    UnderWay,
    has_refused,
    in_turn,
    refusals_after,
    refuse_full,
    wake_at,
)
from .base import Ask, Change, Posted, Refusal, ReleaseStatus, RunRecord, RunStatus
from .journals import graph_name_of, out_of_order, revision_in
from .mailbox import is_command, news_key, tells_parent
from .run_ids import ancestors_of, is_within, parent_of, unknown_run

__all__ = ["Claims", "MemoryStore", "running_loop"]

T = TypeVar("T")

running_loop: Final = asyncio._get_running_loop  # pyright: ignore[reportPrivateUsage]
"""Returns the running event loop or None; `asyncio.get_running_loop` raises in place of None."""


@final
class Claims(Struct, eq=False):
    """The runs that drivers have claimed through one store object, possibly in several threads.

    These claims need no lease with a time limit: a driver is dead if its event loop is closed, and
    cannot write then. A store that several processes share uses this class for its own drivers.

    Attributes:
        taken: maps the id of a claimed run to its driver's event loop, or to None without one.
    """

    taken: dict[str, ReferenceType[AbstractEventLoop] | None] = {}
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, run_id: str) -> None:
        """Claim a run for the current event loop, unless a live driver has claimed it.

        Raises:
            RunBusy: the run is claimed, and the event loop of its driver is not closed.
        """
        loop = running_loop()
        with self._lock:
            if run_id in self.taken and self.is_live(run_id):
                raise RunBusy(
                    f"run {run_id!r} is being driven in this process, through this store. "
                    "Fix: wait until its driver ends, or close the stream that drives it."
                )
            self.taken[run_id] = None if loop is None else ref(loop)

    def give_back(self, run_id: str) -> None:
        """End the claim on a run.

        Raises:
            StoreError: the run is not claimed.
        """
        with self._lock:
            if run_id not in self.taken:
                raise StoreError(
                    f"run {run_id!r}: expected a claim of this store, found none. Fix: claim it."
                )
            del self.taken[run_id]

    def is_live(self, run_id: str) -> bool:
        """Whether a run is claimed by a driver whose event loop is not closed."""
        if run_id not in self.taken:
            return False
        known = self.taken[run_id]
        loop = None if known is None else known()
        return known is None or (loop is not None and not loop.is_closed())


class _Kept(Struct, eq=False):
    """The data of one run in a `MemoryStore`: journal, answers, status, questions and wake-up."""

    created_at: float
    updated_at: float
    events: list[Event] = []
    signals: dict[str, tuple[str, str]] = {}
    target: str = ""
    status: RunStatus = "ready"
    asks: tuple[Ask, ...] = ()
    wake_at: float = math.inf
    deadline: float = math.inf
    place: Submission = Submission()
    is_placed: bool = False
    epoch: int = 0
    refusals: tuple[Refusal, ...] = ()
    ending: str = ""


@final
class MemoryStore:
    """A store in memory, for tests and for runs that need not survive their process.

    It has all abilities that `base` names. A claim ends with its release, or with its event loop.

    Args:
        clock: returns the current Unix time, for the times in `RunRecord`.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        # The child runs by their root, so that a look at one run does not visit the others.
        self._children: dict[str, dict[str, None]] = {}
        self._claims = Claims()
        self._meters: dict[str, float] = {}
        self._queues: dict[str, QueueLimits] = {}

    def __repr__(self) -> str:
        return f"<MemoryStore: runs: {len(self._kept)}>"

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Append events to a run's journal; the first new event gets the number `seq`."""
        self._append(run_id, seq, *events)

    def keep_next(self, run_id: str, seq: int, event: Event) -> bool:
        """Append an event to a claimed run without `await`; False if `seq` is not the next number.

        It is for a driver in this process; what it refuses, `append` refuses with the reason.
        """
        kept = self._kept.get(run_id)
        if kept is None or seq != len(kept.events) + 1:
            return False
        kept.events.append(event)
        kept.updated_at = self._clock()
        return True

    def _append(self, run_id: str, seq: int, *events: Event) -> None:
        now, kept = self._clock(), self._kept.get(run_id)
        count = 0 if kept is None else len(kept.events)
        if seq != count + 1:
            raise out_of_order(f"run {run_id!r}", count + 1, seq)
        if kept is None:
            kept = self._kept[run_id] = _Kept(now, now)
            if "/" in run_id or run_id in self._children:
                self._children.setdefault(run_id.partition("/")[0], {})[run_id] = None
        kept.events.extend(events)
        kept.updated_at = now

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Save a new journal for each run id; save none if a run id is taken."""
        for run_id in journals:
            if run_id in self._runs():
                raise StoreError(f"this run id is taken: {run_id!r}")
        for run_id, events in journals.items():
            self._append(run_id, 1, *events)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run, in order."""
        return tuple(self._run(run_id).events)

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs that have an event, in alphabetical order."""
        return sorted(self._runs())

    async def claim(self, run_id: str) -> None:
        """Claim a run, so that no other driver can write to it; the run need not exist yet."""
        is_left = run_id in self._claims.taken
        kept = self._kept.get(run_id)
        if self._queues and kept is not None and self._agent_of(run_id):
            busy = [one for one, _ in self._under_way()] if not self._claims.is_live(run_id) else []
            running = self._queues.get(kept.place.queue, QueueLimits()).running
            refuse_full(run_id, kept.place.queue, running, busy.count(kept.place.queue))
        self._claims.take(run_id)
        if kept is None:
            now = self._clock()
            self._kept[run_id] = _Kept(now, now)
            if "/" in run_id or run_id in self._children:
                self._children.setdefault(run_id.partition("/")[0], {})[run_id] = None
        elif is_left:
            kept.status, kept.asks = "interrupted", ()
        self._kept[run_id].epoch += 1

    async def release(  # noqa: PLR0913 - each is a column of the run's row
        self,
        run_id: str,
        status: ReleaseStatus | None,
        asks: Sequence[Ask],
        *,
        seen: int = 0,
        wake_s: float | None = None,
        refusal: Refusal | None = None,
        ending: str = "",
    ) -> None:
        """End the claim on a run, and record its status and questions unless `status` is None."""
        if run_id in self._claims.taken:
            kept = self._kept[run_id]
            if status is not None:
                found = kept.status, kept.asks
                kept.status = "ready" if status == "parked" and seen < len(kept.signals) else status
                kept.asks, kept.updated_at, kept.ending = tuple(asks), self._clock(), ending
                may_wake = asks or wake_s is not None
                wakes = wake_at(asks, kept.updated_at, wake_s) if may_wake else None
                kept.wake_at = min(kept.deadline, math.inf if wakes is None else wakes)
                kept.refusals = () if refusal is None else refusals_after(kept.refusals, refusal)
                if kept.is_placed and tells_parent((status, kept.asks), found):
                    self._wake_parent(run_id, kept.epoch)
            if not kept.events:
                del self._kept[run_id]
        self._claims.give_back(run_id)

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Store an answer to the question `key` of a run, unless the question has an answer."""
        kept = self._run(run_id)
        if key in kept.signals:
            return "duplicate" if kept.signals[key][0] == signal_id else "answered"
        kept.signals[key] = signal_id, data
        if kept.status == "parked" and run_id not in self._claims.taken:
            kept.status, kept.updated_at = "ready", self._clock()
        return "accepted"

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Map the key of each answered question of a run to the accepted answer."""
        kept = self._kept.get(run_id)
        return {} if kept is None else {key: data for key, (_, data) in kept.signals.items()}

    async def record(self, run_id: str) -> RunRecord:
        """Return the record of one run."""
        return self._record_of(run_id, self._run(run_id), self._family(run_id.partition("/")[0]))

    async def page(
        self, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
    ) -> Sequence[RunRecord]:
        """Return runs in the order of their creation, from the one that follows the run `after`."""
        known = self._runs()
        ids = [*known]
        if after:
            self._run(after)  # Raises if there is no such run.
        found = [
            self._record_of(run_id, known[run_id], (run_id.rpartition("/")[0],))
            for run_id in ids[ids.index(after) + 1 if after else 0 :]
            if graph in (None, graph_name_of(known[run_id].events[0]))
            if not statuses or self._status_of(run_id, known[run_id]) in statuses
        ]
        return found[:limit]

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or only `root` and its descendants."""
        known = self._runs() if root is None else self._family(root.partition("/")[0])
        return tuple(
            self._record_of(run_id, kept, known)
            for run_id, kept in known.items()
            if root is None or is_within(run_id, root)
        )

    async def ready(
        self,
        agents: Collection[str],
        limit: int,
        *,
        revisions: Collection[str] = (),
        queue: str | None = None,
        pinned: bool = False,
    ) -> Sequence[str]:
        """Return ids of runs that a driver could take further now, at most `limit`."""
        now, first = self._clock(), {"interrupted", "blocked"}
        waiting = [
            PlaceInLine(
                0
                if status in first
                else 1 + (not (kept.asks or kept.epoch or "/" in run_id) and kept.wake_at > now),
                -kept.place.priority,
                *(kept.updated_at, run_id, kept.place.queue, kept.place.tenant),
            )
            for run_id, kept in self._runs().items()
            if self._agent_of(run_id) in agents
            if queue in (None, kept.place.queue)
            if not pinned or self._revision_of(run_id) in ("", *revisions)
            if (status := self._status_of(run_id, kept)) in {"interrupted", "ready"}
            or (status == "parked" and kept.wake_at <= now)
            or (status == "blocked" and revisions and not has_refused(kept.refusals, revisions))
        ]
        return in_turn(waiting, self._under_way(), self._queues)[:limit]

    async def enlist(self, started: Started, place: Submission) -> None:
        """Save the first event of a new run together with the run's place."""
        self._append(started.run_id, 1, started)
        kept = self._run(started.run_id)
        kept.place = place
        if place.deadline_s is not None:
            kept.deadline = kept.wake_at = self._clock() + place.deadline_s

    async def set_queues(self, queues: Mapping[str, QueueLimits]) -> None:
        """Keep the limits and weights of these queues; the last call counts."""
        self._queues.update(queues)

    async def place(self, run_id: str) -> None:
        """Let drivers take a child run without its parent, in its root's place in line."""
        kept, root = self._run(run_id), self._run(run_id.partition("/")[0])
        kept.is_placed, kept.place = True, replace(root.place, deadline_s=None)

    async def retry(self, revisions: Collection[str]) -> None:
        """Forget the refusals of blocked runs that have one of these revisions."""
        for kept in self._kept.values():
            if kept.status == "blocked" and has_refused(kept.refusals, revisions):
                kept.refusals = ()

    async def commands(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Map the id of each of these runs that has commands to them, in the order of arrival."""
        found: dict[str, dict[str, str]] = {}
        for run_id in run_ids:
            for key, data in (await self.posted(run_id)).items():
                if is_command(key):
                    found.setdefault(run_id, {})[key] = data
        return found

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Change meters, and return the second result of `change`."""
        known = {name: self._meters[name] for name in names if name in self._meters}
        changed, result = change(known, self._clock())
        self._meters.update(changed)
        return result

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target of `graphloop run` that started the run."""
        self._run(run_id).target = target

    def _under_way(self) -> list[UnderWay]:
        """Return the queue and the tenant of each run that a live driver has claimed."""
        taken = [run_id for run_id in self._claims.taken if self._agent_of(run_id)]
        places = [self._kept[run_id].place for run_id in taken if self._claims.is_live(run_id)]
        return [(place.queue, place.tenant) for place in places]

    def _wake_parent(self, run_id: str, epoch: int) -> None:
        """Leave news of a child run in the mailbox of the next run above that drivers take."""
        for parent in ancestors_of(run_id):
            kept = self._kept.get(parent)
            if kept is not None and self._agent_of(parent):
                kept.signals[news_key(run_id, epoch)] = "", ""
                if kept.status == "parked" and parent not in self._claims.taken:
                    kept.status, kept.updated_at = "ready", self._clock()
                return

    def _agent_of(self, run_id: str) -> str:
        """Return the name of the agent whose workers take a run; "" if its parent drives it."""
        root, kept = run_id.partition("/")[0], self._kept[run_id]
        is_taken = kept.events and (root == run_id or kept.is_placed)
        return graph_name_of(self._run(root).events[0]) if is_taken else ""

    def _family(self, root: str) -> dict[str, _Kept]:
        """Return the run with this id and its descendants, as far as they have an event."""
        children = self._children.get(root, {})
        ids = children if root in children else (root, *children)
        return {one: kept for one in ids if (kept := self._kept.get(one)) and kept.events}

    def _record_of(self, run_id: str, kept: _Kept, known: Container[str]) -> RunRecord:
        status = self._status_of(run_id, kept)
        is_left = status == "interrupted" and run_id in self._claims.taken
        return RunRecord(
            run_id,
            graph_name_of(kept.events[0]),
            *(status, len(kept.events), kept.created_at, kept.updated_at),
            parent_of(run_id, known),
            *(() if is_left else kept.asks, kept.target, kept.refusals),
            None if kept.deadline == math.inf else kept.deadline - self._clock(),
            *(self._revision_of(run_id), kept.place.queue, kept.ending),
        )

    def _revision_of(self, run_id: str) -> str:
        known = run_id.partition("/")[0] if self._kept[run_id].is_placed else run_id
        return revision_in(self._kept[known].events)

    def _status_of(self, run_id: str, kept: _Kept) -> RunStatus:
        if run_id not in self._claims.taken:
            return kept.status
        return "running" if self._claims.is_live(run_id) else "interrupted"

    def _runs(self) -> dict[str, _Kept]:
        """Return the runs that have an event; a run that is only claimed does not exist yet."""
        return {run_id: kept for run_id, kept in self._kept.items() if kept.events}

    def _run(self, run_id: str) -> _Kept:
        kept = self._kept.get(run_id)
        if kept is None or not kept.events:
            raise unknown_run(run_id)
        return kept
