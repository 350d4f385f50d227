"""A worker drives child runs of others' runs: with the same results as beside their parents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from graphloop import END, Agent, Graph, ToolContext, tool
from graphloop.effects import Place
from graphloop.errors import ConfigError
from graphloop.events import Started
from graphloop.graph import Edges
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Branch, Child, MapOver, Parallel
from graphloop.outcomes import Answered, Outcome
from graphloop.own_nodes import sub_graph
from graphloop.policy import ask
from graphloop.run import Run
from graphloop.stores import MemoryStore, PostgresStore, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import Message, Usage
from graphloop.workers import Client, Worker
from tests.planned_model import Line, PlannedModel, call
from tests.strategies import wrong

Shared = MemoryStore | SqliteStore | PostgresStore
Open = Callable[[], Shared]
DRIVEN_MAX = 60


PLAN: Mapping[str, list[Line]] = {
    "go": [
        [call("helper", prompt="one"), call("note", text="a"), call("helper", prompt="two")],
        "All is done.",
    ],
    "one": [[call("note", text="b")], "One is done."],
    "two": [[call("note", text="c"), call("note", text="d")], "Two is done."],
}


def family(place: Place, done: list[str]) -> Agent:
    """Return an agent whose helper may be driven elsewhere; their tool writes into `done`."""

    @tool
    def note(text: str, context: ToolContext) -> str:
        """Note a text."""
        done.append(f"{context.run_id} {text}")
        return f"{text} is noted"

    helper = Agent(PlannedModel(PLAN.__getitem__, "helping"), tools=[note])
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
    result = await alone.generate("go", run_id="r")
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
    agent = family("here", [])
    await agent.runs(store).submit("go", run_id="r")

    assert await taken(Worker([agent], store), store) == ["r"]


def three_floors() -> Agent:
    """Return a root whose child is beside it, and whose grandchild may be elsewhere."""
    plan: Mapping[str, list[Line]] = {
        "go": [[call("middle", prompt="mid")], "All is done."],
        "mid": [[call("helper", prompt="one")], "Mid is done."],
        "one": [[call("pay", amount=5)], "One is done."],
    }

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    lowest = Agent(PlannedModel(plan.__getitem__), tools=[pay], gate=ask("pay"))
    helper = lowest.as_tool(name="helper", description="Helps.", place="anywhere")
    middle = Agent(PlannedModel(plan.__getitem__), tools=[helper])
    return Agent(
        PlannedModel(plan.__getitem__),
        tools=[middle.as_tool(name="middle", description="Leads.")],
        name="boss",
    )


async def test_a_question_of_a_child_is_answered_through_its_root(shared: Open) -> None:
    """The root shows it, as it shows those of children beside it; the answer finds the child."""
    store = shared()
    agent = three_floors()
    await agent.runs(store).submit("go", run_id="r")
    worker = Worker([agent], store)

    before = await taken(worker, store)
    (asked,) = (await store.record("r")).asks
    said = await Client(store).approve("r", asked.key, True)
    after = await taken(worker, store)

    assert asked.key == "c0.0/c0.0/c0.0"
    assert before == ["r", "r/c0.0/c0.0", "r"]
    assert said == "accepted"
    assert after == ["r", "r/c0.0/c0.0", "r"]
    assert {one.status for one in await store.overview()} == {"done"}
    results = [one.text for one in (await run_of(agent, store, "r")).record.steps[0].tool_results]
    assert results == ["Mid is done."]


async def test_an_expired_question_of_a_child_is_denied(shared: Open) -> None:
    """By the child's worker or by the root's, whichever comes first."""
    store = shared()

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    plan: Mapping[str, list[Line]] = {
        "go": [[call("helper", prompt="one")], "All is done."],
        "one": [[call("pay", amount=5)], "One is done."],
    }
    helper = Agent(
        PlannedModel(plan.__getitem__), tools=[pay], gate=ask("pay"), approval_ttl_s=1e-9
    )
    agent = Agent(
        PlannedModel(plan.__getitem__),
        tools=[helper.as_tool(name="helper", description="Helps.", place="anywhere")],
        name="boss",
    )
    await agent.runs(store).submit("go", run_id="r")

    await taken(Worker([agent], store), store)

    child = [type(one).__name__ for one in await store.load("r/c0.0")]
    assert child.count("Decided") == 1
    assert {one.status for one in await store.overview()} == {"done"}


class Waiting:
    """A tool that waits for ever, and tells when it waits and when it was stopped."""

    def __init__(self) -> None:
        self.waits, self.was_stopped = asyncio.Event(), False

    async def __call__(self) -> str:
        """Wait."""
        self.waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.was_stopped = True
        return "never"


def with_a_waiting_child(waiting: Waiting) -> Agent:
    plan: Mapping[str, list[Line]] = {
        "go": [[call("helper", prompt="one"), call("helper", prompt="two")], "All is done."],
        "one": [[call("wait")], "One is done."],
        "two": ["Two is done."],
    }

    @tool
    async def wait() -> str:
        """Wait."""
        return await waiting()

    helper = Agent(PlannedModel(plan.__getitem__), tools=[wait])
    return Agent(
        PlannedModel(plan.__getitem__),
        tools=[helper.as_tool(name="helper", description="Helps.", place="anywhere")],
        name="boss",
    )


async def test_a_cancelled_root_ends_its_children_and_counts_them(shared: Open) -> None:
    """Also a child that another worker drives at that moment: its spending is the root's."""
    waiting, stores = Waiting(), (shared(), shared())
    agent, store = with_a_waiting_child(waiting), shared()
    await agent.runs(store).submit("go", run_id="r")
    workers = [Worker([agent], one, slots=1, poll_s=0.01) for one in stores]
    serving = [asyncio.create_task(one.serve()) for one in workers]

    await waiting.waits.wait()
    await Client(store, poll_s=0.01).result("r/c0.1")  # The other child has ended.
    await Client(store).cancel("r", "enough")
    ended = await Client(store, poll_s=0.01).result("r")
    for worker in workers:
        worker.stop()
    await asyncio.gather(*serving)

    run = await run_of(agent, store, "r")
    assert ended.status == "cancelled"
    assert waiting.was_stopped
    told = {one.run_id: one.status for one in await store.overview()}
    assert told == {"r": "cancelled", "r/c0.0": "cancelled", "r/c0.1": "done"}
    assert run.spent.usage.input_tokens == 3 * 10


