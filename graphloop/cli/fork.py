"""`graphloop fork`: a run's past under a new id, to go on differently from there."""

from __future__ import annotations

import asyncio
import sys

from ..events import Decided
from ..front.journals import fork_run
from ..stores.opening import open_store
from .journal import read
from .place import Place
from .request import refuse_blanks
from .status import Status, tell
from .stored import opened

__all__ = ["fork"]


def fork(
    run: str,
    *,
    store: str | None,
    at: int,
    new_id: str | None,
    target: str | None,
    share: bool = False,
) -> Status:
    """Copy a run up to event `at`, and print the id of the copy.

    Raises:
        ConfigError: there is no such run or event, or the run has children, which only its target
            tells apart; or the copy would act on an approval, and may not.
        StoreError: the id is taken.
    """
    refuse_blanks({"RUN": run, "--as": new_id, "--target": target})
    journal = asyncio.run(read(store, run))
    journal.check_number("--at", at)
    approved = any(isinstance(one, Decided) and one.approved for one in journal.events[:at])
    graph = journal.graph(target) if journal.has_children or approved else None
    where = store or ""

    async def copied() -> str:
        async with opened(where) as opened_store:
            return await fork_run(graph, opened_store, journal.run_id, at, new_id, share=share)

    copy = asyncio.run(copied())
    sys.stdout.write(f"{copy}\n")
    place = Place(open_store(where), where, target or journal.target or "TARGET")
    tell(f"go on with: {place.resume_command(copy)}")
    return Status.OK
