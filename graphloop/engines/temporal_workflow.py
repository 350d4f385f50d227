"""The workflow of a run in Temporal: a leg for each wake, until the run is over; and the wake.

Temporal replays its code, in a sandbox that imports it anew: it imports nothing but `temporalio`,
and knows the run's id and how each leg ended, both as text. A changed order of commands would stop
the workflows of runs under way, so a test replays a history of an earlier release.
"""

from asyncio import TimeoutError as TooLate
from contextlib import suppress
from datetime import timedelta
from typing import Final, final

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as TimedOut

__all__ = ["LEG", "QUEUE", "WAKE", "WORKFLOW", "RunWorkflow", "wake_workflow"]

WORKFLOW: Final = "graphloop.run"
LEG: Final = "graphloop.drive"
WAKE: Final = "wake"
QUEUE: Final = "graphloop."
"""Before the name of an agent: the queue of its workers."""

UNTAKEN_MAX: Final = timedelta(seconds=10)
"""How long a leg waits in its queue: the workers that wanted it may be gone."""

ANSWER_MAX: Final = timedelta(seconds=10)
"""How long Temporal has to note a wake."""

LEG_MAX: Final = timedelta(days=365)
"""Temporal asks for a limit; a run has limits of its own."""
SILENT_MAX: Final = timedelta(seconds=4)
RETRY_MAX: Final = timedelta(seconds=60)
LOOK_EVERY: Final = timedelta(days=1)
"""Ends the workflow of a run that another program has brought to its end."""


@final
@workflow.defn(name=WORKFLOW)
class RunWorkflow:
    """Starts a leg of its run after each wake; a wake during a leg counts for the next."""

    def __init__(self) -> None:
        # A wake of the workflow that this one continues may have had no leg.
        self._is_woken = workflow.info().continued_run_id is not None
        self._queue = ""

    @workflow.signal(name=WAKE)
    def wake(self, queue: str = "") -> None:
        """Let a leg start in a queue, or in the workflow's own: the run may wait for a driver."""
        self._is_woken, self._queue = True, queue

    @workflow.run
    async def run(self, run_id: str) -> str:
        """Return "over" when the run is over; continue as new before the history is too long."""
        while True:
            with suppress(TooLate):
                await workflow.wait_condition(lambda: self._is_woken, timeout=LOOK_EVERY)
            self._is_woken = False
            if await self._leg(run_id) == "over":
                return "over"
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(run_id)

    async def _leg(self, run_id: str) -> str:
        """Return how a leg ended: "again" for one that no worker took in time."""
        try:
            driven: str = await workflow.execute_activity(
                LEG,
                run_id,
                task_queue=self._queue or None,
                result_type=str,
                schedule_to_start_timeout=UNTAKEN_MAX,
                start_to_close_timeout=LEG_MAX,
                heartbeat_timeout=SILENT_MAX,
                retry_policy=RetryPolicy(maximum_interval=RETRY_MAX),
            )
        except ActivityError as error:
            cause = error.cause
            if isinstance(cause, TimedOut) and cause.type == TimeoutType.SCHEDULE_TO_START:
                return "again"
            raise
        return driven


async def wake_workflow(client: Client, run_id: str, agent: str, queue: str) -> None:
    """Let a leg of a run start: signal its workflow, and start the workflow if there is none.

    Args:
        client: the connection.
        run_id: the run's id.
        agent: the name of the run's agent.
        queue: the queue of the leg; empty for that of all workers of the agent.

    Raises:
        RPCError: Temporal does not answer, or refuses.
    """
    await client.start_workflow(
        WORKFLOW,
        run_id,
        id=run_id,
        task_queue=f"{QUEUE}{agent}",
        start_signal=WAKE,
        start_signal_args=[queue] if queue else [],
        rpc_timeout=ANSWER_MAX,
    )
