"""Forking: copy a run up to an event, with the child runs that were pending then."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ..effects import AskHuman, StartRun
from ..errors import ConfigError, StoreError
from ..events import Cancelled, ChildEnded, Decided, Event
from ..graph import NodeGraph
from ..replay import replay_steps
from .base import Bulk, Catalog, Store
from .journals import number_of, renamed, state_after, typed
from .run_ids import check_run_id, those_within

__all__ = ["children_at", "fork", "fork_run", "keep_all"]


async def fork_run(
    graph: NodeGraph[Any] | None,
    store: Store,
    run_id: str,
    at: int,
    new_id: str | None = None,
    *,
    share: bool = False,
) -> str:
    """Copy a run up to event `at`, with child runs that were pending then; return the copy's id.

    Args:
        graph: the run's graph; may be None only for a run without child runs.
        store: the store of the run.
        run_id: the id of the run.
        at: the number of the last event to copy.
        new_id: the copy's id; by default a random id.
        share: whether the copy may act on approvals that the original run got.

    Raises:
        StoreError: the store has no such run or event, or the new id is taken.
        ConfigError: the new id is invalid, `at` is not a whole number, the run has child runs but
            `graph` is None, or the copy would act on an approval without `share`.
    """
    copy = uuid4().hex if new_id is None else new_id
    check_run_id("new_id", copy)
    events, known = await store.load(run_id), await those_within(store, run_id)
    if graph is None and len(known) > 1:
        raise ConfigError(
            f"run {run_id!r} has child runs, and only its graph tells which of them were running "
            f"after event {at}. Fix: give the graph."
        )
    within = 1 <= number_of(at, events) <= len(events)  # Otherwise `fork` raises the error, later.
    children = children_at(graph, events, at) if graph is not None and within else ()
    if within and not share:
        _refuse_approved(run_id, graph, events[:at])
        for child in known:
            key = child.removeprefix(f"{run_id}/").partition("/")[0]
            if graph is not None and key in children:
                before_child = _number_before_child(graph, events[:at], key)
                _refuse_approved(child, None, await store.load(child), before_child)
    await fork(store, run_id, at=at, new_id=copy, children=children)
    if isinstance(store, Catalog) and (target := (await store.record(run_id)).target):
        await store.set_target(copy, target)
    return copy


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
            running at event `at` (`children_at`). The copy must not hold a
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
        journals[copy] = renamed(_without_voided(await store.load(child), voided), copy)
    taken = sorted(journals.keys() & set(known))
    if taken:
        raise StoreError(f"run {run_id!r} cannot be forked: this run id is taken: {taken[0]!r}")
    await keep_all(store, journals)


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


def children_at(graph: NodeGraph[Any], events: Sequence[Event], at: int) -> tuple[str, ...]:
    """Return the keys of the child runs that were pending after event `at`."""
    pending = state_after(graph, events, at).pending.values()
    return tuple(effect.key for effect in pending if isinstance(effect, StartRun))


def _number_before_child(graph: NodeGraph[Any], events: Sequence[Event], key: str) -> int:
    """Return the number of the last event after which the child run `key` was not yet pending."""
    before = range(len(events) - 1, 0, -1)
    return next((at for at in before if key not in children_at(graph, events, at)), 1)


def _refuse_approved(
    run_id: str, graph: NodeGraph[Any] | None, events: Sequence[Event], before_child: int = 0
) -> None:
    """Raise an error if the copy of a run would act on an approval that the run got.

    An approval does no harm if its call already has a result, or if the copied run is over.

    Args:
        run_id: the id of the run to copy.
        graph: the run's graph; None for a child run, where every approval counts.
        events: the events to copy.
        before_child: for a child run, the forked run's last event before the child started.
    """
    given = {
        at: event.effect
        for at, event in enumerate(events)
        if isinstance(event, Decided) and event.approved
    }
    if not given:
        return
    runs = [] if graph is None else [step.run for step in replay_steps(graph, typed(graph, events))]
    if runs and runs[-1].ending is not None:
        return
    for at, effect in given.items():
        what = ""
        if runs:
            asked = runs[at - 1].pending[effect]
            assert isinstance(asked, AskHuman), "a decision answers a question"
            if runs[at - 1].turn.has_call(asked.key) and not runs[-1].turn.waits_for(asked.key):
                continue
            what = f" ({asked.key} {asked.call.name})"
        raise ConfigError(
            f"event {at + 1} of run {run_id!r} approved what the copy would do again{what}. Fix: "
            f"fork at={before_child or at} or before, and the person is asked again; or say "
            "share_approvals=True (--share-approvals)."
        )


def _stops_children(event: Event) -> bool:
    """Whether the driver cancelled child runs at the time of this event of their parent."""
    return isinstance(event, Cancelled) or (
        isinstance(event, ChildEnded) and event.status == "not_run"
    )


def _without_voided(events: Sequence[Event], voided: Collection[float]) -> Sequence[Event]:
    """Return a child's events without a last `Cancelled` event at one of the times in `voided`."""
    last = events[-1]
    return events[:-1] if isinstance(last, Cancelled) and last.at in voided else events
