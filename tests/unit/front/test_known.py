"""What a graph knows of its runs: the agents that models call, and what runs are given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop import Agent, agent_tool, budget, sub_graph, tool
from graphloop.front.graph import Graph
from graphloop.front.known import graph_of
from graphloop.front.sub_agents import AgentTool
from graphloop.front.topology import load
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.outcomes import Answered
from graphloop.policy import allow, ask
from graphloop.providers.retries import Retries
from graphloop.providers.timeouts import Timeouts
from graphloop.stop import cost_exceeds, step_count_is
from graphloop.temporal import Rules, at_most, never
from graphloop.testing import ScriptedModel
from graphloop.tools import Tool
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
    assert "in the child 'worker':" in str(found)
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


def some(arguments: object, _: object) -> bool:
    """Say yes to arguments."""
    return bool(arguments)


def none(arguments: object, _: object) -> bool:
    """Say no to them."""
    return not arguments


def asking() -> Tool[..., str]:
    """Return the tool that asks a person."""

    @tool(needs_approval=True)
    def refund(amount: int = 1) -> str:
        """Pay back."""
        return str(amount)

    return refund


def named(retries: Retries | None = None, timeouts: Timeouts | None = None) -> Agent:
    """Return an agent of a model that would be asked over HTTP."""
    return Agent("openai:some", api_key="none", retries=retries, timeouts=timeouts)


def dear(*_: object) -> float:
    """Say that a reply costs something."""
    return 1.0


def free(*_: object) -> float:
    """Say that it costs nothing."""
    return 0.0


AGENTS: list[tuple[Callable[[], Agent], Callable[[], Agent], bool]] = [
    (lambda: Agent(MODEL, instructions="a"), lambda: Agent(MODEL, instructions="b"), False),
    (lambda: Agent(MODEL, tools=[refund]), lambda: Agent(MODEL), False),
    (
        lambda: Agent(MODEL, budget=budget(usd=1)),
        lambda: Agent(MODEL, budget=budget(usd=2)),
        True,
    ),
    (
        lambda: Agent(MODEL, tools=[asking()]),
        lambda: Agent(MODEL, tools=[refund]),
        True,
    ),
    (lambda: Agent(MODEL, verify=lambda _: True), lambda: Agent(MODEL), True),
    (
        lambda: Agent(MODEL, verify=lambda _: True),
        lambda: Agent(MODEL, verify=lambda _: bool("a")),
        True,
    ),
    (
        lambda: Agent(MODEL, tools=[refund], gate=ask("refund")),
        lambda: Agent(MODEL, tools=[refund], gate=allow("refund")),
        True,
    ),
    (
        lambda: Agent(MODEL, tools=[refund], gate=ask("refund", when=some)),
        lambda: Agent(MODEL, tools=[refund], gate=ask("refund", when=none)),
        True,
    ),
    (
        lambda: Agent(MODEL, tools=[asking()], approval_ttl_s=3),
        lambda: Agent(MODEL, tools=[asking()]),
        True,
    ),
    (
        lambda: Agent(MODEL, tools=[asking()], approval_secret="a" * 32),
        lambda: Agent(MODEL, tools=[asking()]),
        True,
    ),
    (lambda: Agent(MODEL, output_type=int), lambda: Agent(MODEL, output_type=str), True),
    (
        lambda: Agent(MODEL, budget=budget(usd=1), price=dear),
        lambda: Agent(MODEL, budget=budget(usd=1), price=free),
        True,
    ),
    (named, lambda: named(retries=Retries(attempts_max=30)), True),
    (named, lambda: named(timeouts=Timeouts(total_s=30_000)), True),
    (
        lambda: Agent(MODEL, stop_when=step_count_is(3)),
        lambda: Agent(MODEL, stop_when=[step_count_is(3), cost_exceeds(4)]),
        False,
    ),
    (lambda: Agent(MODEL), lambda: Agent(MODEL, stop_when=lambda _: True), False),
    (lambda: Agent(MODEL, tools=[asking()]), lambda: Agent(MODEL), False),
]


@pytest.mark.parametrize(("before", "after", "weaker"), AGENTS)
def test_what_agents_are_given_is_compared(
    before: Callable[[], Agent], after: Callable[[], Agent], weaker: bool
) -> None:
    """Their tables are the same, and one of them asks nobody."""
    found = before().graph.diff(after().graph)

    assert not found.none
    assert weaker is found.weaker
    assert before().graph.diff(before().graph).none


def test_one_condition_is_a_list_of_one() -> None:
    """Both stop the very same runs."""
    one = Agent(MODEL, stop_when=step_count_is(3))

    assert one.graph.diff(Agent(MODEL, stop_when=[step_count_is(3)]).graph).none


@pytest.mark.parametrize("as_node", [True, False])
def test_the_rules_of_an_agent_are_told_once(as_node: bool) -> None:
    """With its graph, on which they are decided, and not as an option of the node as well."""
    worker = load(LOOP.format(name="worker", calls="gate", more="", agents=""))

    def used(rules: Rules) -> Graph[None]:
        if not as_node:
            given = worker.as_tool(
                None, model=MODEL, description="W.", tools=[refund], rules=rules, name="worker"
            )
            return Agent(MODEL, tools=[given]).graph
        node = sub_graph(worker, model=MODEL, options={"rules": rules, "tools": [refund]})
        append = Append()
        return Graph("g", node, {node: {Answered: append, ...: END}, append: {...: END}})

    found = used(at_most("tool:refund", 1)).diff(used(at_most("tool:refund", 2)))

    assert not found.verdict
    ((_, inner),) = found.children
    assert ["weaker"] == [one.effect for one in inner.verdict]
    assert "GL12" == inner.verdict[0].subject
    assert used(never("execute")).diff(used(never("execute"))).none


def test_what_the_runs_of_a_graph_are_given_as_a_node_is_compared() -> None:
    """A graph as a node, or as a tool, has options that its table does not know."""
    worker = load(LOOP.format(name="worker", calls="gate", more="", agents=""))
    append = Append()

    def asked(instructions: str) -> Graph[None]:
        node = sub_graph(worker, model=MODEL, options={"instructions": instructions})
        return Graph("g", node, {node: {Answered: append, ...: END}, append: {...: END}})

    def called(instructions: str) -> Graph[None]:
        given = worker.as_tool(None, model=MODEL, description="W.", instructions=instructions)
        return Agent(MODEL, tools=[given]).graph

    for made in (asked, called):
        assert made("a").diff(made("a")).none
        assert not made("a").diff(made("b")).none


def test_a_secret_is_no_fact() -> None:
    """Facts are printed."""
    graph = Agent(MODEL, tools=[asking()], approval_secret="b" * 32).graph

    assert "b" * 32 not in str(graph.facts)
    assert graph.facts["signed"] is True
