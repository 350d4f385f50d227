"""Queues bound the runs of a fleet, and each worker has slots of its own for each."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop import Agent, tool
from graphloop.errors import ConfigError
from graphloop.stores import MemoryStore, QueueLimits, open_store
from graphloop.stores.backlog import Backlog
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker
from tests.postgres_server import database
from tests.unit.workers.queue_process import WORKS, desk
from tests.warm_python import warm_python

RUNNING = 3
PROCESSES = 3
RUNS = 24


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_several_processes_drive_no_more_runs_than_may(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each of them could drive more alone, and all runs come to their end."""
    where = str(tmp_path / "runs.db")
    if kind == "postgres":
        where = database(request.getfixturevalue("postgres"))
    places = tmp_path / "places"
    places.mkdir()

    async def submit() -> None:
        runs = desk(places, RUNNING).runs(where)
        for at in range(RUNS):
            await runs.submit(f"Work {at}.", queue="bulk", tenant=f"tenant {at % 4}")
        store = open_store(where)
        assert isinstance(store, Backlog)
        await store.set_queues({"bulk": QueueLimits(running=RUNNING)})

    asyncio.run(submit())
    module = "tests.unit.workers.queue_process"
    command = [*warm_python(), "-m", module, where, str(places), str(RUNNING)]
    fleet = [subprocess.Popen(command) for _ in range(PROCESSES)]
    try:
        assert [process.wait(timeout=100) for process in fleet] == [0] * PROCESSES
    finally:
        for process in fleet:
            process.kill()
            process.wait()

    assert (places / "place-0").exists()
    assert not (places / "exceeded").exists()


async def test_a_worker_has_slots_for_each_of_its_queues() -> None:
    """A long line of one does not keep the other waiting; a third one is not its own."""
    store, under_way, peak = MemoryStore(), dict[str, int](), dict[str, int]()
    both = asyncio.Event()

    @tool
    async def work(queue: str) -> str:
        """Work."""
        under_way[queue] = under_way.get(queue, 0) + 1
        peak[queue] = max(peak.get(queue, 0), under_way[queue])
        if peak == {"bulk": 1, "default": 2}:
            both.set()
        await both.wait()
        under_way[queue] -= 1
        return "done"

    agents = list[Agent]()
    for queue in ("bulk", "default", "third"):
        call = {"calls": [{"name": "work", "arguments": {"queue": queue}}]}
        agents.append(Agent(ScriptedModel([call, "Done."], restart=True), tools=[work], name=queue))
        for at in range(5):
            await agents[-1].runs(store).submit("Work.", run_id=f"{queue}-{at}", queue=queue)
    queues = {"bulk": QueueLimits(slots=1), "default": QueueLimits(slots=2)}
    worker = Worker(agents, store, queues=queues, poll_s=0.001)
    serving = asyncio.create_task(worker.serve())
    while sum(one.status == "done" for one in await store.overview()) < 10:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    worker.stop()
    await serving

    assert peak == {"bulk": 1, "default": 2}
    assert {one.run_id[:5] for one in await store.overview() if one.status == "ready"} == {"third"}


@pytest.mark.parametrize(
    ("queues", "wrong"),
    [
        ({"bulk": QueueLimits(running=0)}, "queue 'bulk': running"),
        ({"bulk": QueueLimits(slots=-1)}, "queue 'bulk': slots"),
        ({"bulk": QueueLimits(weights={"acme": 0.0})}, r"weights\['acme'\]"),
    ],
)
def test_a_queue_that_holds_no_run_is_refused(
    queues: Mapping[str, QueueLimits], wrong: str
) -> None:
    """Its runs would wait for ever."""
    agent = Agent(ScriptedModel([WORKS]))
    with pytest.raises(ConfigError, match=wrong):
        Worker([agent], MemoryStore(), queues=queues)
