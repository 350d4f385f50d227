"""A process that works on one run until it is done, parks, or is killed.

Every execution of a tool leaves two lines in a file, one when it begins and one when it has ended,
each on the disk before anything else happens. Run by `test_killed_at_random.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from graphloop import Agent, Tool, ToolContext
from graphloop.effects import Place
from graphloop.stores.base import Store
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.tools.options import EffectPolicy
from tests.mortal_store import Fate, MortalSqliteStore
from tests.planned_model import Line, PlannedModel, call

__all__ = ["ONCE", "PLAN", "RUN", "build", "work"]

RUN = "trial"
LEASE_S = 0.05
"""How long a dead process keeps the next one waiting."""

PLAN: dict[str, Sequence[Line]] = {
    "go": [
        [call("note", text="a"), call("send", text="b"), call("look", text="c")],
        [call("pay", text="d"), call("note", text="e"), call("look", text="f")],
        [call("helper", prompt="help"), call("send", text="g"), call("note", text="h")],
        [call("send", text="i")],
        "All is done.",
    ],
    "help": [
        [call("note", text="j"), call("note", text="k")],
        [call("pay", text="l"), call("look", text="m")],
        "Helped.",
    ],
}
ONCE = frozenset({"send", "pay"})
"""Tools that may not run twice; all others may."""

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Ledger:
    """The world outside: what was done stays done, whoever dies."""

    def __init__(self, path: Path, fate: Fate) -> None:
        self._path = path
        self._fate = fate

    def write(self, word: str, context: ToolContext) -> None:
        """Put a line on the disk."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{word} {context.run_id} {context.key}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
        self._fate.moment()

    async def do(self, arguments: dict[str, object], context: ToolContext) -> str:
        """Do what a tool does: something that cannot be taken back."""
        self.write("begin", context)
        await asyncio.sleep(0)
        self.write("end", context)
        return f"{arguments['text']} is done"


def build(
    store: Store,
    ledger: Ledger,
    plan: Mapping[str, Sequence[Line]] = PLAN,
    place: Place = "here",
) -> Agent:
    """Return the agent, as every process makes it anew."""

    def tool(name: str, effect: EffectPolicy, *, gated: bool = False) -> Tool[..., object]:
        return Tool(
            name=name, parameters=SCHEMA, execute=ledger.do, effect=effect, needs_approval=gated
        )

    tools = [
        tool("note", "idempotent"),
        tool("look", "pure"),
        tool("send", "at_most_once"),
        tool("pay", "at_most_once", gated=True),
    ]
    helper = Agent(PlannedModel(plan.__getitem__, "helping"), tools=tools)
    model = PlannedModel(plan.__getitem__)
    helping = helper.as_tool(name="helper", description="Helps.", place=place)
    return Agent(model, tools=[*tools, helping], store=store)


def work(directory: Path, after: int | None, ready: Connection) -> None:
    """Take the run as far as it goes; kill this process after so many moments.

    Args:
        directory: where the database and the ledger are.
        after: after how many moments; never, of itself, without a number.
        ready: is closed when the work begins.
    """
    kill = partial(os.kill, os.getpid(), signal.SIGKILL)
    fate = Fate(after, kill)
    asyncio.run(_work(directory, fate, ready))


async def _work(directory: Path, fate: Fate, ready: Connection) -> None:
    disk = SqliteStore(directory / "runs.db", lease_s=LEASE_S)
    try:
        while any(one.status == "running" for one in await disk.overview()):  # noqa: ASYNC110
            # The last driver is dead, its leases are still running, and nobody else will tell.
            await asyncio.sleep(LEASE_S / 5)
        agent = build(MortalSqliteStore(disk, fate), Ledger(directory / "ledger", fate))
        begun = RUN in await disk.runs()
        ready.close()
        if begun:
            await agent.resume(RUN)
        else:
            await agent.generate("go", run_id=RUN)
    finally:
        await disk.aclose()
