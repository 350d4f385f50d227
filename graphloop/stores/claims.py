"""The claims of one store object on runs, for drivers in this process.

Claims need no lease and no fence here: a driver is dead when its event loop is closed, and a dead
driver writes no more. A store that processes share keeps its own claims here as well.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop
from typing import Any, Final, final
from weakref import ReferenceType, ref

from msgspec import Struct, field

from ..errors import RunBusy, StoreError

__all__ = ["Claims", "running_loop"]

running_loop: Final = asyncio._get_running_loop  # pyright: ignore[reportPrivateUsage]
"""Returns the running event loop, or None where the public function raises."""


@final
class Claims(Struct, eq=False):
    """The claims of the drivers of one store object, which may be in several threads.

    `taken` are the event loops of the drivers by run; None for a driver without an event loop.
    """

    taken: dict[str, ReferenceType[AbstractEventLoop] | None] = field(
        default_factory=dict[str, Any]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, run_id: str) -> None:
        """Claim a run for the current event loop.

        Raises:
            RunBusy: it is claimed, and the event loop of its driver is not closed.
        """
        loop = running_loop()
        with self._lock:
            if run_id in self.taken and self.is_live(run_id):
                raise RunBusy(
                    f"run {run_id!r} is being driven in this process, through this store. "
                    "Fix: wait until its driver ends, or close the stream that drives it."
                )
            self.taken[run_id] = None if loop is None else ref(loop)

    def give_back(self, run_id: str) -> None:
        """End a claim.

        Raises:
            StoreError: there is none.
        """
        with self._lock:
            if run_id not in self.taken:
                raise StoreError(
                    f"run {run_id!r} is not claimed by this store, so it cannot be released."
                )
            del self.taken[run_id]

    def is_live(self, run_id: str) -> bool:
        """Whether a driver with an open event loop claims a run."""
        if run_id not in self.taken:
            return False
        known = self.taken[run_id]
        loop = None if known is None else known()
        return known is None or (loop is not None and not loop.is_closed())
