"""What a graph knows of its runs: the agents that models call, and what runs are given."""

from __future__ import annotations

from graphloop import Agent, agent_tool, tool
from graphloop.agent.graph import Graph
from graphloop.agent.known import graph_of
from graphloop.agent.sub_agents import AgentTool
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.outcomes import Answered
from graphloop.own_nodes import sub_graph
from graphloop.testing import ScriptedModel
from graphloop.topology.loaded import load
from graphloop.topology.registration import Registry

MODEL = ScriptedModel(())


def bypassing(name: str = "worker") -> Graph[None]:
    """Return an agent's graph in which tools run past the gate."""
    return load(LOOP.format(name=name, calls="execute", more="", agents=""))


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
  execute: {{held: gate, else: append}}
  append: {{answered_calls: stop_check, resend: stop_check, else: END}}
  stop_check: {{go: prepare_step, else: END}}
{more}
"""


@tool
def refund(amount: int = 1) -> str:
    """Pay back."""
    return str(amount)


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


def test_an_agent_that_a_file_offers_as_a_tool_is_proven() -> None:
    """A gate that it leads past is nobody's but its own."""
    report = load(boss("execute")).check()

    assert not report.ok
    assert ["worker/execute"] == [one.node for one in report.findings if one.code == "GL2"]
    assert load(boss("gate")).check().ok
    assert "GL2" in load(boss("gate")).check().proven


def test_its_findings_are_set_aside_by_name() -> None:
    """As those of an agent that a node runs."""
    more = 'ignore: [{node: worker/execute, code: GL2, reason: "It only reads."}]'
    report = load(boss("execute", more)).check()

    assert report.ok
    assert ["worker/execute"] == [one.finding.node for one in report.suppressed]


def test_its_differences_are_told() -> None:
    """Its parent's table is the same."""
    found = load(boss("gate")).diff(load(boss("execute")))

    assert found.weaker
    assert "in the agent 'worker':" in str(found)
    assert "`execute` becomes reachable without `gate`" in str(found)


def test_an_agent_of_an_agent_is_proven_at_any_depth() -> None:
    """A graph that is called as a tool has tools of its own."""
    worker = bypassing().as_tool(None, model=MODEL, description="Works.", tools=[refund])
    middle = agent_tool(MODEL, name="middle", description="Asks.", tools=[worker])
    agent = Agent(MODEL, tools=[middle])

    report = agent.graph.check()
    assert ["middle/worker/execute"] == [one.node for one in report.findings if one.code == "GL2"]
    child = sub_graph(agent, name="kid")
    append = Append()
    graph: Graph[None] = Graph(
        "g", child, {child: {Answered: append, ...: END}, append: {...: END}}
    )
    assert "kid/middle/worker/execute" in [one.node for one in graph.check().findings]


def test_an_agent_among_registered_tools_is_known() -> None:
    """A file names it as any tool."""
    registry = Registry()
    registry.tool(agent_tool(MODEL, name="helper", description="Helps."))
    text = LOOP.format(name="g", calls="gate", more="", agents="tools: [helper]").replace(
        ", rules: [{ask: [refund]}]", ""
    )
    graph = load(text, registry=registry)

    assert {"helper"} == graph.called
    assert graph.check().ok


def test_of_an_opener_of_somebody_elses_nothing_is_proven() -> None:
    """What it runs, nobody has looked at."""
    ours = agent_tool(MODEL, name="odd", description="Is odd.")

    class Odd:
        """Begins what it likes."""

        def __getattr__(self, name: str) -> object:
            return getattr(ours.opener, name)

    odd = AgentTool(ours.tool, Odd())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    report = Agent(MODEL, tools=[odd]).graph.check()

    assert graph_of(odd.opener) is None
    assert {"GL2", "GL3", "GL4", "GL9"} <= {one.code for one in report.unknown}
    assert all("'odd'" in one.reason for one in report.unknown if one.code != "GL12")
