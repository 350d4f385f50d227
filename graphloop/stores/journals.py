"""Helpers for all stores: commands, news, copies of runs, parents by run id, and errors about runs.

A command is what a caller without the code of a run tells its driver, through the run's mailbox. A
mailbox keeps commands beside answers, under keys of their own. The key of an answer begins with a
name, and the key of a command with a slash, so no command takes the place of an answer. A run has
one cancellation: of several, the first counts.

News tells that a child run, which other workers drive, has ended or asks something. It says nothing
more: it wakes the run above, whose driver reads the child's journal.
"""

from __future__ import annotations

import sys
from collections.abc import (
    AsyncIterator,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from ..errors import StoreError, UnknownRun
from ..events import Cancelled, ChildEnded, Event, Resumed, Started
from ..run import Ending, EndReason
from .base import Ask, Bulk, Catalog, Lookup, Refusal, ReleaseStatus, RunRecord, RunStatus, Store

__all__ = [
    "COMMANDS_FROM",
    "COMMANDS_UPTO",
    "OVER",
    "RELEASED_AS",
    "CommandKind",
    "RunCommand",
    "above",
    "commands_in",
    "fork",
    "graph_name_of",
    "has_refused",
    "has_run",
    "is_command",
    "is_within",
    "keep_all",
    "news_key",
    "out_of_order",
    "paged",
    "parent_of",
    "refusals_after",
    "renamed",
    "revision_in",
    "tells_parent",
    "those_of",
    "those_within",
    "unknown_run",
    "wake_at",
    "why_ended",
]

RELEASED_AS: Final[Mapping[EndReason, ReleaseStatus]] = {
    EndReason.ABORTED: "cancelled",
    EndReason.ERROR: "failed",
    EndReason.TIMEOUT: "failed",
}
"""The status that a store keeps for a run that ended so; other ends are `done`."""

WHY_MAX: Final = 1_000

CommandKind: TypeAlias = Literal["cancel", "steer", "follow_up"]

COMMANDS_FROM: Final = "/"
COMMANDS_UPTO: Final = chr(ord(COMMANDS_FROM) + 1)
"""All keys of commands and of news are in this range, in the order of code points; no other is."""

NEWS: Final = "/child/"
"""The beginning of the keys of news about child runs."""

RUNS_TOLD: Final = 10
"""The maximum number of known runs that the error about an unknown run lists."""


class RunCommand(Struct, frozen=True, gc=False):
    """A command to the driver of a run.

    Attributes:
        kind: whether the driver ends the run, or adds a message for its next turn or its end.
        text: the reason of a cancellation, or the message.
        signal_id: an id of the command; sending the same id twice counts as one command.
    """

    kind: CommandKind
    text: str
    signal_id: str

    @property
    def key(self) -> str:
        """The key under which a mailbox keeps the command."""
        return "/cancel" if self.kind == "cancel" else f"/{self.kind}/{self.signal_id}"


def is_command(key: str) -> bool:
    """Whether a mailbox keeps a command or news under this key, rather than an answer."""
    return key.startswith(COMMANDS_FROM)


def commands_in(posted: Mapping[str, str]) -> Iterator[RunCommand]:
    """Yield the commands in a mailbox, in the order in which they came."""
    for key, text in posted.items():
        if is_command(key) and not key.startswith(NEWS):
            kind, _, signal_id = key[1:].partition("/")
            yield RunCommand(cast("CommandKind", kind), text, signal_id)  # As `key` wrote it.


OVER: Final = frozenset[RunStatus]({"done", "failed", "cancelled"})
"""The statuses of runs that have ended."""


def news_key(run_id: str, epoch: int) -> str:
    """Return the key of the news that a child run's driver leaves when it ends this claim."""
    return f"{NEWS}{run_id}:{epoch}"


def tells_parent(left: tuple[RunStatus, object], found: tuple[RunStatus, object]) -> bool:
    """Whether the run above has to know how a driver has left a child run.

    Args:
        left: the child's status now, and its questions.
        found: the same from before the driver.
    """
    if left[0] in OVER:
        return found[0] not in OVER
    return left[0] == "parked" and left[1] != found[1]


def above(run_id: str) -> tuple[str, ...]:
    """Return the ids of the runs above a child run, the nearest first; () for a root run."""
    parts = run_id.split("/")
    return tuple(["/".join(parts[:at]) for at in range(len(parts) - 1, 0, -1)])


PAGE: Final = 200
"""The most runs that a listing reads at once."""


async def paged(
    store: Catalog,
    statuses: Collection[RunStatus] = (),
    graph: str | None = None,
    *,
    after: str = "",
    limit: int | None = None,
) -> AsyncIterator[RunRecord]:
    """Yield the records of runs, read page by page: see `Catalog.page`.

    Args:
        store: the store of the runs.
        statuses: the statuses of the wanted runs; empty for all.
        graph: the name of their graph; None for all.
        after: the id of the run that the first of them follows; empty for the first run.
        limit: the most runs to yield; None for all.

    Raises:
        UnknownRun: the store has no run `after`.
    """
    remaining = sys.maxsize if limit is None else limit
    while remaining > 0:
        size = min(PAGE, remaining)
        page = await store.page(statuses, graph, after=after, limit=size)
        for record in page:
            after = record.run_id
            yield record
        remaining = remaining - size if len(page) == size else 0


def parent_of(run_id: str, known: Container[str]) -> str:
    """Return the id before the last slash of a child's run id; "" if that id is not in `known`."""
    parent, slash, _ = run_id.rpartition("/")
    return parent if slash and parent in known else ""


def is_within(run_id: str, root: str) -> bool:
    """Whether `run_id` is the id of the run `root` or of one of its descendants."""
    return run_id == root or run_id.startswith(f"{root}/")


def refusals_after(kept: Iterable[Refusal], refusal: Refusal) -> tuple[Refusal, ...]:
    """Return the refusals of a run with this one as the last; each code has one."""
    return (*[one for one in kept if one.revision != refusal.revision], refusal)


def has_refused(refusals: Iterable[Refusal], revisions: Collection[str]) -> bool:
    """Whether code of one of these revisions has refused a run."""
    return any(one.revision in revisions for one in refusals)


def wake_at(asks: Iterable[Ask], now: float, wake_s: float | None) -> float | None:
    """Return the time at which a driver has to look at a parked run; None for never.

    It is the time at which the first question expires, or `wake_s` seconds from `now`.
    """
    times = [ask.expires_at for ask in asks if ask.expires_at is not None]
    return min([*times, *(() if wake_s is None else (now + wake_s,))], default=None)


def why_ended(ending: Ending) -> str:
    """Return why a run ended, as text of at most `WHY_MAX` characters.

    For example `budget (budget.tool_calls)`, or `ProviderError: overloaded`. The text is empty for
    a run that just completed.
    """
    reason, failure = ending.reason, ending.failure
    if failure is not None:
        return f"{failure.error}: {failure.message}"[:WHY_MAX]
    named = ", ".join([name for name in ending.stopped_by if name != reason])
    if named:
        return f"{reason} ({named})"[:WHY_MAX]
    return "" if reason is EndReason.COMPLETED else reason.value


def graph_name_of(first: Event) -> str:
    """Return the graph's name from the first event of a run; "" if that event is not `Started`."""
    return first.graph if isinstance(first, Started) else ""


def revision_in(events: Iterable[Event]) -> str:
    """Return the first revision of code that events tell; "" if they tell none."""
    return next((one.revision for one in events if isinstance(one, Resumed) and one.revision), "")


def out_of_order(place: str, expected: int, seq: int) -> StoreError:
    """Return the error for an appended event whose number is not the next number of its run."""
    return StoreError(
        f"{place} has {expected - 1} event(s), so the next is number {expected}, not {seq}: "
        + ("this run id is taken" if seq == 1 else "another driver is writing to it")
    )


def unknown_run(run_id: str, place: Path, known: Sequence[str]) -> UnknownRun:
    """Return the error for an unknown run id, with a list of some known ids."""
    more = f" … of {len(known)}" if len(known) > RUNS_TOLD else ""
    told = ", ".join(known[:RUNS_TOLD]) + more
    return UnknownRun(f"no run {run_id!r} in {place}; runs here: {told or 'none'}")


async def has_run(store: Store, run_id: str) -> bool:
    """Whether the store has a run with this id."""
    return run_id in await those_of(store, [run_id])


async def those_of(store: Store, run_ids: Sequence[str]) -> Collection[str]:
    """Return the runs among these that exist; most stores do not list their other runs for it."""
    if isinstance(store, Lookup):
        return await store.existing(run_ids)
    if isinstance(store, Catalog):
        listed = [await store.overview(run_id) for run_id in run_ids]
        return {record.run_id for records in listed for record in records}.intersection(run_ids)
    return {*await store.runs()}.intersection(run_ids)


async def those_within(store: Store, *roots: str) -> Sequence[str]:
    """Return the ids of the existing runs among `roots` and their descendants."""
    if isinstance(store, Catalog):
        return [one.run_id for root in roots for one in await store.overview(root)]
    return [one for one in await store.runs() if any(is_within(one, root) for root in roots)]


async def fork(
    store: Store,
    run_id: str,
    *,
    at: int,
    new_id: str,
    children: Collection[str],
) -> None:
    """Copy the first `at` events of a run to a new run, together with the given child runs.

    If the parent cancelled a child after event `at`, the child's copy lacks the cancellation.
    Posted answers that are not in the journal are not copied. A `Bulk` store saves the whole copy
    or nothing; another store may save a part of it if it fails half-way.

    Args:
        store: the store of the run and of its copy.
        run_id: the id of the run to copy.
        at: the number of events to copy.
        new_id: the run id of the copy.
        children: the keys of the child runs to copy with their descendants. Pass those that were
            running at event `at` (see `agent.journals.children_at`). The copy must not hold a
            child that started later.

    Raises:
        StoreError: the run does not exist, it has no event number `at`, or the new id is taken.
    """
    events = await store.load(run_id)
    if not 1 <= at <= len(events):
        raise StoreError(
            f"run {run_id!r} has {len(events)} event(s): it can be forked after number 1 to "
            f"{len(events)}, not {at}"
        )
    known = await those_within(store, run_id, new_id)
    journals = {new_id: renamed(events[:at], new_id)}
    voided = [one.at for one in events[at:] if _stops_children(one)]
    for child in known:
        path = child.removeprefix(f"{run_id}/")
        if path == child or path.partition("/")[0] not in children:
            continue
        copy = f"{new_id}/{path}"
        journals[copy] = renamed(_before(await store.load(child), voided), copy)
    taken = sorted(journals.keys() & set(known))
    if taken:
        raise StoreError(f"run {run_id!r} cannot be forked: this run id is taken: {taken[0]!r}")
    await keep_all(store, journals)


def renamed(events: Sequence[Event], run_id: str) -> tuple[Event, ...]:
    """Return a copy of a journal whose `Started` event has another run id."""
    return tuple(
        replace(event, run_id=run_id) if isinstance(event, Started) else event for event in events
    )


async def keep_all(store: Store, journals: Mapping[str, Sequence[Event]]) -> None:
    """Save new journals: all or none in a `Bulk` store, otherwise one after the other.

    Raises:
        StoreError: a run id is taken, or an event cannot be written.
    """
    if isinstance(store, Bulk):
        await store.append_all(journals)
        return
    for run_id, events in journals.items():
        await store.append(run_id, 1, *events)


def _stops_children(event: Event) -> bool:
    """Whether the driver cancelled child runs at the time of this event of their parent."""
    return isinstance(event, Cancelled) or (
        isinstance(event, ChildEnded) and event.status == "not_run"
    )


def _before(events: Sequence[Event], voided: Collection[float]) -> Sequence[Event]:
    """Return a child's events without a last `Cancelled` event at one of the times in `voided`."""
    last = events[-1]
    return events[:-1] if isinstance(last, Cancelled) and last.at in voided else events
