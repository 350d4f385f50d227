"""The lock on a run: a locked file beside the run's journal, held by the driving process.

The lock ends when that process ends, however it dies. The file may stay, but then it is not locked.
A process that releases its lock removes the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import finalize, ref

from ..errors import RunBusy, StoreError
from .file_lock import FileLock
from .memory import running_loop

__all__ = ["lock_run"]

ATTEMPTS_MAX: Final = 100
PID_BYTES_MAX: Final = 32
FOREVER_S: Final = 1e9


def lock_run(path: Path, run_id: str) -> Callable[[], object]:
    """Lock the file `path` for a run, and return the function that releases the lock.

    The lock is also released when the current event loop ends.

    Raises:
        RunBusy: another process, or another store object of this process, holds the lock.
        StoreError: this process has too few open files left for the runs that it drives.
        OSError: the file cannot be created or locked.
    """
    for _ in range(ATTEMPTS_MAX):
        lock, held = FileLock(path), False
        try:
            _take(lock, path, run_id)
            held = _is_at(path, lock)  # The previous holder may have removed the file meanwhile.
            if held:
                return _hold(path, lock)
        finally:
            if not held:
                lock.release()
    raise RunBusy(
        f"run {run_id!r} changes hands all the time: {path} is never free. Fix: try again."
    )


def _take(lock: FileLock, path: Path, run_id: str) -> None:
    if not lock.take():
        pid = os.read(lock.descriptor, PID_BYTES_MAX).decode(errors="replace")
        raise RunBusy(
            f"run {run_id!r} is being driven by {pid or 'another process'}, "
            f"which holds {path}. Fix: wait until that process ends, or end it."
        )
    if lock.spares_few():
        raise StoreError(
            f"run {run_id!r}: expected room for one more open file, found {lock.descriptor} in "
            "use. Fix: drive fewer runs at once, raise `ulimit -n`, or keep them in a database."
        )


def _hold(path: Path, lock: FileLock) -> Callable[[], object]:
    os.ftruncate(lock.descriptor, 0)
    os.write(lock.descriptor, f"pid {os.getpid()}".encode())
    loop = running_loop()
    if loop is None:
        return lambda: _give_back(path, lock)

    def driven() -> None:
        """Do nothing. Only a timer of the event loop holds this: it is freed with the loop."""

    back = finalize(driven, _give_back, path, lock)
    back.atexit = False
    timer = ref(loop.call_later(FOREVER_S, driven))

    def end() -> None:
        back()
        if (known := timer()) is not None:
            known.cancel()

    return end


def _is_at(path: Path, lock: FileLock) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.descriptor))
    except FileNotFoundError:
        return False


def _give_back(path: Path, lock: FileLock) -> None:
    if lock.is_held:  # In a forked child, garbage collection must not remove the parent's file.
        with suppress(OSError):
            path.unlink()
        lock.release()
