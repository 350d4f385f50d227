"""A store for tests that change one of its methods."""

from __future__ import annotations

from collections.abc import Sequence

from graphloop.events import Event
from graphloop.stores.memory import MemoryStore

__all__ = ["PassingStore"]


class PassingStore:
    """Passes all that it is asked to a store in memory; its subclasses change single methods."""

    def __init__(self, disk: MemoryStore | None = None) -> None:
        self.disk = MemoryStore() if disk is None else disk

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        await self.disk.append(run_id, seq, *events)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return the events of a run."""
        return await self.disk.load(run_id)

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return await self.disk.runs()
