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

__all__ = ["LEG", "QUEUE", "WAKE", "WORKFLOW", "RunWorkflow", "wake_workflow"]

WORKFLOW: Final = "graphloop.run"
LEG: Final = "graphloop.drive"
WAKE: Final = "wake"
QUEUE: Final = "graphloop."
"""Before the name of an agent: the queue of its workers."""

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

    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        """Let a leg start: the run may wait for a driver."""
        self._is_woken = True

    @workflow.run
    async def run(self, run_id: str) -> str:
        """Return "over" when the run is over; continue as new before the history is too long."""
        while True:
            with suppress(TooLate):
                await workflow.wait_condition(lambda: self._is_woken, timeout=LOOK_EVERY)
            self._is_woken = False
            driven: str = await workflow.execute_activity(
                LEG,
                run_id,
                result_type=str,
                start_to_close_timeout=LEG_MAX,
                heartbeat_timeout=SILENT_MAX,
                retry_policy=RetryPolicy(maximum_interval=RETRY_MAX),
            )
            if driven == "over":
                return driven
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(run_id)


async def wake_workflow(client: Client, run_id: str, agent: str) -> None:
    """Let a leg of a run start: signal its workflow, and start the workflow if there is none.

    Args:
        client: the connection.
        run_id: the run's id.
        agent: the name of the run's agent.

    Raises:
        RPCError: Temporal does not answer, or refuses.
    """
    await client.start_workflow(
        WORKFLOW,
        run_id,
        id=run_id,
        task_queue=f"{QUEUE}{agent}",
        start_signal=WAKE,
        rpc_timeout=ANSWER_MAX,
    )
