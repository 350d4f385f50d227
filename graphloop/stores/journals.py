"""Whole journals: the parent in a run id, the changes of a copy, and keeping several at once."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..codec import Codec
from ..errors import StoreError, UnknownRun
from ..events import Event, Started
from .base import Bulk, Catalog, Store

__all__ = [
    "graph_of",
    "is_within",
    "keep",
    "out_of_order",
    "parent_of",
    "read_lines",
    "renamed",
    "those_within",
    "unknown_run",
]

RUNS_TOLD: Final = 10
"""How many known runs the error about an unknown run lists."""


def parent_of(run_id: str, known: Container[str]) -> str:
    """Return the parent of a run, from its id; nothing for a run without a parent."""
    parent, slash, _ = run_id.rpartition("/")
    return parent if slash and parent in known else ""


def is_within(run_id: str, root: str) -> bool:
    """Whether a run is this run or one of its descendants, from its id."""
    return run_id == root or run_id.startswith(f"{root}/")


def graph_of(first: Event) -> str:
    """Return the graph's name, from a run's first event."""
    return first.graph if isinstance(first, Started) else ""


def renamed(events: Sequence[Event], run_id: str) -> tuple[Event, ...]:
    """Return the journal of a copy: the same events under another run id."""
    return tuple(
        replace(event, run_id=run_id) if isinstance(event, Started) else event for event in events
    )


def read_lines(lines: Iterable[bytes], path: str | Path, codec: Codec) -> Iterator[Event]:
    """Yield the events of a journal of JSON lines.

    Raises:
        StoreError: a line is no event, is damaged, or is not the next event.
    """
    for number, line in enumerate(lines, 1):
        try:
            seq, event = codec.decode(line)
        except StoreError as error:
            raise StoreError(f"{path}, line {number}: {error}") from error
        if seq != number:
            raise StoreError(f"{path}, line {number}: has event {seq}, expected {number}")
        yield event


def out_of_order(place: str, expected: int, seq: int) -> StoreError:
    """Return the error for an event with the wrong number."""
    return StoreError(
        f"{place} has {expected - 1} event(s), so the next is number {expected}, not {seq}: "
        + ("this run id is taken" if seq == 1 else "another driver is writing to it")
    )


def unknown_run(run_id: str, place: Path, known: Sequence[str]) -> UnknownRun:
    """Return the error for an unknown run, with some known ones."""
    more = f" … of {len(known)}" if len(known) > RUNS_TOLD else ""
    told = ", ".join(known[:RUNS_TOLD]) + more
    return UnknownRun(f"no run {run_id!r} in {place}; runs here: {told or 'none'}")


async def those_within(store: Store, *roots: str) -> Sequence[str]:
    """Return the ids of these runs and of their descendants, as far as they exist."""
    if isinstance(store, Catalog):
        return [one.run_id for root in roots for one in await store.overview(root)]
    return [one for one in await store.runs() if any(is_within(one, root) for root in roots)]


async def keep(store: Store, journals: Mapping[str, Sequence[Event]]) -> None:
    """Keep new journals: all or none in a `Bulk` store, else event by event.

    Raises:
        StoreError: one of the run ids is taken, or cannot be written.
    """
    if isinstance(store, Bulk):
        await store.append_all(journals)
        return
    for run_id, events in journals.items():
        for seq, event in enumerate(events, 1):
            await store.append(run_id, seq, event)
