"""No run asks more models than its bound says, and a check knows the agents of a graph."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import END, Agent, Graph, budget
from graphloop.agent.sub_agents import AgentTool
from graphloop.own_nodes import sub_graph
from graphloop.proofs.bounds import bound
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.topology.loaded import load
from graphloop.topology.registration import Registry
from tests.own_nodes import Ticket
from tests.strategies import call, reply


def helper(*script: Entry, max_steps: int = 1) -> Agent:
    """Return an agent of so many turns, asked twice, for nothing is said at first."""
    told: list[Entry] = [reply(), "done"] if not script else [*script]
    return Agent(ScriptedModel(told, label="helper"), name="helper", max_steps=max_steps)


def lead(
    tool: AgentTool, *script: Entry, max_steps: int = 2, depth: int = 2, name: str = "lead"
) -> Agent:
    """Return an agent that calls the other."""
    model = ScriptedModel([*script], label=name)
    return Agent(model, tools=[tool], name=name, max_steps=max_steps, max_agent_depth=depth)


def spent(agent: Agent) -> int:
    """Return how many models a run asked."""
    return asyncio.run(agent.generate("go")).run.spent.model_calls


def limited(tool: AgentTool, *script: Entry, most: int, name: str = "lead") -> Agent:
    """Return an agent of two turns that may call agents so often."""
    model = ScriptedModel([*script], label=name)
    limit = budget(agent_calls=most)
    return Agent(model, tools=[tool], name=name, max_steps=2, budget=limit)


def test_all_agents_of_a_tree_share_one_number_of_calls() -> None:
    inner = lead(helper().as_tool(description="helps"), name="inner")
    agent = limited(inner.as_tool(description="helps"), most=5)
    assert inner.bound().model_calls is None
    assert 4 + 5 * 4 == agent.bound().model_calls

    node = sub_graph(inner)
    graph = Graph("outer", node, {node: {...: END}}, state_type=Ticket)
    assert "'helper'" in graph.run_bound().missing["model_calls"]
    assert 4 + 3 * 2 == graph.run_bound(budget=budget(agent_calls=3)).model_calls


def test_a_budget_beyond_the_graph_s_bound_changes_nothing() -> None:
    tool = helper().as_tool(description="helps", takes_over=True)
    free, much, few = (
        lead(tool).bound().model_calls,
        limited(tool, most=1_000).bound().model_calls,
        limited(tool, most=1).bound().model_calls,
    )

    assert free == much
    assert 4 + 2 == few


def test_an_agent_that_takes_over_is_counted_once_a_turn() -> None:
    asked = [reply(*[call("helper", f"{turn}.{at}", "{}") for at in range(3)]) for turn in range(2)]
    failing = helper(*[reply()] * 40)
    agent = lead(failing.as_tool(description="helps", takes_over=True), *asked)

    # More than one handover of the 3 that a reply asks for would not be within it.
    assert 2 * 2 + 2 * 6 == agent.bound().model_calls == bound(agent.graph).model_calls
    assert spent(agent) <= 2 * 2 + 2 * 6


def test_tokens_are_those_of_the_dearest_of_all_agents() -> None:
    model = ScriptedModel([])
    small = Agent(model, name="small", max_steps=1, max_tokens=10)
    large = Agent(model, name="large", max_steps=1, max_tokens=50)
    endless = Agent(model, name="endless", max_steps=1)

    def known(*agents: Agent) -> int | None:
        tools = [one.as_tool(description="helps", takes_over=True) for one in agents]
        agent = Agent(model, tools=tools, max_steps=1, max_tokens=20)
        bound = agent.bound(context_window=100)
        calls = bound.model_calls or 0
        return None if bound.tokens is None else bound.tokens // calls

    assert 100 + 2 * 20 == known(small)
    assert 100 + 2 * 50 == known(small, large)
    assert known(small, large, endless) is None


DESK = """\
graphloop: 1
name: desk
start: prepare_step
tools: [writer]
agents:
  writer:
    description: writes
    takes_over: {over}
    graph:
      name: writer
      start: prepare_step
      nodes:
        prepare_step: {{use: prepare_step}}
        model_call: {{use: model_call}}
        append: {{use: append}}
      edges:
        prepare_step: {{ready: model_call, calls: append, else: END}}
        model_call: {{else: append}}
        append: {{else: END}}
nodes:
  prepare_step: {{use: prepare_step}}
  model_call: {{use: model_call}}
  gate: {{use: gate}}
  execute: {{use: execute}}
  append: {{use: append}}
  stop_check: {{use: stop_check, max_steps: 2}}
edges:
  prepare_step: {{ready: model_call, calls: gate, else: END}}
  model_call: {{calls: gate, else: append}}
  gate: {{settled: execute, else: append}}
  execute: {{approval_needed: gate, else: append}}
  append: {{answered_calls: stop_check, resend: stop_check, else: END}}
  stop_check: {{go: prepare_step, else: END}}
"""


@pytest.mark.parametrize("over", [False, True])
def test_a_file_knows_which_of_its_tools_are_agents(over: bool) -> None:
    graph = load(DESK.format(over=str(over).lower()), registry=Registry())
    known = bound(graph)

    assert known == graph.run_bound(model=ScriptedModel([]))
    assert (known.model_calls is None) is not over
    if over:
        assert known.model_calls is not None
        assert known.model_calls > 2


LOOP = """
graphloop: 1
name: {name}
start: prepare_step
{agents}
nodes:
  prepare_step: {{use: prepare_step}}
  model_call: {{use: model_call}}
  gate: {{use: gate, rules: [{{ask: [refund]}}]}}
  execute: {{use: execute}}
  append: {{use: append}}
  stop_check: {{use: stop_check, max_steps: 20}}
edges:
  prepare_step: {{ready: model_call, calls: gate, else: END}}
  model_call: {{calls: {calls}, failed: END, else: append}}
  gate: {{settled: execute, else: append}}
  execute: {{approval_needed: gate, else: append}}
  append: {{answered_calls: stop_check, resend: stop_check, else: END}}
  stop_check: {{go: prepare_step, else: END}}
{more}
"""


def boss(calls: str, more: str = "") -> str:
    """Return a file whose models call an agent, which leads its calls somewhere."""
    lines = LOOP.format(name="worker", calls=calls, more="", agents="").splitlines()[2:]
    inner = "\n".join(f"      {line}" for line in lines)
    agents = f"tools: [worker]\nagents:\n  worker:\n    description: Works.\n    graph:\n{inner}"
    return LOOP.format(name="boss", calls="gate", more=more, agents=agents).replace(
        "gate, rules: [{ask: [refund]}]}\n  execute: {use: execute}\n  append: {use: append}\n  "
        "stop_check: {use: stop_check, max_steps: 20}\nedges:\n  prepare_step: {ready: model_call, "
        "calls: gate, else: END}\n  model_call: {calls: gate",
        "gate}\n  execute: {use: execute}\n  append: {use: append}\n  "
        "stop_check: {use: stop_check, max_steps: 20}\nedges:\n  prepare_step: {ready: model_call, "
        "calls: gate, else: END}\n  model_call: {calls: gate",
    )


def test_a_comparison_shows_changes_in_a_file_s_agent() -> None:
    found = load(boss("gate")).diff(load(boss("execute")))

    assert found.weaker
    assert "in the agent 'worker':" in str(found)
    assert "`execute` becomes reachable without `gate`" in str(found)
