"""Composed graphs for real: agents, a database, people who answer later, money that is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphloop import END, Agent, AgentTool, EndReason, Graph, RunResult, Tool, approve, decline
from graphloop.agent.runs import Runs
from graphloop.errors import ConfigError, RunFailed, ToolDefinitionError
from graphloop.events import BranchesJoined, CallbackAnswer, ChildEnded, EffectFailed
from graphloop.graph import Edges
from graphloop.nodes import (
    Append,
    Approve,
    Branch,
    Child,
    Critique,
    Execute,
    Gate,
    Limit,
    ModelCall,
    Parallel,
    PrepareStep,
    StopCheck,
)
from graphloop.nodes.joins import BranchJoin
from graphloop.outcomes import (
    Accepted,
    Answered,
    AnsweredCalls,
    Calls,
    Done,
    Final,
    Go,
    Outcome,
    Ready,
    Rejected,
    Resend,
    Settled,
    Stop,
)
from graphloop.own_nodes.compose import fallback, loop_until, map_over, parallel, retry, router
from graphloop.own_nodes.route_outcomes import route_outcome
from graphloop.parts.kinds import StepFinish
from graphloop.providers import TextDelta
from graphloop.providers.base import StreamItem, UsageSoFar
from graphloop.run import Run
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply, ToolCall, Usage
from tests.agents import drain
from tests.planned_model import Line, PlannedModel
from tests.strategies import call, reply, wrong

NOBODY = ScriptedModel([])


def asking(tool: Tool, last: str) -> AgentTool:
    """Return an agent that calls a tool and then says something, in whatever process."""
    plan: Sequence[Line] = [[ToolCall("", tool.name, "{}")], last]
    model = PlannedModel(lambda _: plan, f"asking-{last}")
    return Agent(model, tools=[tool]).as_tool(description="asks", name="asking")


def agent(*script: Reply | str | Exception, **options: Any) -> AgentTool:
    """Return an agent whose model says this; each of its runs begins anew."""
    model = ScriptedModel([*script], restart=True, label=f"m{len(script)}")
    return Agent(model, **options).as_tool(description="helps", name="helper")


def fanned(*branches: str | Branch, **options: Any) -> Graph[None]:
    """Return a graph of agents side by side."""
    fan, append = parallel(*branches, **options), Append()
    return Graph("fan", fan, {fan: {Answered: append, ...: END}, append: {...: END}})


def run(graph: Graph[None], **options: Any) -> RunResult:
    """Run a graph whose own nodes ask no model, unless one is given."""
    chosen: dict[str, Any] = {"model": NOBODY, "prompt": "go", **options}
    return asyncio.run(graph.run(None, **chosen))


def pay() -> Tool:
    """Return a tool that needs a person's consent."""
    return Tool(
        name="pay",
        parameters={"type": "object"},
        execute=paid,
        needs_approval=True,
        description="p",
    )


async def paid(arguments: dict[str, object]) -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_branch_waits_for_a_person_and_its_siblings_run_once(
    tmp_path: Path, deep: bool, concurrency: int
) -> None:
    """In another process, over a database, at any depth."""
    quick = ScriptedModel(["quick", "never"], label="quick")
    graph = fanned("quick", "careful", concurrency=concurrency)

    def agents() -> dict[str, AgentTool]:
        slow = asking(pay(), "careful")
        if deep:
            inner = fanned("slow").as_tool(
                None, model=NOBODY, description="d", agents={"slow": slow}, max_agent_depth=5
            )
            slow = inner
        first = Agent(quick).as_tool(description="q", name="quick")
        return {"quick": first, "careful": slow}

    store = str(tmp_path / "runs.db")
    options: dict[str, Any] = {"store": store, "max_agent_depth": 5}
    parked = run(graph, run_id="r", agents=agents(), **options)
    assert EndReason.PARKED is parked.end_reason
    (pending,) = parked.pending
    assert ("pay", 2 + deep) == (pending.name, pending.key.count("/") + 1)
    assert "quick" == parked.run.turn.branches[0].content

    result = asyncio.run(
        graph.resume(
            "r",
            model=NOBODY,
            approvals={pending.key: pending.approve()},
            agents=agents(),
            **options,
        )
    )

    assert EndReason.COMPLETED is result.end_reason
    assert result.text.startswith("## quick\n\nquick\n\n## careful\n\n")
    assert result.text.endswith("careful")
    assert 1 == len(quick.requests)


