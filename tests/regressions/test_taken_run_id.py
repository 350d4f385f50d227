"""A run that is refused because its id is taken leaves the record of the other run as it was."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.errors import StoreError
from graphloop.stores.base import Catalog, Leases, RunRecord, RunStatus, Store
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("status", ["done", "interrupted"])
def test_a_refused_start_leaves_the_other_run_as_it_was(
    kind: str, status: RunStatus, tmp_path: Path
) -> None:
    """`graphloop runs` would list a finished run as parked, and a killed one as ready."""
    times = count(1.0, 100.0)

    def opened() -> MemoryStore | SqliteStore:
        return SqliteStore(tmp_path / "runs.db", clock=lambda: next(times))

    memory = MemoryStore(clock=lambda: next(times))
    first = memory if kind == "memory" else opened()
    asyncio.run(_left(first, status))
    store = memory if kind == "memory" else opened()
    before = asyncio.run(_record(store))
    agent = Agent(ScriptedModel(["Two."]), store=store)

    with pytest.raises(StoreError, match="taken"):
        agent.generate_sync("Again.", run_id="r")

    assert status == before.status
    assert before == asyncio.run(_record(store))


async def _left(store: Store, status: RunStatus) -> None:
    """Leave a run as a driver leaves it that ends it, or that is killed."""
    assert isinstance(store, Leases)
    if status == "done":
        await Agent(ScriptedModel(["One."]), store=store).generate("Once.", run_id="r")
        return
    other = MemoryStore()
    await Agent(ScriptedModel(["One."]), store=other).generate("Once.", run_id="r")
    await store.claim("r")
    await store.append("r", 1, (await other.load("r"))[0])


async def _record(store: Store) -> RunRecord:
    assert isinstance(store, Catalog)
    (record,) = await store.overview("r")
    return record
