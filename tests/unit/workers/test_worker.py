"""A worker takes what waits for a driver, and nothing else; what it cannot drive stays whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, ToolContext, tool
from graphloop.errors import ConfigError
from graphloop.run import EndReason, Run
from graphloop.stores import Catalog, JsonlStore, MemoryStore, PostgresStore, SqliteStore, Store
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from graphloop.workers import Worker
from tests.postgres_server import database, set_clock

SAID = "Done."
PAYS = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}

Open = Callable[[], MemoryStore | SqliteStore | PostgresStore]


async def status_of(store: Catalog, run_id: str) -> str:
    (record,) = await store.overview(run_id)
    return record.status


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another task or process does; the test's time limit bounds it."""
    while not await done():  # noqa: ASYNC110 - another process may do it
        await asyncio.sleep(0.01)


async def served(worker: Worker, done: Callable[[], Awaitable[bool]]) -> None:
    """Let a worker serve until something is done, and stop it."""
    serving = asyncio.create_task(worker.serve())
    await until(done)
    worker.stop()
    await serving


def calls_of(name: str) -> dict[str, object]:
    """Return the scripted reply that calls a tool without arguments."""
    return {"calls": [{"name": name, "arguments": {}}]}


def reason_of(run: Run[Any]) -> EndReason | None:
    return None if run.ending is None else run.ending.reason


def replies(*texts: object) -> ScriptedModel:
    return ScriptedModel(list(texts), restart=True)


async def test_a_submitted_run_is_driven_to_its_end(shared: Open) -> None:
    """By whichever worker is free; the caller has only the id."""
    store = shared()
    agent = Agent(replies(SAID))
    run_ids = [await agent.runs(store).submit(f"Question {at}") for at in range(3)]
    assert [await status_of(store, each) for each in run_ids] == ["ready"] * 3

    async def done() -> bool:
        return {await status_of(store, each) for each in run_ids} == {"done"}

    await served(Worker([agent], shared(), poll_s=0.001), done)

    for at, run_id in enumerate(run_ids):
        run = await agent.runs(store).replay(run_id)
        assert run.messages[0] == UserMessage(f"Question {at}")
        assert run.ended


async def test_a_slot_that_is_free_is_filled_at_once(tmp_path: Path) -> None:
    """With a thousand runs and a hundred slots, each wait for the next look would be paid tenfold.

    The store tells of nothing here, and the worker looks once an hour.
    """
    store, ended = SqliteStore(tmp_path / "runs.db", durability="process"), list[object]()

    def note(step: object) -> None:
        ended.append(step)
        if len(ended) == 5:
            worker.stop()

    agent = Agent(replies(SAID), on_step_finish=note)
    for at in range(5):
        await agent.runs(store).submit(f"Question {at}")
    worker = Worker([agent], store, slots=2, poll_s=3600)

    async with asyncio.timeout(20):
        await worker.serve()

    assert [one.status for one in await store.overview()] == ["done"] * 5
    await store.aclose()


async def test_a_run_is_submitted_once(shared: Open) -> None:
    """A web server may repeat a request that failed; another question needs another id."""
    store, agent = shared(), Agent(replies(SAID))
    runs = agent.runs(store)

    assert await runs.submit("Pay.", run_id="order-7") == "order-7"
    assert await runs.submit("Pay.", run_id="order-7") == "order-7"
    assert len(await store.load("order-7")) == 1
    with pytest.raises(ConfigError, match="`run_id`: expected an id that"):
        await runs.submit("Pay twice.", run_id="order-7")


async def test_a_run_is_submitted_for_a_tenant(shared: Open, tmp_path: Path) -> None:
    """A repeated call counts once; a store without a line of runs would forget the tenant."""
    store, agent = shared(), Agent(replies(SAID))
    runs = agent.runs(store)
    await runs.submit("Go.", run_id="r1", tenant="acme")
    await runs.submit("Go.", run_id="r2", tenant="acme")
    await runs.submit("Go.", run_id="r3", tenant="other")
    await runs.submit("Go.", run_id="r4", tenant="other", priority=1)
    assert await runs.submit("Go.", run_id="r4", tenant="other", priority=1) == "r4"

    assert [*await store.ready({"agent"}, 9)] == ["r4", "r1", "r2", "r3"]
    for wrong in (101, -101):
        with pytest.raises(ConfigError, match=r"`priority`.*100"):
            await runs.submit("Go.", priority=wrong)
    with pytest.raises(ConfigError, match="`tenant`, `priority`, `deadline_s` and"):
        await agent.runs(JsonlStore(tmp_path)).submit("Go.", tenant="acme")


