"""Agents that call agents, topologies, conversations that are handed in, and journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphloop import Agent, AgentTool, Graph, NodeContext, agent_tool, allow, deny, node, outcomes
from graphloop.errors import RateLimited
from graphloop.graph import END
from graphloop.nodes import (
    Append,
    Approve,
    Child,
    Critique,
    Execute,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
)
from graphloop.own_nodes import fallback, loop_until, map_over, parallel, retry, router
from graphloop.tools.tool import AnyTool
from tests.golden.recorder import World, call, says, standing
from tests.golden.register import scenario


def _helper(
    world: World,
    *script: Mapping[str, object],
    takes_over: bool = False,
    tools: Sequence[AnyTool] = (),
) -> AgentTool:
    model = world.model(*script, label="helper")
    helper = Agent(model, name="helper", tools=tools, clock=standing)
    return helper.as_tool(description="Helps.", takes_over=takes_over)


@scenario
async def sub_agent(world: World) -> None:
    helper = _helper(
        world, says("", call("look", x=1)), says("Found it."), tools=[world.tool("look")]
    )
    agent = world.agent(says("", call("helper", prompt="Find it.")), says("Done."), tools=[helper])
    await world.run(agent.stream("Go"))


@scenario
async def sub_agent_fails(world: World) -> None:
    helper = agent_tool(
        world.model(RateLimited("no"), label="helper"), name="helper", description="Helps."
    )
    agent = world.agent(says("", call("helper", prompt="Find it.")), says("Done."), tools=[helper])
    await world.run(agent.stream("Go"))


@scenario
async def sub_agent_parks(world: World) -> None:
    helper = _helper(
        world,
        says("", call("pay", amount=5)),
        says("Paid."),
        tools=[world.tool("pay", needs_approval=True)],
    )
    agent = world.agent(says("", call("helper", prompt="Pay.")), says("Done."), tools=[helper])
    parked = await world.run(agent.stream("Go"))
    assert parked is not None
    approvals = {one.key: True for one in parked.pending}
    await world.run(agent.resume_stream(parked, approvals=approvals))


@scenario
async def sub_agent_is_gated_by_its_parent(world: World) -> None:
    helper = _helper(
        world, says("", call("delete")), says("I may not."), tools=[world.tool("delete")]
    )
    agent = world.agent(
        says("", call("helper", prompt="Delete.")),
        says("Done."),
        tools=[helper],
        gate=allow("helper") | deny("delete"),
    )
    await world.run(agent.stream("Go"))


@scenario
async def handed_off(world: World) -> None:
    expert = _helper(world, says("I take over."), takes_over=True)
    agent = world.agent(says("", call("helper")), tools=[expert])
    await world.run(agent.stream("Go"))


# Topologies.


def _writer(world: World, *script: Mapping[str, object], label: str = "writer") -> Agent:
    return Agent(world.model(*script, label=label), name=label, clock=standing)


async def _run_graph(world: World, graph: Graph[None], model: object, **agents: Agent) -> None:
    tools = {name: one.as_tool(description="Works.") for name, one in agents.items()}
    options: Any = {"model": model, "clock": standing, "tools": [world.tool("read")]}
    await world.run(graph.stream(None, prompt="Go", agents=tools, **options))


@scenario
async def draft_and_critique(world: World) -> None:
    prepare, draft, gate, execute = PrepareStep(), ModelCall(), Gate(), Execute()
    append, critique, check = Append(), Critique("Is it short?"), StopCheck(max_steps=6)
    graph: Graph[None] = Graph(
        "draft-and-critique",
        start=prepare,
        edges={
            prepare: {outcomes.Ready: draft, outcomes.Calls: gate, ...: END},
            draft: {outcomes.Calls: gate, outcomes.Failed: END, ...: append},
            gate: {outcomes.Settled: execute, ...: append},
            execute: {...: append},
            append: {
                outcomes.Final: critique,
                outcomes.AnsweredCalls: check,
                outcomes.Resend: check,
                ...: END,
            },
            critique: {outcomes.Rejected: append, ...: END},
            check: {outcomes.Go: prepare, ...: END},
        },
    )
    model = world.model(
        says("", call("read")),
        says("A long slogan."),
        says("", call("verdict", accepted=False, feedback="Shorter.")),
        says("Short."),
        says("", call("verdict", accepted=True, feedback="")),
    )
    await _run_graph(world, graph, model)


@scenario
async def routed(world: World) -> None:
    route = router({"bills": "invoices", "tech": "errors"})
    bills, tech, append = Child("bills"), Child("tech"), Append()
    rows = {one.__name__.lower(): one for one in route.outcomes}
    graph: Graph[None] = Graph(
        "desk",
        start=route,
        edges={
            route: {rows["bills"]: bills, rows["tech"]: tech, ...: END},
            bills: {outcomes.Answered: append, ...: END},
            tech: {outcomes.Answered: append, ...: END},
            append: {...: END},
        },
    )
    model = world.model(says("", call("route", route="tech")))
    await _run_graph(
        world,
        graph,
        model,
        bills=_writer(world, says("Pay."), label="bills"),
        tech=_writer(world, says("Restart."), label="tech"),
    )


@scenario
async def side_by_side(world: World) -> None:
    vote, append = parallel("one", "two", "three", join="majority", concurrency=1), Append()
    graph: Graph[None] = Graph(
        "vote", start=vote, edges={vote: {outcomes.Answered: append, ...: END}, append: {...: END}}
    )
    judges = {
        name: _writer(world, says(word), label=name)
        for name, word in (("one", "yes"), ("two", "no"), ("three", "yes"))
    }
    await _run_graph(world, graph, world.model(), **judges)


@scenario
async def mapped(world: World) -> None:
    plan, work = Child("planner", "plan"), map_over("worker", max_items=3, concurrency=1)
    first, last = Append("first"), Append("last")
    graph: Graph[None] = Graph(
        "map",
        start=plan,
        edges={
            plan: {outcomes.Answered: first, ...: END},
            first: {outcomes.Final: work, ...: END},
            work: {outcomes.Answered: last, ...: END},
            last: {...: END},
        },
    )
    await _run_graph(
        world,
        graph,
        world.model(),
        planner=_writer(world, says('["a", "b"]'), label="planner"),
        worker=_writer(world, says("Did one."), says("Did another."), label="worker"),
    )


@scenario
async def looped_until_good(world: World) -> None:
    write = Child("writer")
    graph: Graph[None] = Graph("essay", write, loop_until(write, Critique("Good?"), 2))
    model = world.model(
        says("", call("verdict", accepted=False, feedback="More.")),
        says("", call("verdict", accepted=True, feedback="")),
    )
    writer = _writer(world, says("Draft."), says("Better draft."))
    await _run_graph(world, graph, model, writer=writer)


@scenario
async def retried_child(world: World) -> None:
    write, append = retry(Child("writer"), 2), Append()
    graph: Graph[None] = Graph(
        "retry",
        start=write,
        edges={write: {outcomes.Answered: append, ...: END}, append: {...: END}},
    )
    model = world.model(RateLimited("no"), says("At last."), label="writer")
    writer = Agent(model, name="writer", clock=standing)
    await _run_graph(world, graph, world.model(), writer=writer)


@scenario
async def second_child_steps_in(world: World) -> None:
    write, append = fallback(Child("first"), Child("second")), Append()
    graph: Graph[None] = Graph(
        "fallback",
        start=write,
        edges={write: {outcomes.Answered: append, ...: END}, append: {...: END}},
    )
    first = Agent(world.model(RateLimited("no"), label="first"), name="first", clock=standing)
    second = _writer(world, says("Instead."), label="second")
    await _run_graph(world, graph, world.model(), first=first, second=second)


@scenario
async def a_person_approves_the_text(world: World) -> None:
    write, first, person, last = Child("writer"), Append("first"), Approve("person"), Append("last")
    graph: Graph[None] = Graph(
        "signed",
        start=write,
        edges={
            write: {outcomes.Answered: first, ...: END},
            first: {outcomes.Final: person, ...: END},
            person: {outcomes.Rejected: last, ...: END},
            last: {...: END},
        },
    )
    agents = {"writer": _writer(world, says("A draft.")).as_tool(description="Works.")}
    options: Any = {"model": world.model(), "clock": standing, "agents": agents}
    parked = await world.run(graph.stream(None, prompt="Go", **options))
    assert parked is not None
    approvals = {one.key: True for one in parked.pending}
    await world.run(graph.resume_stream(parked, approvals=approvals, **options))


class Short(outcomes.Outcome):
    """The text is short."""


class Long(outcomes.Outcome):
    """The text is long."""


@node(kind="check")
def length(_: None, context: NodeContext) -> Short | Long:
    """Tell short texts from long ones."""
    return Short() if len(context.answer) < 10 else Long()


@scenario
async def own_node(world: World) -> None:
    write, append = Child("writer"), Append()
    graph: Graph[None] = Graph(
        "own",
        start=write,
        edges={
            write: {outcomes.Answered: append, ...: END},
            append: {outcomes.Final: length, ...: END},
            length: length.row({Short: END, Long: END, ...: END}),
        },
    )
    await _run_graph(world, graph, world.model(), writer=_writer(world, says("Short.")))


# Conversations that are handed in, and journals.


@scenario
async def handed_in_with_open_calls(world: World) -> None:
    opened = {
        "role": "assistant",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "pay", "arguments": "{}"}},
        ],
    }
    agent = world.agent(
        says("Done."), tools=[world.tool("read"), world.tool("pay", needs_approval=True)]
    )
    history: Any = [{"role": "user", "content": "Go"}, opened]
    await world.run(agent.stream(messages=history, approvals={"b": True}))


@scenario
async def dangling_calls_are_repaired(world: World) -> None:
    opened = {
        "role": "assistant",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        ],
    }
    history: Any = [
        {"role": "user", "content": "Go"},
        opened,
        {"role": "user", "content": "Never mind."},
    ]
    await world.run(world.agent(says("Fine."), tools=[world.tool("read")]).stream(messages=history))


@scenario
async def stored_parked_and_resumed(world: World) -> None:
    tools = [world.tool("pay", needs_approval=True)]
    script = [says("", call("pay", amount=5)), says("Done.")]
    store = f"{world.folder}/runs.db"
    first = world.agent(*script, tools=tools, store=store)
    parked = await world.run(first.stream("Go", run_id="r"))
    await first.aclose()
    assert parked is not None
    second = world.agent(*script[1:], tools=tools, store=store)
    await world.run(second.resume_stream("r", approvals={parked.pending[0].key: True}))
    run = await second.runs.replay("r")
    world.note("replayed", [len(run.messages), str(run.node)])
    await second.aclose()


@scenario
async def forked(world: World) -> None:
    script = [says("", call("read", x=1)), says("One way."), says("Another way.")]
    agent = world.agent(*script, tools=[world.tool("read")], store=f"{world.folder}/runs.db")
    await world.run(agent.stream("Go", run_id="r"))
    copy = await agent.runs.fork("r", at=2, new_id="copy")
    await world.run(agent.resume_stream(copy))
    await agent.aclose()
