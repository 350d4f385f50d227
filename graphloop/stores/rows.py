"""Rows: what databases keep of runs, in the forms of their columns, and records from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Decoder

from ..errors import Fenced, OtherSchema, StoreError
from ..events import Event, Started
from .backlog import Submission, wake_at
from .base import Ask, Posted, Refusal, ReleaseStatus, RunRecord
from .beginnings import Beginnings, before, whole
from .blobs import ReadBlob
from .codec import Codec
from .journals import graph_name_of, revision_in
from .run_ids import is_within, parent_of

__all__ = [
    "NAMED_MAX",
    "Addition",
    "Standing",
    "addition_of",
    "checked_events",
    "family_of",
    "fenced",
    "other_schema",
    "reason_in",
    "records_of",
    "refusals_in",
    "said_before",
    "standing_of",
    "within_bounds",
]

ASKS: Final = Decoder(tuple[Ask, ...])
REFUSALS: Final = Decoder(tuple[Refusal, ...])
AFTER_SLASH: Final = chr(ord("/") + 1)
QUESTION: Final = re.compile(r"\.[0-9]+$")
"""The end of the id of a question of a chat, which reads the question before it: "chat.2"."""

NAMED_MAX: Final = 10
"""The maximum number of runs that a survey names of each kind."""


class Addition(Struct, frozen=True, gc=False):
    """Encoded events to append to one run.

    Attributes:
        run_id: the run's id.
        seq: the number of the first of the events in the run's journal, from 1.
        events: the type name and the JSON line of each event.
        graph: the graph's name if the first event is `Started`; else empty.
        blobs: the large media and the first messages of the events, by reference.
        known: the part of a conversation that the store is believed to have, because these blobs
            follow it; empty for none. A store from which it was pruned takes `every_blob`.
        started: the event of that conversation; None without `known`.
        place: the place in line of a run that is submitted; None for other events.
        revision: the first revision of code that the events tell; else empty.
    """

    run_id: str
    seq: int
    events: tuple[tuple[str, bytes], ...]
    graph: str = ""
    blobs: Mapping[str, bytes] = {}
    known: str = ""
    started: Started | None = None
    place: Submission | None = None
    revision: str = ""

    @property
    def every_blob(self) -> Mapping[str, bytes]:
        """The blobs with all parts of the conversation that the run begins with."""
        return self.blobs if self.started is None else {**whole(self.started), **self.blobs}

    @property
    def is_only_entries(self) -> bool:
        """Whether the events change nothing but the run's journal."""
        return self.seq > 1 and not (self.blobs or self.revision)

    @property
    def size(self) -> int:
        """The bytes of the events and of their blobs."""
        lines = sum([len(data) for _, data in self.events])
        return lines + sum([len(data) for data in self.blobs.values()])


class Standing(Struct, frozen=True, gc=False):
    """The record of a released run: its status, its questions, and the answers that were read.

    Attributes:
        status: the run's status.
        asks: the pending questions that the run waits for.
        seen: how many answers of the run's mailbox the driver has read.
        wake_at: the time, by this machine's clock, at which a driver is to take the run; or None.
        refusal: why the run is blocked; None for another status.
        ending: why the run ended; empty if it just completed, or is not over.
    """

    status: ReleaseStatus
    asks: tuple[Ask, ...]
    seen: int
    wake_at: float | None = None
    refusal: Refusal | None = None
    ending: str = ""


def standing_of(  # noqa: PLR0913 - each is a column of the run's row
    status: ReleaseStatus | None,
    asks: Sequence[Ask],
    now: float,
    *,
    seen: int,
    wake_s: float | None,
    refusal: Refusal | None,
    ending: str,
) -> Standing | None:
    """Return how a driver leaves a run (see `Leases.release`); None to keep its status."""
    if status is None:
        return None
    return Standing(status, tuple(asks), seen, wake_at(asks, now, wake_s), refusal, ending)


def addition_of(
    codec: Codec, beginnings: Beginnings, run_id: str, seq: int, events: Sequence[Event]
) -> Addition:
    """Return events as they are appended to a run, from this number on."""
    blobs: dict[str, bytes] = {}
    rows = [
        (type(event).__name__, codec.encode(at, event, blobs, beginnings))
        for at, event in enumerate(events, seq)
    ]
    graph = graph_name_of(events[0]) if events else ""
    first, known = events[0] if events else None, ""
    if isinstance(first, Started):
        known = codec.last_part(rows[0][1])
        while known in blobs:
            known = before(blobs[known])
    started = first if known and isinstance(first, Started) else None
    return Addition(
        run_id, seq, tuple(rows), graph, blobs, known, started, revision=revision_in(events)
    )


