"""GL7 to GL9: children side by side, joins, gates and budgets."""

from __future__ import annotations

import pytest

from graphloop.agent.agent import Agent
from graphloop.agent.graph import Graph
from graphloop.agent.sub_agents import AgentTool
from graphloop.graph import END
from graphloop.own_nodes.sub_graphs import StatelessSubGraph, sub_graph
from graphloop.policy.policy import allow, deny
from graphloop.proofs.checking import check
from graphloop.proofs.report import PROPERTIES
from graphloop.providers.script import ScriptedModel
from graphloop.spending import Budget
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = ("two writers side by side", "join that waits for too many", "child gate weakened")


@pytest.mark.parametrize("name", NAMES)
def test_children_that_may_do_too_much_are_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard())))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven


MODEL = ScriptedModel([])
GREEDY = Agent(MODEL, name="greedy", gate=allow("*"), budget=Budget(tool_calls=50))


def agent_with(child: StatelessSubGraph | Agent) -> Agent:
    """Return an agent of one tool call that may not write, and has a child as a tool."""
    tool = child.as_tool(description="d") if isinstance(child, Agent) else desk(child)
    return Agent(MODEL, tools=[tool], gate=deny("write*"), budget=Budget(tool_calls=1))


def desk(child: StatelessSubGraph) -> AgentTool:
    """Return a tool that is a graph of one node."""
    graph: Graph[None] = Graph("desk", child, {child: {...: END}})
    return graph.as_tool(None, description="d")


def test_a_node_gives_no_more_than_the_agent_has() -> None:
    """An agent knows what its runs may spend, so nobody has to say it again."""
    generous = sub_graph(Agent(MODEL, name="a"), name="kid", budget=Budget(tool_calls=50))

    (finding,) = [one for one in agent_with(generous).graph.check().findings if one.code == "GL9"]
    assert "desk/kid" == finding.node
    assert "may spend 50 tool_calls, its parent 1" in finding.message


def test_an_agent_s_own_options_claim_nothing() -> None:
    """It may be of use elsewhere too, and is held to what its parent may: that is no mistake."""
    assert "gives" in PROPERTIES["GL9"]
    assert "GL9" in agent_with(GREEDY).graph.check().proven
    assert "GL9" in agent_with(sub_graph(GREEDY, name="kid")).graph.check().proven
