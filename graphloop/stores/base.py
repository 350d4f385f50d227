"""The seam of journals: append what happened, load what happened. Nothing is ever changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..events import Event

__all__ = ["Store"]


class Store(Protocol):
    """Keeps the events of runs, in order, append-only.

    A store promises: what `append` returned for is there after the process is killed (as far as
    the store is durable at all); events of a run are gapless from 1; a second writer of the same
    number is refused; the work of an append is O(what is new).
    """

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep `event` as number `seq` of the run; the first is 1.

        Raises:
            StoreError: `seq` is not the next number of this run, or cannot be written.
        """
        ...

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return all events of the run.

        Raises:
            StoreError: there is no such run, or its journal is damaged.
        """
        ...

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs, in alphabetical order."""
        ...
