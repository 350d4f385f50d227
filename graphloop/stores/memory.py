"""A journal in memory: for tests, and for runs that need not outlive their process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, final

from ..errors import StoreError, UnknownRun
from ..events import Event
from .base import Posted, RunRecord
from .journals import graph_of, parent_of

__all__ = ["MemoryStore"]


class _Kept:
    """What is known of one run."""

    def __init__(self, created_at: float) -> None:
        self.events: list[Event] = []
        self.signals: dict[str, tuple[str, str]] = {}
        self.created_at = self.updated_at = created_at
        self.target = ""


@final
class MemoryStore:
    """Keeps events in lists; gone with the process.

    It has no leases, so every run of its overview is "ready".

    Args:
        clock: tells when a run was made and changed, in seconds since the epoch.
    """

    durable: ClassVar[bool] = False

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep `event` as number `seq` of the run."""
        known = self._kept.get(run_id)
        count = 0 if known is None else len(known.events)
        if seq != count + 1:
            raise StoreError(
                f"run {run_id!r} has {count} event(s), so the next is number {count + 1}, "
                f"not {seq}: "
                + ("this run id is taken" if seq == 1 else "another driver is writing to it")
            )
        self._add(run_id, event)

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Keep whole new journals."""
        for run_id in journals:
            if run_id in self._kept:
                raise StoreError(f"this run id is taken: {run_id!r}")
        for run_id, events in journals.items():
            for event in events:
                self._add(run_id, event)

    def _add(self, run_id: str, event: Event) -> None:
        now = self._clock()
        kept = self._kept.setdefault(run_id, _Kept(now))
        kept.events.append(event)
        kept.updated_at = now

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run."""
        return tuple(self._run(run_id).events)

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return sorted(self._kept)

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

    async def overview(self) -> Sequence[RunRecord]:
        """Return all runs, in the order of their creation."""
        return tuple(
            RunRecord(
                run_id,
                graph_of(kept.events[0]),
                "ready",
                len(kept.events),
                kept.created_at,
                kept.updated_at,
                parent=parent_of(run_id, self._kept),
                target=kept.target,
            )
            for run_id, kept in self._kept.items()
        )

    async def set_target(self, run_id: str, target: str) -> None:
        """Note what the run was started from."""
        self._run(run_id).target = target

    def _run(self, run_id: str) -> _Kept:
        if run_id not in self._kept:
            raise UnknownRun(f"no run {run_id!r} in this store; it has {len(self._kept)}")
        return self._kept[run_id]
