"""Whole journals: names of children and copies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop.events import Cancelled, Setup, Started
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.run_ids import is_within, parent_of, those_within
from tests.unit.stores.store_process import append_events

FIRST = Started(1.0, "r", "g", (), Setup())
LAST = Cancelled(2.0)


@pytest.mark.parametrize(
    ("run_id", "parent"),
    [("a", ""), ("a/b", "a"), ("a/b/c", "a/b"), ("x/b", ""), ("/a", ""), ("a/", "a")],
)
def test_a_child_is_known_by_its_name_if_its_parent_is_there(run_id: str, parent: str) -> None:
    """A user's own run ids may hold slashes, too."""
    assert parent == parent_of(run_id, {"a", "a/b", "b"})


@pytest.mark.parametrize("catalog", [True, False])
def test_those_within_a_run_are_it_and_all_below_it(tmp_path: Path, *, catalog: bool) -> None:
    """Whatever their names have in common; also where a store knows no more than all its runs."""
    store: Store = MemoryStore() if catalog else JsonlStore(tmp_path)
    for run_id in ("a", "a/b", "a/b/c", "ab", "a0", "b/a"):
        asyncio.run(append_events(store, run_id, 1, FIRST))

    def within(*roots: str) -> set[str]:
        return set(asyncio.run(those_within(store, *roots)))

    assert {"a", "a/b", "a/b/c"} == within("a")
    assert {"a/b", "a/b/c", "b/a"} == within("a/b", "b", "c")
    assert [True, True, False] == [is_within(one, "a") for one in ("a", "a/b", "ab")]
