"""The seams of journals: append what happened, load what happened. Nothing is ever changed.

`Store` is what every store can do. What only some can do has a protocol of its own, which
`isinstance` finds: `Leases` (one driver at a time), `Mailbox` (answers from other processes),
`Catalog` (what runs there are, and how they stand) and `Bulk` (several journals at once).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ..events import Event

__all__ = [
    "Ask",
    "Bulk",
    "Catalog",
    "Leases",
    "Mailbox",
    "Posted",
    "ReleaseStatus",
    "RunRecord",
    "RunStatus",
    "Store",
]

ReleaseStatus: TypeAlias = Literal["suspended", "done", "failed", "cancelled"]
RunStatus: TypeAlias = Literal["ready", "running", "interrupted"] | ReleaseStatus
Posted: TypeAlias = Literal["accepted", "duplicate", "answered"]


class Ask(Struct, frozen=True, gc=False):
    """One answer that a suspended run waits for; `arguments` is JSON text.

    `agents` are those that the call is in, outermost first; from `expires_at` on (seconds since
    the epoch) an approval comes too late; an `unknown` call was approved before, and may have run.
    `takes` is what an edit of a node's own question has to be, as JSON Schema text.
    """

    key: str
    kind: Literal["approval", "client_tool"]
    name: str
    arguments: str
    token: str = ""
    agents: tuple[str, ...] = ()
    expires_at: float | None = None
    unknown: bool = False
    takes: str = ""


class RunRecord(Struct, frozen=True):
    """How one run stands.

    Attributes:
        graph: the graph's name, as the run's first event tells it.
        status: "running" while a live driver holds it, "interrupted" when that driver's lease ran
            out, "ready" when it was never claimed; otherwise what its last driver left it as.
        events: how many its journal holds.
        created_at: seconds since the epoch, by the store's clock.
        updated_at: the same, of the last event, claim or release.
        parent: the id of the run it is a child of, or nothing.
        asks: what it waits for; nothing while it is driven.
        target: what `graphloop run` was told to run ("module:agent"), or nothing.
    """

    run_id: str
    graph: str
    status: RunStatus
    events: int
    created_at: float
    updated_at: float
    parent: str = ""
    asks: tuple[Ask, ...] = ()
    target: str = ""


class Store(Protocol):
    """Keeps the events of runs, in order, append-only.

    A store promises: what `append` returned for is there for as long as the store is (on a disk,
    after the process is killed, too); events of a run are gapless from 1; a second writer of the
    same number is refused; the work of an append is O(what is new).
    """

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep `event` as number `seq` of the run; the first is 1.

        Cancelled meanwhile, it may have kept the event or not: `load` tells.

        Raises:
            StoreError: `seq` is not the next number of this run, or cannot be written.
            Fenced: another driver has claimed the run since.
        """
        ...

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run.

        Raises:
            UnknownRun: there is no such run.
            StoreError: its journal is damaged.
        """
        ...

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs, in alphabetical order."""
        ...


@runtime_checkable
class Leases(Protocol):
    """Lets one store object at a time drive a run, and says which.

    Where a claim ends with its driver for sure (in one process, or by a lock that the system drops
    with its holder), that is all. Elsewhere a claim is a lease, which only bounds how long a dead
    driver keeps others waiting. Safety comes from the epoch then, which every claim raises: an
    append under an older one is `Fenced`, whatever clocks say.
    """

    async def claim(self, run_id: str) -> None:
        """Become the only driver of a run, which need not exist yet.

        Cancelled meanwhile, it leaves the run unclaimed.

        Raises:
            RunBusy: it has a live driver already, if only through this very store object.
        """
        ...

    async def release(self, run_id: str, status: ReleaseStatus, asks: Sequence[Ask]) -> None:
        """Stop driving a run, and say how it stands and what it waits for.

        Raises:
            StoreError: this store object has not claimed the run.
            Fenced: another driver has claimed it since.
        """
        ...


@runtime_checkable
class Mailbox(Protocol):
    """Keeps the answers a run waits for, until its driver takes them: the first one counts."""

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Answer `key` of a run; `signal_id` tells a repetition from a second opinion.

        Returns:
            "accepted", "duplicate" (this very signal was accepted before), or "answered"
            (another one was, and stays).

        Raises:
            UnknownRun: there is no such run.
        """
        ...

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Return the accepted answers by key; none for a run that nobody answered."""
        ...


@runtime_checkable
class Catalog(Protocol):
    """Knows how each run stands, without reading its journal."""

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs, in the order of their creation; or a run, and all below it, only.

        Of one run that costs O(what is below it), however many others there are.
        """
        ...

    async def set_target(self, run_id: str, target: str) -> None:
        """Note what the run was started from ("module:agent").

        Raises:
            UnknownRun: there is no such run.
        """
        ...


@runtime_checkable
class Bulk(Protocol):
    """Keeps several new journals, all of them or none."""

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Keep the events of each run from number 1.

        Raises:
            StoreError: one of the run ids is taken, or cannot be written; none was kept.
        """
        ...
