"""Whole journals: forks, parents and children by run id, and errors about runs."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..errors import StoreError, UnknownRun
from ..events import Cancelled, ChildEnded, Event, Started
from .base import Bulk, Catalog, Store

__all__ = [
    "fork",
    "graph_name_of",
    "is_within",
    "out_of_order",
    "parent_of",
    "those_within",
    "unknown_run",
]

RUNS_TOLD: Final = 10
"""How many known runs the error about an unknown run lists."""


def parent_of(run_id: str, known: Container[str]) -> str:
    """Return the parent's id; "" if the id has no slash, or its parent is not in `known`."""
    parent, slash, _ = run_id.rpartition("/")
    return parent if slash and parent in known else ""


def is_within(run_id: str, root: str) -> bool:
    """Whether a run is this run or one of its descendants, from its id."""
    return run_id == root or run_id.startswith(f"{root}/")


def graph_name_of(first: Event) -> str:
    """Return the graph's name, from a run's first event."""
    return first.graph if isinstance(first, Started) else ""


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


async def fork(
    store: Store,
    run_id: str,
    *,
    at: int,
    new_id: str,
    children: Collection[str],
) -> None:
    """Copy the first `at` events of a run, and these child runs, to a new run.

    The copy of a child lacks its cancellation after `at`, by its parent or because its answer was
    not needed. Posted answers that are not journaled yet are not copied. A `Bulk` store keeps all
    of the copy or nothing; another store may keep a part of it if it fails half-way.

    Args:
        store: the store of the run and of its copy.
        run_id: the run.
        at: how many of its events the copy has.
        new_id: the copy's id.
        children: the keys of the child runs to copy, with their descendants: those that were
            running at `at`, which only the graph tells (`agent.journals.children_at`). The copy
            must not hold a child that started later.

    Raises:
        StoreError: there is no such run, `at` is none of its events, or the new id is taken.
    """
    events = await store.load(run_id)
    if not 1 <= at <= len(events):
        raise StoreError(
            f"run {run_id!r} has {len(events)} event(s): it can be forked after number 1 to "
            f"{len(events)}, not {at}"
        )
    known = await those_within(store, run_id, new_id)
    journals = {new_id: _renamed(events[:at], new_id)}
    voided = [one.at for one in events[at:] if _stops_children(one)]
    for child in known:
        path = child.removeprefix(f"{run_id}/")
        if path == child or path.partition("/")[0] not in children:
            continue
        copy = f"{new_id}/{path}"
        journals[copy] = _renamed(_before(await store.load(child), voided), copy)
    taken = sorted(journals.keys() & set(known))
    if taken:
        raise StoreError(f"run {run_id!r} cannot be forked: this run id is taken: {taken[0]!r}")
    await _keep(store, journals)


def _renamed(events: Sequence[Event], run_id: str) -> tuple[Event, ...]:
    """Return the journal of a copy: the same events under another run id."""
    return tuple(
        replace(event, run_id=run_id) if isinstance(event, Started) else event for event in events
    )


async def _keep(store: Store, journals: Mapping[str, Sequence[Event]]) -> None:
    """Keep new journals: all or none in a `Bulk` store, else one after the other.

    Raises:
        StoreError: one of the run ids is taken, or cannot be written.
    """
    if isinstance(store, Bulk):
        await store.append_all(journals)
        return
    for run_id, events in journals.items():
        await store.append(run_id, 1, *events)


def _stops_children(event: Event) -> bool:
    """Whether children were cancelled at this event's time: all of them, or the event's."""
    return isinstance(event, Cancelled) or (
        isinstance(event, ChildEnded) and event.status == "not_run"
    )


def _before(events: Sequence[Event], voided: Collection[float]) -> Sequence[Event]:
    """Return a child's events before its cancellation at one of these times, if any."""
    last = events[-1]
    return events[:-1] if isinstance(last, Cancelled) and last.at in voided else events
