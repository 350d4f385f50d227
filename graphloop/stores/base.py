"""The seams of journals: a driver appends events and loads them; no event ever changes.

Every store is a `Store`. Abilities that only some stores have are protocols of their own, which
`isinstance` finds: `Leases` (one driver at a time), `Mailbox` (answers from other processes),
`Catalog` (the runs and their status) and `Bulk` (several journals at once).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
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

ReleaseStatus: TypeAlias = Literal["parked", "done", "failed", "cancelled"]
RunStatus: TypeAlias = Literal["ready", "running", "interrupted"] | ReleaseStatus
Posted: TypeAlias = Literal["accepted", "duplicate", "answered"]


class Ask(Struct, frozen=True, gc=False):
    """A question that a parked run waits for; `arguments` is JSON text.

    `agents` are the agents that the call is in, outermost first. From `expires_at` on (seconds
    since the epoch) an approval comes too late. An `unknown` call was approved and may have run.
    `takes` is the JSON Schema text for an edit of a node's own question.
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
    """The status of a run.

    Attributes:
        graph: the graph's name, from the run's first event.
        status: "running" while a live driver holds it, "interrupted" when that driver died or its
            lease ran out, "ready" when no driver has set a status; else what its last driver set.
        events: how many its journal holds.
        created_at: seconds since the epoch, by the store's clock.
        updated_at: the same, of the last event or status.
        parent: the id of its parent run, or nothing.
        asks: the questions it waits for; nothing while a driver holds it.
        target: the target of `graphloop run` ("module:agent"), or nothing.
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

    A store promises: an acknowledged event is there as long as the store is (on a disk, also after
    the process is killed); events of a run are gapless from 1; a second writer of the same number
    is refused; the work of an append depends on the new events alone.
    """

    def append(self, run_id: str, seq: int, *events: Event) -> Awaitable[None]:
        """Keep events of a run, all or none: the first of them is number `seq`, from 1 on.

        If the caller is cancelled meanwhile, only `load` says whether the events were kept.

        Raises:
            StoreError: `seq` is not the next number of this run, or an event cannot be written.
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
    """Lets one store object at a time drive a run.

    A claim may end with its driver for sure: in one process, or by a lock that the system drops
    with its holder. Elsewhere a claim is a lease, which only bounds how long a dead driver keeps
    others waiting. Safety then comes from the epoch, which every claim raises: an append under an
    older epoch is `Fenced`, whatever clocks say.
    """

    async def claim(self, run_id: str) -> None:
        """Become the only driver of a run, which need not exist yet.

        A caller that is cancelled meanwhile leaves the run unclaimed.

        Raises:
            RunBusy: the run has a live driver, perhaps through this store object itself.
        """
        ...

    async def release(self, run_id: str, status: ReleaseStatus | None, asks: Sequence[Ask]) -> None:
        """Stop driving a run, and record its status and its open questions.

        A driver that wrote no event gives no status: the record stays as it was.

        Raises:
            StoreError: this store object has not claimed the run.
            Fenced: another driver has claimed the run since.
        """
        ...


@runtime_checkable
class Mailbox(Protocol):
    """Keeps the answers to a run until its driver takes them; the first answer counts."""

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Answer `key` of a run; a repeated `signal_id` is the same answer sent twice.

        Returns:
            "accepted", "duplicate" (this signal was accepted before), or "answered" (another
            signal was accepted before, and stays).

        Raises:
            UnknownRun: there is no such run.
        """
        ...

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Return the accepted answers by key; empty for a run without answers."""
        ...


@runtime_checkable
class Catalog(Protocol):
    """Knows the status of each run without reading its journal."""

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or one run and its descendants only.

        For one run the cost depends on its descendants alone, not on the other runs.
        """
        ...

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target that the run was started from ("module:agent").

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
