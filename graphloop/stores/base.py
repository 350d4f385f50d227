"""The interfaces of stores: a driver appends events to a journal and loads them again.

Every store is a `Store`. Optional abilities are separate protocols, to be tested by `isinstance`:
`Leases` (one driver at a time), `Mailbox` (answers from other processes), `Catalog` (the status of
all runs), `Wakes` (news of runs that wait), `Bulk` (several journals in one write), `Lookup`
(which of some runs exist), `Meters` (what a fleet has used), `Relays` (texts that are not kept) and
`Closes`. `backlog` has the runs that wait for a driver, `diagnosis` the ability of a store that an
operator surveys, and the room `engines` that of a database that tells an engine of runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Struct

from ..events import Event

__all__ = [
    "OVER",
    "Ask",
    "Bulk",
    "Catalog",
    "Change",
    "Closes",
    "Leases",
    "Lookup",
    "Mailbox",
    "Meters",
    "Posted",
    "Refusal",
    "Relays",
    "ReleaseStatus",
    "RunRecord",
    "RunStatus",
    "Store",
    "Wakes",
]

T = TypeVar("T")

ReleaseStatus: TypeAlias = Literal[
    "parked", "interrupted", "blocked", "done", "failed", "cancelled"
]
RunStatus: TypeAlias = Literal["ready", "running"] | ReleaseStatus
OVER: Final = frozenset[RunStatus]({"done", "failed", "cancelled"})
"""The statuses of runs that have ended."""
Posted: TypeAlias = Literal["accepted", "duplicate", "answered"]
Change: TypeAlias = Callable[[Mapping[str, float], float], tuple[Mapping[str, float], T]]


class Ask(Struct, frozen=True, gc=False):
    """A pending approval or client tool call of a parked run, in the form that a store keeps.

    Attributes:
        key: the key of the call; an answer is posted under this key.
        kind: whether the run waits for an approval or for the result of a client tool.
        name: the name of the tool.
        arguments: the arguments of the call, as JSON text.
        token: the token of an approval, which identifies exactly the call that it covers.
        agents: the names of the sub-agents that the call is nested in, outermost first.
        expires_at: the time, in Unix seconds, from which an approval is too late; None for never.
        unknown: whether the call was approved before and may have run already.
        takes: the JSON Schema, as text, of an edit if a user's node asked the question.
        server: the name of the foreign server that runs the tool; empty for none.
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
    server: str = ""


class Refusal(Struct, frozen=True, gc=False):
    """Why code cannot drive a run.

    Attributes:
        revision: the revision of the code.
        reason: the misfit, as a sentence.
        event: the number of the first event that does not fit the code; 0 if all do.
    """

    revision: str
    reason: str
    event: int = 0


