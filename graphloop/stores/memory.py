"""A journal in memory: for tests, and for runs that need not outlive their process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ..errors import StoreError
from ..events import Event

__all__ = ["MemoryStore"]


@final
class MemoryStore:
    """Keeps events in lists; gone with the process."""

    def __init__(self) -> None:
        self._journals: dict[str, list[Event]] = {}

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep `event` as number `seq` of the run."""
        journal = self._journals.get(run_id, [])
        if seq != len(journal) + 1:
            raise StoreError(
                f"run {run_id!r} has {len(journal)} event(s), so the next is number "
                f"{len(journal) + 1}, not {seq}: "
                + ("this run id is taken" if seq == 1 else "another driver is writing to it")
            )
        self._journals.setdefault(run_id, journal).append(event)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run."""
        if run_id not in self._journals:
            raise StoreError(f"no run {run_id!r} in this store; it has {len(self._journals)}")
        return tuple(self._journals[run_id])

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return sorted(self._journals)
