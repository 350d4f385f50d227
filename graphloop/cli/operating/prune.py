"""Delete the runs of a store that are over, and have been for a time.

  graphloop prune --older 30d --store runs.db
  graphloop prune --older 12h --store postgresql://app@db.example/runs

A family goes as a whole: a run with its child runs, and all questions of a chat. It goes if each of
its runs is over (done, failed or cancelled) and has not changed for this time, by the store's
clock. Pictures and documents that no other run shows go with it. A parked or blocked run stays.
A SQLite file does not become smaller, but uses the room again.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Annotated, Final, TypeAlias

import typer

from ...errors import ConfigError
from ...stores import Operated
from ..errors import Status
from ..options import StorePath
from ..stored import opened
from ..text import counted

__all__ = ["prune_command"]

FAMILIES: Final = 500
"""The families that one transaction deletes."""
DURATION: Final = re.compile(r"([0-9]+)(s|min|h|d)")
SECONDS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400}

Older: TypeAlias = Annotated[
    str, typer.Option("--older", metavar="TIME", help="The time since the end: 30d, 12h or 90min.")
]


def prune_command(*, older: Older, store: StorePath = None) -> Status:
    """Delete old runs, some hundred at a time, and print how many they were."""
    if (found := DURATION.fullmatch(older)) is None:
        raise ConfigError(
            f"--older: expected a number with d, h, min or s, found {older!r}. Fix: for example "
            "30d."
        )
    deleted = asyncio.run(_prune_store(store, int(found[1]) * SECONDS[found[2]]))
    sys.stdout.write(f"{counted(deleted, 'run')} deleted\n")
    return Status.OK


async def _prune_store(where: str | None, older_s: float) -> int:
    deleted = 0
    async with opened(where) as store:
        if not isinstance(store, Operated):
            raise ConfigError(
                f"{where}: expected a database (a file such as runs.db, or postgresql://…), found "
                "a directory of JSON lines. Fix: delete the files of its runs."
            )
        while count := await store.prune(older_s, FAMILIES):
            deleted += count
    return deleted
