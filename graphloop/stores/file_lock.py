"""File locks, by which only one process at a time can use a store's file.

A lock is taken by `flock`, which belongs to the open file. A forked child shares it, and could keep
the lock after its parent closed the file. So this module unlocks a file before it closes it, and a
forked child closes its copies. A lock thus ends with the process that took it, however that process
ends. Windows has no `flock`, so nothing is locked there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final, Self, final

from ..errors import StoreError

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

__all__ = ["READ_AND_MAKE", "FileLock", "locked"]

READ_AND_MAKE: Final = os.O_RDWR | os.O_CREAT
PAUSE_S: Final = 0.001
PAUSE_S_MAX: Final = 0.02
FILES_SPARED: Final = 32

OPENING: Final = RLock()
"""The lock on `OPEN`; held during a fork, and reentrant because the garbage collector takes it."""

OPEN: Final[set[FileLock]] = set()


@final
class FileLock:
    """An open file with methods to lock and unlock it; its owner must call `release` at the end.

    As a context manager, it waits for the lock on entry, and unlocks the file on exit. The file
    stays open, so the context manager can be used again.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str | Path, flags: int = READ_AND_MAKE) -> None:
        self._path = path
        with OPENING:
            self.descriptor = os.open(path, flags, 0o600)
            OPEN.add(self)

    def take(self) -> bool:
        """Try to lock the file, without waiting; return False if another process holds the lock.

        Raises:
            OSError: the file system has no locks.
        """
        if fcntl is None:
            return True
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            found = f"expected a local disk, whose files can be locked, found: {error.strerror}"
            raise OSError(error.errno, found, str(self._path)) from error
        return True

    def wait(self, timeout_s: float = 30.0) -> None:
        """Wait until the file is unlocked; then lock it against other processes and other stores.

        Raises:
            OSError: the file system has no locks.
            StoreError: another process did not release the lock in time.
        """
        deadline, pause_s = time.monotonic() + timeout_s, PAUSE_S
        while not self.take():
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{self._path}: expected its lock within {timeout_s:g} s, found that another "
                    "process holds it. Fix: end that process if it is stopped."
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def __enter__(self) -> Self:
        """Wait for the lock."""
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock the file."""
        if fcntl is not None and self.is_held:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def spares_few(self) -> bool:
        """Whether this process is close to its limit of open files, so that other runs may fail."""
        if resource is None:
            return False
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Counts the open files: a new file gets the lowest unused number.
        return 0 <= most <= self.descriptor + FILES_SPARED

    @property
    def is_held(self) -> bool:
        """Whether this process has the file open; False after `release` and in a forked child."""
        return self in OPEN

    def release(self) -> None:
        """Unlock and close the file; a second call does nothing."""
        with OPENING:
            if not self.is_held:
                return
            OPEN.remove(self)
            if fcntl is not None:
                with suppress(OSError):  # Raised by a file system without locks.
                    fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            os.close(self.descriptor)


@contextmanager
def locked(
    path: str | Path, flags: int = READ_AND_MAKE, *, timeout_s: float = 30.0
) -> Generator[int]:
    """Context manager: open a file, wait for its lock, and yield the file descriptor.

    On exit, it unlocks and closes the file.

    Raises:
        OSError: the file cannot be opened or locked.
        StoreError: another process did not release the lock in time.
    """
    lock = FileLock(path, flags)
    try:
        lock.wait(timeout_s)
        yield lock.descriptor
    finally:
        lock.release()


def _leave_to_parent() -> None:
    """In a forked child, close the parent's files; unlocking them would end the parent's locks."""
    for lock in OPEN:
        os.close(lock.descriptor)
    OPEN.clear()
    OPENING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=OPENING.acquire, after_in_parent=OPENING.release, after_in_child=_leave_to_parent
    )
