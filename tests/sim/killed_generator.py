"""A process that works on a run of one generator until it is done, or is killed.

Every question that a model is asked leaves a line in a file, on the disk before anything else
happens. Run by `test_killed_generator.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

from graphloop.policy.approvals import Approval
from graphloop.providers.base import StreamItem
from graphloop.questions.pending import Pending
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.values import ModelRequest, UserMessage
from tests.generator_nodes import Programme, as_generator
from tests.mortal_store import Fate, MortalSqliteStore
from tests.planned_model import line

__all__ = ["PROGRAMME", "RUN", "work"]

RUN = "trial"
LEASE_S = 0.05
"""How long a dead process keeps the next one waiting."""

PROGRAMME = Programme(
    (("model", "first"), ("tell", "noted"), ("aloud", "second"), ("person", "sure"), ("model", "x"))
)


class Ledger:
    """A model that writes down what it is asked before it answers, and may die on the way."""

    label = "ledger"

    def __init__(self, path: Path, fate: Fate) -> None:
        self._path = path
        self._fate = fate

    def session(self) -> Ledger:
        """Return itself."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Answer, perhaps to nobody."""
        asked = request.messages[-1]
        assert isinstance(asked, UserMessage)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{asked.content}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
        self._fate.moment()
        yield line(f"heard {asked.content}")


def agree(_: Pending) -> Approval:
    """Say yes."""
    return Approval(approved=True)


def work(directory: Path, after: int | None) -> None:
    """Take the run to its end; kill this process after so many moments, if a number is given."""
    fate = Fate(after, partial(os.kill, os.getpid(), signal.SIGKILL))
    asyncio.run(_work(directory, fate))


async def _work(directory: Path, fate: Fate) -> None:
    disk = SqliteStore(directory / "runs.db", lease_s=LEASE_S)
    try:
        while any(one.status == "running" for one in await disk.overview()):  # noqa: ASYNC110
            # The last driver is dead, its lease is still running, and nobody else will tell.
            await asyncio.sleep(LEASE_S / 5)
        graph, model = as_generator(), Ledger(directory / "ledger", fate)
        store = MortalSqliteStore(disk, fate)
        if RUN in await disk.runs():
            await graph.resume(RUN, model=model, store=store, approve_tool_call=agree)
        else:
            await graph.run(
                PROGRAMME,
                model=model,
                prompt="go",
                store=store,
                run_id=RUN,
                approve_tool_call=agree,
            )
    finally:
        await disk.aclose()
