"""The lock on a run: a file beside its journal that the driving process holds.

The lock ends with that process, however it dies; the empty file that remains keeps no process
out. The holder removes the file when it releases the lock.
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
    """Lock `path` and return the function that releases it; so does the event loop's end.

    Raises:
        RunBusy: another process holds it, or another store object of this one.
        StoreError: this process has too few open files left for the runs that it drives.
        OSError: the file cannot be made or locked.
    """
    for _ in range(ATTEMPTS_MAX):
        lock, held = FileLock(path), False
        try:
            _take(lock, path, run_id)
            held = _is_at(path, lock)  # The last holder may just have removed it.
            if held:
                return _held(path, lock)
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
            f"run {run_id!r} is being driven by {pid or 'another process'}, which holds {path}. "
            "Fix: wait until that driver ends, or dies."
        )
    if lock.spares_few():
        raise StoreError(
            f"run {run_id!r}: expected room for one more open file, found {lock.descriptor} in "
            "use. Fix: drive fewer runs at once, raise `ulimit -n`, or keep them in a database."
        )


def _held(path: Path, lock: FileLock) -> Callable[[], object]:
    os.ftruncate(lock.descriptor, 0)
    os.write(lock.descriptor, f"pid {os.getpid()}".encode())
    loop = running_loop()
    if loop is None:
        return lambda: _give_back(path, lock)

    def driven() -> None:
        """Live only in a timer, which ends with its event loop."""

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
    if lock.is_held:  # A forked child that collects this must not remove its parent's file.
        with suppress(OSError):
            path.unlink()
        lock.release()
