"""check: all proofs at once, over the whole of a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from graphloop.agent.agent import Agent
from graphloop.agent.graph import Graph
from graphloop.errors import ConfigError
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Child
from graphloop.outcomes import Answered, Outcome
from graphloop.own_nodes.compose import parallel, retry
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.proofs.checking import check
from graphloop.proofs.nested import NEST_MAX, USES_MAX
from graphloop.proofs.report import PROPERTIES
from graphloop.providers.script import ScriptedModel
from graphloop.rules import Rules, at_most, never
from graphloop.topology.agents import with_agents
from graphloop.topology.loaded import load
from tests.graphs import agent, any_graphs
from tests.nested_graphs import nest, shared, ungated
from tests.topology_data import MUTANTS, graph_of, standard


def test_the_standard_loop_is_proven() -> None:
    """It is what most users run."""
    report = check(agent())

    assert () == report.findings
    assert ["GL12"] == [one.code for one in report.unknown]
    assert {*PROPERTIES} == {*report.proven, "GL12"}


@given(any_graphs())
def test_every_property_is_somewhere_in_the_report_of_any_graph(graph: NodeGraph[None]) -> None:
    """A property that is nowhere would be a silent pass."""
    report = check(graph)

    told = {one.code for one in report.findings} | {one.code for one in report.unknown}
    assert {*PROPERTIES} == {*report.proven} | told
    assert not {*report.proven} & told


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Who mends one thing wants to know the next."""
    topology = standard()
    for mutant in MUTANTS:
        if mutant.name in {"gate bypassed by a conversation", "append skipped after running"}:
            mutant.spoil(topology)

    assert {"GL2", "GL3"} == {one.code for one in check(graph_of(topology)).findings}


def test_a_finding_that_is_set_aside_is_shown_with_its_reason() -> None:
    """A reviewer sees what was waved through, and why."""
    (mutant,) = (one for one in MUTANTS if one.name == "aborted calls not answered")
    graph = graph_of(mutant.of(standard()))

    report = check(graph, ignore={("gate", "GL3"): "an aborted run is thrown away"})

    assert report.ok
    assert ["an aborted run is thrown away"] == [one.reason for one in report.suppressed]
    assert "GL3" not in report.proven


def test_a_graph_whose_start_is_lost_is_reported_and_not_walked() -> None:
    """What nobody arrives at has no paths."""
    graph = agent()
    graph.start = "nowhere"

    assert not check(graph).ok


@pytest.mark.parametrize("deep", [1, 17, NEST_MAX, NEST_MAX + 1])
def test_what_is_deeper_than_anybody_looks_is_unknown(deep: int) -> None:
    """It was passed over in silence, and everything above it was proven."""
    report = check(nest(ungated(), deep))

    assert "GL2" not in report.proven
    if deep <= NEST_MAX:
        assert ["GL2"] == [one.code for one in report.findings]
    else:
        assert {*PROPERTIES} == {one.code for one in report.unknown}
        assert "graphs deep" in report.unknown[0].reason


def test_a_graph_that_is_used_everywhere_is_proven_once() -> None:
    """Sixty levels would be 2 to the 60 uses, and nobody would see the end of it."""
    report = check(shared(ungated(), 60))

    assert {"GL2"} == {one.code for one in report.findings}
    assert len(report.findings) <= USES_MAX


def test_an_agent_that_several_nodes_run_is_told_once() -> None:
    """It has one name there, by which what is wrong with it is set aside at once."""
    nodes = [Child("kid", f"call{at}", "go") for at in range(6)]
    edges: Edges[None] = {
        one: {Answered: nodes[at + 1] if at < 5 else END, ...: END} for at, one in enumerate(nodes)
    }
    graph = with_agents(Graph("top", nodes[0], edges), {"kid": ungated()})

    assert ["kid/execute"] == [one.node for one in graph.check().findings]
    assert 1 == len(graph.check(ignore={("kid/execute", "GL2"): "reads only"}).suppressed)


@pytest.mark.parametrize("node", [Child("desk"), retry(Child("desk"), 2), parallel("a", "desk")])
def test_an_agent_that_is_only_named_is_not_proven(node: Node[None, Outcome]) -> None:
    """Its tools may have no gate, and its loop no bound."""
    append = Append()
    edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}
    graph = Graph("named", node, edges)
    report = check(graph)

    assert () == report.proven
    assert any("'desk'" in one.reason and "with_agents" in one.reason for one in report.unknown)
    given = {name: agent() for name in ("a", "desk") if f"'{name}'" in str(report)}
    assert {*PROPERTIES} - {"GL12"} == {*check(with_agents(graph, given)).proven}


