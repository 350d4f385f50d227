"""A worker of a fleet whose runs tell how many of them are under way at once.

Run as `python -m tests.unit.workers.queue_process STORE FOLDER RUNNING` by the tests. Each run
locks one of RUNNING files in FOLDER. A run that finds all of them locked leaves the file
`exceeded`.
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
from contextlib import suppress
from pathlib import Path

from graphloop import Agent, tool
from graphloop.stores import Catalog, Closes, QueueLimits, open_store
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker

__all__ = ["desk"]

WORKS: dict[str, object] = {"calls": [{"name": "work", "arguments": {}}]}


def desk(folder: Path, running: int) -> Agent:
    """Return the agent whose tool takes one of the places, and tells if there is none."""

    @tool
    async def work() -> str:
        """Work."""
        for place in range(running):
            with (folder / f"place-{place}").open("w") as file, suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for _ in range(20):
                    await asyncio.sleep(0)
                return "done"
        (folder / "exceeded").touch()
        return "exceeded"

    return Agent(ScriptedModel([WORKS, "Done."], restart=True), tools=[work])


async def main(where: str, folder: Path, running: int) -> None:
    """Serve until all runs are over."""
    store = open_store(where)
    assert isinstance(store, Catalog)
    assert isinstance(store, Closes)
    queues = {"bulk": QueueLimits(slots=4, running=running)}
    worker = Worker([desk(folder, running)], store, queues=queues, poll_s=0.02)
    serving = asyncio.create_task(worker.serve())
    while {each.status for each in await store.overview()} != {"done"}:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    worker.stop()
    await serving
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
