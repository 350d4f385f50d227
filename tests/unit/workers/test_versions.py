"""A deploy in mid-run: code that fits goes on, other code blocks the run, and no run fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import pytest

from graphloop import Agent, tool
from graphloop.agent.options import AgentOptions
from graphloop.events import Resumed
from graphloop.stores import MemoryStore, PostgresStore, RunRecord, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.workers import Client, Worker
from tests.postgres_server import database

RUNS = 4
PAYS = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}

Open = Callable[[], SqliteStore | PostgresStore]


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a way to open the same store, as another process would."""
    if request.param == "postgres":
        dsn = database(request.getfixturevalue("postgres"))
        return lambda: PostgresStore(dsn)
    return lambda: SqliteStore(tmp_path / "runs.db", durability="process")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def is_good(_: object) -> bool:
    """Accept each answer."""
    return True


async def unchanged(_: object) -> None:
    """Prepare nothing, in an event of its own."""


def code(**options: Unpack[AgentOptions[None]]) -> Agent:
    """Return the agent as a version of the code makes it."""
    options.setdefault("tools", [pay])
    return Agent(ScriptedModel([PAYS, "Done."], restart=True), **options)


async def parked(shared: Open) -> Sequence[str]:
    """Let the old code drive some runs until they ask, and answer them."""
    store, old = shared(), code()
    run_ids = [await old.runs(store).submit("Pay.", run_id=f"run-{at}") for at in range(RUNS)]
    worker = Worker([old], store)
    for run_id in run_ids:
        assert await worker.drive(run_id) == "parked"
        await old.runs(store).approve(run_id, "c0.0")
    await store.aclose()
    return run_ids


async def records_of(store: SqliteStore | PostgresStore, run_ids: Sequence[str]) -> list[RunRecord]:
    return [await store.record(run_id) for run_id in run_ids]


async def served(workers: Sequence[Worker], done: Callable[[], Awaitable[bool]]) -> None:
    """Let workers serve side by side until something is done, and stop them."""
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.serve())
        while not await done():  # noqa: ASYNC110 - other tasks do it
            await asyncio.sleep(0.01)
        for worker in workers:
            worker.stop()


async def rest(shared: Open, run_ids: Sequence[str], *agents: Agent) -> Mapping[str, int]:
    """Deploy these versions, each in a worker, and count the statuses when all runs rest."""
    store = shared()

    async def done() -> bool:
        found = await records_of(store, run_ids)
        return all(one.status in ("done", "failed", "cancelled", "blocked") for one in found)

    await served([Worker([agent], shared(), poll_s=0.001) for agent in agents], done)
    return Counter([one.status for one in await records_of(store, run_ids)])


def told(events: Sequence[object]) -> list[str]:
    return [event.revision for event in events if isinstance(event, Resumed)]


async def test_a_run_that_no_worker_begins_tells_its_code(shared: Open) -> None:
    """A pinned worker of other code must not take it, and `runs` shows which code began it."""
    store, agent = shared(), code(store=shared())

    run = await agent.generate("Pay.", max_steps=3)

    assert (await store.record(run.run_id)).revision == agent.revision
    assert (await agent.resume(run.run_id, approvals={"c0.0": True})).text == "Done."
    assert told(await store.load(run.run_id)) == [""]


async def test_the_same_code_goes_on(shared: Open) -> None:
    """Another process makes the agent anew: its revision is the same, and is told once."""
    run_ids = await parked(shared)

    assert await rest(shared, run_ids, code()) == {"done": RUNS}
    assert told(await shared().load("run-0")) == [code().revision, ""]


@pytest.mark.parametrize(
    "options", [{"instructions": "Be brief."}, {"verify": is_good}, {"max_steps": 9}]
)
async def test_other_code_that_folds_goes_on_and_is_told(
    shared: Open, options: AgentOptions[None]
) -> None:
    """The journal says from which event on the new code has driven the run."""
    run_ids, new = await parked(shared), code(**options)

    assert await rest(shared, run_ids, new) == {"done": RUNS}
    assert told(await shared().load("run-0")) == [code().revision, new.revision]
    assert new.revision != code().revision


