"""A journal in memory: for tests, and for runs that need not outlive their process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import final

from ..errors import StoreError, UnknownRun
from ..events import Event
from .base import Ask, Posted, ReleaseStatus, RunRecord, RunStatus
from .claims import Claims
from .journals import graph_name_of, is_within, out_of_order, parent_of

__all__ = ["MemoryStore"]


class _Kept:
    """The journal, claim and answers of a run."""

    def __init__(self, created_at: float) -> None:
        self.events: list[Event] = []
        self.signals: dict[str, tuple[str, str]] = {}
        self.created_at = self.updated_at = created_at
        self.target = ""
        self.status: RunStatus = "ready"
        self.asks: tuple[Ask, ...] = ()


@final
class MemoryStore:
    """Keeps events in lists, gone with the process. Also `Leases`, `Mailbox`, `Catalog`, `Bulk`.

    A claim ends when it is released, or when the event loop of its driver is closed.

    Args:
        clock: the time of creations and changes, in seconds since the epoch.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._claims = Claims()

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep `event` as number `seq` of the run."""
        self.keep(run_id, seq, event)

    def keep(self, run_id: str, seq: int, event: Event) -> None:
        """Keep `event` at once: `append` for a driver in this process, which need not wait."""
        known = self._kept.get(run_id)
        count = 0 if known is None else len(known.events)
        if seq != count + 1:
            raise out_of_order(f"run {run_id!r}", count + 1, seq)
        self._add(run_id, event)

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Keep whole new journals."""
        for run_id in journals:
            if run_id in self._runs():
                raise StoreError(f"this run id is taken: {run_id!r}")
        for run_id, events in journals.items():
            for event in events:
                self._add(run_id, event)

    def _add(self, run_id: str, event: Event) -> None:
        now, kept = self._clock(), self._kept.get(run_id)
        if kept is None:
            kept = self._kept[run_id] = _Kept(now)
        kept.events.append(event)
        kept.updated_at = now

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run."""
        return tuple(self._run(run_id).events)

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return sorted(self._runs())

    async def claim(self, run_id: str) -> None:
        """Become the only driver of a run, which need not exist yet."""
        is_left = self._claims.is_taken(run_id)
        self._claims.take(run_id)
        kept = self._kept.get(run_id)
        if kept is None:
            self._kept[run_id] = _Kept(self._clock())
        elif is_left:
            kept.status, kept.asks = "interrupted", ()

    async def release(self, run_id: str, status: ReleaseStatus | None, asks: Sequence[Ask]) -> None:
        """Stop driving a run, and record its status, if any, and its open questions."""
        if self._claims.is_taken(run_id):
            kept = self._kept[run_id]
            if status is not None:
                kept.status, kept.asks, kept.updated_at = status, tuple(asks), self._clock()
            if not kept.events:
                del self._kept[run_id]
        self._claims.give_back(run_id)

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Answer `key` of a run."""
        signals = self._run(run_id).signals
        if key not in signals:
            signals[key] = signal_id, data
            return "accepted"
        return "duplicate" if signals[key][0] == signal_id else "answered"

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Return the accepted answers by key."""
        kept = self._kept.get(run_id)
        return {} if kept is None else {key: data for key, (_, data) in kept.signals.items()}

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or one run and its descendants."""
        runs = self._runs()
        return tuple(
            RunRecord(
                run_id,
                graph_name_of(kept.events[0]),
                self._status(run_id, kept),
                len(kept.events),
                kept.created_at,
                kept.updated_at,
                parent=parent_of(run_id, runs),
                asks=() if self._claims.is_taken(run_id) else kept.asks,
                target=kept.target,
            )
            for run_id, kept in runs.items()
            if root is None or is_within(run_id, root)
        )

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target that the run was started from."""
        self._run(run_id).target = target

    def _status(self, run_id: str, kept: _Kept) -> RunStatus:
        if not self._claims.is_taken(run_id):
            return kept.status
        return "running" if self._claims.is_live(run_id) else "interrupted"

    def _runs(self) -> dict[str, _Kept]:
        """Return the started runs; a run that is only claimed may never start."""
        return {run_id: kept for run_id, kept in self._kept.items() if kept.events}

    def _run(self, run_id: str) -> _Kept:
        kept = self._kept.get(run_id)
        if kept is None or not kept.events:
            raise UnknownRun(f"no run {run_id!r} in this store; it has {len(self._runs())}")
        return kept
