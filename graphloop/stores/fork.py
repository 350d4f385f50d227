"""Fork: a copy of a run's past under a new id."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..errors import StoreError
from ..events import Cancelled, ChildEnded, Event
from .base import Store
from .journals import keep, renamed, those_within

__all__ = ["fork"]


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
            running at `at`, which only the graph tells (`front.journals.children_at`). The copy
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
    await keep(store, journals)


def _stops_children(event: Event) -> bool:
    """Whether children were cancelled at this event's time: all of them, or the event's."""
    return isinstance(event, Cancelled) or (
        isinstance(event, ChildEnded) and event.status == "not_run"
    )


def _before(events: Sequence[Event], voided: Collection[float]) -> Sequence[Event]:
    """Return a child's events before its cancellation at one of these times, if any."""
    last = events[-1]
    return events[:-1] if isinstance(last, Cancelled) and last.at in voided else events
