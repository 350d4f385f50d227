"""Run ids: those of a run and of its child runs, and which of them a store has.

The id of a child run is its parent's id, a slash, and the key of the call or node that started it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Collection, Container, Sequence
from typing import Final

from ..errors import ConfigError, UnknownRun
from ..node_protocol import control_in
from .base import Catalog, Lookup, RunRecord, RunStatus, Store

__all__ = [
    "ancestors_of",
    "check_run_id",
    "check_text",
    "has_run",
    "is_within",
    "paged",
    "parent_of",
    "path_of",
    "root_of",
    "those_of",
    "those_within",
    "unknown_run",
]

ID_CHARS_MAX: Final = 200

PAGE: Final = 200
"""The most runs that a listing reads at once."""


def check_run_id(name: str, run_id: str) -> None:
    """Raise an error if a run id cannot be a file name and a key in a store.

    Raises:
        ConfigError: the id is empty or too long, or has a slash, a control character or half a
            surrogate pair; the message names the option `name`.
    """
    if not run_id or "/" in run_id:
        raise ConfigError(
            f"`{name}`: expected some text without a slash, which sets child runs apart, found "
            f"{run_id!r}"
        )
    if len(run_id) > ID_CHARS_MAX:
        raise ConfigError(
            f"`{name}`: expected at most {ID_CHARS_MAX} characters, found {len(run_id)}"
        )
    if control_in(run_id):
        raise ConfigError(
            f"`{name}`: expected one line of text, found a control character or half a surrogate "
            f"pair in {run_id!r}"
        )


def check_text(name: str, text: str) -> None:
    """Raise an error if a text has half a surrogate pair, which no database can hold.

    Raises:
        ConfigError: it has one; the message names the option `name`.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"`{name}`: expected text, found half a surrogate pair at character {error.start}. "
            "Fix: cut text between characters, not within one."
        ) from error


def ancestors_of(run_id: str) -> tuple[str, ...]:
    """Return the ids of the runs above a child run, the nearest first; () for a root run."""
    parts = run_id.split("/")
    return tuple(["/".join(parts[:at]) for at in range(len(parts) - 1, 0, -1)])


def path_of(run_id: str) -> tuple[str, ...]:
    """Return the keys of the calls and nodes that lead from the root run to a run."""
    return tuple(run_id.split("/")[1:])


def root_of(run_id: str, key: str) -> tuple[str, str]:
    """Return the id of a run's root run, and the key under which that run takes a call's answer."""
    root, slash, path = run_id.partition("/")
    return root, f"{path}/{key}" if slash else key


def parent_of(run_id: str, known: Container[str]) -> str:
    """Return the id before the last slash of a child's run id; "" if that id is not in `known`."""
    parent, slash, _ = run_id.rpartition("/")
    return parent if slash and parent in known else ""


def is_within(run_id: str, root: str) -> bool:
    """Whether `run_id` is the id of the run `root` or of one of its descendants."""
    return run_id == root or run_id.startswith(f"{root}/")


def unknown_run(run_id: str, place: object = "this store") -> UnknownRun:
    """Return the error for an unknown run id."""
    return UnknownRun(
        f"no run {run_id!r} in {place}. Fix: give an id that `await store.runs()` returns."
    )


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