class RunRecord(Struct, frozen=True):
    """The status of a run, as a store lists it without reading the journal.

    Attributes:
        run_id: the run's id.
        graph: the graph's name, from the run's first event.
        status: "running" while a live driver has the run; "interrupted" if that driver died, left
            the run, or its lease ran out; "ready" if no driver has set a status, or an answer came
            since the run parked; "blocked" if the code that drove the run does not fit its journal;
            otherwise, the status that the last driver set.
        events: the number of events in the journal.
        created_at: the time of the run's creation, in Unix seconds by the store's clock.
        updated_at: the time of the last event or change of status, in Unix seconds.
        parent: the id of the parent run; empty for a run without a parent.
        asks: the questions that the run waits for; while a driver has the run, those that it waited
            for when the driver claimed it.
        target: the target of `graphloop run` ("module:agent"); empty if none was recorded.
        refusals: why a blocked run is blocked, by each revision of code; the latest is the last.
        remaining_s: the seconds until the run's deadline by the store's clock, when the record was
            read; None for a run without a deadline.
        revision: the first revision of code that the run's journal tells: of the code that began
            the run; of a placed child run, its root's; empty if none is told.
        queue: the queue in which the run waits.
        ending: why the run ended, such as `budget (budget.tool_calls)` or `ProviderError: …`; empty
            for a run that just completed, or is not over.
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
    refusals: tuple[Refusal, ...] = ()
    remaining_s: float | None = None
    revision: str = ""
    queue: str = "default"
    ending: str = ""


class Store(Protocol):
    """Saves the events of runs in order; events are only appended, and never change.

    After `append` returns, the events last as long as the store. On a disk, they survive a killed
    process. The events of a run are numbered from 1 without gaps, and a second event with the same
    number is refused. The cost of an append depends only on the new events.
    """

    def append(self, run_id: str, seq: int, *events: Event) -> Awaitable[None]:
        """Append events to a run's journal; the first new event gets the number `seq`, from 1 on.

        The store saves all of them or none. After a cancellation, only `load` can tell which.

        Raises:
            StoreError: `seq` is not the next number of this run, or an event cannot be written.
            Fenced: another driver has claimed the run since this driver did.
        """
        ...

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run, in order.

        Raises:
            UnknownRun: the store has no run with this id.
            StoreError: the run's journal is damaged.
        """
        ...

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs, in alphabetical order."""
        ...


@runtime_checkable
class Leases(Protocol):
    """Lets only one driver at a time drive a run.

    Within one process, or with an operating-system lock, a claim surely ends when its driver dies.
    Otherwise a claim is a lease with a time limit, after which another driver may claim the run.
    Clocks may be wrong, so safety comes from the epoch, which every claim increases: an append
    under an older epoch raises `Fenced`.
    """

    async def claim(self, run_id: str) -> None:
        """Claim a run, so that no other driver can write to it; the run need not exist yet.

        If the caller is cancelled meanwhile, the run stays unclaimed.

        Raises:
            RunBusy: the run has a live driver, perhaps through this store object itself.
        """
        ...

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
        """End the claim on a run, and record the run's status and its pending questions.

        If an answer came that the driver has not read, a parked run becomes "ready".

        Args:
            run_id: the run's id.
            status: the run's status; None for a driver that wrote no event, to keep the stored one.
            asks: the pending questions.
            seen: how many answers and commands of the run's mailbox the driver has read.
            wake_s: the seconds after which a driver is to take a parked run; None for never. A run
                with a deadline is taken then at the latest.
            refusal: why the run is blocked; a run with another status forgets its refusals.
            ending: why the run ended; empty if it just completed, or is not over.

        Raises:
            StoreError: this store object has not claimed the run.
            Fenced: another driver has claimed the run since this driver did.
        """
        ...


@runtime_checkable
class Mailbox(Protocol):
    """Keeps answers, commands and news for a run's driver; of two with one key, the first stays.

    Each makes a parked run "ready", in the same transaction.
    """

    async def post(self, run_id: str, key: str, signal_id: str, data: str) -> Posted:
        """Store an answer to a question of a run, unless the question already has an answer.

        Args:
            run_id: the run's id.
            key: the key of the question (`Ask.key`), or of a command (`journals.RunCommand.key`).
            signal_id: an id of this answer; sending the same id twice counts as one answer.
            data: the answer, as text.

        Returns:
            "accepted", "duplicate" (an answer with this id was accepted before), or "answered" (an
            answer with another id was accepted before, and stays).

        Raises:
            UnknownRun: the store has no run with this id.
        """
        ...

    async def posted(self, run_id: str) -> Mapping[str, str]:
        """Map the key of each answer and command to a run to its text, in the order of arrival."""
        ...


@runtime_checkable
class Catalog(Protocol):
    """Lists runs with their status, without reading their journals."""

    async def record(self, run_id: str) -> RunRecord:
        """Return the record of one run; the cost does not depend on the number of runs.

        Raises:
            UnknownRun: the store has no run with this id.
        """
        ...

    async def page(
        self, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
    ) -> Sequence[RunRecord]:
        """Return runs in the order of their creation, from the one that follows the run `after`.

        The cost depends on the size of the page, for the statuses of runs that are not over.

        Args:
            statuses: the statuses of the wanted runs; empty for all.
            graph: the name of their graph; None for all.
            after: the id of the last run of the page before; empty for the first page.
            limit: the most runs to return.

        Raises:
            UnknownRun: the store has no run `after`, perhaps no longer.
        """
        ...

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return all runs in the order of their creation, or `root` and its descendants alone.

        With a `root`, the cost depends only on the number of its descendants.
        """
        ...

    async def set_target(self, run_id: str, target: str) -> None:
        """Record the target of `graphloop run` that started the run ("module:agent").

        Raises:
            UnknownRun: the store has no run with this id.
        """
        ...


@runtime_checkable
class Bulk(Protocol):
    """Saves several new journals in one write: all of them or none."""

    async def append_all(self, journals: Mapping[str, Sequence[Event]]) -> None:
        """Save a new journal for each run id, with its events numbered from 1.

        Raises:
            StoreError: a run id is taken, or an event cannot be written; no journal was saved.
        """
        ...


@runtime_checkable
class Meters(Protocol):
    """Keeps numbers that all processes of a store share, such as what they have asked of a model.

    A meter is a point in time by the store's clock, and exists as soon as it is set.
    """

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Change meters, while no other process does, and return the second result of `change`.

        Args:
            names: the names of the meters.
            change: gets the meters that exist, and the store's time, both in Unix seconds. It
                returns the new meters. It may be called again if the write failed.
        """
        ...


@runtime_checkable
class Lookup(Protocol):
    """Tells which of some runs exist, in one look; for a store with many runs."""

    async def existing(self, run_ids: Collection[str]) -> Collection[str]:
        """Return those of these runs that have an event; other runs of the store cost nothing."""
        ...


@runtime_checkable
class Wakes(Protocol):
    """Tells a waiting caller that a run may need its driver, also from other processes."""

    async def woken(self) -> None:
        """Wait until a run may have become ready, or has got a command.

        News may be lost while the store is not connected: the caller looks from time to time, too.
        """
        ...


@runtime_checkable
class Relays(Protocol):
    """Passes short texts between processes at once, and keeps none: each may be lost."""

    async def say(self, topic: str, text: str) -> None:
        """Tell a text, of at most 7,500 bytes in UTF-8, to all processes that listen now."""
        ...

    def heard(self, topic: str) -> AsyncGenerator[str]:
        """Yield the texts about a topic from now on."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Keeps files or connections open until it is closed."""

    @property
    def closed(self) -> bool:
        """Whether the store is closed and takes no more work."""
        ...

    async def aclose(self) -> None:
        """Finish the queued writes, end all claims of this store, and close what is open."""
        ...
