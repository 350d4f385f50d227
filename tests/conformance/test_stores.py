"""Every store keeps the promises of `Store`; a new store joins by one line here."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphloop.errors import StoreError
from graphloop.events import Cancelled, Event
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from tests.strategies import events

T = TypeVar("T")

Open = Callable[[], Store]

NUMBERS = itertools.count()

ODD_IDS = ["r", "", ".", "..", "a/b", "../up", "%2F", "ä😀", "con", " ", "a" * 60, "x.jsonl"]


@pytest.fixture(params=["memory", "jsonl", "jsonl with fsync"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a way to open the same store, as another process would."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    return lambda: JsonlStore(tmp_path / "runs", fsync=request.param.endswith("fsync"))


def do(work: Coroutine[object, object, T]) -> T:
    """Run one operation."""
    return asyncio.run(work)


def event(reason: str) -> Event:
    """Return an event that can be recognised."""
    return Cancelled(1.0, reason)


def test_what_was_appended_is_loaded_in_order(open_store: Open) -> None:
    """Also by a store that was opened later."""
    store = open_store()
    kept = [event(str(number)) for number in range(1, 6)]
    for seq, one in enumerate(kept, 1):
        do(store.append("r", seq, one))

    assert kept == list(do(store.load("r")))
    assert kept == list(do(open_store().load("r")))


@pytest.mark.parametrize("seq", [0, 1, 3, -1, 4])
def test_a_number_out_of_order_is_refused_and_leaves_no_trace(open_store: Open, seq: int) -> None:
    """A gap or a second writer of one number would be two truths."""
    store = open_store()
    do(store.append("r", 1, event("a")))

    with pytest.raises(StoreError):
        do(store.append("r", seq, event("x")))
    do(store.append("r", 2, event("b")))

    assert [event("a"), event("b")] == list(do(store.load("r")))


def test_a_refused_first_event_makes_no_run(open_store: Open) -> None:
    """A run that nobody started must not be listed."""
    store = open_store()

    with pytest.raises(StoreError):
        do(store.append("r", 2, event("x")))

    assert [] == list(do(store.runs()))
    with pytest.raises(StoreError):
        do(store.load("r"))


def test_a_second_writer_of_the_same_number_is_refused(open_store: Open) -> None:
    """Whichever of two drivers of one run is slower, learns that it is not alone."""
    first, second = open_store(), open_store()
    do(first.append("r", 1, event("a")))
    do(second.append("r", 2, event("b")))

    with pytest.raises(StoreError):
        do(first.append("r", 2, event("x")))
    do(first.append("r", 3, event("c")))
    with pytest.raises(StoreError):
        do(second.append("r", 3, event("y")))

    assert [event("a"), event("b"), event("c")] == list(do(open_store().load("r")))


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_any_run_id_is_kept_apart(open_store: Open, run_id: str) -> None:
    """Ids come from users: they may look like paths, and must not be."""
    store = open_store()

    do(store.append(run_id, 1, event("mine")))
    do(store.append("other", 1, event("theirs")))

    assert [event("mine")] == list(do(store.load(run_id)))
    assert sorted([run_id, "other"]) == list(do(open_store().runs()))


def test_an_unknown_run_is_an_error(open_store: Open) -> None:
    """Not an empty journal."""
    with pytest.raises(StoreError, match="no run 'nowhere'"):
        do(open_store().load("nowhere"))


def test_a_new_store_has_no_runs(open_store: Open) -> None:
    """And asking does not fail."""
    assert [] == list(do(open_store().runs()))


def test_what_was_loaded_does_not_change_afterwards(open_store: Open) -> None:
    """A reader holds a journal, not a window into it."""
    store = open_store()
    do(store.append("r", 1, event("a")))
    loaded = do(store.load("r"))

    do(store.append("r", 2, event("b")))

    assert [event("a")] == list(loaded)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(kept=st.lists(events, max_size=4))
def test_any_event_can_be_kept(open_store: Open, kept: list[Event]) -> None:
    """Whatever its texts and numbers."""
    store, run = open_store(), next(NUMBERS)
    for seq, one in enumerate(kept, 1):
        do(store.append(str(run), seq, one))

    if kept:
        assert kept == list(do(open_store().load(str(run))))
