"""FileLock: a lock on a file ends with the process that took it, however many it has forked."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphloop.errors import StoreError
from graphloop.stores import file_lock
from graphloop.stores.file_lock import FileLock, locked
from tests.unit.stores.store_process import hear, process


@contextmanager
def forked() -> Generator[int]:
    """Fork a child that lives on until the end of the block, and return its process id."""
    may_end, end = os.pipe()
    child = os.fork()
    if child == 0:
        gc.collect()
        os.close(end)
        os.read(may_end, 1)
        os._exit(0)
    os.close(may_end)
    try:
        yield child
    finally:
        os.close(end)
        os.waitpid(child, 0)


def files_of(pid: int) -> set[str]:
    """Return the files that a process has open, where the system tells."""
    return {str(one.resolve()) for one in Path(f"/proc/{pid}/fd").iterdir()}


def test_a_lock_given_back_is_free_though_a_forked_child_lives(tmp_path: Path) -> None:
    """`flock` belongs to the open file: to close one copy of it gives nothing back."""
    path = tmp_path / "runs.db-lock"
    with locked(path):
        living = forked()
        living.__enter__()

    with locked(path, timeout_s=0.0):
        pass

    living.__exit__(None, None, None)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the files of a process told")
def test_a_forked_child_has_none_of_its_parents_locks_open(tmp_path: Path) -> None:
    """Its parent may be killed; the lock is the parent's then, and nobody has it."""
    path = tmp_path / "r.lock"
    lock = FileLock(path)
    assert lock.take()

    with forked() as child, process("locks", path) as other:
        assert "busy" == hear(other)
        assert str(path) in files_of(os.getpid())
        assert str(path) not in files_of(child)

    lock.release()


def test_a_forked_child_gives_nothing_back(tmp_path: Path) -> None:
    """Unlocking the shared file would end the parent's lock."""
    path = tmp_path / "r.lock"
    lock = FileLock(path)
    assert lock.take()

    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(int(lock.is_held))
    _, status = os.waitpid(child, 0)

    assert 0 == os.waitstatus_to_exitcode(status)
    assert lock.is_held
    with pytest.raises(StoreError, match="is stopped"), locked(path, timeout_s=0.0):
        raise AssertionError("two at once")
    lock.release()


def test_a_locked_file_keeps_all_others_out(tmp_path: Path) -> None:
    """For as long as it is held."""
    path = tmp_path / "runs.db-lock"

    with (
        locked(path),
        pytest.raises(StoreError, match="is stopped"),
        locked(path, timeout_s=0.01),
    ):
        raise AssertionError("two at once")
    with locked(path, timeout_s=0.01):
        pass

    assert 0o600 == path.stat().st_mode & 0o777


def test_a_lock_is_given_back_once(tmp_path: Path) -> None:
    """Its descriptor may be another file's by then."""
    lock = FileLock(tmp_path / "r.lock")
    lock.release()
    other = FileLock(tmp_path / "other.lock")
    assert other.take()

    lock.release()

    with pytest.raises(StoreError), locked(tmp_path / "other.lock", timeout_s=0.0):
        raise AssertionError("two at once")
    other.release()


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a lock that seems to be held."""

    def refuse(_: int, __: int) -> None:
        raise OSError(95, "Operation not supported")

    lock = FileLock(tmp_path / "r.lock")
    with monkeypatch.context() as network:
        network.setattr(fcntl, "flock", refuse)
        with pytest.raises(OSError, match=r"expected a local disk.*not supported.*r\.lock"):
            lock.take()
        lock.release()

    assert not lock.is_held


def test_where_there_is_no_flock_nothing_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows a store object still knows its own drivers."""
    monkeypatch.setattr(file_lock, "fcntl", None)

    with locked(tmp_path / "r.lock"), locked(tmp_path / "r.lock", timeout_s=0.0):
        assert (tmp_path / "r.lock").exists()