async def test_a_cancelled_root_is_over_after_its_children(shared: Open) -> None:
    """Whatever they still spend is the root's; so it waits until each of them has ended."""
    store, agent = shared(), family("anywhere", [])
    await agent.runs(store).submit("go", run_id="r")
    worker = Worker([agent], store)
    assert await worker.drive("r") == "parked"
    await Client(store).cancel("r", "enough")

    assert await worker.drive("r") != "over"
    assert (await store.record("r")).status != "cancelled"

    assert {*await taken(worker, store)} == {"r", "r/c0.0", "r/c0.2"}
    assert {one.status for one in await store.overview()} == {"cancelled"}


async def test_a_root_that_waits_for_a_child_survives_its_worker(shared: Open) -> None:
    """And a worker that dies with the child leaves it to another."""
    waiting, store = Waiting(), shared()
    agent = with_a_waiting_child(waiting)
    await agent.runs(store).submit("go", run_id="r")
    first = Worker([agent], shared(), slots=1, poll_s=0.01)
    serving = asyncio.create_task(first.serve())

    await waiting.waits.wait()
    first.stop()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await Client(store).cancel("r", "enough")
    await taken(Worker([agent], store), store)

    assert {one.status for one in await store.overview()} <= {"cancelled", "done"}
    assert waiting.was_stopped


async def test_a_child_is_told_that_its_root_was_ended_elsewhere() -> None:
    """By a process without workers, while a worker had the child."""
    store = MemoryStore()
    agent = three_floors()
    await agent.runs(store).submit("go", run_id="r")
    worker = Worker([agent], store)
    await worker.drive("r")
    await store.claim("r/c0.0/c0.0")
    await agent.runs(store).cancel("r", "enough")
    await store.release("r/c0.0/c0.0", "interrupted", ())

    driven = await taken(worker, store)

    assert driven == ["r/c0.0/c0.0"]
    assert {one.status for one in await store.overview()} == {"cancelled"}


