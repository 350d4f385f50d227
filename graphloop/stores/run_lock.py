"""The lock on one run: a file beside its journal that the driving process holds.

It is `flock`, so the system ends it with the process, however that dies; what is left then is an
empty name, which keeps nobody out. The holder removes the file when it gives the lock back. On
Windows, which has no `flock`, nothing is locked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import finalize

from ..errors import RunBusy
from .claims import running_loop

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["lock_run"]

ATTEMPTS_MAX: Final = 100
PID_BYTES_MAX: Final = 32


def lock_run(path: Path, run_id: str) -> Callable[[], object]:
    """Hold the lock at `path`, and return what gives it back, once; the event loop's end does too.

    Raises:
        RunBusy: another process holds it, or another store object of this one.
        OSError: the file cannot be made.
    """
    if fcntl is None:
        return lambda: None
    for _ in range(ATTEMPTS_MAX):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, PID_BYTES_MAX).decode(errors="replace") or "another process"
            os.close(descriptor)
            raise RunBusy(
                f"run {run_id!r} is being driven by {owner}, which holds {path}: "
                "wait for that driver to come to an end, or to die"
            ) from None
        except OSError:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return _held(path, descriptor)
        os.close(descriptor)  # Its last holder has just removed it: others lock a new one.
    raise RunBusy(f"run {run_id!r} changes hands all the time: {path} is never free; try again")


def _held(path: Path, descriptor: int) -> Callable[[], object]:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"pid {os.getpid()}".encode())
    loop = running_loop()
    if loop is None:
        return lambda: _give_back(path, descriptor)
    # A driver whose loop was dropped half-way gives nothing back itself.
    back = finalize(loop, _give_back, path, descriptor)
    back.atexit = False
    return back


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _give_back(path: Path, descriptor: int) -> None:
    assert fcntl is not None, "what is given back was locked"
    with suppress(OSError):
        path.unlink()
    # A forked child may share the descriptor, and closing ours would leave the lock with it.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
