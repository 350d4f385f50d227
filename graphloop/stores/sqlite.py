"""A journal as one SQLite file: durable, shared by processes, one driver a run.

Events are appended and never changed, gapless from 1. A thread of the store writes, and gathers
simultaneous appends into one commit, because a commit waits for the disk. Readers have
connections of their own and wait for no writer. Not for network file systems. A child of
`os.fork` opens a store of its own.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar, final

from ..errors import ConfigError, Fenced
from ..events import Event
from . import sqlite_journal, sqlite_leases, sqlite_reading
from .base import Ask, Posted, ReleaseStatus, RunRecord
from .codec import Codec
from .journals import graph_name_of, unknown_run
from .sqlite_journal import Addition
from .sqlite_leases import Standing, Tenant
from .sqlite_schema import Durability
from .sqlite_writer import Writer

__all__ = ["SqliteStore"]

T = TypeVar("T")


@final
class SqliteStore:
    """Keeps runs in a SQLite database; also `Leases`, `Mailbox`, `Catalog` and `Bulk`.

    Each store object is a driver of its own, also within a process: a store cannot append to a run
    that another store has claimed. `aclose` and garbage collection end its claims.

    Args:
        path: the database file; made with the first event.
        codec: writes and reads events; give one with the state type of your graph.
        durability: "power": appended events survive a loss of power (each commit waits for the
            disk); "process": they survive the process only, at about a tenth of the cost.
        lease_s: how long a dead driver keeps others from its runs, in seconds.
        clock: the time of leases and records, in seconds since the epoch.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        codec: Codec | None = None,
        durability: Durability = "power",
        lease_s: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if durability not in ("power", "process"):
            raise ConfigError(f'durability: expected "power" or "process", found {durability!r}.')
        if not 0 < lease_s < math.inf:
            raise ConfigError(f"lease_s: expected a positive number of seconds, found {lease_s!r}.")
        self._path = Path(path)
        self._codec = codec or Codec()
        self._clock = clock
        self._tenant = Tenant(lease_s, clock)
        self._writer = Writer(self._path, durability, self._tenant)
        weakref.finalize(self, self._writer.stop)

    @property
    def closed(self) -> bool:
        """Whether the store is closed and takes no more work."""
        return self._writer.stopped

    async def aclose(self) -> None:
        """Finish the pending writes, end all claims, and close the file."""
        self._writer.stop()
        await self._writer.ended()

    def append(self, run_id: str, seq: int, *events: Event) -> Awaitable[None]:
        """Keep events of a run; the first of them is number `seq`.

        The result is a future of the running event loop: an append needs no task.
        """
        return self._append(self._addition(run_id, seq, events))

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Keep whole new journals, in one transaction."""
        await self._append(
            *[self._addition(run_id, 1, events) for run_id, events in journals.items()]
        )

    def _append(self, *additions: Addition) -> asyncio.Future[None]:
        work = partial(sqlite_journal.append, tenant=self._tenant, additions=additions)
        return self._writer.put(work)

    def _addition(self, run_id: str, seq: int, events: Sequence[Event]) -> Addition:
        encode, graph = self._codec.encode, graph_name_of(events[0]) if events else ""
        rows = [(type(event).__name__, encode(at, event)) for at, event in enumerate(events, seq)]
        return Addition(run_id, seq, tuple(rows), graph)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run."""
        work = partial(sqlite_reading.read_journal, codec=self._codec, run_id=run_id)
        events: tuple[Event, ...] = await self._read(work, ())
        if not events:
            raise unknown_run(run_id, self._path, await self.runs())
        return events

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return await self._read(sqlite_reading.run_ids, [])

    async def claim(self, run_id: str) -> None:
        """Become the only driver of a run, which need not exist yet."""
        tenant, won = self._tenant, list[int]()
        tenant.claims.take(run_id)

        def work(connection: Connection) -> int:
            won.append(sqlite_leases.claim(connection, tenant, run_id))
            return won[0]

        def undo(connection: Connection) -> None:
            if won:
                sqlite_leases.abandon(connection, tenant, run_id, won[0])

        def undone(_: None) -> None:
            if tenant.epochs.get(run_id) in won:
                del tenant.epochs[run_id]

        def failed(_: Exception) -> None:
            if tenant.epochs.get(run_id) in won:
                tenant.leave(run_id, None)

        try:
            await self._writer.do(work, partial(tenant.epochs.__setitem__, run_id))
        except BaseException as error:
            tenant.claims.give_back(run_id)
            if not isinstance(error, asyncio.CancelledError):
                raise
            self._writer.post(
                undo, undone, failed
            )  # The caller does not know of the claim and will not release it.
            raise

    async def release(self, run_id: str, status: ReleaseStatus | None, asks: Sequence[Ask]) -> None:
        """Stop driving a run, and record its status, if any, and its open questions.

        If that cannot be written now, the store writes it later; this driver has stopped anyway.
        """
        tenant = self._tenant
        standing: Standing | None = None if status is None else (status, tuple(asks))

        def work(connection: Connection) -> None:
            sqlite_leases.release(connection, tenant, run_id, standing)

        def released(_: None) -> None:
            del tenant.epochs[run_id]

        def failed(error: Exception) -> None:
            if not isinstance(error, Fenced):
                tenant.leave(run_id, standing)

        try:
            await self._writer.do(work, released, failed)
        finally:
            tenant.claims.give_back(run_id)

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Answer `key` of a run; the first answer counts."""
        tenant, signal = self._tenant, (signal_id, data)
        return await self._writer.do(
            lambda connection: sqlite_journal.post(connection, tenant, run_id, key, signal)
        )

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Return the accepted answers by key."""
        return await self._read(partial(sqlite_reading.signals, run_id=run_id), {})

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or one run and its descendants."""
        work = partial(sqlite_reading.overview, now=self._clock(), root=root)
        return await self._read(work, ())

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target that the run was started from."""
        await self._writer.do(partial(sqlite_journal.note_target, run_id=run_id, target=target))

    async def _read(self, work: Callable[[Connection], T], nothing: T) -> T:
        return await asyncio.to_thread(sqlite_reading.read, self._path, work, nothing)
