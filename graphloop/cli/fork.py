"""Copy a run up to one of its events to a new run; print the new id.

  graphloop replay 1f3a2b4c --store runs.db     prints the numbers of events
  graphloop fork 1f3a2b4c --at 4 --store runs.db
  graphloop fork 1f3a2b4c --at 4 --as second-try --store runs.db

The original does not change. Answers that were not applied before event N are not copied, nor are
child runs that started later. A copy that would act on an earlier approval is refused: fork before
the approval, or give --share-approvals.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, TypeAlias

import typer

from ..events import Decided
from ..stores import fork_run
from .errors import Status, tell_error
from .modules import register
from .options import Registers, RunId, StorePath, TargetOption, Text
from .stored import Origin, opened, read

__all__ = ["fork_command"]

At: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="The number of the last event to copy.")
]
NewId: TypeAlias = Annotated[
    Text, typer.Option("--as", metavar="NEW", help="The copy's id; the default is a random id.")
]
Share: TypeAlias = Annotated[
    bool,
    typer.Option("--share-approvals", help="Let the copy act on earlier approvals."),
]


def fork_command(  # noqa: PLR0913 - the options of a command are its parameters
    run: RunId,
    *,
    at: At,
    new_id: NewId = None,
    store: StorePath = None,
    target: TargetOption = None,
    share: Share = False,
    registers: Registers = None,
) -> Status:
    """Copy a run's events up to number `at` to a new run, and print the new run's id."""
    register(registers)
    journal = asyncio.run(read(store, run))
    journal.check_number("--at", at)
    approved = any(isinstance(event, Decided) and event.approved for event in journal.events[:at])
    # Only the graph knows which child runs and approvals belong to these events.
    graph = journal.graph(target) if journal.has_children or approved else None

    async def copied() -> tuple[str, str]:
        async with opened(store) as runs:
            copy = await fork_run(graph, runs, journal.run_id, at, new_id, share=share)
            origin = Origin(runs, str(store), (target or "TARGET",))
            return copy, await origin.resume_command(copy)

    copy, command = asyncio.run(copied())
    sys.stdout.write(f"{copy}\n")
    tell_error(f"go on with: {command}")
    return Status.OK