async def test_a_child_that_is_not_awaited_any_more_is_ended() -> None:
    """A driver that had lost its claim has begun it late, after the end of its root."""
    late, store = MemoryStore(), MemoryStore()
    agent, child = three_floors(), "r/c0.0/c0.0"
    await agent.runs(late).submit("go", run_id="r")
    await Worker([agent], late).drive("r")
    for run_id in ("r", "r/c0.0"):
        await store.append(run_id, 1, *await late.load(run_id))
    await agent.runs(store).cancel("r", "enough")
    await store.append(child, 1, *await late.load(child))
    await store.place(child)

    assert await taken(Worker([agent], store), store) == [child]
    assert {one.status for one in await store.overview()} == {"cancelled"}


async def test_a_child_without_a_start_is_blocked() -> None:
    """Nothing tells what it may do."""
    store = MemoryStore()
    agent = three_floors()
    await agent.runs(store).submit("go", run_id="r")
    started = (await store.load("r"))[0]
    assert isinstance(started, Started)
    await store.append("r/c9.9", 1, started)
    await store.place("r/c9.9")

    assert await Worker([agent], store).drive("r/c9.9") == "blocked"
    (refusal,) = (await store.record("r/c9.9")).refusals
    assert "found no start in the parent's journal" in refusal.reason


WORK = Agent(ScriptedModel(["worked"], restart=True), name="worker")


AnyNode = Node[None, Outcome]


def starting(kind: str, place: Place) -> Graph[None]:
    """Return a graph whose node starts runs at a place."""
    match kind:
        case "child":
            node: AnyNode = Child("worker", prompt="work", place=place)
        case "sub_graph":
            node = sub_graph(WORK, name="kid", prompt=lambda _: "work", place=place)
        case "parallel":
            branches = Branch("worker", prompt="this"), Branch("worker", prompt="that")
            node = Parallel(branches, place=place, concurrency=1)
        case _:
            node = MapOver("worker", 3, "lines", place=place)
    plan, planned, added = Child("worker", name="plan", prompt="work"), Append("planned"), Append()
    edges: Edges[None] = {
        plan: {Answered: planned, ...: END},
        planned: {...: node},
        node: {Answered: added, ...: END},
        added: {...: END},
    }
    return Graph("fan", plan, edges)


@pytest.mark.parametrize("kind", ["child", "sub_graph", "parallel", "map_over"])
async def test_each_node_that_starts_runs_can_place_them(kind: str) -> None:
    """With the same results as beside the run of the node."""
    told: list[tuple[list[Message], Usage, int]] = []
    plan: Mapping[str, list[Line]] = {"go": [[call("fan", prompt="this")], "All is done."]}
    places: tuple[Place, ...] = ("here", "anywhere")
    for place in places:
        fan = starting(kind, place).as_tool(
            None, description="Fans out.", name="fan", model=WORK.model, agents={"worker": WORK}
        )
        agent = Agent(PlannedModel(plan.__getitem__), tools=[fan], name="boss")
        store = MemoryStore()
        await agent.runs(store).submit("go", run_id="r")
        driven = await taken(Worker([agent], store), store)

        run = await run_of(agent, store, "r")
        told.append(([*run.messages], run.spent.usage, len(await store.runs())))
        assert (set(driven) == {"r"}) is (place == "here")

    assert told[0] == told[1]
    assert told[0][2] > 3


@pytest.mark.parametrize("kind", ["tool", "child", "sub_graph", "parallel", "map_over"])
def test_a_place_that_is_none_is_refused(kind: str) -> None:
    """Where it is declared, with the two that there are."""
    place: Place = wrong("anywere")

    with pytest.raises(ConfigError, match=r"`place` of .*'here' or 'anywhere', found 'anywere'"):
        _ = WORK.as_tool(place=place) if kind == "tool" else starting(kind, place)
