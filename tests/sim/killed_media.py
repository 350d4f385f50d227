"""A process that journals runs with large media, one after the other, until it is killed.

It says each run id once the run's first event is kept. Run by `test_killed_media.py`.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from graphloop.events import Event, Setup, Started
from graphloop.media import Inline, MediaPart
from graphloop.stores.opening import open_store
from graphloop.values import UserMessage

__all__ = ["shown"]


def shown(number: int) -> Event:
    """Return the first event of run `number`, with media of its own."""
    scan = number.to_bytes(4, "big") * 100_000
    part = MediaPart("application/pdf", Inline(scan))
    return Started(1.0, str(number), "a graph", (UserMessage((part,)),), Setup())


async def work(where: Path) -> None:
    """Append runs to the store until the process is killed."""
    store = open_store(where)
    for number in itertools.count():
        await store.append(str(number), 1, shown(number))
        print(number, flush=True)  # noqa: T201 - the parent reads it.


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