class Slow(PlannedModel):
    """A model that says what it costs, and never ends of itself."""

    def __init__(self, begun: asyncio.Event) -> None:
        super().__init__(lambda _: (), "slow")
        self.begun = begun
        self.stopped = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Report some usage, and wait for ever."""
        yield UsageSoFar(Usage(100, 7))
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True


class Quick(PlannedModel):
    """A model that answers, or fails, once the slow one is under way."""

    def __init__(self, begun: asyncio.Event, *, fails: bool) -> None:
        super().__init__(lambda _: ("quick",), "quick")
        self.begun = begun
        self.fails = fails

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Wait, and answer."""
        await self.begun.wait()
        if self.fails:
            raise RuntimeError("broken")
        async for item in super().stream(request):
            yield item


@pytest.mark.parametrize("join", ["first", "majority", "fail_fast"])
def test_what_is_not_needed_is_stopped_and_paid_for(join: BranchJoin) -> None:
    """Nobody waits for a model whose answer cannot matter; its journal says that it was stopped."""
    store = MemoryStore()
    graph = fanned("quick", "slow", "quick", join=join)

    async def scenario() -> str:
        begun = asyncio.Event()
        quick = Agent(Quick(begun, fails=join == "fail_fast"))
        agents = {
            "quick": quick.as_tool(description="q", name="quick"),
            "slow": Agent(Slow(begun)).as_tool(description="s", name="slow"),
        }
        async with asyncio.timeout(10):
            try:
                result = await graph.run(
                    None, model=NOBODY, prompt="go", agents=agents, store=store, run_id="r"
                )
            except RunFailed as error:
                return str(error)
        return result.text

    said = asyncio.run(scenario())

    assert "broken" in said if join == "fail_fast" else "quick" == said
    events = asyncio.run(store.load("r"))
    (stopped,) = [one for one in events if isinstance(one, ChildEnded) and one.effect == 2]
    assert ("not_run", "aborted") == (stopped.status, stopped.end_reason)
    assert Usage(100, 7) == stopped.spent.usage
    below = asyncio.run(store.load("r/parallel.2"))
    assert "Cancelled" == type(below[-1]).__name__


async def test_what_is_not_needed_has_stopped_before_the_run_goes_on() -> None:
    """Nothing of it may happen after the graph has left the branches behind."""
    fan, last, append = parallel("quick", "slow", join="first"), Child("last"), Append()
    edges: Edges[None] = {
        fan: {Answered: append, ...: END},
        append: {Final: last, ...: END},
        last: {...: END},
    }

    begun, seen = asyncio.Event(), list[bool]()
    slow = Slow(begun)

    def plan(_: str) -> Sequence[Line]:
        seen.append(slow.stopped)
        return ("last",)

    models = {"quick": Quick(begun, fails=False), "slow": slow, "last": PlannedModel(plan)}
    agents = {
        name: Agent(model).as_tool(description="a", name=name) for name, model in models.items()
    }
    graph = Graph("on", fan, edges)
    async with asyncio.timeout(10):
        await graph.run(None, model=NOBODY, prompt="go", agents=agents)
    assert [True] == seen


