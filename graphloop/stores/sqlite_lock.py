"""The lock that keeps processes from committing to one database at the same time.

SQLite up to 3.51.2 can damage a file when one connection checkpoints while another commits (the
WAL-reset bug, fixed in 3.51.3, https://sqlite.org/wal.html). Most Python builds link an older one.
So there every commit, with the checkpoint it may bring, happens under this lock, in all processes.
Making and opening a database is always done under it: SQLite's change to WAL mode does not wait.

The lock is `flock` on a file beside the database, released by the system when a process dies. On
Windows, which has none, only SQLite's own locks remain.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["commits_need_lock", "locked"]

RESET_BUG_FIXED: Final = (3, 51, 3)
PAUSE_S: Final = 0.001
PAUSE_S_MAX: Final = 0.02


def commits_need_lock(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Say whether this SQLite has the WAL-reset bug."""
    return version < RESET_BUG_FIXED


@contextmanager
def locked(path: Path, timeout_s: float = 30.0) -> Generator[None]:
    """Keep every other process (and other stores of this one) from the database meanwhile.

    Raises:
        StoreError: another process did not give the lock back in time.
    """
    beside = f"{path}-lock"
    try:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"cannot open {beside}: {error}") from error
    try:
        _wait(descriptor, beside, timeout_s)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, beside: str, timeout_s: float) -> None:
    if fcntl is None:
        return
    deadline, pause_s = time.monotonic() + timeout_s, PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"another process holds {beside} for more than {timeout_s:g} s: is it stopped?"
                ) from None
        else:
            return
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)
