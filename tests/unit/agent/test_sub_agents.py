"""Agents as tools: what a child inherits, what it answers, and what it may not do."""

from __future__ import annotations

import asyncio
from typing import Unpack

import pytest

from graphloop import (
    END,
    Agent,
    EndReason,
    Graph,
    RunResult,
    Tool,
    agent_tool,
    allow,
    deny,
    tool,
)
from graphloop.agent.inherited_limits import (
    REASON,
    beyond_watch,
    child_tools,
)
from graphloop.agent.options import AgentOptions
from graphloop.agent.resumption import refuse_other_rules
from graphloop.agent.sub_agents import AgentTool
from graphloop.driver.ports import Ports
from graphloop.effects import StartRun
from graphloop.errors import ConfigError
from graphloop.events import Setup, Started
from graphloop.graph import Edges
from graphloop.nodes import Append, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Ready
from graphloop.providers.script import Entry
from graphloop.rules import Never
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.tool import AnyTool
from graphloop.tools.toolbox import Toolbox
from graphloop.values import (
    AssistantMessage,
    Message,
    Reply,
    SystemMessage,
    TextPart,
    ToolResult,
    ToolSpec,
    UserMessage,
    evolve,
)
from tests.agent_tree import Ledger
from tests.nested_graphs import nest
from tests.strategies import call, fresh, reply, wrong


def kid(*script: Entry, takes_over: bool = False, **options: Unpack[AgentOptions]) -> AgentTool:
    """Return an agent as a tool."""
    own: AgentOptions = {**options, "name": "kid"}
    agent = Agent(ScriptedModel(script, label="kid's"), **own)
    return agent.as_tool(description="looks things up", takes_over=takes_over)


@pytest.mark.parametrize(
    ("takes_over", "arguments", "issue"),
    [
        (False, "{}", "prompt"),
        (False, '{"prompt": 1}', "prompt"),
        (False, '{"prompt": "a", "more": 1}', "more"),
        (False, "[]", "object"),
        (True, '{"prompt": "a"}', "prompt"),
        (False, '{"prompt": "a"}', None),
        (True, "{}", None),
        (True, "", None),
    ],
)
def test_an_agent_tool_takes_a_prompt_and_nothing_else(
    takes_over: bool, arguments: str, issue: str | None
) -> None:
    found = kid(takes_over=takes_over).tool.validate(arguments)

    assert found is None if issue is None else issue in (found or "")


ASK = reply(call("kid", "k", '{"prompt": "look"}'))


def asked(child: AgentTool, *script: Entry, **options: Unpack[AgentOptions]) -> RunResult:
    """Return the result of a run that calls the child once, and then is done."""
    own: AgentOptions = {**options, "tools": [child]}
    agent = Agent(ScriptedModel(script or (ASK, "done")), **own)
    return asyncio.run(agent.generate("go"))


def answer(result: RunResult) -> ToolResult:
    """Return the child's answer."""
    return result.steps[0].tool_results[0]


async def test_an_agent_tool_is_an_agent_as_a_tool() -> None:
    model = ScriptedModel(["42"], label="kid's")
    child = agent_tool(
        model, name="kid", description="knows", instructions="be brief", needs_approval=True
    )
    spy = {"spy": child}
    script: list[Entry] = [reply(call("spy", "", '{"prompt": "x"}')), "done"]

    result = await Agent(
        ScriptedModel(script), tools=spy, approve_tool_call=lambda _: True
    ).generate("go")

    assert "42" == answer(result).content
    assert [SystemMessage("be brief"), UserMessage("x")] == list(model.requests[0].messages)
    assert ("kid", "knows", "agent") == (child.name, *_told(child))
    assert (True, False) == (child.tool.needs_approval, child.takes_over)
    for options in ({"max_steps": 0}, {"max_stpes": 3}):
        with pytest.raises(ConfigError, match="max_st"):
            agent_tool(ScriptedModel([]), description="d", **wrong(options))


def _told(child: AgentTool) -> tuple[str, str]:
    return child.tool.spec.description, child.tool.spec.kind


def test_a_child_is_a_run_of_its_own() -> None:
    store = MemoryStore()

    result = asked(kid("42"), store=store)

    child_id = f"{result.run_id}/c0.0"
    assert [result.run_id, child_id] == sorted(asyncio.run(store.runs()))
    assert "42" == result.children[child_id].record.steps[0].text
    assert 1 == result.children[child_id].setup.depth


def half(answered: Reply) -> float:
    """Price any reply alike."""
    return 0.5


