"""The contract of engines: what each of them brings about, whichever decides who drives a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from graphloop import Agent, tool
from graphloop.engines import Engine, Legs, Pull
from graphloop.stores import PostgresStore, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.workers import Client, Worker
from tests.postgres_server import database

SAID = "Done."
PAYS = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}

Shared: TypeAlias = SqliteStore | PostgresStore


class Scene:
    """A store that several processes could open, and the engine of its workers."""

    def __init__(self, opened: Callable[[], Shared], engine: Callable[[Legs], Engine]) -> None:
        self.opened = opened
        self.engine = engine
        self.store = opened()

    def worker(self, *agents: Agent, slots: int = 100) -> Worker:
        return Worker(agents, self.opened(), engine=self.engine, slots=slots, poll_s=0.01)

    async def statuses(self) -> list[str]:
        return [one.status for one in await self.store.overview()]

    async def all_are(self, status: str) -> bool:
        return set(await self.statuses()) == {status}


@pytest.fixture(params=["pull on sqlite", "pull on postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """Return each engine on each store that it works with."""
    if request.param == "pull on sqlite":
        return Scene(lambda: SqliteStore(tmp_path / "runs.db", durability="process"), Pull)
    dsn = database(request.getfixturevalue("postgres"))
    return Scene(lambda: PostgresStore(dsn), Pull)


async def served(worker: Worker, done: Callable[[], Awaitable[bool]]) -> None:
    """Let a worker serve until something is done, and stop it."""
    serving = asyncio.create_task(worker.serve())
    while not await done() and not serving.done():  # noqa: ASYNC110 - another task does it
        await asyncio.sleep(0)
    worker.stop()
    await serving


def replies(*texts: object) -> ScriptedModel:
    return ScriptedModel(list(texts), restart=True)


async def test_a_run_that_was_submitted_before_is_driven(scene: Scene) -> None:
    """The web server was up before the first worker."""
    agent = Agent(replies(SAID))
    for at in range(5):
        await agent.runs(scene.store).submit(f"Question {at}")

    await served(scene.worker(agent), lambda: scene.all_are("done"))

    assert await scene.statuses() == ["done"] * 5


async def test_a_run_that_is_submitted_later_is_driven(scene: Scene) -> None:
    """The worker is there, and has nothing to do."""
    agent = Agent(replies(SAID))
    await agent.runs(scene.store).submit("First")

    async def done() -> bool:
        if await scene.statuses() == ["done"]:
            await agent.runs(scene.store).submit("Second")
        return await scene.statuses() == ["done", "done"]

    await served(scene.worker(agent), done)

    assert await scene.statuses() == ["done", "done"]


async def test_an_answer_wakes_a_run_that_waits_for_people(scene: Scene) -> None:
    """It may come days later; the tool runs once."""
    paid = list[int]()

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    agent = Agent(replies(PAYS, SAID), tools=[pay])
    run_id = await agent.runs(scene.store).submit("Pay.")
    client = Client(scene.store)

    async def done() -> bool:
        if await scene.statuses() == ["parked"]:
            await client.approve(run_id, "c0.0")
        return await scene.all_are("done")

    await served(scene.worker(agent), done)

    assert paid == [5]
