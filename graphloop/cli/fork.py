"""Copy a run up to one of its events, to go on differently; print the copy's id.

  graphloop replay 1f3a2b4c --store runs.db     numbers the events
  graphloop fork 1f3a2b4c --at 4 --store runs.db
  graphloop fork 1f3a2b4c --at 4 --as second-try --store runs.db

The original stays as it is. Answers that were not applied by event N stay behind; child runs that
started later do, too. A copy that would act on what a person approved before N is refused: fork
before it, or say --share-approvals.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, TypeAlias

import typer

from ..agent import fork_run
from ..events import Decided
from .errors import Status, tell_error
from .options import Registers, RunId, StorePath, TargetOption, Text
from .stored import Origin, opened, read
from .target import register

__all__ = ["fork_command"]

At: TypeAlias = Annotated[int, typer.Option(metavar="N", help="The last event that the copy has.")]
NewId: TypeAlias = Annotated[
    Text, typer.Option("--as", metavar="NEW", help="The copy's id; made up if not given.")
]
Share: TypeAlias = Annotated[
    bool,
    typer.Option("--share-approvals", help="Let the copy act on what people approved before N."),
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
    """Copy a run up to an event, and print the copy's id.

    Only its target tells the children of a run apart, and the approvals that it acts on.
    """
    register(registers)
    journal = asyncio.run(read(store, run))
    journal.check_number("--at", at)
    approved = any(isinstance(event, Decided) and event.approved for event in journal.events[:at])
    graph = journal.graph(target) if journal.has_children or approved else None

    async def copied() -> tuple[str, str]:
        async with opened(store) as found:
            copy = await fork_run(graph, found, journal.run_id, at, new_id, share=share)
            return copy, Origin(found, str(store), (target or "TARGET",)).resume_command(copy)

    copy, command = asyncio.run(copied())
    sys.stdout.write(f"{copy}\n")
    tell_error(f"go on with: {command}")
    return Status.OK
