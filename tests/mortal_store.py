"""A store whose process dies: at a chosen moment, with or without the last event on the disk.

Death is whatever the fate's `die` does: in a test process it raises `Died`, in a process of its own
it is a real SIGKILL. A dead store answers nobody, as the process that held it answers nobody: a
driver's clean-up never reaches what outlives it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from graphloop.events import Event
from graphloop.stores.base import Ask, Posted, ReleaseStatus, RunRecord, RunStatus
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore

__all__ = ["Died", "Fate", "MortalSqliteStore", "MortalStore"]


class Died(BaseException):
    """The process is dead: no `except Exception` sees it."""


def raise_died() -> None:
    """Die as far as one can without leaving the process."""
    raise Died


class Fate:
    """When a process dies: at its n-th moment, counted from now; never without a number.

    Args:
        after: how many moments it has left; every append has two of them (before and after the
            event is kept), and so may every tool.
        die: what dying is.
    """

    def __init__(self, after: int | None = None, die: Callable[[], None] = raise_died) -> None:
        self.after = after
        self.dead = False
        self._die = die

    def moment(self) -> None:
        """Pass a moment at which one can die."""
        if self.dead:
            self._die()
        if self.after is None:
            return
        self.after -= 1
        if self.after < 0:
            self.dead = True
            self._die()


class MortalStore:
    """What is kept in memory for one process, and on the disk for those that come after it."""

    def __init__(self, disk: MemoryStore | SqliteStore, fate: Fate) -> None:
        self.disk = disk
        self.fate = fate

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, unless death comes first; perhaps nobody learns of it any more."""
        self.fate.moment()
        await self.disk.append(run_id, seq, *events)
        self.fate.moment()

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Keep whole journals."""
        self._alive()
        await self.disk.append_all(journals)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return a journal."""
        self._alive()
        return await self.disk.load(run_id)

    async def runs(self) -> Sequence[str]:
        """Return all ids."""
        self._alive()
        return await self.disk.runs()

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Keep an answer, unless death comes first."""
        self.fate.moment()
        posted = await self.disk.post(run_id, key, signal_id, data)
        self.fate.moment()
        return posted

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Return the answers."""
        self._alive()
        return await self.disk.posted(run_id)

    async def record(self, run_id: str) -> RunRecord:
        """Return how a run stands."""
        self._alive()
        return await self.disk.record(run_id)

    async def page(
        self, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
    ) -> Sequence[RunRecord]:
        """Return how some runs stand."""
        self._alive()
        return await self.disk.page(statuses, graph, after=after, limit=limit)

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return how the runs stand."""
        self._alive()
        return await self.disk.overview(root)

    async def set_target(self, run_id: str, target: str) -> None:
        """Note a target."""
        self._alive()
        await self.disk.set_target(run_id, target)

    def _alive(self) -> None:
        if self.fate.dead:
            raise Died


class MortalSqliteStore(MortalStore):
    """The same over a database, with its leases."""

    def __init__(self, disk: SqliteStore, fate: Fate) -> None:
        super().__init__(disk, fate)
        self._leases = disk

    async def claim(self, run_id: str) -> None:
        """Claim a run."""
        self.fate.moment()
        await self._leases.claim(run_id)

    async def release(
        self,
        run_id: str,
        status: ReleaseStatus | None,
        asks: Sequence[Ask],
        *,
        seen: int = 0,
        wake_s: float | None = None,
        ending: str = "",
    ) -> None:
        """Release a run: the dead do not."""
        self.fate.moment()
        await self._leases.release(run_id, status, asks, seen=seen, wake_s=wake_s, ending=ending)
        self.fate.moment()
