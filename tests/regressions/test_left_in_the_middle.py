"""A run that its driver leaves, at whatever instant: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from graphloop import END, Agent, EndReason, Graph, RunResult, RunStream, Tool, ToolContext
from graphloop.events import EffectsStarted, Event, ModelReplied, Queued, ToolReturned
from graphloop.own_nodes import parallel
from graphloop.replay import replay
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from tests.passing_store import PassingStore
from tests.planned_model import PlannedModel
from tests.planned_model import call as planned
from tests.strategies import call, reply

Make = Callable[[Path], Store]
STORES: dict[str, Make] = {
    "memory": lambda _: MemoryStore(),
    "jsonl": JsonlStore,
    "sqlite": lambda folder: SqliteStore(folder / "runs.db", durability="process"),
}


async def close(store: Store) -> None:
    """Close a store that has something to close."""
    if isinstance(store, SqliteStore):
        await store.aclose()


class Till:
    """Tools that must not run twice: one ends at once, the other only when it is let."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    def agent(self, store: Store | None, *names: str, gated: bool = False) -> Agent:
        """Return an agent whose model calls these, if any, and then is done."""

        async def pay(arguments: dict[str, object], context: ToolContext) -> str:
            self.ran.append(context.key)
            self.begun.set()
            await self.may_end.wait()
            return "paid"

        async def note(arguments: dict[str, object], context: ToolContext) -> str:
            self.ran.append(context.key)
            return "noted"

        free: dict[str, object] = {"type": "object"}
        tools = [
            Tool(name="pay", parameters=free, execute=pay, needs_approval=gated),
            Tool(name="note", parameters=free, execute=note),
        ]
        calls = [reply(*[call(name) for name in names])] if names else []
        return Agent(ScriptedModel([*calls, "done"]), tools=tools, store=store)


async def left_in_a_tool(till: Till, stream: RunStream) -> None:
    """Look at a stream until its slow tool runs, then leave it."""
    async with asyncio.TaskGroup() as group:
        group.create_task(stream.consume())
        await till.begun.wait()
        await stream.aclose()


def said(result: RunResult) -> list[tuple[str, str]]:
    """Return how the calls of the first turn were answered."""
    return [(one.status, one.text) for one in result.steps[0].tool_results]


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
async def test_a_tool_that_was_left_in_the_middle_does_not_run_again(
    make: Make, tmp_path: Path
) -> None:
    """Whoever gives a store can come back, also in this very process: it may have happened."""
    till, store = Till(), make(tmp_path)
    await left_in_a_tool(till, till.agent(store, "pay").stream("go", run_id="r"))
    till.may_end.set()
    result = await till.agent(store).resume("r")
    await close(store)

    assert ["c0.0"] == till.ran
    assert ["unknown"] == [status for status, _ in said(result)]
    assert "done" == result.text


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
async def test_what_had_ended_when_its_sibling_was_left_is_kept(make: Make, tmp_path: Path) -> None:
    """Two tools of one turn, one of them done: each ran once, and one is known."""
    till, store = Till(), make(tmp_path)
    await left_in_a_tool(till, till.agent(store, "note", "pay").stream("go", run_id="r"))
    till.may_end.set()
    result = await till.agent(store).resume("r")
    await close(store)

    assert ["c0.0", "c0.1"] == sorted(till.ran)
    assert ("ok", "noted") == said(result)[0]
    assert "unknown" == said(result)[1][0]


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
async def test_results_that_nobody_has_looked_at_yet_are_kept(make: Make, tmp_path: Path) -> None:
    """Both tools had ended when the looker left after the first: the second is in the journal."""
    till, store = Till(), make(tmp_path)
    till.may_end.set()
    stream = till.agent(store, "note", "pay").stream("go", run_id="r")
    async for part in stream.full_stream:
        if part.type == "tool-result":
            break
    await stream.aclose()
    ended = sum(isinstance(one, ToolReturned) for one in await store.load("r"))
    result = await till.agent(store).resume("r")
    await close(store)
    kept = ended == 2

    assert kept
    assert ["c0.0", "c0.1"] == sorted(till.ran)
    assert [("ok", "noted"), ("ok", "paid")] == said(result)