async def test_a_run_ends_at_its_deadline(shared: Open, tmp_path: Path) -> None:
    """Before it begins, or while it is driven: the tool would never end."""
    store = shared()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "never"

    agent = Agent(replies(calls_of("wait"), SAID), tools=[wait])
    await agent.runs(store).submit("Wait.", run_id="driven", deadline_s=0.3)
    await agent.runs(store).submit("Wait.", run_id="late", deadline_s=1e-9)

    async def done() -> bool:
        return {one.status for one in await store.overview()} == {"failed"}

    await served(Worker([agent], shared(), poll_s=0.001), done)

    driven, late = [await agent.runs(store).replay(each) for each in ("driven", "late")]
    assert [reason_of(driven), reason_of(late)] == [EndReason.TIMEOUT] * 2
    assert not late.spent.usage.total_tokens
    with pytest.raises(ConfigError, match="`deadline_s`: expected a positive number, found 0"):
        await agent.runs(store).submit("Pay.", deadline_s=0)
    with pytest.raises(ConfigError, match="`deadline_s` and `queue`: expected a store"):
        await agent.runs(JsonlStore(tmp_path)).submit("Pay.", deadline_s=1)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_parked_run_ends_at_its_deadline(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Also if its first worker is gone, and a person answers too late: the tool does not run."""
    now, paid = {"s": 1e9}, list[int]()
    memory = MemoryStore(clock=lambda: now["s"])
    dsn = database(request.getfixturevalue("postgres")) if kind == "postgres" else ""

    def opened() -> MemoryStore | SqliteStore | PostgresStore:
        if kind == "memory":
            return memory
        if kind == "postgres":
            set_clock(dsn, now["s"])
            return PostgresStore(dsn)
        return SqliteStore(tmp_path / "runs.db", clock=lambda: now["s"])

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    agent, store = Agent(replies(PAYS, SAID), tools=[pay]), opened()
    for run_id in ("r1", "r2"):
        await agent.runs(store).submit("Pay.", run_id=run_id, deadline_s=60)
        assert await Worker([agent], store).drive(run_id) == "parked"
    now["s"] += 59.0
    assert not await opened().ready({"agent"}, 9)
    now["s"] += 1.0
    store = opened()
    await agent.runs(store).approve("r2", "c0.0")

    for run_id in await store.ready({"agent"}, 9):
        assert await Worker([agent], store).drive(run_id) == "over"

    for run_id in ("r1", "r2"):
        run = await agent.runs(store).replay(run_id)
        assert (reason_of(run), await status_of(store, run_id)) == (EndReason.TIMEOUT, "failed")
    assert not paid


async def test_an_approval_wakes_the_run(shared: Open) -> None:
    """Given by another process, while no driver has the run; the tool runs once."""
    store, paid = shared(), list[int]()

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    agent = Agent(replies(PAYS, SAID), tools=[pay])
    run_id = await agent.runs(store).submit("Pay.")
    worker = Worker([agent], shared())
    assert await worker.drive(run_id) == "parked"
    assert await store.ready({"agent"}, 9) == type(await store.ready({"agent"}, 9))()

    await agent.runs(shared()).approve(run_id, "c0.0")

    assert [*await store.ready({"agent"}, 9)] == [run_id]
    assert await worker.drive(run_id) == "over"
    assert (paid, await status_of(store, run_id)) == ([5], "done")


async def test_a_run_that_the_code_does_not_fit_is_blocked_and_not_failed(shared: Open) -> None:
    """A worker with the run's own code takes it up again."""
    store = shared()

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    old, new = Agent(replies(PAYS, SAID), tools=[pay]), Agent(replies(SAID))
    run_id = await old.runs(store).submit("Pay.")
    assert await Worker([old], store).drive(run_id) == "parked"
    await old.runs(store).approve(run_id, "c0.0")

    assert await Worker([new], shared()).drive(run_id) == "blocked"
    assert await status_of(store, run_id) == "blocked"
    assert not await store.ready({"agent"}, 9)

    async def done() -> bool:
        return await status_of(store, run_id) == "done"

    await served(Worker([old], shared(), poll_s=0.001), done)


async def test_a_run_of_another_driver_is_left_alone(shared: Open) -> None:
    """Two workers may see the same run; one drives it."""
    store, agent = shared(), Agent(replies(SAID))
    run_id = await agent.runs(store).submit("Go.")
    await store.claim(run_id)

    assert await Worker([agent], shared()).drive(run_id) == "again"

    await store.release(run_id, "interrupted", ())
    assert await Worker([agent], shared()).drive(run_id) == "over"


async def test_each_run_gets_deps_of_its_own(shared: Open) -> None:
    """They are no part of the journal, so the worker makes them."""
    seen: list[str] = []

    @tool
    def look(context: ToolContext[str]) -> str:
        """Look."""
        seen.append(context.deps)
        return "seen"

    agent = Agent(replies(calls_of("look"), SAID), tools=[look], deps_type=str)
    store = shared()
    with pytest.raises(ConfigError, match=r"`deps` of 'agent': expected str.* or to its worker"):
        Worker([agent], store)
    run_id = await agent.runs(store).submit("Look.", run_id="r1", deps="here")

    assert await Worker([agent], store, deps=lambda each: f"deps of {each}").drive(run_id) == "over"
    assert seen == ["deps of r1"]


@pytest.mark.parametrize(
    ("agents", "options", "message"),
    [
        ([], {}, "expected at least one agent"),
        ([Agent(replies(SAID)), Agent(replies(SAID))], {}, "found two called 'agent'"),
        ([Agent(replies(SAID))], {"slots": 0}, "slots: expected a positive number, found 0"),
        ([Agent(replies(SAID))], {"poll_s": -1}, "poll_s: expected a positive number"),
    ],
)
def test_a_worker_that_could_do_nothing_is_refused(
    agents: Sequence[Agent[Any, Any]], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Worker(agents, MemoryStore(), **options)


def test_a_store_that_no_worker_can_share_is_refused(tmp_path: Path) -> None:
    """JSON lines have no place for a status."""
    store: Store = JsonlStore(tmp_path)

    with pytest.raises(ConfigError, match=r"found <JsonlStore.*'runs\.db'"):
        Worker([Agent(replies(SAID))], store)
