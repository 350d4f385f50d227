"""Dbos: the engine that lets DBOS decide who drives a run next.

A leg is a workflow of DBOS with the run's id as its argument, and without steps: the journal is
the truth, and DBOS keeps no second one. The transaction that makes a run ready puts its leg into
the queue of its agent, by the function of SQL that DBOS has for that. So the queue forgets no run,
and a program that submits or answers runs needs nothing of DBOS.

DBOS orders legs by one number. It holds the band, the priority, and the turn that the tenant had
when the run became ready, so tenants go in turn as with `Pull`, but no turn changes later.

DBOS does not take back what a dead worker had. The store does: its sweep makes the run ready, which
cancels the lost leg, and puts a new one into the queue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, final
from uuid import uuid4

from dbos import DBOS, DBOSConfig

from ..errors import ConfigError, StoreError
from ..stores import QueueLimits, Submission
from .base import Driven, Outbox
from .legs import Legs
from .pull import Pull

__all__ = ["Dbos"]

LOG: Final = logging.getLogger("graphloop")

APPLICATION: Final = "graphloop"
VERSION: Final = "graphloop-1"
"""Changes with the arguments of a leg; workers of two versions leave each other's legs alone."""
WORKFLOW: Final = "graphloop.drive"
QUEUE: Final = "graphloop."
DEFAULT: Final = Submission().queue
"""The queue of runs that name none."""

ENQUEUE: Final = f"""PERFORM dbos.enqueue_workflow(
    workflow_name => '{WORKFLOW}', queue_name => '{QUEUE}' || told.graph
      || CASE told.queue WHEN '{DEFAULT}' THEN '' ELSE '/' || told.queue END,
    positional_args => ARRAY[to_json(told.run_id)], workflow_id => told.leg,
    app_version => '{VERSION}', priority => CASE told.band WHEN 1 THEN 0 WHEN 10 THEN 1 ELSE 2 END
      * 1000000 + (100 - told.priority) * 1000 + told.turn,
    application_name => '{APPLICATION}');
  UPDATE dbos.workflow_status SET status = 'CANCELLED', owner_xid = NULL, queue_name = NULL,
    started_at_epoch_ms = NULL, updated_at = (extract(epoch FROM now()) * 1000)::bigint,
    completed_at = (extract(epoch FROM now()) * 1000)::bigint
    WHERE workflow_uuid = told.lost_leg AND status = 'PENDING';"""  # noqa: S608 - constants only

POLLING_S: Final = 0.1
"""The seconds between two looks of DBOS into a queue; its own default lets a run wait for 1 s."""
LOOK_EVERY_S: Final = 0.5
PATIENCE_S: Final = 1.0
CONNECTIONS: Final = 4
PRUNE_EVERY_S: Final = 600.0
KEPT_S: Final = 86400.0
"""For how long DBOS's rows of ended legs are kept."""
PRUNED_AT_ONCE: Final = 1000


