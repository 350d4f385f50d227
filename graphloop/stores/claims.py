"""Who drives which run through one store object, where all its drivers are in this process.

Nothing has to run out here, and nothing to be fenced: a driver is dead when its event loop is, and
what is dead writes no more.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop
from typing import TypeAlias, final
from weakref import ReferenceType, ref

from ..errors import RunBusy, StoreError

__all__ = ["Claims", "Home", "home", "is_gone", "running_loop"]

Home: TypeAlias = ReferenceType[AbstractEventLoop] | None
"""The event loop that a driver lives in; None for a driver without one."""


@final
class Claims:
    """The claims of the drivers of one store object, which may be in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: dict[str, Home] = {}

    def take(self, run_id: str) -> None:
        """Claim a run for whoever is running now.

        Raises:
            RunBusy: it is claimed, and the event loop of its driver is not closed.
        """
        with self._lock:
            if self.is_live(run_id):
                raise RunBusy(
                    f"run {run_id!r} is being driven in this process, through this very store: "
                    "wait for its driver to come to an end, or close the stream that drives it"
                )
            self._loops[run_id] = home()

    def give_back(self, run_id: str) -> None:
        """End a claim.

        Raises:
            StoreError: there is none.
        """
        with self._lock:
            if run_id not in self._loops:
                raise StoreError(
                    f"run {run_id!r} is not claimed by this store, so it cannot be released"
                )
            del self._loops[run_id]

    def is_taken(self, run_id: str) -> bool:
        """Whether a run was claimed and not given back."""
        return run_id in self._loops

    def is_live(self, run_id: str) -> bool:
        """Whether a run is claimed by a driver that can still come to its end."""
        return run_id in self._loops and not is_gone(self._loops[run_id])


def home() -> Home:
    """Return where a driver lives that runs now."""
    loop = running_loop()
    return None if loop is None else ref(loop)


def is_gone(lived_in: Home) -> bool:
    """Whether the event loop of a driver is closed or forgotten: the driver does nothing more."""
    loop = None if lived_in is None else lived_in()
    return lived_in is not None and (loop is None or loop.is_closed())


def running_loop() -> AbstractEventLoop | None:
    """Return the event loop that runs here, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
