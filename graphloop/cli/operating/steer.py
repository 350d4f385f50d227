"""Say something to a run, wherever it is driven.

  graphloop steer order-7 "also run the tests" --store runs.db
  graphloop steer order-7 "now translate it" --follow-up --store postgresql://app@db.example/runs

The model reads the message in its next turn; with --follow-up, after its final answer. A run that
no process drives reads it when a worker or graphloop resume takes it.

Exit status: 0 the store has the message, 2 wrong usage, such as a run that is over.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, TypeAlias

import typer

from ..errors import Status
from ..options import RunId, StorePath
from ..stored import reached

__all__ = ["steer_command"]

Message: TypeAlias = Annotated[str, typer.Argument(metavar="MESSAGE", show_default=False)]
FollowUp: TypeAlias = Annotated[
    bool, typer.Option("--follow-up", help="Let the model read it after its final answer.")
]


def steer_command(
    run: RunId, message: Message, *, follow_up: FollowUp = False, store: StorePath = None
) -> Status:
    """Store the message; the run's driver hands it to the model."""
    sys.stdout.write(f"{asyncio.run(_steer(run, message, store, follow_up=follow_up))}\n")
    return Status.OK


async def _steer(run: str, message: str, where: str | None, *, follow_up: bool) -> str:
    async with reached(run, where) as (client, run_id):
        await (client.follow_up if follow_up else client.steer)(run_id, message)
    return f"run {run_id} has the message"
