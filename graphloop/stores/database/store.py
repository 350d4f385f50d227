"""The store in a database: the methods of a store, whatever the database.

Events are only appended, with numbers from 1 without gaps. A single thread of a store object
writes, and joins simultaneous writes. Readers use connections of their own.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, final

from msgspec import Struct
from msgspec.structs import replace

from ...errors import Fenced, StoreError
from ...events import Event, Started
from ..backlog import QueueLimits, Submission
from ..base import Ask, Change, Posted, Refusal, ReleaseStatus, RunRecord, RunStatus
from ..beginnings import Beginnings
from ..codec import Codec
from ..diagnosis import Survey
from ..rows import Addition, addition_of, standing_of
from ..run_ids import unknown_run
from . import claims, reading
from .claims import HeldRun, Holder, LapsedClaim
from .jobs import Asking, Job, Statement, Work, at_once, later
from .link import SqlLink

__all__ = ["ChangesMeters", "DatabaseStore", "Dialect", "Look", "Reads", "Writes"]

L = TypeVar("L", bound=SqlLink)
L_co = TypeVar("L_co", bound=SqlLink, covariant=True)
L_contra = TypeVar("L_contra", bound=SqlLink, contravariant=True)
T = TypeVar("T")


class Look(Struct, frozen=True):
    """A look for runs that wait for a driver; see `Backlog.ready`."""

    agents: Collection[str]
    limit: int
    revisions: Collection[str]
    queue: str | None
    pinned: bool


class ChangesMeters(Protocol[L_contra]):
    """Changes meters, while no other process does; see `Meters.metered`."""

    def __call__(self, link: L_contra, names: Collection[str], change: Change[T]) -> T:
        """Return the second result of `change`."""
        ...


@final
class Dialect(Struct, Generic[L], frozen=True):
    """The part of a store that each database has of its own.

    Attributes:
        claim: makes the holder the owner of a run.
        read_journal: returns the checked events of a run; () if there is no such run.
        ready: returns ids of runs that wait for a driver.
        attend: notes which agents' runs the workers of this store object take.
        change_meters: changes meters, while no other process does.
        prune: deletes families of runs that are over and old, and returns how many runs they had.
        sizes: returns what the database tells of its size.
        is_look_written: whether a look writes, because it frees the runs of dead workers.
    """

    claim: Callable[[L, Holder, str], Asking[HeldRun]]
    read_journal: Callable[[L, Codec, Beginnings, str], tuple[Event, ...]]
    ready: Callable[[L, Look], list[str]]
    attend: Callable[[L, Holder, dict[str, list[str]]], None]
    change_meters: ChangesMeters[L]
    prune: Callable[[L, float, int], int]
    sizes: Callable[[L], Mapping[str, int]]
    is_look_written: bool


class Writes(Protocol[L]):
    """The thread that writes."""

    @property
    def stopped(self) -> bool:
        """Whether it takes no more jobs."""
        ...

    def append(
        self, additions: Sequence[Addition], committed: Callable[[None], None] | None
    ) -> asyncio.Future[None]:
        """Append events to one or several runs, all in one transaction, perhaps at once.

        Raises:
            StoreError: the thread is stopped.
        """
        ...

    def queue(self, job: Job[L, Any]) -> None:
        """Queue a job.

        Raises:
            StoreError: the thread is stopped.
        """
        ...

    def stop(self) -> None:
        """Tell the thread to end after the queued jobs, without waiting; may be called again."""
        ...

    async def ended(self) -> None:
        """Wait until the thread has ended, and has closed its connection."""
        ...


class Reads(Protocol[L_co]):
    """The connections that read."""

    async def do(self, work: Callable[[L_co], T]) -> T | None:
        """Return the result of work that reads little; None if there are no tables to read."""
        ...

    async def list(self, work: Callable[[L_co], T]) -> T | None:
        """Return the result, as `do`, of work that may take long, and sees one state."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class DatabaseStore(Generic[L]):
    """A store in a database; with all abilities that each database has.

    Each store object claims runs separately, even within one process: a store cannot append to a
    run that another store has claimed. `aclose` and garbage collection end the claims of a store.
    A read creates nothing: before the first write there are no runs.
    """

    def __init__(
        self,
        place: str,
        codec: Codec | None,
        holder: Holder,
        writer: Writes[L],
        reader: Reads[L],
        dialect: Dialect[L],
    ) -> None:
        self._place = place
        self._codec, self._beginnings = codec or Codec(), Beginnings()
        self._holder, self._writer, self._reader, self._dialect = holder, writer, reader, dialect
        self._attendants: dict[str, Mapping[str, str]] = {}
        weakref.finalize(self, writer.stop)
        weakref.finalize(self, reader.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._place!r}>"

    @property
    def closed(self) -> bool:
        """Whether the store is closed and takes no more work."""
        return self._writer.stopped

    async def aclose(self) -> None:
        """Finish the queued writes, end all claims of this store, and close the database."""
        self._reader.close()  # Before the writer: SQLite locks the file to close it as the last.
        self._writer.stop()
        await self._writer.ended()

    def append(self, run_id: str, seq: int, *events: Event) -> Awaitable[None]:
        """Append events to a run's journal; the first new event gets the number `seq`.

        The write is queued at once, and the returned future ends after the commit.
        """
        return self._append(self._addition(run_id, seq, events))

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Save a new journal for each run id, all in one transaction."""
        if journals:
            await self._append(
                *[self._addition(run_id, 1, events) for run_id, events in journals.items()]
            )

    def _append(self, *additions: Addition) -> asyncio.Future[None]:
        blobs = [digest for addition in additions for digest in addition.blobs]
        saved = self._beginnings.saved
        return self._writer.append(additions, (lambda _: saved(blobs)) if blobs else None)

    def _addition(self, run_id: str, seq: int, events: Sequence[Event]) -> Addition:
        return addition_of(self._codec, self._beginnings, run_id, seq, events)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run, in order."""
        read, codec, beginnings = self._dialect.read_journal, self._codec, self._beginnings
        events = await self._reader.do(lambda link: read(link, codec, beginnings, run_id))
        if not events:
            raise unknown_run(run_id, self._place)
        return events

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs that have an event, in alphabetical order."""
        return await self._reader.list(reading.run_ids) or []

    async def claim(self, run_id: str) -> None:
        """Claim a run, so that no other driver can write to it; the run need not exist yet."""
        holder, claim, won = self._holder, self._dialect.claim, list[HeldRun]()
        holder.claims.take(run_id)

        def asks(link: L) -> Asking[HeldRun]:
            won[:] = [(yield from claim(link, holder, run_id))]
            return won[0]

        def undo(link: L) -> None:
            if won:
                at_once(claims.give_back(link, holder, run_id, LapsedClaim(won[0])))

        def undone(_: None) -> None:
            if holder.held.get(run_id) in won:
                del holder.held[run_id]

        def failed(_: Exception) -> None:
            if holder.held.get(run_id) in won:
                holder.leave(run_id, None)

        try:
            known = partial(holder.held.__setitem__, run_id)
            await self._write(Statement(asks), known, run_id=run_id)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                # The cancelled caller does not know of the claim, so the store undoes it.
                with suppress(StoreError):
                    self._writer.queue(Job(undo, undone, failed, run_id=run_id))
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

        If the write fails, this call raises, and the store tries the write again later.
        """
        holder = self._holder
        held = holder.held.get(run_id)  # A later claim of the run is not this caller's.
        standing = standing_of(
            status, asks, holder.clock(), seen=seen, wake_s=wake_s, refusal=refusal, ending=ending
        )

        def work(link: L) -> Asking[None]:
            return claims.release(link, holder, run_id, held, standing)

        def released(_: None) -> None:
            if holder.held.get(run_id) is held:
                holder.held.pop(run_id, None)

        def failed(error: Exception) -> None:
            if not isinstance(error, Fenced) and holder.held.get(run_id) is held:
                holder.leave(run_id, standing)

        try:
            if "/" in run_id or refusal is not None:
                await self._write(lambda link: at_once(work(link)), released, failed, run_id=run_id)
            else:
                await self._write(Statement(work), released, failed, run_id=run_id)
        finally:
            holder.claims.give_back(run_id)

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Store an answer to the question `key` of a run, unless the question has an answer."""

        def asks(link: L) -> Asking[Posted]:
            return claims.post(link, run_id, key, signal_id, data)

        return await self._write(Statement(asks), run_id=run_id)

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Map the key of each answered question of a run to the accepted answer."""
        return await self._reader.do(partial(reading.signals, run_id=run_id)) or {}

    async def record(self, run_id: str) -> RunRecord:
        """Return the record of one run."""
        record = await self._reader.do(partial(reading.one_record, run_id=run_id))
        if record is None:
            raise unknown_run(run_id, self._place)
        return record

    async def page(
        self, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
    ) -> Sequence[RunRecord]:
        """Return runs in the order of their creation, from the one that follows the run `after`."""
        found = await self._reader.list(
            lambda link: reading.page_of(link, statuses, graph, after=after, limit=limit)
        )
        if found is None and after:
            raise unknown_run(after, self._place)
        return found or []

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or only `root` and its descendants."""
        read = self._reader.list if root is None else self._reader.do
        return await read(partial(reading.overview, root=root)) or ()

    async def existing(self, run_ids: Collection[str]) -> Collection[str]:
        """Return those of these runs that have an event."""
        return await self._reader.do(partial(reading.existing, run_ids=run_ids)) or set()

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
        look, dialect = Look(agents, limit, revisions, queue, pinned), self._dialect
        if dialect.is_look_written:
            return await self._write(
                Statement(lambda link: later(partial(dialect.ready, link, look)))
            )
        return await self._reader.do(lambda link: dialect.ready(link, look)) or []

    async def enlist(self, started: Started, place: Submission) -> None:
        """Save the first event of a new run together with the run's place."""
        await self._append(replace(self._addition(started.run_id, 1, (started,)), place=place))

    async def set_queues(self, queues: Mapping[str, QueueLimits]) -> None:
        """Keep the limits and weights of these queues for all processes; the last call counts."""
        await self._write(partial(claims.note_queues, queues=queues))

    async def place(self, run_id: str) -> None:
        """Let drivers take a child run without its parent, in its root's place in line."""
        await self._write(partial(claims.place_run, run_id=run_id), run_id=run_id)

    async def retry(self, revisions: Collection[str]) -> None:
        """Forget the refusals of blocked runs that have one of these revisions."""
        await self._write(partial(claims.forget_refusals, revisions=revisions))

    async def commands(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Map the id of each of these runs that has commands to them, in the order of arrival."""
        return await self._reader.do(partial(reading.commands_to, run_ids=run_ids)) or {}

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target of `graphloop run` that started the run."""
        await self._write(partial(claims.note_target, run_id=run_id, target=target), run_id=run_id)

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Change meters, while no other process does, and return the second result of `change`."""
        return await self._write(lambda link: self._dialect.change_meters(link, names, change))

    async def attend(self, attendant: str, agents: Mapping[str, str]) -> None:
        """Note for surveys which agents' runs a worker of this store object takes."""
        self._attendants[attendant] = agents
        serves = reading.join_pins(self._attendants.values())
        await self._write(lambda link: self._dialect.attend(link, self._holder, serves))

    async def is_made(self) -> bool:
        """Return whether the database has the tables of a store, which its first write creates."""
        return await self._reader.do(lambda _: True) is not None

    async def survey(self) -> Survey:
        """Return the state of the store."""
        sizes = self._dialect.sizes
        survey = await self._reader.list(lambda link: reading.survey_of(link, sizes(link)))
        if survey is None:
            raise StoreError(
                f"{self._place}: expected a store, found none, as before its first run. Fix: check "
                "the address."
            )
        return survey

    async def prune(self, older_s: float, limit: int) -> int:
        """Delete families of runs that are over, at most `limit`; return how many runs they had."""
        return await self._write(lambda link: self._dialect.prune(link, older_s, limit))

    def _write(
        self,
        work: Work[L, T],
        committed: Callable[[T], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        *,
        run_id: str = "",
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = Job(work, committed, failed, future, run_id=run_id)
        self._writer.queue(job)
        return future