def test_a_child_s_tokens_cost_and_calls_are_its_parent_s() -> None:
    tools = [Ledger().tool("note")]

    good = asked(kid(reply(call("note")), "42", tools=tools, price=half), price=half)
    bad = asked(kid(reply(call("note")), OSError("line"), tools=tools, price=half), price=half)

    assert (4, 1) == (good.run.spent.model_calls, good.run.spent.tool_calls)
    assert 2.0 == good.cost_usd
    assert 4 * 10 == good.run.spent.usage.input_tokens
    assert (3, 1) == (bad.run.spent.model_calls, bad.run.spent.tool_calls)
    assert 1.5 == bad.cost_usd
    assert ("error", "The agent failed: OSError: line") == (answer(bad).status, answer(bad).content)
    assert "done" == bad.text


def test_arguments_are_checked_before_a_child_is_started() -> None:
    result = asked(kid(), reply(call("kid", "k", '{"task": "look"}')), "done")

    assert "invalid" == answer(result).status
    assert {} == result.children


def test_a_handoff_reads_the_conversation_and_gives_the_answer() -> None:
    model = ScriptedModel(["your refund is on its way"], label="m")
    child = Agent(model, name="kid", instructions="refunds").as_tool(
        description="d", takes_over=True
    )
    history: list[Message] = [
        UserMessage("I want"),
        AssistantMessage((TextPart("yes?"),)),
        UserMessage("money"),
    ]
    agent = Agent(
        ScriptedModel([reply("wait", call("kid", "k"))]), tools=[child], instructions="front desk"
    )

    result = asyncio.run(agent.generate(messages=history))

    assert [SystemMessage("refunds"), *history] == list(model.requests[0].messages)
    assert "your refund is on its way" == result.text
    assert EndReason.COMPLETED is result.end_reason
    assert ["assistant", "tool", "assistant"] == [one.role for one in result.messages]
    assert AssistantMessage((TextPart(result.text),)) == result.messages[-1]


