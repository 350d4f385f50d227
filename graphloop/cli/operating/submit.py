"""Store a new run, which a worker drives.

  graphloop submit desk.py "refund order 7" --store runs.db
  graphloop submit desk.py "count the stock" --store runs.db --queue bulk --tenant acme
  graphloop submit desk.py "refund order 7" --store runs.db --run-id order-7

It prints the id of the run. With --run-id, a second command for the same question has no effect, so
a command that failed may be repeated. graphloop worker with the same target drives the run, and
graphloop watch shows it.

Python is executed. Exit status: 0 the store has the run, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any, TypeAlias

import typer

from ...engines import SharedStore
from ...errors import ConfigError
from ...stores import open_store
from ..errors import Status
from ..options import BaseUrl, Registers, StorePath, TargetArgument
from ..run import ModelName, Script, agent_for
from ..stored import close, named, refuse_unreachable

__all__ = ["submit_command"]

Question: TypeAlias = Annotated[str, typer.Argument(metavar="QUESTION", show_default=False)]
NewRunId: TypeAlias = Annotated[
    str | None, typer.Option("--run-id", metavar="ID", help="The id of the run; a random one else.")
]
Queue: TypeAlias = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="The queue in which the run waits.")
]
Tenant: TypeAlias = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="For whom the run is driven.")
]
Priority: TypeAlias = Annotated[
    int, typer.Option("--priority", metavar="NUMBER", min=-100, max=100, help="How urgent it is.")
]
Deadline: TypeAlias = Annotated[
    float | None,
    typer.Option("--deadline", metavar="SECONDS", help="The time after which the run is ended."),
]


def submit_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: TargetArgument,
    question: Question,
    *,
    store: StorePath = None,
    run_id: NewRunId = None,
    queue: Queue = "default",
    tenant: Tenant = None,
    priority: Priority = 0,
    deadline: Deadline = None,
    model: ModelName = None,
    script: Script = None,
    base_url: BaseUrl = None,
    registers: Registers = None,
) -> Status:
    """Store the first event of a run, and print the run's id."""
    where = named(store)
    refuse_unreachable(where)
    agent, making = agent_for(target, registers, model, script, base_url)
    shared = open_store(where)
    if not isinstance(shared, SharedStore):
        raise ConfigError(
            f"--store {where}: expected a database, which workers share, found a folder for "
            "journals. Fix: give a name that ends in .db, or the address of a PostgreSQL database."
        )

    async def submit() -> str:
        async with making as deps:
            try:
                options: dict[str, Any] = {"run_id": run_id, **deps}
                return await agent.runs(shared).submit(
                    question,
                    tenant=tenant or "",
                    priority=priority,
                    deadline_s=deadline,
                    queue=queue,
                    **options,
                )
            finally:
                await close(shared)

    sys.stdout.write(f"{asyncio.run(submit())}\n")
    return Status.OK