async def test_what_was_said_before_the_stream_was_left_is_kept() -> None:
    """A message that was taken is read, by whoever goes on."""
    till, store = Till(), MemoryStore()
    stream = till.agent(store, "pay").stream("go", run_id="r")
    async with asyncio.TaskGroup() as group:
        group.create_task(stream.consume())
        await till.begun.wait()
        stream.steer("hurry")
        await stream.aclose()
    assert [Queued] == [type(one) for one in await store.load("r")][-1:]
    assert UserMessage("hurry", origin="steering") in (await till.agent(store).resume("r")).messages


class LeftAtReply(PassingStore):
    """A journal in memory that leaves a stream while a reply with its checks is being kept."""

    def __init__(self) -> None:
        super().__init__()
        self.stream: RunStream | None = None
        self.leaving: asyncio.Task[None] | None = None

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if any(isinstance(event, ModelReplied) for event in events) and self.stream is not None:
            self.leaving = asyncio.create_task(self.stream.aclose())
            self.stream = None
            await asyncio.sleep(0)
        await super().append(run_id, seq, *events)


async def test_a_tool_that_had_not_begun_at_a_leave_runs_once() -> None:
    """Nothing may be taken for begun that never began: its result would be unknown for ever."""
    till, store = Till(), LeftAtReply()
    till.may_end.set()
    store.stream = stream = till.agent(store, "pay").stream("go", run_id="r")
    await stream.consume()
    assert store.leaving is not None
    await store.leaving
    left = list(await store.load("r"))
    result = await till.agent(store).resume("r")

    assert not replay(till.agent(store).graph, left).started
    assert ["c0.0"] == till.ran
    assert [("ok", "paid")] == said(result)


async def test_a_parked_run_left_when_resumed_does_not_repeat() -> None:
    """Its result leads to its journal, so whoever has it can come back, by any way."""
    till = Till()
    parked = await till.agent(None, "pay", gated=True).generate("go", run_id="r")
    agent = till.agent(None, gated=True)
    await left_in_a_tool(till, agent.resume_stream(parked, approvals={"c0.0": True}))
    till.may_end.set()
    journal = list(await parked.store.load("r"))
    result = await till.agent(parked.store, gated=True).resume("r")

    assert [one for one in journal if isinstance(one, EffectsStarted)]
    assert ["c0.0"] == till.ran
    assert EndReason.PARKED is result.end_reason
    assert [True] == [one.unknown for one in result.pending]


async def test_a_child_left_in_the_middle_does_not_repeat_its_tool() -> None:
    """A child's journal is where its parent's is, and is kept as carefully."""

    def above(till: Till, store: Store, *names: str) -> Agent:
        below = till.agent(None, *names).as_tool(name="kid", description="pays")
        calls = [reply(call("kid", "", '{"prompt": "x"}'))] if names else []
        return Agent(ScriptedModel([*calls, "done"]), tools=[below], store=store)

    till, store = Till(), MemoryStore()
    await left_in_a_tool(till, above(till, store, "pay").stream("go", run_id="r"))
    till.may_end.set()
    result = await above(till, store).resume("r")

    assert ["c0.0"] == till.ran
    assert ["unknown"] == [
        one.status for one in result.children["r/c0.0"].record.steps[0].tool_results
    ]