@final
class Dbos:
    """Drives the runs whose legs DBOS hands out, as many as there are free slots.

    Its tables are in the schema `dbos` of the store's database. A process has one such engine, and
    no DBOS of its own. The slots of the worker that starts last count for all workers of an agent;
    a worker with fewer slots lets legs wait.

    Args:
        legs: the legs of the worker.

    Raises:
        ConfigError: the store is not a PostgreSQL database.
    """

    def __init__(self, legs: Legs) -> None:
        if not isinstance(legs.store, Outbox):
            raise ConfigError(
                f"engine dbos: expected a PostgreSQL store, found {legs.store!r}. Fix: give "
                "'postgresql://…', or take the engine pull."
            )
        self._outbox: Outbox = legs.store
        self._legs = legs
        queues = legs.queues or {DEFAULT: QueueLimits(slots=legs.slots)}
        self._queues = {
            f"{QUEUE}{agent}{'' if name == DEFAULT else f'/{name}'}": queue
            for agent in sorted(legs.agents)
            for name, queue in queues.items()
        }
        # What DBOS does not hand out: expired questions, blocked runs, legs that were lost.
        self._backstop = Pull(legs, patience_s=PATIENCE_S)
        self._look_at = 0.0
        self._prune_at = 0.0
        self._executor = uuid4().hex
        self._dbos: DBOS | None = None

    async def open(self) -> None:
        """Start DBOS, and let it hear of each run that becomes ready.

        Raises:
            ConfigError: this process has a DBOS of its own, or DBOS cannot start.
            StoreError: the database does not answer.
        """
        await self._legs.announce()  # Its errors say what to do.
        loop = asyncio.get_running_loop()

        async def leg(run_id: str) -> Driven:
            # DBOS has a loop of its own, and would take over the threads of the worker's.
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._leg(run_id), loop)
            )

        await asyncio.to_thread(self._launch, leg)
        try:
            await self._outbox.on_ready(ENQUEUE)
        except BaseException:
            await self.close()
            raise

    async def look(self) -> None:
        """Free the runs of dead workers, and start legs that DBOS does not hand out."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        if len(self._legs) < self._legs.slots:
            await self._backstop.look()
        else:  # The runs of dead workers go before others that wait for a slot.
            with suppress(StoreError):
                await self._legs.store.ready(self._legs.agents, 1)
        if now >= self._prune_at:
            has_more = await asyncio.to_thread(self._prune)
            self._prune_at = now if has_more else now + PRUNE_EVERY_S

    async def drain(self) -> None:
        """Take no more legs from the queues."""
        if self._dbos is not None:
            for event in self._dbos.background_thread_stop_events:
                event.set()

    async def close(self) -> None:
        """Stop DBOS, after it has noted how the last legs ended."""
        await asyncio.to_thread(
            DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=1
        )

    def _launch(self, leg: Callable[[str], Awaitable[Driven]]) -> None:
        config = DBOSConfig(
            name=APPLICATION,
            system_database_url=self._outbox.address.replace("postgres://", "postgresql://", 1),
            sys_db_pool_size=CONNECTIONS,
            max_executor_threads=CONNECTIONS,
            application_version=VERSION,
            executor_id=self._executor,
            log_level="WARNING",
        )
        try:
            self._dbos = DBOS(config=config)
        except Exception as error:  # SQLAlchemy reads fewer addresses than PostgreSQL does.
            raise ConfigError(
                "engine dbos: expected an address as postgresql://user@host:5432/database, found "
                f"one that DBOS cannot read: {_error_line(error)}. Fix: give hosts as "
                "`?host=…&port=…`."
            ) from error
        if DBOS.executor_id != self._executor:
            raise ConfigError(
                "engine dbos: expected a process without a DBOS of its own, found one. Fix: start "
                "the worker in a process of its own."
            )
        try:
            DBOS.logger.addFilter(_is_news)
            DBOS.listen_queues([*self._queues])
            DBOS.workflow(name=WORKFLOW)(leg)
            DBOS.launch()
            for name, queue in self._queues.items():
                DBOS.register_queue(
                    name,
                    worker_concurrency=queue.slots or self._legs.slots,
                    global_concurrency=queue.running,
                    polling_interval_sec=POLLING_S,
                    on_conflict="always_update",
                )
        except Exception as error:
            DBOS.destroy(destroy_registry=True)
            raise ConfigError(
                f"engine dbos: expected DBOS to start, found: {_error_line(error)}. Fix: let the "
                "server stay up, and its user create the schema `dbos`."
            ) from error

    async def _leg(self, run_id: str) -> Driven:
        """Drive a run as far as it goes; a run that is not driven is found by a look."""
        wait_s = self._legs.wait_s(run_id)
        if self._legs.stopped.is_set() or wait_s > PATIENCE_S:
            return "again"
        await asyncio.sleep(wait_s)
        task = self._legs.start(run_id)
        await asyncio.wait([task])
        return "again" if task.cancelled() else task.result()

    def _prune(self) -> bool:
        """Delete what DBOS knows of legs that ended long ago; True if there may be more."""
        try:
            return _delete_old() >= PRUNED_AT_ONCE
        except Exception as error:  # noqa: BLE001 - DBOS raises those of its libraries
            LOG.warning("a worker cannot delete the old legs of DBOS: %s", _error_line(error))
            return False


def _is_news(line: logging.LogRecord) -> bool:
    """Whether a line of DBOS's log is more than the end of a leg that another worker has now.

    The store tells that a worker was declared dead; DBOS has warned, and its traceback is no fault.
    """
    error = line.exc_info[1] if line.exc_info else None
    return type(error).__name__ != "DBOSAwaitedWorkflowCancelledError"  # DBOS keeps it private.


def _delete_old() -> int:
    before = (datetime.now(UTC) - timedelta(seconds=KEPT_S)).isoformat()
    listed = partial(
        DBOS.list_workflows,
        name=WORKFLOW,
        limit=PRUNED_AT_ONCE,
        load_input=False,
        load_output=False,
    )
    ended = listed(status=["SUCCESS", "ERROR", "CANCELLED"], completed_before=before)
    # Their workers died before the claim, so no sweep has cancelled them.
    lost = listed(status="PENDING", dequeued_before=before)
    if old := [leg.workflow_id for leg in (*ended, *lost)]:
        DBOS.delete_workflows(old)
    return len(old)


def _error_line(error: Exception) -> str:
    """Return an error without the SQL and the advice that SQLAlchemy puts below it."""
    return (str(error) or type(error).__name__).partition("\n")[0]
