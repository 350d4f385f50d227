"""The contract of engines: what each of them brings about, whichever decides who drives a run.

`Pull` is the reference: what it does is what the others have to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from graphloop import Agent, Tool, ToolContext, tool
from graphloop.engines import Dbos, Engine, Legs, Pull, TemporalIo
from graphloop.errors import Overloaded
from graphloop.policy import ask
from graphloop.stores import PostgresStore, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.workers import Client, Worker
from tests.postgres_server import database
from tests.sizes import sized
from tests.temporal_server import namespace

SAID = "Done."
RUNS = sized(10, 100)
PAYS = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}

Shared: TypeAlias = SqliteStore | PostgresStore
Done: TypeAlias = Callable[[], Awaitable[bool]]


class Scene:
    """A store that several processes could open, and the engine of its workers."""

    def __init__(self, opened: Callable[[], Shared], engine: Callable[[Legs], Engine]) -> None:
        self._opened: list[Shared] = []
        self._open = opened
        self.engine = engine
        self.store = self.opened()

    def opened(self) -> Shared:
        """Open the store as another process would."""
        self._opened.append(self._open())
        return self._opened[-1]

    def worker(self, *agents: Agent[Any, Any], slots: int = 100, pinned: bool = False) -> Worker:
        return Worker(
            agents, self.opened(), engine=self.engine, slots=slots, poll_s=0.01, pinned=pinned
        )

    async def statuses(self) -> list[str]:
        """Return the status of each run that has no parent."""
        return [one.status for one in await self.store.overview() if not one.parent]

    async def all_done(self) -> bool:
        return {*await self.statuses()} == {"done"}

    async def parked(self) -> bool:
        return "parked" in await self.statuses()

    async def close(self) -> None:
        for store in self._opened:
            await store.aclose()


@pytest.fixture(
    params=[
        "pull on sqlite",
        "pull on postgres",
        "dbos",
        "temporal on sqlite",
        "temporal on postgres",
    ]
)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """Return each engine on each store that it works with."""
    name, _, kind = request.param.partition(" on ")
    engine: Callable[[Legs], Engine] = Pull
    if name == "temporal":
        server = request.getfixturevalue("temporal")
        engine = partial(TemporalIo, address=server, namespace=namespace(server))
    if kind == "sqlite":
        return Scene(lambda: SqliteStore(tmp_path / "runs.db", durability="process"), engine)
    if name == "dbos":
        dsn = request.getfixturevalue("used_by_dbos")
        return Scene(lambda: PostgresStore(dsn), Dbos)
    dsn = database(request.getfixturevalue("postgres"))
    return Scene(lambda: PostgresStore(dsn), engine)


@asynccontextmanager
async def serving(worker: Worker, grace_s: float = 30.0) -> AsyncGenerator[asyncio.Task[None]]:
    """Let a worker serve, and stop it at the end."""
    task = asyncio.create_task(worker.serve(grace_s=grace_s))
    try:
        yield task
    finally:
        worker.stop()
        await task


async def served(worker: Worker, done: Done) -> None:
    """Let a worker serve until something is done."""
    async with serving(worker) as task:
        while not await done() and not task.done():  # noqa: ASYNC110 - another task does it
            await asyncio.sleep(0.01)


async def has(scene: Scene, status: str, *run_ids: str) -> bool:
    """Whether each of these runs has a status."""
    return {(await scene.store.record(run_id)).status for run_id in run_ids} == {status}


def calls_of(*names: str) -> dict[str, object]:
    """Return the scripted reply that calls tools without arguments."""
    return {"calls": [{"name": name, "arguments": {}} for name in names]}


def replies(*texts: object) -> ScriptedModel:
    return ScriptedModel(list(texts), restart=True)


class Desk:
    """An agent whose tool needs an approval, and the amounts that it has paid."""

    def __init__(self, *, asks: int = 1, **options: Any) -> None:
        self.paid = list[int]()
        self.agent = Agent(
            replies(*[PAYS] * asks, SAID), tools=[self.tool()], gate=ask("pay", **options)
        )

    def tool(self) -> Tool[..., object]:
        @tool(effect="at_most_once")
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        return pay


async def test_a_run_that_was_submitted_before_is_driven(scene: Scene) -> None:
    """The web server was up before the first worker."""
    agent = Agent(replies(SAID))
    for at in range(5):
        await agent.runs(scene.store).submit(f"Question {at}")

    await served(scene.worker(agent), scene.all_done)

    assert await scene.statuses() == ["done"] * 5
    await scene.close()


async def test_a_run_that_is_submitted_later_is_driven(scene: Scene) -> None:
    """The worker is there, and has had nothing to do."""
    agent = Agent(replies(SAID))
    await agent.runs(scene.store).submit("First")

    async def done() -> bool:
        if await scene.statuses() == ["done"]:
            await agent.runs(scene.store).submit("Second")
        return await scene.statuses() == ["done", "done"]

    await served(scene.worker(agent), done)
    await scene.close()


async def test_a_run_that_waits_for_people_ends_at_its_deadline(scene: Scene) -> None:
    """No leg waits for it meanwhile, so the engine has to come back to it by time."""
    desk = Desk()
    await desk.agent.runs(scene.store).submit("Pay.", deadline_s=0.5)

    async def done() -> bool:
        return await scene.statuses() == ["failed"]

    await served(scene.worker(desk.agent), done)
    assert not desk.paid
    await scene.close()


async def test_an_answer_wakes_a_run_that_waits_for_people(scene: Scene) -> None:
    """Each answer does, given by a program that knows no engine; each call runs once."""
    desk, client = Desk(asks=3), Client(scene.store)
    run_id = await desk.agent.runs(scene.store).submit("Pay.")

    async def done() -> bool:
        for record in await scene.store.overview():
            if record.status == "parked":
                for each in record.asks:
                    await client.approve(run_id, each.key)
        return await scene.all_done()

    await served(scene.worker(desk.agent), done)

    assert desk.paid == [5, 5, 5]
    await scene.close()


async def test_answers_that_came_while_no_worker_lived_are_acted_on(scene: Scene) -> None:
    """All of them, each once."""
    desk, client = Desk(), Client(scene.store)
    run_ids = [await desk.agent.runs(scene.store).submit("Pay.") for _ in range(RUNS)]

    async def parked() -> bool:
        return {*await scene.statuses()} == {"parked"}

    await served(scene.worker(desk.agent), parked)
    for run_id in run_ids:
        await client.approve(run_id, "c0.0")
    await served(scene.worker(desk.agent), scene.all_done)

    assert desk.paid == [5] * RUNS
    await scene.close()


async def test_a_question_that_nobody_answered_in_time_is_denied(scene: Scene) -> None:
    """A run must not wait for ever for a person who has left."""
    desk = Desk(ttl_s=1e-9)
    run_id = await desk.agent.runs(scene.store).submit("Pay.")

    await served(scene.worker(desk.agent), scene.all_done)

    run = await desk.agent.runs(scene.store).replay(run_id)
    (result,) = run.record.steps[0].tool_results
    assert (result.status, desk.paid) == ("denied", [])
    await scene.close()


async def test_a_failure_that_may_pass_is_tried_again(scene: Scene) -> None:
    """The run is interrupted meanwhile, not failed."""
    model = ScriptedModel([Overloaded("busy"), Overloaded("busy"), SAID])
    agent = Agent(model)
    await agent.runs(scene.store).submit("Go.")

    await served(scene.worker(agent), scene.all_done)
    await scene.close()


async def test_a_run_that_the_code_does_not_fit_waits_for_code_that_fits(scene: Scene) -> None:
    """It is blocked, not failed; each of them is tried, however few slots there are."""
    desk, client = Desk(), Client(scene.store)
    new = Agent(replies(SAID))
    run_ids = [await desk.agent.runs(scene.store).submit("Pay.") for _ in range(3)]

    async def all_are(status: str) -> bool:
        return {*await scene.statuses()} == {status}

    await served(scene.worker(desk.agent), lambda: all_are("parked"))
    for run_id in run_ids:
        await client.approve(run_id, "c0.0")
    await served(scene.worker(new), lambda: all_are("blocked"))
    await served(scene.worker(desk.agent, slots=1), scene.all_done)

    assert desk.paid == [5, 5, 5]
    await scene.close()


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "before pins"])
async def test_a_pinned_worker_takes_no_run_that_other_code_began(
    scene: Scene, pinned: bool
) -> None:
    """Its code would go on with them; it takes new runs, and the others wait for their code."""
    desk, client = Desk(), Client(scene.store)
    new = desk.agent.with_options(instructions="Be brief.")
    run_ids = [await desk.agent.runs(scene.store).submit("Pay.") for _ in range(3)]

    await served(scene.worker(desk.agent, pinned=pinned), lambda: has(scene, "parked", *run_ids))
    for run_id in run_ids:
        await client.approve(run_id, "c0.0")
    await new.runs(scene.store).submit("Pay.", run_id="new")
    await served(scene.worker(new, pinned=True), lambda: has(scene, "parked", "new"))
    assert await has(scene, "ready", *run_ids)
    await client.cancel("new")
    await served(scene.worker(new, pinned=True), lambda: has(scene, "cancelled", "new"))
    await served(scene.worker(desk.agent, pinned=True), lambda: has(scene, "done", *run_ids))

    assert desk.paid == [5, 5, 5]
    assert (await scene.store.record("new")).revision == new.revision
    await scene.close()


async def test_at_most_slots_runs_are_driven_at_once(scene: Scene) -> None:
    """The others wait, and each has its turn."""
    now, most = list[int](), list[int]()

    @tool
    async def work() -> str:
        """Work."""
        now.append(1)
        most.append(len(now))
        await asyncio.sleep(0)
        now.pop()
        return "worked"

    agent = Agent(replies(calls_of("work"), SAID), tools=[work])
    for _ in range(7):
        await agent.runs(scene.store).submit("Go.")

    await served(scene.worker(agent, slots=2), scene.all_done)

    assert max(most) <= 2
    assert len(most) == 7
    await scene.close()


async def test_what_was_begun_goes_before_what_is_new(scene: Scene) -> None:
    """First what a dead worker had, then what got its answer, then what was submitted."""
    client, order = Client(scene.store), list[str]()

    @tool(needs_approval=True)
    def pay(amount: int, context: ToolContext) -> str:
        """Pay."""
        order.append(context.run_id)
        return f"paid {amount}"

    agent = Agent(replies(PAYS, SAID), tools=[pay])
    runs = agent.runs(scene.store)
    for run_id in ("answered", "orphaned"):
        await runs.submit("Go.", run_id=run_id)

    async def parked() -> bool:
        return {*await scene.statuses()} == {"parked"}

    await served(scene.worker(agent), parked)
    await runs.submit("Go.", run_id="new")
    for run_id in ("answered", "orphaned"):
        await client.approve(run_id, "c0.0")
    other = scene.opened()
    await other.claim("orphaned")
    await other.aclose()

    await served(scene.worker(agent, slots=1), scene.parked)

    assert order == ["orphaned", "answered"]
    await scene.close()


async def test_a_run_of_a_worker_that_died_is_driven(scene: Scene) -> None:
    """Its store is gone without a release, as after a kill."""
    agent = Agent(replies(SAID))
    await agent.runs(scene.store).submit("Go.", run_id="r")
    dead = scene.opened()
    await dead.claim("r")
    await dead.aclose()

    await served(scene.worker(agent), scene.all_done)
    await scene.close()


async def test_a_run_of_another_driver_is_left_alone_until_its_release(scene: Scene) -> None:
    """A person drives it from a terminal, say; then the worker goes on."""
    agent, other, told = Agent(replies(SAID)), scene.opened(), asyncio.Event()
    await agent.runs(scene.store).submit("First.", run_id="theirs")
    await other.claim("theirs")
    await agent.runs(scene.store).submit("Second.", run_id="free")

    async def done() -> bool:
        if await scene.statuses() == ["running", "done"] and not told.is_set():
            told.set()
            await other.release("theirs", "interrupted", ())
        return await scene.all_done()

    await served(scene.worker(agent), done)

    assert told.is_set()
    await scene.close()


async def test_the_runs_of_other_agents_are_left_alone(scene: Scene) -> None:
    """Another worker has their code."""
    mine, theirs = Agent(replies(SAID), name="mine"), Agent(replies(SAID), name="theirs")
    await theirs.runs(scene.store).submit("Go.")
    await mine.runs(scene.store).submit("Go.")

    async def done() -> bool:
        return "done" in await scene.statuses()

    await served(scene.worker(mine), done)

    assert await scene.statuses() == ["ready", "done"]
    await scene.close()


async def test_a_worker_drives_the_runs_of_all_its_agents(scene: Scene) -> None:
    """Names may have any characters."""
    first, second = Agent(replies(SAID), name="it's"), Agent(replies(SAID), name='a "name": %s')
    for agent in (first, second, first):
        await agent.runs(scene.store).submit("Go.")

    await served(scene.worker(first, second), scene.all_done)
    await scene.close()


async def test_a_child_run_is_driven_with_its_root(scene: Scene) -> None:
    """An engine hands out roots only."""
    helper = Agent(replies(SAID), name="helper")
    call = {"calls": [{"name": "helper", "arguments": {"prompt": "Help."}}]}
    agent = Agent(replies(call, SAID), tools=[helper.as_tool(name="helper", description="Helps.")])
    await agent.runs(scene.store).submit("Go.")

    await served(scene.worker(agent, helper), scene.all_done)

    assert [one.status for one in await scene.store.overview()] == ["done", "done"]
    await scene.close()


class Waiting:
    """An agent whose tool waits for ever at its first call."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        never = asyncio.Event()

        @tool(effect="idempotent")
        async def wait() -> str:
            """Wait."""
            if not self.begun.is_set():
                self.begun.set()
                await never.wait()
            return "waited"

        self.agent = Agent(replies(calls_of("wait"), SAID), tools=[wait])