@pytest.mark.parametrize("as_tools", [False, True])
async def test_children_begin_nothing_more_once_the_stream_is_left(as_tools: bool) -> None:
    """One child stopped, and two went on: they asked models and ran tools with nobody looking."""
    ran: list[int] = []

    def note(number: int) -> str:
        """Take note."""
        ran.append(number)
        return "noted"

    plan = [[planned("note", number=at)] for at in range(15)]
    kid = Agent(PlannedModel(lambda _: plan), tools=[note], max_steps=20, name="kid")

    begins = PlannedModel(lambda _: [[planned("kid", prompt="go")] * 2, "done"])
    top = Agent(begins, tools=[kid.as_tool(description="Help.")])
    node = parallel("kid", "kid")
    fan: Graph[None] = Graph("fan", node, {node: {...: END}})
    stream = top.stream("go")
    if not as_tools:
        agents = {"kid": kid.as_tool(description="Help.")}
        stream = fan.stream(None, prompt="go", agents=agents)
    async for _ in stream.full_stream:
        if ran:
            break
    had_run = len(ran)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert len(ran) <= had_run + 1, "the other one may have begun already"
    await stream.result()

    assert 30 == len(ran)


class SlowToKeep(PassingStore):
    """A store that takes its time for one kind of events, as a disk does.

    Args:
        slow: the kind; it is kept once `gate` is set.
    """

    def __init__(self, slow: type[Event] = ToolReturned) -> None:
        super().__init__()
        self.slow = slow
        self.gate = asyncio.Event()
        self.keeping = asyncio.Event()

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if any(isinstance(event, self.slow) for event in events):
            self.keeping.set()
            await self.gate.wait()
        await super().append(run_id, seq, *events)


def results(events: Sequence[Event]) -> list[object]:
    """Return what tools returned, by a journal."""
    return [one.content for one in events if isinstance(one, ToolReturned)]


@pytest.mark.parametrize("way", ["limit", "abort"])
async def test_ended_calls_are_kept_if_time_is_up_during_a_write(way: str) -> None:
    """Two tools have ended, the first result is being written: the second was thrown away."""
    ran: list[str] = []

    def charge(card: str) -> str:
        """Charge a card."""
        ran.append(card)
        return card

    store = SlowToKeep()
    both = [planned("charge", card="A"), planned("charge", card="B")]
    one = Agent(PlannedModel(lambda _: [both, "done"]), tools=[charge], name="kid", store=store)
    if way == "abort":
        two = PlannedModel(lambda _: [[planned("kid", prompt=at) for at in "xy"], "done"])
        one = Agent(two, tools=[one.as_tool(description="Help.")], store=store)
    stream = one.stream("go", run_id="r")
    driving = asyncio.create_task(stream.result())
    await store.keeping.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    if way == "limit":
        driving.cancel()
    else:
        stream.abort("enough")
    await asyncio.sleep(0)
    store.gate.set()
    await asyncio.wait([driving])
    journals = [await store.load(run_id) for run_id in await store.runs()]
    assert sorted(ran) == sorted(map(str, [one for every in journals for one in results(every)]))
    if way == "abort":
        assert len(ran) == driving.result().run.spent.tool_calls
    else:
        assert driving.cancelled()
        resumed = await one.resume("r")
        assert ["ok", "ok"] == [each.status for each in resumed.steps[0].tool_results]
        assert ["A", "B"] == ran


async def test_calls_that_a_stopped_child_never_ran_are_not_counted() -> None:
    """Its journal was being told that they may run, and none of them has."""

    store, ran = SlowToKeep(ModelReplied), list[str]()

    def note(text: str) -> None:
        """Take note."""
        ran.append(text)

    plan = PlannedModel(lambda _: [[planned("note", text="A")], "done"])
    kid = Agent(plan, tools=[note], name="kid")
    two = PlannedModel(lambda _: [[planned("kid", prompt="go")], "done"])
    stream = Agent(two, tools=[kid.as_tool(description="Help.")], store=store).stream("go")
    store.gate.set()
    driving = asyncio.create_task(stream.result())
    await store.keeping.wait()
    store.keeping.clear()
    store.gate.clear()
    await store.keeping.wait()
    stream.abort("enough")
    await asyncio.sleep(0)
    store.gate.set()
    result = await driving
    assert ([], 0) == (ran, result.run.spent.tool_calls)