def test_a_handoff_beside_other_calls_ends_the_run_after_them() -> None:
    ledger, order = Ledger(), ("note", "kid", "other", "note")
    model, idle = ScriptedModel(["yours truly"], label="m"), ScriptedModel([], label="i")
    tools: list[AnyTool | AgentTool] = [
        ledger.tool("note"),
        Agent(model, name="kid").as_tool(description="d", takes_over=True),
        Agent(idle, name="other").as_tool(description="d", takes_over=True),
    ]
    agent = Agent(ScriptedModel([reply("wait", *(call(name) for name in order))]), tools=tools)

    result = asyncio.run(agent.generate("go"))

    assert ("yours truly", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert ["ok", "ok", "error", "ok"] == [one.status for one in result.steps[0].tool_results]
    assert list(order) == [one.name for one in result.steps[0].tool_results]
    roles = [one.role for one in result.messages]
    assert ["assistant", "tool", "tool", "tool", "tool", "assistant"] == roles
    (request,) = model.requests
    assert ["user", "assistant", "tool", "tool"] == [one.role for one in request.messages]
    assert (2, []) == (ledger.done.total(), list(idle.requests))


def test_a_handoff_that_fails_is_handed_back() -> None:
    result = asked(kid(OSError("line"), takes_over=True), reply(call("kid", "k")), "sorry")

    assert "sorry" == result.text
    assert "error" == answer(result).status


async def test_a_child_s_client_tool_parks_the_root() -> None:
    client = Tool(name="client", parameters={"type": "object"})

    agent = Agent(
        ScriptedModel([ASK, "done"]), tools=[kid(reply(call("client")), "42", tools=[client])]
    )
    parked = await agent.generate("go")
    (one,) = parked.pending
    assert ("c0.0/c0.0", "client_tool", ("kid",)) == (one.key, one.kind, one.agents)
    result = await agent.resume(parked, tool_results={one.key: "theirs"})

    assert "42" == answer(result).content
    assert "done" == result.text


def _start(arguments: str) -> StartRun:
    return StartRun(1, "c0.0", "kid", arguments, ())


def test_arguments_that_are_no_task_are_refused() -> None:
    child = kid("42")
    ports: Ports[None] = Ports(store=MemoryStore(), models={}, toolbox=Toolbox(()))

    opened = child.open(_start('{"prompt": "look"}'), fresh(), ports)

    async def begun() -> Started:
        return await opened.begin()

    with pytest.raises(ConfigError, match="a text as `prompt`, found 3"):
        child.open(_start('{"prompt": 3}'), fresh(), ports)

    assert (UserMessage("look"),) == asyncio.run(begun()).messages
    assert ("r/c0.0", ("c0.0",)) == (opened.run_id, opened.ports.path)


def pay() -> str:
    """Pay."""
    return "paid"


def test_a_signed_child_is_not_called_by_an_unsigned_parent() -> None:
    payer = agent_tool(
        ScriptedModel(["paid"], label="kid"),
        name="payer",
        description="Pays.",
        tools=[tool(pay, needs_approval=True)],
        approval_secret=b"kid",
    )

    with pytest.raises(ConfigError, match="'payer' takes signed approvals only"):
        Agent(ScriptedModel(["done"]), tools=[payer])
    parent = Agent(ScriptedModel(["done"]), tools=[payer], approval_secret=b"mine")
    assert "approval_secret" not in parent.options


def test_the_same_rules_or_fewer_are_no_other_rules() -> None:
    kept = (Never("tool:x"), Never("tool:y"))
    run = evolve(fresh(), setup=Setup(watch=kept))

    refuse_other_rules(run, kept[:1])
    refuse_other_rules(run, ())
    with pytest.raises(ConfigError, match=r"expected never tool:x; never tool:y, found never node"):
        refuse_other_rules(run, (*kept, Never("node:z")))


def test_a_child_is_not_offered_tools_that_no_gate_could_stop() -> None:
    search, fetch = (ToolSpec(name, "", "{}", "provider") for name in ("search", "fetch"))
    own = ToolSpec("own", "", "{}")

    offered = (search, fetch, own)
    assert (fetch, own) == child_tools(
        offered, Setup(watch=(Never("tool:search"), Never("tool:own")))
    )
    assert (own,) == child_tools(offered, Setup(watch=(Never("tool:*"),)))
    assert offered == child_tools(offered, Setup())


def test_rules_far_above_are_known_by_the_gates_they_have_put() -> None:
    (first,) = beyond_watch(Setup(watch=(Never("tool:search"),)), ())
    middle = Setup(rules=(deny("other").rules, first.rules), watch=(Never("tool:own"),))
    search, own = ToolSpec("search", "", "{}", "provider"), ToolSpec("own", "", "{}")

    (both,) = beyond_watch(middle, (first,))

    assert (deny("search", "own", reason=REASON) | allow("*")).rules == both.rules
    assert (own,) == child_tools((search, own), middle)


DEEP = "graph 'g2': 'k0' would be more than 2 agents deep. Fix: max_agent_depth=3"


def asking_once() -> Graph[None]:
    """Return a graph that asks a model once."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {Answered: append, ...: END},
        append: {...: END},
    }
    return Graph("once", prepare, edges)


def came_to(graph: Graph[None], **options: int) -> str:
    """Return what a run came to, of agents that all say nothing."""
    try:
        result = asyncio.run(graph.run(None, prompt="go", **options))  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - what it raises is what is looked at
        return str(error)
    return result.end_reason.value


def test_a_run_that_would_go_too_deep_does_not_begin() -> None:
    assert "ScriptExhausted" in came_to(nest(asking_once(), 2))
    assert DEEP == came_to(nest(asking_once(), 3))
    assert "ScriptExhausted" in came_to(nest(asking_once(), 3), max_agent_depth=3)
    assert "'k0' would be more than 1 agents deep. Fix: max_agent_depth=2" in came_to(
        nest(asking_once(), 2), max_agent_depth=1
    )


def test_agents_too_deep_for_the_default_are_refused() -> None:
    def above(agent: Agent, name: str) -> Agent:
        tool = agent.as_tool(description="Ask.", name=agent.name)
        return Agent(ScriptedModel(["done"]), name=name, tools=[tool])

    def limited(agent: Agent, depth: int) -> Agent:
        tool = agent.as_tool(description="Ask.", name=agent.name)
        return Agent(ScriptedModel(["done"]), tools=[tool], max_agent_depth=depth)

    leaf = Agent(ScriptedModel(["done"]), name="leaf")
    top = above(above(leaf, "mid"), "top")

    with pytest.raises(ConfigError) as told:
        above(top, "boss")
    assert "expected at least 3, as agents call each other ('top' > 'mid'" in str(told.value)
    assert "Fix: max_agent_depth=3; or give max_agent_depth=2" in str(told.value)
    limited(top, 2)
    above(limited(top, 1), "boss")


def test_a_repr_counts_the_tools_that_an_agent_was_given() -> None:
    """The tools of its agents, and the one that takes a typed answer, are not the user's."""
    worker = Agent(ScriptedModel([]), name="worker", tools=[kid()])
    boss = Agent(
        ScriptedModel([], label="m"), tools=[worker.as_tool(description="w")], output_type=int
    )

    assert "<Agent 'agent': m, 1 tool>" == repr(boss)
    assert "<Agent 'agent': m, 0 tools>" == repr(boss.with_options(tools=[]))