def test_a_branch_that_is_parked_when_the_others_decide_is_stopped(tmp_path: Path) -> None:
    """A person who was asked in vain is not waited for, not even in a later process."""
    graph = fanned("careful", "client", "quick", join="first", concurrency=2)
    told = Tool(name="told", description="t", parameters={"type": "object"})

    def agents() -> dict[str, AgentTool]:
        return {
            "careful": asking(pay(), "careful"),
            "client": asking(told, "client"),
            "quick": agent("quick"),
        }

    store = str(tmp_path / "runs.db")
    parked = run(graph, run_id="r", agents=agents(), store=store)
    assert ["pay", "told"] == [one.name for one in parked.pending]

    result = asyncio.run(
        graph.resume(
            "r",
            model=NOBODY,
            tool_results={parked.pending[1].key: "fine"},
            agents=agents(),
            store=store,
        )
    )

    assert ("client", EndReason.COMPLETED) == (result.text, result.end_reason)
    careful = asyncio.run(_load(store, "r/parallel.1"))
    assert "Cancelled" == careful[-1]


async def _load(path: str, run_id: str) -> list[str]:
    store = SqliteStore(Path(path))
    try:
        return [type(one).__name__ for one in await store.load(run_id)]
    finally:
        await store.aclose()


MISSET: Exception = ConfigError("no such region: 'mars'")
OF_A_KIND: Exception = ToolDefinitionError("no such region: 'mars'")


async def died_at(disk: MemoryStore, run_id: str, events: int) -> MemoryStore:
    """Return what is on a disk when a run's process died after so many of its events."""
    left = MemoryStore()
    for one in await disk.runs():
        journal = await disk.load(one)
        await left.append_all({one: journal[:events] if one == run_id else journal})
    return left


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("join", ["collect", "first", "majority", "fail_fast"])
async def test_a_mistake_in_a_branch_ends_the_run_and_is_no_section(
    join: BranchJoin, deep: bool
) -> None:
    """A model would read it as data; also where a process died before its parent had heard."""
    graph = fanned("broken", "fine", "fine", join=join, concurrency=1)

    def agents() -> dict[str, AgentTool]:
        broken = agent(OF_A_KIND if deep else MISSET)
        if deep:
            inner = fanned("broken", "fine", concurrency=1)
            below = {"broken": broken, "fine": agent("fine")}
            broken = inner.as_tool(None, model=NOBODY, description="d", agents=below)
        return {"broken": broken, "fine": agent("fine")}

    disk, options = MemoryStore(), {"model": NOBODY, "max_agent_depth": 5}
    with pytest.raises(RunFailed, match=r"Error: broken: .*no such region"):
        await graph.run(
            None, prompt="go", store=disk, run_id="r", agents=agents(), **wrong(options)
        )
    last = (await disk.load("r"))[-1]
    assert isinstance(last, EffectFailed)
    assert ["r"] == [one for one in await disk.runs() if one.count("/") == 0]
    again = await died_at(disk, "r", len(await disk.load("r")) - 1)
    with pytest.raises(RunFailed, match=r"Error: broken: .*no such region"):
        await graph.resume("r", store=again, agents=agents(), **wrong(options))
    assert await disk.runs() == await again.runs()


def test_a_mistake_in_the_run_of_a_node_s_agent_is_raised_as_it_is() -> None:
    """It is the developer's, however deep it was made."""
    child, append = Child("broken"), Append()
    graph: Graph[None] = Graph(
        "one", child, {child: {Answered: append, ...: END}, append: {...: END}}
    )

    with pytest.raises(ConfigError) as raised:
        run(graph, agents={"broken": agent(MISSET)})

    assert raised.value is MISSET


def test_a_model_reads_of_a_mistake_in_an_agent_that_it_called() -> None:
    """Its arguments may have been the reason."""
    broken = Agent(ScriptedModel([MISSET])).as_tool(description="d", name="broken")
    model = ScriptedModel([{"calls": [{"name": "broken", "arguments": {"prompt": "?"}}]}, "so"])

    result = asyncio.run(Agent(model, tools=[broken]).generate("go"))

    (told,) = result.steps[0].tool_results
    assert "The agent failed: ConfigError: no such region: 'mars'" == told.text


