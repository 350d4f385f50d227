"""Whole journals: whose child a run is, what a copy has to change, how it is kept in one go."""

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
"""How many runs are listed where another one was meant."""


def parent_of(run_id: str, known: Container[str]) -> str:
    """Return the run that this is a child of, by its name; nothing if there is no such run."""
    parent, slash, _ = run_id.rpartition("/")
    return parent if slash and parent in known else ""


def is_within(run_id: str, root: str) -> bool:
    """Return whether a run is this one, or somewhere below it, by its name."""
    return run_id == root or run_id.startswith(f"{root}/")


def graph_of(first: Event) -> str:
    """Return the graph's name, as a run's first event tells it."""
    return first.graph if isinstance(first, Started) else ""


def renamed(events: Sequence[Event], run_id: str) -> tuple[Event, ...]:
    """Return the journal of a copy: the same events, told of another run."""
    return tuple(
        replace(event, run_id=run_id) if isinstance(event, Started) else event for event in events
    )


def read_lines(lines: Iterable[bytes], path: str | Path, codec: Codec) -> Iterator[Event]:
    """Yield the events of a journal of JSON lines.

    Raises:
        StoreError: a line is no event, is damaged, or is not the next one.
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
    """Return the error of an event that is not the next one."""
    return StoreError(
        f"{place} has {expected - 1} event(s), so the next is number {expected}, not {seq}: "
        + ("this run id is taken" if seq == 1 else "another driver is writing to it")
    )


def unknown_run(run_id: str, place: Path, known: Sequence[str]) -> UnknownRun:
    """Return the error of a run that is not there, with some of those that are."""
    more = f" … of {len(known)}" if len(known) > RUNS_TOLD else ""
    told = ", ".join(known[:RUNS_TOLD]) + more
    return UnknownRun(f"no run {run_id!r} in {place}; runs here: {told or 'none'}")


async def those_within(store: Store, *roots: str) -> Sequence[str]:
    """Return the ids of those of these runs that there are, and of all below them."""
    if isinstance(store, Catalog):
        return [one.run_id for root in roots for one in await store.overview(root)]
    return [one for one in await store.runs() if any(is_within(one, root) for root in roots)]


async def keep(store: Store, journals: Mapping[str, Sequence[Event]]) -> None:
    """Keep new journals: all or none where the store can, else one event after the other.

    Raises:
        StoreError: one of the run ids is taken, or cannot be written.
    """
    if isinstance(store, Bulk):
        await store.append_all(journals)
        return
    for run_id, events in journals.items():
        for seq, event in enumerate(events, 1):
            await store.append(run_id, seq, event)
