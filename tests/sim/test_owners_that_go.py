"""A lease lives as long as its loop and its process: another process takes the run over.

Each owner is a process of its own. What it has left alive (the process itself, or a child that it
forked) must not keep the run.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from graphloop.errors import RunBusy, StoreError
from graphloop.events import Cancelled
from tests.unit.stores.store_process import LEASE_S, hear, leasing, process, tell

STORES = ["runs", "runs.db"]


def taken_over(path: Path) -> int:
    """Claim the run as soon as it is free, write to it, and return how many events it has.

    Fails where its lease does not run out by a second after its time.
    """

    async def take() -> int:
        store = leasing(path)
        async with asyncio.timeout(LEASE_S + 1):
            while True:
                try:
                    await store.claim("r")
                    break
                except RunBusy:
                    await asyncio.sleep(0)
        await store.append("r", 2, Cancelled(2.0, "second"))
        await store.release("r", "done", ())
        return len(await store.load("r"))

    return asyncio.run(take())


@pytest.mark.parametrize("store", STORES)
def test_a_run_whose_loop_was_closed_can_be_taken_over(store: str, tmp_path: Path) -> None:
    """The store's own thread went on renewing the lease: the run was busy for ever."""
    with process("close loop", tmp_path / store) as owner:
        assert "closed" == hear(owner)

        assert 2 == taken_over(tmp_path / store)
        assert owner.poll() is None


@pytest.mark.parametrize("store", STORES)
def test_a_killed_process_s_run_is_taken_over_beside_its_child(store: str, tmp_path: Path) -> None:
    """A forked child shares the open files of its parent, and must not share its locks."""
    with process("claim and fork", tmp_path / store) as owner:
        child = int(hear(owner))
        owner.kill()
        owner.wait()
        try:
            assert 2 == taken_over(tmp_path / store)
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("store", STORES)
def test_a_store_whose_loop_was_closed_claims_a_run_again(store: str, tmp_path: Path) -> None:
    """As notebooks do, and synchronous programs: one event loop for each thing they want."""
    kept = leasing(tmp_path / store)

    async def twice() -> None:
        await kept.claim("r")
        with pytest.raises(StoreError):
            await kept.claim("r")
        await kept.release("r", "done", ())

    loop = asyncio.new_event_loop()
    loop.run_until_complete(kept.claim("r"))
    loop.close()

    asyncio.run(twice())


def test_a_process_forked_in_a_commit_keeps_no_other_waiting(tmp_path: Path) -> None:
    """As by a tool that uses `multiprocessing`: its children live on, and the file is free."""
    path = tmp_path / "runs.db"
    with process("fork in a commit", path) as forking, process("append all", path) as other:
        child = int(hear(forking))
        tell(other)
        try:
            assert ["done"] * 8 == [hear(other) for _ in range(8)]
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)
