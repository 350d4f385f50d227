"""lock_run: of all processes of a machine, one holds the lock on a run."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from graphloop.errors import RunBusy
from graphloop.stores import run_lock
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.run_lock import lock_run
from tests.unit.stores.store_process import hear, process


def test_a_lock_is_held_until_it_is_given_back_and_leaves_no_file(tmp_path: Path) -> None:
    """Whoever is kept out learns by whom."""
    path = tmp_path / "r.lock"
    back = lock_run(path, "r")

    with pytest.raises(RunBusy, match=f"run 'r' is being driven by pid {os.getpid()}"):
        lock_run(path, "r")
    back()

    assert [] == list(tmp_path.iterdir())
    lock_run(path, "r")()


def test_the_lock_of_a_process_that_was_killed_keeps_nobody_out(tmp_path: Path) -> None:
    """Nobody has to clear anything away, or to wait."""
    store = JsonlStore(tmp_path)
    with process("claim", tmp_path) as other:
        assert "claimed" == hear(other)
        with pytest.raises(RunBusy, match=f"pid {other.pid}"):
            asyncio.run(store.claim("r"))
        other.kill()
        other.wait()

    asyncio.run(store.claim("r"))
    asyncio.run(store.release("r", "done", ()))
    assert [] == list(tmp_path.iterdir())


def test_the_end_of_an_event_loop_gives_its_locks_back_once(tmp_path: Path) -> None:
    """Another store object, or another process, need not know of that loop."""
    path = tmp_path / "r.lock"

    async def hold() -> Callable[[], object]:
        return lock_run(path, "r")

    back = asyncio.run(hold())
    gc.collect()

    other = lock_run(path, "r")
    back()
    with pytest.raises(RunBusy):
        lock_run(path, "r")
    other()


@pytest.mark.parametrize("removals", [1, run_lock.ATTEMPTS_MAX])
def test_a_file_that_its_holder_has_just_removed_is_not_the_lock(
    removals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who locks a file without a name, holds nothing: the next comer makes a new one."""
    path, flock = tmp_path / "r.lock", fcntl.flock
    left = iter(range(removals))

    def late(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if operation & fcntl.LOCK_EX and next(left, None) is not None:
            path.unlink()

    monkeypatch.setattr(fcntl, "flock", late)

    if removals == run_lock.ATTEMPTS_MAX:
        with pytest.raises(RunBusy, match="changes hands all the time"):
            lock_run(path, "r")
    else:
        lock_run(path, "r")
        with pytest.raises(RunBusy, match="is being driven"):
            lock_run(path, "r")


def test_a_forked_child_leaves_its_parents_lock_alone(tmp_path: Path) -> None:
    """It shares the open file: to unlock it there would unlock it for both."""
    path = tmp_path / "r.lock"

    back = lock_run(path, "r")
    if (child := os.fork()) == 0:
        back()
        os._exit(0)
    os.waitpid(child, 0)

    with pytest.raises(RunBusy, match=f"pid {os.getpid()}"):
        lock_run(path, "r")
    back()


def test_a_file_system_without_locks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a run that seems to be alone."""

    def refuse(_: int, __: int) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(OSError, match="expected a local disk"):
        lock_run(tmp_path / "r.lock", "r")
