"""End a run and its child runs, wherever they are driven.

  graphloop cancel order-7 --store postgresql://app@db.example/runs
  graphloop cancel order-7 --reason "the customer has left" --store runs.db

The run ends as `aborted`, and its history has a result for each call. A worker obeys at once, or at
its next look into a SQLite file. A run that no process drives ends when a worker or graphloop
resume takes it. A child run ends with its root: name the root.

Exit status: 0 the store has the command, 2 wrong usage, such as a run that is over.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, TypeAlias

import typer

from ..errors import Status
from ..options import RunId, StorePath
from ..stored import reached

__all__ = ["cancel_command"]

Reason: TypeAlias = Annotated[
    str, typer.Option(metavar="TEXT", help="Why, for the run's record and its model.")
]


def cancel_command(run: RunId, *, reason: Reason = "", store: StorePath = None) -> Status:
    """Store the command that ends a run; its driver obeys."""
    sys.stdout.write(f"{asyncio.run(_cancel(run, store, reason))}\n")
    return Status.OK


async def _cancel(run: str, where: str | None, reason: str) -> str:
    async with reached(run, where) as (client, run_id):
        posted = await client.cancel(run_id, reason)
    told = "is told" if posted == "accepted" else "was told before"
    return f"run {run_id} {told} to end"
