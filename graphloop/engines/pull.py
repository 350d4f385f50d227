"""Pull: the engine that looks into the store for runs that wait.

It needs nothing but the store, so it is the engine of a single machine. It is also the reference:
each other engine has to bring about what it does.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, final

from ..errors import OtherSchema, StoreError
from .base import Outbox
from .legs import Legs

__all__ = ["Pull"]

LOG: Final = logging.getLogger("graphloop")


@final
class Pull:
    """Starts the runs that the store says wait, as many as there are free slots.

    Each queue of the worker has slots of its own. A blocked run is tried by code that has not
    refused it, and by each worker that starts.

    Args:
        legs: the legs of the worker.
        patience_s: the seconds for which looks have to find a run before its leg starts. Another
            engine uses the time to start the run itself, and loses no run that it forgets.
    """

    def __init__(self, legs: Legs, *, patience_s: float = 0.0) -> None:
        self._legs = legs
        self._patience_s = patience_s
        # When a look first found each run that waits.
        self._found: dict[str, float] = {}
        # The slots of each queue, or of all, and the queue of each run that a look has started.
        self._lanes: dict[str | None, int] = {
            name: queue.slots or legs.slots for name, queue in legs.queues.items()
        } or {None: legs.slots}
        self._started: dict[str, str | None] = {}

    async def open(self) -> None:
        """End the part of another engine that had the store before; it would queue in vain.

        Raises:
            OtherSchema: the store is another graphloop's.
            StoreError: the store does not answer: its address is a mistake, or it is away.
        """
        await self._legs.announce()
        if isinstance(self._legs.store, Outbox):
            await self._legs.store.on_ready("")

    async def look(self) -> None:
        """Start runs that wait.

        Raises:
            OtherSchema: the store is another graphloop's; the runs stay as they are.
        """
        legs, now, found = self._legs, time.monotonic(), dict[str, float]()
        started = {one: queue for one, queue in self._started.items() if legs.is_under_way(one)}
        under_way = Counter(started.values())
        legs.are_short = False
        for queue, slots in self._lanes.items():
            wanted = min(slots - under_way[queue], legs.slots - len(legs))
            if wanted <= 0:
                legs.are_short = True
                continue
            try:
                waiting = await self.waiting(wanted, queue)
            except OtherSchema:
                raise
            except StoreError as error:
                LOG.warning("a worker cannot look for waiting runs: %s", error)
                return
            if legs.stopped.is_set():  # Since the store was asked.
                return
            found |= {run_id: self._found.get(run_id, now) for run_id in waiting}
            due = [run_id for run_id in waiting if now - found[run_id] >= self._patience_s]
            legs.are_short |= len(due) >= wanted
            for run_id in due[:wanted]:
                legs.start(run_id)
                started[run_id] = queue
        self._found, self._started = found, started

    async def waiting(self, wanted: int, queue: str | None = None) -> Sequence[str]:
        """Return runs that the worker could drive now, the most urgent first; at least `wanted`.

        Args:
            wanted: the number of wanted runs.
            queue: their queue; None for any.

        Raises:
            StoreError: the store does not answer.
        """
        legs, revisions = self._legs, self._legs.agents.values()
        limit = wanted + legs.delayed + len(legs)
        found = await legs.store.ready(
            legs.agents, limit, revisions=revisions, queue=queue, pinned=legs.pinned
        )
        return [
            run_id for run_id in found if not legs.is_under_way(run_id) and not legs.wait_s(run_id)
        ]

    async def drain(self) -> None:
        """Do nothing: only `look` starts legs."""

    async def close(self) -> None:
        """Do nothing."""