def test_a_stream_shows_only_the_joined_answer_as_the_turn_s() -> None:
    """Streamed is buffered: what the branches say is shown as theirs."""
    stream = fanned("a", "b").stream(
        None, model=NOBODY, prompt="go", agents={"a": agent("A"), "b": agent("B")}
    )

    parts, result = asyncio.run(drain(stream))

    assert isinstance(result, RunResult)
    text = "".join(one.text for one in parts if isinstance(one, TextDelta))
    assert result.text == text
    assert 1 == sum(isinstance(one, StepFinish) for one in parts)


def test_a_plan_is_approved_by_a_person_and_then_worked_on(tmp_path: Path) -> None:
    """Plan, approve, execute: a rejection goes back to the planner with its reason."""
    plan, ask, work = Child("planner"), Approve("plan"), map_over("worker", max_items=3)
    append, after, limit = Append(), Append("after"), Limit(2)
    edges: Edges[None] = {
        plan: {Answered: append, ...: END},
        append: {Final: ask, Resend: limit, ...: END},
        ask: {Accepted: work, Rejected: append, ...: END},
        limit: {Go: plan, Stop: END},
        work: {Answered: after, ...: END},
        after: {...: END},
    }
    graph = Graph("plan", plan, edges)
    planner = ScriptedModel(['["x"]', '["x", "y"]'], label="planner")
    agents = {
        "planner": Agent(planner).as_tool(description="p", name="planner"),
        "worker": agent("done"),
    }
    store = str(tmp_path / "runs.db")

    first = run(graph, run_id="r", agents=agents, store=store)
    (asked,) = first.pending
    assert ("approval", "plan", '{"answer": "[\\"x\\"]"}') == (
        asked.kind,
        asked.name,
        asked.arguments,
    )
    posted = asyncio.run(Runs(store, graph).approve("r", asked.key, decline("two, please")))
    assert "accepted" == posted
    second = asyncio.run(graph.resume("r", model=NOBODY, agents=agents, store=store))

    (again,) = second.pending
    assert again.key != asked.key
    told = [getattr(one, "content", "") for one in planner.requests[1].messages]
    assert "This was not approved. two, please" in told
    with pytest.raises(ConfigError, match="does not wait"):
        asyncio.run(
            graph.resume(
                "r", model=NOBODY, agents=agents, store=store, approvals={asked.key: approve()}
            )
        )
    last = asyncio.run(
        graph.resume(
            "r", model=NOBODY, agents=agents, store=store, approvals={again.key: again.approve()}
        )
    )

    assert ("## x\n\ndone\n\n## y\n\ndone", EndReason.COMPLETED) == (last.text, last.end_reason)


def test_a_chain_of_models_runs_the_tools_of_each() -> None:
    """An answer in the middle of a chain ends nothing."""
    outline, draft, kept = PrepareStep("outline"), ModelCall("draft"), Append("kept")
    prepare, model, gate, execute = PrepareStep(), ModelCall(), Gate(), Execute()
    append, stop = Append(), StopCheck()
    edges: Edges[None] = {
        outline: {Ready: draft, ...: END},
        draft: {Answered: kept, ...: END},
        kept: {Final: prepare, ...: END},
        prepare: {Ready: model, ...: END},
        model: {Calls: gate, Answered: append, ...: END},
        gate: {Settled: execute, ...: END},
        execute: {Done: append, ...: END},
        append: {AnsweredCalls: stop, ...: END},
        stop: {Go: prepare, ...: END},
    }
    tool = Tool(name="pay", parameters={"type": "object"}, execute=paid, description="p")
    script = ScriptedModel(["an outline", reply(call("pay")), "a text"])

    result = run(Graph("chain", outline, edges), model=script, tools=[tool])

    assert ("a text", EndReason.COMPLETED, 3) == (result.text, result.end_reason, len(result.steps))


