"""A run that is being driven right now is not taken from its driver (CONTRACT §9, S23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, tool
from graphloop.errors import RunBusy
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply

Make = Callable[[Path], Store]

STORES: dict[str, Make] = {
    "memory": lambda _: MemoryStore(),
    "jsonl": JsonlStore,
    "sqlite": lambda folder: SqliteStore(folder / "runs.db", durability="process"),
}


@pytest.mark.parametrize("name", STORES)
async def test_a_resume_of_a_driven_run_is_refused_and_keeps_results(
    name: str, tmp_path: Path
) -> None:
    """Else the result is lost, and the model is told of a process that never stopped."""
    ran: list[str] = []

    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        begun.set()
        await may_end.wait()
        return "worked"

    store = STORES[name](tmp_path)
    model = ScriptedModel([reply(call("work", "", "{}")), "done"])
    agent = Agent(model, tools=[work], store=store)
    async with asyncio.TaskGroup() as group:
        driving = group.create_task(agent.generate("go", run_id="r"))
        await begun.wait()
        with pytest.raises(RunBusy, match="run 'r' is being driven"):
            await agent.resume("r")
        may_end.set()
    result = driving.result()

    assert EndReason.COMPLETED is result.end_reason
    assert ["worked"] == [one.text for one in result.steps[0].tool_results]
    assert ["work"] == ran
    assert "done" == (await agent.resume("r")).text
    if isinstance(store, SqliteStore):
        await store.aclose()


@pytest.mark.parametrize("name", ["memory", "jsonl"])
def test_a_driver_that_died_with_its_event_loop_keeps_nobody_out(name: str, tmp_path: Path) -> None:
    """A loop that is closed under a run closes no generator, and the store lives on."""
    store = STORES[name](tmp_path)
    agent = Agent(ScriptedModel(["done", "done"]), store=store)
    stream = agent.stream("go", run_id="r")
    parts = aiter(stream.full_stream)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(anext(parts))
    with pytest.raises(RunBusy):
        asyncio.run(agent.resume("r"))

    loop.close()

    assert "done" == asyncio.run(agent.resume("r")).text
