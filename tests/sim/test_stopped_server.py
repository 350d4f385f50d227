"""A PostgreSQL server that is stopped at once, again and again, under a worker: no run is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from graphloop import Agent, ToolContext, tool
from graphloop.engines import Dbos, Engine, Legs, Pull, TemporalIo
from graphloop.stores import PostgresStore
from graphloop.workers import Worker
from tests.planned_model import Line, PlannedModel, call
from tests.postgres_server import Server
from tests.sizes import sized
from tests.temporal_server import namespace

STOPS = sized(1, 10)
CALLS = 5
RUNS = 4 * STOPS


@pytest.fixture(params=["pull", "dbos", "temporal"])
def engine(request: pytest.FixtureRequest) -> Callable[[Legs], Engine]:
    """Each engine; Temporal's server goes on meanwhile."""
    if request.param == "temporal":
        address = request.getfixturevalue("temporal")
        return partial(TemporalIo, address=address, namespace=namespace(address))
    return Pull if request.param == "pull" else Dbos


async def test_each_run_ends_and_each_call_is_made_once(
    stoppable_server: Server, engine: Callable[[Legs], Engine]
) -> None:
    """The worker and its engine wait for the server, and go on."""
    made = Counter[str]()

    @tool(effect="at_most_once")
    async def pay(n: int, context: ToolContext) -> str:
        """Pay."""
        made[f"{context.run_id} {context.key}"] += 1
        await asyncio.sleep(0)
        return f"paid {n}"

    plan: dict[str, Sequence[Line]] = {
        "go": [*[[call("pay", n=at)] for at in range(CALLS)], "Done."]
    }
    agent = Agent(PlannedModel(plan.__getitem__), tools=[pay])
    store = PostgresStore(stoppable_server.dsn)
    run_ids = [await agent.runs(store).submit("go") for _ in range(RUNS)]
    worker = Worker([agent], store, engine=engine)
    serving = asyncio.create_task(worker.serve())

    for at in range(STOPS):
        while len(made) * (STOPS + 1) < RUNS * CALLS * (at + 1):  # noqa: ASYNC110 - the worker's
            await asyncio.sleep(0.01)
        await asyncio.to_thread(stoppable_server.stop)
        await asyncio.to_thread(stoppable_server.start)
    while {one.status for one in await store.overview()} != {"done"}:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
    worker.stop()
    await serving

    assert {key.partition(" ")[0] for key in made} == {*run_ids}
    assert {*made.values()} == {1}
    assert len(made) == RUNS * CALLS
    await store.aclose()