NEVER = never("node:model_call")
BROKEN = "the rule 'never node:model_call' can be broken."
FILE = """
graphloop: 1
name: {name}
start: {start}
nodes:
{nodes}
edges:
{edges}
{more}
"""


def ruled(*rules: Rules) -> Agent:
    """Return an agent with rules of its own."""
    return Agent(ScriptedModel([]), name="kid", rules=rules)


def around(child: Node[None, Outcome]) -> Graph[None]:
    """Return a graph of one node."""
    edges: Edges[None] = {child: {...: END}}
    return Graph("top", child, edges)


def included(folder: Path, rule: str) -> NodeGraph[Any]:
    """Return a graph that includes another from a file, which brings a rule."""
    kid = FILE.format(
        name="kid",
        start="prepare_step",
        nodes="  prepare_step: {use: prepare_step}\n  model_call: {use: model_call}\n"
        "  append: {use: append}",
        edges="  prepare_step: {ready: model_call, else: append}\n  model_call: {else: append}\n"
        "  append: {else: END}",
        more=f"rules: [{rule}]",
    )
    top = FILE.format(
        name="top",
        start="kid",
        nodes="  kid: {use: child, agent: kid}",
        edges="  kid: {else: END}",
        more="agents: {kid: {include: kid.yaml}}",
    )
    (folder / "kid.yaml").write_text(kid, encoding="utf-8")
    (folder / "top.yaml").write_text(top, encoding="utf-8")
    return load(folder / "top.yaml")


def with_tool(agent: Agent) -> NodeGraph[Any]:
    """Return the graph of an agent that calls another like a tool."""
    return Agent(ScriptedModel([]), tools=[agent.as_tool(description="d")]).graph


def of_tool(agent: Agent) -> NodeGraph[Any]:
    """Return the graph of an agent that calls a graph with rules like a tool."""
    rules = agent.graph.surroundings.options["rules"]
    assert isinstance(rules, Rules)
    tool = around(sub_graph(Agent(ScriptedModel([])), name="model_call")).as_tool(
        None, description="d", name="kid", rules=rules
    )
    return Agent(ScriptedModel([]), tools=[tool]).graph


def as_node(agent: Agent) -> NodeGraph[Any]:
    """Return a graph of which an agent is a node."""
    return around(sub_graph(agent))


@pytest.mark.parametrize(
    "nest_in", [as_node, with_tool, of_tool], ids=["sub_graph", "agent as tool", "graph as tool"]
)
def test_a_rule_of_a_child_is_decided_at_the_child(
    nest_in: Callable[[Agent], NodeGraph[Any]],
) -> None:
    """Its runs keep it, so nothing above is proven that they may break."""
    (broken,) = check(nest_in(ruled(NEVER))).findings
    excuse = {("kid/model_call", "GL12"): "a rule for show"}
    excused = check(nest_in(ruled(NEVER)), ignore=excuse)
    kept = check(nest_in(ruled(at_most("node:END", 1))))

    assert ("GL12", "kid/model_call", BROKEN) == (broken.code, broken.node, broken.message)
    assert "of the child 'kid'" in broken.place
    assert excused.ok
    assert ["a rule for show"] == [one.reason for one in excused.suppressed]
    assert "GL12" not in excused.proven
    assert "GL12" in kept.proven


def test_a_rule_of_an_included_file_is_decided_in_the_file_above(tmp_path: Path) -> None:
    """Where it can be broken, and where it holds."""
    (broken,) = check(included(tmp_path, '{never: "node:model_call"}')).findings
    kept = check(included(tmp_path, '{at_most: "node:END", times: 1}'))

    assert ("GL12", "kid/model_call", BROKEN) == (broken.code, broken.node, broken.message)
    assert (broken.written or "").endswith("kid.yaml:11")
    assert "GL12" in kept.proven


def test_rules_in_too_many_places_are_unknown() -> None:
    """One graph with other rules each time; the last one's can be broken."""
    graph = around(sub_graph(Agent(ScriptedModel([])), name="model_call"))
    rules = [at_most("node:END", times) for times in range(1, USES_MAX + 3)]
    tools = [
        graph.as_tool(None, description="d", name=f"tool{at:03}", rules=one)
        for at, one in enumerate([*rules, NEVER])
    ]
    report = Agent(ScriptedModel([]), tools=tools).graph.check()

    assert not report.findings
    assert any("in more places than are looked at" in one.reason for one in report.unknown)
    assert {"GL9", "GL12"}.isdisjoint(report.proven)


class Refund:
    """What has a name, as a tool does."""

    name = "refund"


def test_tools_are_given_as_tools_or_by_name() -> None:
    """A bare text would be read by its letters."""
    assert () == check(agent(), tools=[Refund(), "read"]).findings
    with pytest.raises(ConfigError, match="check: `tools`: expected tools or their names"):
        check(agent(), tools="refund")
