"""Legs: the runs that one worker drives, each in a task from its claim to its release."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, final
from uuid import uuid4

from ..errors import ProviderError, StoreError
from ..stores import Operated, QueueLimits, RunRecord
from .base import Driven, SharedStore

__all__ = ["Legs"]

LOG: Final = logging.getLogger("graphloop")

DELAY_MAX_S: Final = 60.0
LEAVE_S: Final = 2.0
"""The longest wait of a worker that ends for a store that does not answer."""


@final
class Legs:
    """The legs of one worker, which its engine starts.

    A leg that fails in a way that may pass leaves its run to a later leg. The run then waits in
    this worker, after each failure for twice as long.

    Args:
        store: the store of the runs.
        agents: the names of the agents whose runs the worker drives, with their revisions.
        drive: takes a run as far as it goes.
        slots: the number of legs at once.
        queues: the queues whose runs the worker drives; empty for all.
        poll_s: the least seconds that a run waits after a failure.
        pinned: whether the worker takes no run that code of another revision began.

    Attributes:
        are_short: whether the engine may have more runs than slots, as it tells after a look.
        news: is set when the engine should look: a leg has ended while slots are short, the store
            tells of a run, or the worker stops.
        stopped: is set when the worker takes no more runs; an engine then starts no leg.
    """

    def __init__(  # noqa: PLR0913 - the terms of a worker
        self,
        store: SharedStore,
        agents: Mapping[str, str],
        drive: Callable[[str], Awaitable[Driven]],
        *,
        slots: int,
        poll_s: float,
        queues: Mapping[str, QueueLimits],
        pinned: bool = False,
    ) -> None:
        self.store = store
        self.agents = agents
        self.slots = slots
        self.queues = queues
        self.pinned = pinned
        self.are_short = False
        self.news = asyncio.Event()
        self.stopped = asyncio.Event()
        self._room = asyncio.Semaphore(slots)
        self._drive = drive
        self._id = uuid4().hex
        self._poll_s = poll_s
        self._tasks: dict[str, asyncio.Task[Driven]] = {}
        # The runs that failed in a way that may pass: how often, and until when they wait.
        self._delays: dict[str, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def delayed(self) -> int:
        """How many runs wait now because they failed in a way that may pass."""
        now = time.monotonic()
        return sum(until > now for _, until in self._delays.values())

    async def announce(self) -> None:
        """Tell the store of the worker: its queues, its agents, and that it is new.

        Raises:
            OtherSchema: the store is another graphloop's.
            StoreError: the store does not answer.
        """
        await self.store.set_queues(self.queues)
        await self.store.retry(self.agents.values())
        if isinstance(self.store, Operated):
            pins = {name: code if self.pinned else "" for name, code in self.agents.items()}
            await self.store.attend(self._id, pins)

    async def leave(self) -> None:
        """Tell the store that the worker has ended; without an answer, the store's close does."""
        if isinstance(self.store, Operated):
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self.store.attend(self._id, {})

    def takes(self, agent: str, record: RunRecord) -> bool:
        """Whether the worker drives a run of an agent: a pinned one leaves runs of other code."""
        code = self.agents.get(agent)
        return code is not None and (not self.pinned or record.revision in ("", code))

    async def agent_of(self, record: RunRecord) -> str:
        """Return the name of the agent whose workers drive a run: that of its root."""
        root, slash, _ = record.run_id.partition("/")
        return (await self.store.record(root)).graph if slash else record.graph

    def wait_s(self, run_id: str) -> float:
        """Return for how many seconds a run has to wait because it failed; 0 for none."""
        _, until = self._delays.get(run_id, (0, 0.0))
        return max(0.0, until - time.monotonic())

    def is_under_way(self, run_id: str) -> bool:
        """Whether a leg of the run has not ended yet."""
        return run_id in self._tasks

    def start(self, run_id: str) -> asyncio.Task[Driven]:
        """Start a leg of a run, unless one is under way, and return its task."""
        if run_id not in self._tasks:
            self._tasks[run_id] = asyncio.create_task(self._leg(run_id))
        return self._tasks[run_id]

    async def end(self, grace_s: float) -> None:
        """Wait for the legs under way, and cancel those that have not ended in time."""
        tasks = tuple(self._tasks.values())
        try:
            if tasks and grace_s > 0:
                await asyncio.wait(tasks, timeout=grace_s)
        finally:  # Also if the caller has no more patience.
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _leg(self, run_id: str) -> Driven:
        driven: Driven = "again"
        try:
            async with self._room:  # An engine may hand out more legs than there are slots.
                driven = await self._drive(run_id)
        except Exception as error:
            expected = isinstance(error, ProviderError | StoreError)
            said = "run %s is interrupted, and will be driven again: %s"
            LOG.warning(said, run_id, error, exc_info=not expected)
        finally:
            del self._tasks[run_id]
            if self.are_short:
                self.news.set()
        if driven == "again":
            failures, _ = self._delays.get(run_id, (0, 0.0))
            wait_s = min(DELAY_MAX_S, self._poll_s * 2.0 ** min(failures, 64))
            now = time.monotonic()
            # Other workers may have taken runs over: their failures here are forgotten in time.
            known = {one: kept for one, kept in self._delays.items() if now < kept[1] + DELAY_MAX_S}
            self._delays = {**known, run_id: (failures + 1, now + wait_s)}
        else:
            self._delays.pop(run_id, None)
        return driven