@pytest.mark.parametrize(
    ("options", "event", "reason"),
    [({"prepare_step": unchanged}, 3, "event 3"), ({"tools": []}, 1, "'pay'")],
    ids=["graph", "tool"],
)
async def test_code_that_does_not_fit_blocks_and_the_old_code_goes_on(
    shared: Open, options: AgentOptions[None], event: int, reason: str
) -> None:
    """The store tells why, and which event is the first that does not fit."""
    run_ids, new = await parked(shared), code(**options)

    assert await rest(shared, run_ids, new) == {"blocked": RUNS}
    async with Client(shared()) as client:
        async for record in client.runs(status="blocked"):
            (refusal,) = record.refusals
            assert (refusal.revision, refusal.event) == (new.revision, event)
            assert reason in refusal.reason
    survey = await shared().survey()
    assert reason in survey.blocked["run-0"]

    store = shared()

    async def done() -> bool:
        return {one.status for one in await records_of(store, run_ids)} == {"done"}

    await served([Worker([new], shared()), Worker([code()], shared(), poll_s=0.001)], done)


async def test_a_rolling_deploy_of_code_that_does_not_fit_ends_each_run(shared: Open) -> None:
    """Old and new workers are there at once: what the new ones block, the old ones take."""
    run_ids = await parked(shared)
    store, new, other = shared(), code(tools=[]), code(prepare_step=unchanged)

    async def done() -> bool:
        return {one.status for one in await records_of(store, run_ids)} == {"done"}

    agents = (new, other, code(), new)
    await served([Worker([agent], shared(), slots=1, poll_s=0.001) for agent in agents], done)


@pytest.mark.parametrize(
    "options",
    [{}, {"instructions": "Be brief."}, {"prepare_step": unchanged}, {"tools": []}],
    ids=["same", "foldable", "unfoldable", "tool gone"],
)
async def test_a_pinned_fleet_ends_each_run_with_the_code_that_began_it(
    shared: Open, options: AgentOptions[None]
) -> None:
    """Old and new workers are there at once, and no run is tried by code that may not fit."""
    run_ids, new = await parked(shared), code(**options)
    store = shared()
    begun = await new.runs(store).submit("Pay.", run_id="new")

    async def done() -> bool:
        return {one.status for one in await records_of(store, run_ids)} == {"done"}

    async def has_begun() -> bool:  # Without its tool, the new run does not park.
        return (await store.record(begun)).status in ("parked", "done")

    agents = (new, code(), new)
    workers = [Worker([each], shared(), poll_s=0.001, pinned=True) for each in agents]
    await served(workers[:1], has_begun)
    assert bool(options) == ({one.status for one in await records_of(store, run_ids)} == {"ready"})
    workers[0] = Worker([new], shared(), poll_s=0.001, pinned=True)
    await served(workers, done)

    for run_id in run_ids:
        assert told(await store.load(run_id))[0] == code().revision
        assert not set(told(await store.load(run_id))[1:]) - {""}
        assert (await store.record(run_id)).revision == code().revision
    assert (await store.record(begun)).revision == new.revision


async def test_a_worker_that_starts_tries_a_blocked_run_again(shared: Open) -> None:
    """Code within a function was mended: the revision is the same, and the code fits."""
    run_ids, new = await parked(shared), code(tools=[])
    assert await rest(shared, run_ids, new) == {"blocked": RUNS}
    store, tried = shared(), set[float]()
    before = {one.updated_at for one in await records_of(store, run_ids)}

    async def done() -> bool:
        tried.update([one.updated_at for one in await records_of(store, run_ids)])
        return len(tried - before) >= RUNS

    await served([Worker([new], shared(), poll_s=0.001)], done)


async def test_a_run_that_another_worker_took_further_is_not_blocked() -> None:
    """The old code ended it while the new code found that it does not fit."""
    store, old, new = MemoryStore(), code(), code(tools=[])
    run_id = await old.runs(store).submit("Pay.")
    assert await Worker([old], store).drive(run_id) == "parked"
    await old.runs(store).approve(run_id, "c0.0")
    read = store.load
    worker = Worker([new], store)

    async def overtaken(run_id: str) -> Any:
        events = await read(run_id)
        store.load = read  # type: ignore[method-assign]
        assert await Worker([old], store).drive(run_id) == "over"
        return events

    store.load = overtaken  # type: ignore[method-assign]

    assert await worker.drive(run_id) == "again"
    assert (await store.record(run_id)).status == "done"
