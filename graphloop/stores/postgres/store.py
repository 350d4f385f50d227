"""A store in a PostgreSQL database, for runs that several processes and machines drive.

Events are only appended, with numbers from 1 without gaps. A single thread of the store writes, and
joins simultaneous appends of all runs into one statement. Readers use connections of their own.
After `os.fork`, the child process must open a store of its own.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar, final

from msgspec.structs import replace

from ...errors import ConfigError, StoreError, UnknownRun
from ...events import Event, Started
from ..backlog import QueueLimits, Submission
from ..base import Ask, Change, Posted, Refusal, ReleaseStatus, RunRecord, RunStatus
from ..beginnings import Beginnings
from ..codec import Codec
from ..diagnosis import Survey
from ..rows import Addition, addition_of, left_as
from . import journal, leases, operating, reading
from .leases import HeldRun, Holder
from .reading import Readers
from .relay import PostgresRelay
from .schema import Link, place_of, tell_engine
from .writer import Job, QueuedAppend, Writer

__all__ = ["PostgresStore"]

T = TypeVar("T")


@final
class PostgresStore:
    """A store in a PostgreSQL database; with all abilities that `base` names.

    The tables are in the schema `graphloop`, which the first use creates. The store connects to the
    server itself: a connection pooler keeps neither a session's lock nor its notifications.
    Each store object claims runs separately. `aclose` and garbage collection end its claims.

    Args:
        dsn: the address of the database, `postgresql://user@host:5432/database`.
        codec: encodes and decodes events; pass a codec with the state type of your graph.
        lease_s: the seconds after which another driver may claim the runs of a worker that stalls.
            A worker whose process has died holds no lease: its connection ends with it.
        patience_s: the seconds to wait for a database that has gone away, before a call fails.
        clock: returns this machine's Unix time, by which questions expire. Leases, and the times in
            `RunRecord`, follow the server's clock.

    Raises:
        ConfigError: the address cannot be read, or a time is not positive.
    """

    def __init__(
        self,
        dsn: str,
        *,
        codec: Codec | None = None,
        lease_s: float = 15.0,
        patience_s: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, number in (("lease_s", lease_s), ("patience_s", patience_s)):
            if not 0 < number < math.inf:
                raise ConfigError(
                    f"{name}: expected a positive number of seconds, found {number!r}."
                )
        self._place = place_of(dsn)
        self._dsn = dsn
        self._codec, self._beginnings = codec or Codec(), Beginnings()
        self._holder = Holder(lease_s, clock)
        self._writer = Writer(dsn, self._holder, patience_s)
        self._readers = Readers(dsn, patience_s)
        weakref.finalize(self, self._writer.stop)
        self._relay = PostgresRelay(dsn)
        weakref.finalize(self, self._readers.close)
        weakref.finalize(self, self._relay.close)

    def __repr__(self) -> str:
        return f"<PostgresStore {self._place!r}>"

    @property
    def closed(self) -> bool:
        """Whether the store is closed and takes no more work."""
        return self._writer.stopped

    async def aclose(self) -> None:
        """Finish the queued writes, end all claims of this store, and close the connections."""
        self._writer.stop()
        await asyncio.to_thread(self._writer.join)
        self._readers.close()
        self._relay.close()

    def append(self, run_id: str, seq: int, *events: Event) -> Awaitable[None]:
        """Append events to a run's journal; the first new event gets the number `seq`.

        The write is queued at once, and the returned future ends after the commit.
        """
        addition = self._addition(run_id, seq, events)
        job: QueuedAppend | Job[None]
        if (held := self._holder.held.get(run_id)) is None:
            job = Job(run_id, partial(_append_all, holder=self._holder, additions=[addition]))
        else:
            job = QueuedAppend(addition, held)
        if addition.blobs:
            job.future.add_done_callback(partial(self._wrote, addition.blobs))
        self._writer.put(job)
        return asyncio.wrap_future(job.future)

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Save a new journal for each run id, all in one transaction."""
        additions = [self._addition(run_id, 1, events) for run_id, events in journals.items()]
        if additions:
            work = partial(_append_all, holder=self._holder, additions=additions)
            await self._queued(Job(additions[0].run_id, work))

    def _wrote(self, blobs: Collection[str], future: Future[None]) -> None:
        """Note the parts of conversations that a commit has written, in the writing thread."""
        if not future.cancelled() and future.exception() is None:
            self._beginnings.saved(blobs)

    def _addition(self, run_id: str, seq: int, events: Sequence[Event]) -> Addition:
        return addition_of(self._codec, self._beginnings, run_id, seq, events)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run, in order."""
        events = await self._read(
            lambda link: reading.read_journal(link, self._codec, self._beginnings, run_id)
        )
        if not events:
            raise UnknownRun(f"no run {run_id!r} in {self._place}")
        return events

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs that have an event, in alphabetical order."""
        return await self._read(reading.run_ids)

    async def claim(self, run_id: str) -> None:
        """Claim a run, so that no other driver can write to it; the run need not exist yet."""
        holder = self._holder
        holder.claims.take(run_id)

        def work(link: Link, _: bool) -> HeldRun:  # noqa: FBT001 - the parameter of a callback
            return leases.claim(link, holder, run_id)

        def undo(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            if (held := holder.held.get(run_id)) is not None:
                leases.give_back(link, holder, held)

        def undone(_: None) -> None:
            holder.held.pop(run_id, None)

        try:
            known = partial(holder.held.__setitem__, run_id)
            await self._queued(Job(run_id, work, known, is_single=True))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                # The cancelled caller does not know of the claim, so the store undoes it.
                with suppress(StoreError):
                    self._writer.put(Job(run_id, undo, undone))
            holder.claims.give_back(run_id)
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

        If the write fails, this call raises, and the run is interrupted.
        """
        holder = self._holder
        now = holder.clock()
        standing = left_as(
            status, asks, now, seen=seen, wake_s=wake_s, refusal=refusal, ending=ending
        )

        def work(link: Link, is_again: bool) -> None:  # noqa: FBT001 - a callback
            leases.release(link, holder, run_id, standing, is_again=is_again)

        def released(_: None) -> None:
            holder.held.pop(run_id, None)

        try:
            await self._queued(Job(run_id, work, released))
        finally:
            holder.claims.give_back(run_id)

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Store an answer to the question `key` of a run, unless the question has an answer."""

        def work(link: Link, _: bool) -> Posted:  # noqa: FBT001 - the parameter of a callback
            return journal.post(link, run_id, key, (signal_id, data))

        return await self._queued(Job(run_id, work, is_single=True))

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Map the key of each answered question of a run to the accepted answer."""
        return await self._read(partial(reading.signals, run_id=run_id))

    async def record(self, run_id: str) -> RunRecord:
        """Return the record of one run."""
        record = await self._read(partial(reading.one_record, run_id=run_id))
        if record is None:
            raise UnknownRun(f"no run {run_id!r} in {self._place}")
        return record

    async def page(
        self, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
    ) -> Sequence[RunRecord]:
        """Return runs in the order of their creation, from the one that follows the run `after`."""
        return await self._read(
            lambda link: reading.page_of(link, statuses, graph, after=after, limit=limit),
            in_snapshot=True,
        )

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or only `root` and its descendants."""
        return await self._read(partial(reading.overview, root=root))

    async def existing(self, run_ids: Collection[str]) -> Collection[str]:
        """Return those of these runs that have an event."""
        return await self._read(partial(reading.existing, run_ids=run_ids))

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

        def work(link: Link, _: bool) -> list[str]:  # noqa: FBT001 - the parameter of a callback
            return reading.ready(link, agents, limit, revisions, queue, pinned=pinned)

        return await self._queued(Job("", work, is_single=True))

    async def enlist(self, started: Started, place: Submission) -> None:
        """Save the first event of a new run together with the run's place."""
        addition = replace(self._addition(started.run_id, 1, (started,)), place=place)
        work = partial(_append_all, holder=self._holder, additions=[addition])
        await self._queued(
            Job(started.run_id, work, lambda _: self._beginnings.saved(addition.blobs))
        )

    async def set_queues(self, queues: Mapping[str, QueueLimits]) -> None:
        """Keep the limits and weights of these queues for all processes; the last call counts."""

        def work(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            journal.note_queues(link, queues)

        await self._queued(Job("", work))

    async def place(self, run_id: str) -> None:
        """Let drivers take a child run without its parent, in its root's place in line."""

        def work(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            journal.place_run(link, run_id)

        await self._queued(Job(run_id, work))

    async def retry(self, revisions: Collection[str]) -> None:
        """Forget the refusals of blocked runs that have one of these revisions."""

        def work(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            journal.forget_refusals(link, revisions)

        await self._queued(Job("", work))

    async def commands(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Map the id of each of these runs that has commands to them, in the order of arrival."""
        return await self._read(partial(reading.commands_to, run_ids=run_ids))

    async def woken(self) -> None:
        """Wait until a process tells that a run may wait for a driver, or has got a command."""
        await asyncio.wrap_future(self._writer.woken())

    async def say(self, topic: str, text: str) -> None:
        """Tell a text to those that listen now; a text that cannot be told is lost."""
        await asyncio.to_thread(self._relay.say, topic, text)

    def heard(self, topic: str) -> AsyncGenerator[str]:
        """Yield the texts about a topic from now on."""
        return self._relay.heard(topic)

    @property
    def address(self) -> str:
        """The address of the database, with its password."""
        return self._dsn

    async def on_ready(self, statements: str) -> None:
        """Let each transaction that makes a run ready execute these PL/pgSQL statements."""

        def work(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            tell_engine(link, statements)

        await self._queued(Job("", work))

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target of `graphloop run` that started the run."""

        def work(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            journal.note_target(link, run_id, target)

        await self._queued(Job(run_id, work))

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Change meters, while no other process does, and return the second result of `change`."""

        def work(link: Link, _: bool) -> T:  # noqa: FBT001 - the parameter of a callback
            return operating.change_meters(link, names, change)

        return await self._queued(Job("", work))

    async def attend(self, agents: Mapping[str, str]) -> None:
        """Note for surveys which agents' runs a worker of this store object takes."""

        def work(link: Link, _: bool) -> None:  # noqa: FBT001 - the parameter of a callback
            operating.attend(link, self._holder, agents)

        await self._queued(Job("", work))

    async def survey(self) -> Survey:
        """Return the state of the store."""
        return await self._read(operating.survey_of, in_snapshot=True)

    async def prune(self, older_s: float, limit: int) -> int:
        """Delete families of runs that are over, at most `limit`; return how many runs they had."""

        def work(link: Link, _: bool) -> int:  # noqa: FBT001 - the parameter of a callback
            return operating.prune_families(link, older_s, limit)

        return await self._queued(Job("", work))

    def _queued(self, job: Job[T]) -> asyncio.Future[T]:
        self._writer.put(job)
        return asyncio.wrap_future(job.future)

    async def _read(self, work: Callable[[Link], T], *, in_snapshot: bool = False) -> T:
        return await asyncio.to_thread(self._readers.do, work, in_snapshot=in_snapshot)


def _append_all(
    link: Link,
    is_again: bool,  # noqa: FBT001 - the parameter of a callback
    *,
    holder: Holder,
    additions: Sequence[Addition],
) -> None:
    for addition in additions:
        journal.append_unclaimed(link, holder, addition, is_again=is_again)