def test_agents_answer_together_in_the_order_of_the_table() -> None:
    """Their costs are the run's, and each is told what its branch says."""
    result = run(
        fanned("a", Branch("b", "Be brief."), "a"),
        agents={"a": agent("A"), "b": agent("B")},
        budget=None,
    )

    assert "## a 1\n\nA\n\n## b\n\nB\n\n## a 2\n\nA" == result.text
    assert (EndReason.COMPLETED, 3) == (result.end_reason, result.run.spent.model_calls)


def test_a_function_of_the_user_s_may_join_the_answers() -> None:
    """It finds them in the turn, in the order of the branches."""

    async def longest(run: Run[None]) -> CallbackAnswer:
        return BranchesJoined(max((one.content for one in run.turn.branches), key=len))

    graph = fanned("a", "b", callback="longest")
    agents = {"a": agent("A"), "b": agent("Bee")}

    assert "Bee" == run(graph, agents=agents, callbacks={"longest": longest}).text


def test_a_router_sends_the_run_where_its_model_says() -> None:
    """The routes' names alone are enough, as they are in a file."""
    desk = router({"billing": "money", "technical": "outages"})
    billing, technical, append = Child("billing"), Child("technical"), Append()
    edges: Edges[None] = {
        desk: {
            route_outcome("billing"): billing,
            route_outcome("technical"): technical,
            ...: END,
        },
        billing: {Answered: append, ...: END},
        technical: {Answered: append, ...: END},
        append: {...: END},
    }
    model = ScriptedModel([reply(call("route", "r", '{"route": "technical"}'))], label="router")
    agents = {"billing": agent("B"), "technical": agent("T")}

    result = run(Graph("desk", desk, edges), model=model, agents=agents)

    assert ("T", 2) == (result.text, result.run.spent.model_calls)


def test_an_agent_that_fails_is_tried_again_and_then_replaced() -> None:
    """Each attempt is a run of its own, and all of them are paid for."""
    broken = Agent(ScriptedModel([RuntimeError("no")] * 3, label="broken"))
    node = fallback(retry(Child("broken"), 2), Child("sound"))
    append = Append()
    edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}
    store = MemoryStore()

    result = run(
        Graph("tried", node, edges),
        agents={
            "broken": broken.as_tool(description="b", name="broken"),
            "sound": agent("sound"),
        },
        store=store,
        run_id="r",
    )

    assert ("sound", EndReason.COMPLETED) == (result.text, result.end_reason)
    runs: Sequence[str] = asyncio.run(store.runs())
    assert ["r", "r/broken.1", "r/broken.2", "r/broken.3", "r/sound.4"] == list(runs)


def test_a_loop_takes_the_feedback_back_to_the_body() -> None:
    """The writer reads the critic's words, and the bound is told where it stops the run."""
    writer = ScriptedModel(["one", "two", "three"], label="writer")
    body = Child("writer")
    graph = Graph("essay", body, loop_until(body, Critique("Good?"), 1))
    no = reply(call("verdict", "v", '{"accepted": false, "feedback": "Longer."}'))
    agents = {"writer": Agent(writer).as_tool(description="w", name="writer")}

    result = run(graph, model=ScriptedModel([no, no], label="critic"), agents=agents)

    assert (EndReason.STOP_CONDITION, ("writer_limit",)) == (result.end_reason, result.stopped_by)
    assert ["one", "two"] == [one.text for one in result.steps]
    assert "Longer." == getattr(writer.requests[1].messages[-1], "content", "")


def test_an_outcome_of_a_parallel_node_is_one_of_three() -> None:
    """A table has to say what becomes of each."""
    node: Parallel = parallel("a")
    names: set[type[Outcome]] = set(node.outcomes)

    assert {"Answered", "Failed", "Aborted"} == {one.__name__ for one in names}
