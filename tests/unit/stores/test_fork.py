"""Fork: a copy of a run's past, with its children, that is a run of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from graphloop.driver.children import child_abandoned
from graphloop.errors import StoreError
from graphloop.events import Cancelled, Event, Setup, Started
from graphloop.spending import Spent
from graphloop.stores.base import Store
from graphloop.stores.forking import fork
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore

MAKERS: list[Callable[[Path], Store]] = [
    lambda path: MemoryStore(),
    lambda path: JsonlStore(path / "runs"),
    lambda path: SqliteStore(path / "runs.db"),
]
makers = pytest.mark.parametrize("make", MAKERS, ids=["memory", "jsonl", "sqlite"])


def started(run_id: str) -> Event:
    return Started(1.0, run_id, "g", (), Setup(), state={"n": 1})


def event(number: int) -> Event:
    return Cancelled(float(number), "…")


async def filled(store: Store) -> Store:
    """Return the store with a run of three events, a child, a grandchild, and a neighbour."""
    for run_id in ("r", "r/c1.0", "r/c1.0/c2.0", "r2"):
        await store.append(run_id, 1, started(run_id))
    for seq in (2, 3):
        await store.append("r", seq, event(seq))
    await store.append("r/c1.0", 2, event(2))
    return store


@makers
async def test_a_fork_has_the_past_and_the_children_under_its_own_name(
    make: Callable[[Path], Store], tmp_path: Path
) -> None:
    """And the original is as it was: both go on by themselves."""

    store = await filled(make(tmp_path))

    await fork(store, "r", at=2, new_id="s", children=["c1.0"])

    assert [started("s"), event(2)] == list(await store.load("s"))
    assert [started("s/c1.0"), event(2)] == list(await store.load("s/c1.0"))
    assert [started("s/c1.0/c2.0")] == list(await store.load("s/c1.0/c2.0"))
    assert [started("r"), event(2), event(3)] == list(await store.load("r"))
    assert ["r", "r/c1.0", "r/c1.0/c2.0", "r2", "s", "s/c1.0", "s/c1.0/c2.0"] == list(
        await store.runs()
    )
    await store.append("s", 3, event(9))


@makers
async def test_only_the_children_that_are_named_are_copied(
    make: Callable[[Path], Store], tmp_path: Path
) -> None:
    """With all below them: what began after the fork would be taken for the copy's own."""

    store = await filled(make(tmp_path))
    await store.append("r/c1.00", 1, started("r/c1.00"))

    await fork(store, "r", at=2, new_id="s", children=["c1.0"])
    await fork(store, "r", at=1, new_id="t", children=())

    copies = [one for one in await store.runs() if one[0] in "st"]
    assert copies == ["s", "s/c1.0", "s/c1.0/c2.0", "t"]


@makers
async def test_a_fork_copies_a_child_as_it_was_before_its_parent_s_abort(
    make: Callable[[Path], Store], tmp_path: Path
) -> None:
    """Else an aborted run could be forked, but not gone on with; its own end stays its own."""

    store = await filled(make(tmp_path))
    await store.append("r/c1.0/c2.0", 2, event(9))

    await fork(store, "r", at=1, new_id="s", children=["c1.0"])
    await fork(store, "r", at=2, new_id="t", children=["c1.0"])

    assert [started("s/c1.0")] == list(await store.load("s/c1.0"))
    assert [started("s/c1.0/c2.0"), event(9)] == list(await store.load("s/c1.0/c2.0"))
    assert [started("t/c1.0"), event(2)] == list(await store.load("t/c1.0"))


@makers
async def test_a_fork_copies_a_child_as_it_was_while_it_was_needed(
    make: Callable[[Path], Store], tmp_path: Path
) -> None:
    """In the copy the join is open, and may need it; so does what was stopped below the child."""

    store = await filled(make(tmp_path))
    await store.append("r", 4, child_abandoned(5.0, 1, Spent()))
    for run_id in ("r/c1.0", "r/c1.0/c2.0"):
        await store.append(run_id, 2 + (run_id == "r/c1.0"), event(5))

    await fork(store, "r", at=3, new_id="s", children=["c1.0"])
    await fork(store, "r", at=4, new_id="t", children=["c1.0"])

    assert [started("s/c1.0"), event(2)] == list(await store.load("s/c1.0"))
    assert [started("s/c1.0/c2.0")] == list(await store.load("s/c1.0/c2.0"))
    assert [started("t/c1.0"), event(2), event(5)] == list(await store.load("t/c1.0"))


@makers
@pytest.mark.parametrize(
    ("run_id", "at", "new_id", "message"),
    [
        ("r", 0, "s", r"has 3 event\(s\): it can be forked after number 1 to 3, not 0"),
        ("r", 4, "s", "to 3, not 4"),
        ("r", -1, "s", "to 3, not -1"),
        ("r", 1, "r2", "this run id is taken: 'r2'"),
        ("r", 1, "r", "this run id is taken: 'r'"),
        ("nowhere", 1, "s", "no run 'nowhere'"),
    ],
)
async def test_a_fork_that_cannot_be_leaves_nothing(
    make: Callable[[Path], Store], tmp_path: Path, run_id: str, at: int, new_id: str, message: str
) -> None:
    """And says what can."""

    store = await filled(make(tmp_path))
    before = await store.runs()

    with pytest.raises(StoreError, match=message):
        await fork(store, run_id, at=at, new_id=new_id, children=["c1.0"])

    assert before == await store.runs()


def test_a_fork_has_to_name_the_children_of_the_past() -> None:
    """A child that began after the fork would be copied silently, and be taken for the copy's."""
    given = inspect.signature(fork).parameters["children"]

    assert inspect.Parameter.empty is given.default
