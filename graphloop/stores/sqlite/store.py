"""A store in one SQLite file: durable, usable by several processes, with one driver for each run.

Events are only appended, with numbers from 1 without gaps. With `durability="power"` one thread
of the store writes, and joins simultaneous appends into one commit; otherwise the caller's thread
may commit (`direct`). Readers use separate connections and never wait for a writer. Do not
use a network file system. After `os.fork`, the child process must open a store of its own.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar, final

from msgspec.structs import replace

from ...errors import ConfigError, Fenced
from ...events import Event, Started
from ..backlog import QueueLimits, Submission
from ..base import Ask, Change, Posted, Refusal, ReleaseStatus, RunRecord, RunStatus
from ..beginnings import Beginnings
from ..codec import Codec
from ..diagnosis import Survey
from ..rows import Addition, addition_of, left_as
from ..run_ids import unknown_run
from . import journal, leases, operating, reading
from .leases import Holder
from .reading import Reader
from .schema import Durability
from .writer import Writer

__all__ = ["SqliteStore"]

T = TypeVar("T")


@final
class SqliteStore:
    """A store in a SQLite database; with all abilities that `base` names.

    Each store object claims runs separately, even within one process: a store cannot append to a
    run that another store has claimed. `aclose` and garbage collection end the claims of a store.

    Args:
        path: the database file; the first write creates it.
        codec: encodes and decodes events; pass a codec with the state type of your graph.
        durability: with "power", appended events survive a loss of power, because each commit waits
            for the disk. With "process", events survive only the end of the process, and a commit
            costs about a tenth.
        lease_s: the number of seconds after which another driver may claim a dead driver's run.
        clock: returns the current Unix time, for leases and for the times in `RunRecord`.
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
        self._beginnings = Beginnings()
        self._clock = clock
        self._holder = Holder(lease_s, clock)
        self._reader = Reader(self._path)
        self._writer = Writer(self._path, durability, self._holder)
        weakref.finalize(self, self._writer.stop)
        weakref.finalize(self, self._reader.close)

    def __repr__(self) -> str:
        return f"<SqliteStore {str(self._path)!r}>"

    @property
    def closed(self) -> bool:
        """Whether the store is closed and takes no more work."""
        return self._writer.stopped

    async def aclose(self) -> None:
        """Finish the queued writes, end all claims of this store, and close the database."""
        self._reader.close()  # Before the writer, which locks the file when it closes the last.
        self._writer.stop()
        await self._writer.ended()

    def append(self, run_id: str, seq: int, *events: Event) -> Awaitable[None]:
        """Append events to a run's journal; the first new event gets the number `seq`.

        The write is queued at once, and the returned future ends after the commit.
        """
        return self._append(self._addition(run_id, seq, events))

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Save a new journal for each run id, all in one transaction."""
        await self._append(
            *[self._addition(run_id, 1, events) for run_id, events in journals.items()]
        )

    def _append(self, *additions: Addition) -> asyncio.Future[None]:
        work = partial(journal.append, holder=self._holder, additions=additions)
        blobs = [digest for addition in additions for digest in addition.blobs]
        if not blobs:
            return self._writer.write(work)
        # Media and conversations are large: their commit may fill the log, so the thread makes it.
        return self._writer.put(work, lambda _: self._beginnings.saved(blobs))

    def _addition(self, run_id: str, seq: int, events: Sequence[Event]) -> Addition:
        return addition_of(self._codec, self._beginnings, run_id, seq, events)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run, in order."""
        beginnings = self._beginnings
        work = partial(
            reading.read_journal, codec=self._codec, beginnings=beginnings, run_id=run_id
        )
        events: tuple[Event, ...] = await self._reader.do(work, ())
        if not events:
            raise unknown_run(run_id, self._path, await self.runs())
        return events

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs that have an event, in alphabetical order."""
        return await self._reader.list(reading.run_ids, [])

    async def claim(self, run_id: str) -> None:
        """Claim a run, so that no other driver can write to it; the run need not exist yet."""
        holder, won = self._holder, list[int]()
        holder.claims.take(run_id)

        def work(connection: Connection) -> int:
            won.append(leases.claim(connection, holder, run_id))
            return won[0]

        def undo(connection: Connection) -> None:
            if won:
                leases.abandon(connection, holder, run_id, won[0])

        def undone(_: None) -> None:
            if holder.epochs.get(run_id) in won:
                del holder.epochs[run_id]

        def failed(_: Exception) -> None:
            if holder.epochs.get(run_id) in won:
                holder.leave(run_id, None)

        try:
            await self._writer.do(work, partial(holder.epochs.__setitem__, run_id))
        except BaseException as error:
            holder.claims.give_back(run_id)
            if not isinstance(error, asyncio.CancelledError):
                raise
            self._writer.post(
                undo, undone, failed
            )  # The cancelled caller does not know of the claim, so the store undoes it.
            raise

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
        """End the claim on a run, and record its status and questions unless `status` is None.

        If the write fails, this call raises, and the store tries the write again later.
        """
        holder = self._holder
        now = self._clock()
        standing = left_as(
            status, asks, now, seen=seen, wake_s=wake_s, refusal=refusal, ending=ending
        )

        def work(connection: Connection) -> None:
            leases.release(connection, holder, run_id, standing)

        def released(_: None) -> None:
            del holder.epochs[run_id]

        def failed(error: Exception) -> None:
            if not isinstance(error, Fenced):
                holder.leave(run_id, standing)

        try:
            await self._writer.do(work, released, failed)
        finally:
            holder.claims.give_back(run_id)

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Store an answer to the question `key` of a run, unless the question has an answer."""
        holder, signal = self._holder, (signal_id, data)
        return await self._writer.do(
            lambda connection: journal.post(connection, holder, run_id, key, signal)
        )

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Map the key of each answered question of a run to the accepted answer."""
        return await self._reader.do(partial(reading.signals, run_id=run_id), {})

    async def record(self, run_id: str) -> RunRecord:
        """Return the record of one run."""
        work = partial(reading.one_record, now=self._clock(), run_id=run_id)
        record: RunRecord | None = await self._reader.do(work, None)
        if record is None:
            raise unknown_run(run_id, self._path, await self.runs())
        return record

    async def page(
        self, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
    ) -> Sequence[RunRecord]:
        """Return runs in the order of their creation, from the one that follows the run `after`."""
        work = partial(reading.page_of, now=self._clock(), after=after, limit=limit)
        return await self._reader.list(partial(work, statuses=statuses, graph=graph), ())

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or only `root` and its descendants."""
        work = partial(reading.overview, now=self._clock(), root=root)
        read = self._reader.list if root is None else self._reader.do
        return await read(work, ())

    async def existing(self, run_ids: Collection[str]) -> Collection[str]:
        """Return those of these runs that have an event."""
        return await self._reader.do(partial(reading.existing, run_ids=run_ids), ())

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
        work = partial(reading.ready, now=self._clock(), agents=agents, limit=limit)
        wanted = partial(work, revisions=revisions, queue=queue, pinned=pinned)
        return await self._reader.do(wanted, [])

    async def enlist(self, started: Started, place: Submission) -> None:
        """Save the first event of a new run together with the run's place."""
        await self._append(replace(self._addition(started.run_id, 1, (started,)), place=place))

    async def set_queues(self, queues: Mapping[str, QueueLimits]) -> None:
        """Keep the limits and weights of these queues for all processes; the last call counts."""
        await self._writer.do(partial(journal.note_queues, queues=queues))

    async def place(self, run_id: str) -> None:
        """Let drivers take a child run without its parent, in its root's place in line."""
        await self._writer.do(partial(journal.place_run, run_id=run_id))

    async def retry(self, revisions: Collection[str]) -> None:
        """Forget the refusals of blocked runs that have one of these revisions."""
        await self._writer.do(partial(journal.forget_refusals, revisions=revisions))

    async def commands(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Map the id of each of these runs that has commands to them, in the order of arrival."""
        return await self._reader.do(partial(reading.commands_to, run_ids=run_ids), {})

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target of `graphloop run` that started the run."""
        await self._writer.do(partial(journal.note_target, run_id=run_id, target=target))

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Change meters, while no other process does, and return the second result of `change`."""
        return await self._writer.do(
            lambda connection: operating.change_meters(connection, self._clock(), names, change)
        )

    async def attend(self, agents: Mapping[str, str]) -> None:
        """Note for surveys which agents' runs a worker of this store object takes."""
        await self._writer.do(partial(operating.attend, holder=self._holder, agents=agents))

    async def survey(self) -> Survey:
        """Return the state of the store."""
        now = self._clock()
        nothing = Survey(now, {}, {}, (), {}, (), 0, 0, {"bytes": 0, "free bytes": 0})
        return await self._reader.list(partial(operating.survey_of, now=now), nothing)

    async def prune(self, older_s: float, limit: int) -> int:
        """Delete families of runs that are over, at most `limit`; return how many runs they had."""
        now = self._clock()
        return await self._writer.do(
            lambda connection: operating.prune_families(connection, now, older_s, limit)
        )
