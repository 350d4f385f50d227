"""A worker drives child runs of others' runs: with the same results as beside their parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, ToolContext, tool
from graphloop.effects import Place
from graphloop.run import Run
from graphloop.stores import MemoryStore, PostgresStore, SqliteStore
from graphloop.workers import Worker
from tests.planned_model import Line, PlannedModel, call
from tests.postgres_server import database

Shared = MemoryStore | SqliteStore | PostgresStore
Open = Callable[[], Shared]
DRIVEN_MAX = 60


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a way to open the same store, as another process would."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "postgres":
        dsn = database(request.getfixturevalue("postgres"))
        return lambda: PostgresStore(dsn)
    return lambda: SqliteStore(tmp_path / "runs.db", durability="process")


PLAN: Mapping[str, list[Line]] = {
    "go": [
        [call("helper", prompt="one"), call("note", text="a"), call("helper", prompt="two")],
        "All is done.",
    ],
    "one": [[call("note", text="b")], "One is done."],
    "two": [[call("note", text="c"), call("note", text="d")], "Two is done."],
}


def family(place: Place, done: list[str] | None = None, **options: Any) -> Agent:
    """Return an agent whose helper may be driven elsewhere; their tool writes into `done`."""

    @tool
    def note(text: str, context: ToolContext) -> str:
        """Note a text."""
        (done if done is not None else []).append(f"{context.run_id} {text}")
        return f"{text} is noted"

    helper = Agent(PlannedModel(PLAN.__getitem__, "helping"), tools=[note], **options)
    return Agent(
        PlannedModel(PLAN.__getitem__),
        tools=[note, helper.as_tool(name="helper", description="Helps.", place=place)],
        name="boss",
    )


async def taken(worker: Worker, store: Shared, *, graph: str = "boss") -> list[str]:
    """Let one worker drive what waits, one run after the other, until nothing does."""
    driven: list[str] = []
    while waiting := await store.ready({graph}, 1):
        driven += waiting
        assert await worker.drive(waiting[0]) != "blocked"
        assert len(driven) < DRIVEN_MAX
    return driven


async def run_of(agent: Agent, store: Shared, run_id: str) -> Run[None]:
    return await agent.runs(store).replay(run_id)


async def test_a_child_is_driven_without_its_parent(shared: Open) -> None:
    """The parent waits without a worker; the results are those of a child beside its parent."""
    store, done, beside = shared(), list[str](), list[str]()
    agent = family("anywhere", done)
    await agent.runs(store).submit("go", run_id="r")

    driven = await taken(Worker([agent], store), store)

    alone = family("anywhere", beside)
    result = await Agent.generate(alone, "go", run_id="r")
    run = await run_of(agent, store, "r")
    assert set(driven) == {"r", "r/c0.0", "r/c0.2"}
    assert driven.count("r") >= 2
    assert sorted(done) == sorted(beside)
    assert [*run.messages] == [*result.run.messages]
    assert run.spent.usage == result.run.spent.usage
    assert run.spent.agent_calls == result.run.spent.agent_calls == 2
    assert {one.status for one in await store.overview()} == {"done"}


async def test_a_child_that_is_here_is_driven_with_its_parent(shared: Open) -> None:
    """In one leg: no other worker sees it."""
    store = shared()
    agent = family("here")
    await agent.runs(store).submit("go", run_id="r")

    assert await taken(Worker([agent], store), store) == ["r"]