async def test_a_child_run_that_is_placed_anywhere_is_driven(scene: Scene) -> None:
    """By the workers of its root's agent: none has an agent of the child's name."""
    scout = Agent(replies("Sunny."), name="scout")
    call = {"calls": [{"name": "scout", "arguments": {"prompt": "Porto"}}]}
    guide = Agent(replies(call, SAID), name="guide", tools=[scout.as_tool(place="anywhere")])
    await guide.runs(scene.store).submit("Where to?")

    await served(scene.worker(guide, slots=1), scene.all_done)

    assert [one.status for one in await scene.store.overview()] == ["done", "done"]
    await scene.close()


async def test_what_is_under_way_is_left_when_the_worker_stops(scene: Scene) -> None:
    """After its time of grace; another worker goes on."""
    waiting = Waiting()
    await waiting.agent.runs(scene.store).submit("Go.")
    async with serving(scene.worker(waiting.agent), grace_s=0.001):
        await waiting.begun.wait()

    assert await scene.statuses() == ["interrupted"]
    await served(scene.worker(waiting.agent), scene.all_done)
    await scene.close()


async def test_a_worker_that_stops_takes_no_more_runs(scene: Scene) -> None:
    """Those under way have the time of grace."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await goes_on.wait()
        return "waited"

    agent = Agent(replies(calls_of("wait"), SAID), tools=[wait])
    await agent.runs(scene.store).submit("Go.", run_id="first")
    async with serving(worker := scene.worker(agent)) as task:
        await begun.wait()
        worker.stop()
        await agent.runs(scene.store).submit("Go.", run_id="second")
        goes_on.set()
        await task

    assert await scene.statuses() == ["done", "ready"]
    await scene.close()


async def test_a_command_reaches_a_run_under_way(scene: Scene) -> None:
    """The worker tells it, whichever engine started the leg."""
    waiting, client = Waiting(), Client(scene.store)
    run_id = await waiting.agent.runs(scene.store).submit("Go.")
    async with serving(scene.worker(waiting.agent)):
        await waiting.begun.wait()
        await client.cancel(run_id, "enough")
        ended = await client.result(run_id)

    assert ended.status == "cancelled"
    await scene.close()


async def test_a_leg_that_is_handed_out_twice_is_one(scene: Scene) -> None:
    """At least once is enough: in a process it is the same leg, and the store refuses another."""
    agent, client = Agent(replies(SAID)), Client(scene.store)
    run_id = await agent.runs(scene.store).submit("Go.")
    first, second = scene.worker(agent), scene.worker(agent)

    driven = await asyncio.gather(first.drive(run_id), second.drive(run_id))
    after = await first.drive(run_id)

    assert "over" in driven
    assert after == "over"
    assert (await client.result(run_id)).text == SAID
    kinds = [type(event).__name__ for event in await scene.store.load(run_id)]
    assert kinds.count("ModelReplied") == 1
    await scene.close()
