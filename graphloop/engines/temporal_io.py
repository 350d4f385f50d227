"""TemporalIo: the engine that lets Temporal decide which worker drives a run, and when.

A run has one workflow, with the run's id, and a leg is an activity of it. Two texts cross: the id
of the run, and how the leg ended. The journal is the truth, and Temporal's history keeps no second
one. It has no part in the transactions of the store, so each worker relays: it signals the workflow
of a run that waits, and starts the workflow if there is none. A worker relays no more runs than it
has free slots, so the order of the store is kept. Programs that submit or answer runs need nothing
of Temporal.

Temporal hands out the leg of a dead worker again; the store refuses it while the old claim holds,
and the run is relayed once more when the store frees it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import Final, final

from temporalio import activity
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError
from temporalio.worker import Worker

from ..errors import ConfigError, OtherSchema, StoreError, UnknownRun
from ..stores import MemoryStore
from .base import Driven
from .legs import Legs
from .pull import Pull
from .temporal_workflow import LEG, QUEUE, RunWorkflow, wake_workflow

__all__ = ["TemporalIo"]

LOG: Final = logging.getLogger("graphloop")

HOST: Final = "localhost:7233"  # This and the namespace are the defaults of Temporal's programs.
NAMESPACE: Final = "default"
ANSWER_S: Final = 10.0
RELAY_AGAIN_S: Final = 2.0
"""The seconds after which a run that still waits is relayed again."""
PATIENCE_S: Final = 1.0
BEAT_S: Final = 1.0
GRACE_MAX: Final = timedelta(days=1)
"""The worker ends its legs in its own time."""


@final
class TemporalIo:
    """Drives the runs whose legs Temporal hands out, as many as there are free slots.

    The connection is that of Temporal's own programs: the variables `TEMPORAL_ADDRESS`,
    `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY` and `TEMPORAL_TLS…`, or the profile in their file.
    Use a namespace for one store only: ids of runs and names of agents are its names.

    Args:
        legs: the legs of the worker.
        address: host and port of the server instead of the configured ones.
        namespace: the namespace instead of the configured one.

    Raises:
        ConfigError: the store is in the memory of one process, or the worker has queues.
    """

    def __init__(
        self, legs: Legs, *, address: str | None = None, namespace: str | None = None
    ) -> None:
        if isinstance(legs.store, MemoryStore):
            raise ConfigError(
                f"engine temporal: expected a store that outlives the process, found "
                f"{legs.store!r}. Fix: give 'runs.db' or 'postgresql://…', or take the engine pull."
            )
        if legs.queues:
            raise ConfigError(
                f"engine temporal: expected a worker without queues, found {[*legs.queues]}: it "
                "takes the runs of all. Fix: leave them out, or take the engine pull."
            )
        self._legs = legs
        self._pull = Pull(legs)
        self._address = address
        self._namespace = namespace
        self._client: Client | None = None
        self._serving: dict[Worker, asyncio.Task[None]] = {}
        self._closing: list[asyncio.Task[None]] = []
        self._relaying: asyncio.Task[None] | None = None
        # When each run that waits was last relayed.
        self._relayed: dict[str, float] = {}

    async def open(self) -> None:
        """Connect to Temporal, and take legs from the queue of each agent.

        Raises:
            ConfigError: no server answers.
        """
        await self._pull.open()
        client = self._client = await _connect(self._address, self._namespace)
        beat = timedelta(seconds=BEAT_S)
        self._serving = {
            worker: asyncio.create_task(worker.run())
            for agent in sorted(self._legs.agents)
            for worker in (
                Worker(
                    client,
                    task_queue=f"{QUEUE}{agent}",
                    workflows=[RunWorkflow],
                    max_cached_workflows=self._legs.slots,
                    sticky_queue_schedule_to_start_timeout=beat,
                    graceful_shutdown_timeout=GRACE_MAX,
                ),
                Worker(
                    client,
                    task_queue=self._pinned_queue(agent) or f"{QUEUE}{agent}",
                    activities=[self._leg],
                    max_concurrent_activities=self._legs.slots,
                    max_heartbeat_throttle_interval=beat,
                    default_heartbeat_throttle_interval=beat,
                    graceful_shutdown_timeout=GRACE_MAX,
                ),
            )
        }

    async def look(self) -> None:
        """Relay the runs that wait to Temporal, without waiting for its answer.

        Raises:
            ConfigError: Temporal hands out no more legs to this worker.
            OtherSchema: the store is another graphloop's.
        """
        assert self._client is not None, "the engine is open"
        for serving in self._serving.values():
            if serving.done() and (failed := serving.exception()) is not None:
                name = self._client.namespace
                raise ConfigError(
                    f"engine temporal: expected namespace {name!r} to hand out legs, found: "
                    f"{_error_text(failed)}. Fix: let the worker reach it, or make it with "
                    f"`temporal operator namespace create --namespace {name}`."
                ) from failed
        if self._relaying is None or self._relaying.done():
            if self._relaying is not None:
                self._relaying.result()
            self._relaying = asyncio.create_task(self._relay())

    async def drain(self) -> None:
        """Take no more legs from the queues."""
        if self._relaying is not None:
            self._relaying.cancel()
        self._closing = [asyncio.create_task(worker.shutdown()) for worker in self._serving]

    async def close(self) -> None:
        """Tell Temporal how the last legs ended, unless it does not answer in time."""
        if tasks := [*self._serving.values(), *self._closing]:
            ended, late = await asyncio.wait(tasks, timeout=ANSWER_S)
            for task in late:
                task.cancel()
            for task in ended:  # `look` has told it.
                task.exception()

    async def _relay(self) -> None:
        """Wake the workflows of runs that wait, as many as there are free slots."""
        legs, now = self._legs, time.monotonic()
        try:
            waiting = await self._pull.waiting(legs.slots - len(legs))
        except OtherSchema:
            raise
        except StoreError as error:
            LOG.warning("a worker cannot look for waiting runs: %s", error)
            return
        self._relayed = {
            run_id: at
            for run_id, at in self._relayed.items()
            if run_id in waiting and now - at < RELAY_AGAIN_S
        }
        free = max(0, legs.slots - len(legs) - len(self._relayed))
        due = [run_id for run_id in waiting if run_id not in self._relayed][:free]
        self._relayed |= dict.fromkeys(due, now)
        failed = [error for error in await asyncio.gather(*map(self._wake, due)) if error]
        if failed:  # Often for one cause, and each run is relayed again.
            LOG.warning("a worker cannot tell Temporal of %d runs: %s", len(failed), failed[0])

    def _pinned_queue(self, agent: str) -> str:
        """Return the queue of the legs of a pinned worker's code; "" without pins.

        Workers of each code share the workflows, which are the same code, so a run may change from
        workers with pins to others and back.
        """
        return f"{QUEUE}{agent}@{self._legs.agents[agent]}" if self._legs.pinned else ""

    async def _wake(self, run_id: str) -> Exception | None:
        """Signal the workflow of a run, and start it if it is not under way."""
        assert self._client is not None, "the engine is open"
        try:
            record = await self._legs.store.record(run_id)
            agent = await self._legs.agent_of(record)
            await wake_workflow(self._client, run_id, agent, self._pinned_queue(agent))
        except (RPCError, StoreError) as error:
            return error
        return None

    @activity.defn(name=LEG)
    async def _leg(self, run_id: str) -> Driven:
        """Drive a run as far as it goes; a run that is not driven is relayed again."""
        wait_s = self._legs.wait_s(run_id)
        if wait_s > PATIENCE_S:
            return "again"
        await asyncio.sleep(wait_s)
        if self._legs.stopped.is_set():
            return "again"
        task = self._legs.start(run_id)
        while not task.done():
            activity.heartbeat()
            await asyncio.wait([task], timeout=BEAT_S)
        driven = "again" if task.cancelled() else task.result()
        return "over" if driven == "again" and await self._is_gone(run_id) else driven

    async def _is_gone(self, run_id: str) -> bool:
        """Whether the store has no such run, perhaps no longer: its workflow would try for ever."""
        try:
            await self._legs.store.record(run_id)
        except UnknownRun as error:
            LOG.warning("a workflow of Temporal ends: %s", error)
            return True
        except StoreError:
            return False
        return False


async def _connect(address: str | None, namespace: str | None) -> Client:
    """Return a client of a server that answers.

    Raises:
        ConfigError: there is none.
    """
    where = address or HOST
    try:
        config = ClientConfig.load_client_connect_config()
        where = config["target_host"] = address or config.get("target_host", HOST)
        config["namespace"] = namespace or config.get("namespace", NAMESPACE)
        async with asyncio.timeout(ANSWER_S):
            return await Client.connect(**config)
    except (RuntimeError, TimeoutError, ValueError) as error:
        said = _error_text(error) or f"no answer within {ANSWER_S:g} s"
        raise ConfigError(
            f"engine temporal: expected a Temporal server at {where}, found: {said}. Fix: start "
            "one (`temporal server start-dev`), or give the address of yours."
        ) from error


def _error_text(error: BaseException) -> str:
    """Return the error without the frame of gRPC that Temporal puts behind it."""
    return str(error.__cause__ or error).partition(": Status {")[0]