def checked_events(
    codec: Codec,
    beginnings: Beginnings,
    run_id: str,
    rows: Iterable[tuple[int, str, bytes]],
    read_blob: ReadBlob,
) -> tuple[Event, ...]:
    """Return the events of a run from their numbers, type names and lines, after checking each.

    Raises:
        StoreError: an event is missing or damaged.
    """
    events: list[Event] = []
    codec = codec.of(run_id)
    for at, (seq, kind, data) in enumerate(rows, 1):
        if seq != at:
            raise StoreError(f"run {run_id!r}: event {at} is missing, {seq} is there")
        place = f"run {run_id!r}, event {seq}"
        try:
            told, event = codec.decode(data, read_blob, beginnings)
        except StoreError as error:
            raise StoreError(f"{place}: {error}") from error
        if (told, type(event).__name__) != (seq, kind):
            raise StoreError(
                f"{place}: expected {kind}, found event {told}, {type(event).__name__}. "
                "Fix: restore the store from a backup; a damaged run cannot go on."
            )
        events.append(event)
    return tuple(events)


def said_before(first: str, signal_id: str) -> Posted:
    """Return what became of an answer to a question whose first answer has the id `first`."""
    return "duplicate" if first == signal_id else "answered"


def other_schema(place: str, found: int | str, expected: int, elsewhere: str) -> OtherSchema:
    """Return the error for tables of another version; `elsewhere` is what a user of old ones does.

    Tables are not migrated: an old run is ended by the code that began it.
    """
    fix = (
        "upgrade graphloop"
        if str(found).isdecimal() and int(found) > expected
        else f"end its runs with the graphloop that wrote it, then {elsewhere}"
    )
    return OtherSchema(f"{place} has schema version {found}, expected {expected}. Fix: {fix}.")


def fenced(run_id: str, owner: str | None, epoch: int, mine: int | None) -> Fenced:
    """Return the error of a driver whose claim is lost, or that has none.

    Args:
        run_id: the run's id.
        owner: who drives the run now.
        epoch: the epoch of the latest claim.
        mine: the epoch of the driver's claim; None for none.
    """
    holder = f"is driven by {owner}" if owner else "has no driver"
    claimed = "never claimed it" if mine is None else f"claimed it in epoch {mine} and must stop"
    return Fenced(f"run {run_id!r} {holder} now, in epoch {epoch}; this driver {claimed}")


def within_bounds(root: str) -> tuple[str, str, str, str]:
    """Return the ids of `root` and its parent, and the range of the ids of its descendants.

    The ids from the third text up to, but without, the fourth are neighbours in an index.
    """
    return root, root.rpartition("/")[0], f"{root}/", f"{root}{AFTER_SLASH}"


def records_of(
    rows: Collection[tuple[Any, ...]], root: str | None, *, cut: bool = False
) -> tuple[RunRecord, ...]:
    """Return the records of the rows of a database, without the parent of `root`.

    A row has the run's id, graph, status, number of events, two times, questions, target, refusals,
    remaining seconds, revision, queue and ending. If the rows are `cut` out of more, the parents of
    their runs need not be among them.
    """
    known = {row[0].rpartition("/")[0] if cut else row[0] for row in rows}
    found = [row for row in rows if root is None or is_within(row[0], root)]
    return tuple([_record_of(row, parent_of(row[0], known)) for row in found])


def _record_of(row: tuple[Any, ...], parent: str) -> RunRecord:
    run_id, graph, status, events, created, updated, asks, target, *rest = row
    refusals, remaining_s, revision, queue, ending = rest
    return RunRecord(
        run_id,
        graph,
        *(status, events, created, updated),
        parent=parent,
        asks=ASKS.decode(asks),
        target=target,
        refusals=refusals_in(refusals),
        remaining_s=remaining_s,
        revision=revision,
        queue=queue,
        ending=ending,
    )


def refusals_in(data: str) -> tuple[Refusal, ...]:
    """Return the refusals that a database keeps for a run."""
    return REFUSALS.decode(data)


def reason_in(data: str) -> str:
    """Return why a run is blocked, by its last refusal; empty if it is not told."""
    return next((one.reason for one in reversed(refusals_in(data))), "")


def family_of(run_id: str) -> str:
    """Return the id of a run's root; of a question of a chat, the id of the chat."""
    return QUESTION.sub("", run_id.partition("/")[0])
