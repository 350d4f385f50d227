"""Families of loops: every agent that a run can start, by whoever knows it."""

from __future__ import annotations

from graphloop import Agent, agent_tool
from graphloop.agent.graph import Graph
from graphloop.cli.draw import family_of
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.outcomes import Answered
from graphloop.own_nodes import sub_graph
from graphloop.testing import ScriptedModel
from graphloop.topology.agents import with_agents
from graphloop.topology.loaded import load
from graphloop.views.family import Family, members
from tests.unit.topology.test_with_agents import CHAIN, REPLY

LEAF = agent_tool(ScriptedModel(()), name="leaf", description="Ends.")
KID = agent_tool(ScriptedModel(()), name="kid", description="Asks the leaf.", tools=[LEAF])

FILE = """
graphloop: 1
name: desk
start: prepare_step
tools: [helper]
agents:
  helper:
    description: Helps.
    graph:
      name: helper
      start: append
      nodes: {append: {use: append}}
      edges: {append: {else: END}}
nodes: {prepare_step: {use: prepare_step}, gate: {use: gate}, execute: {use: execute}}
edges:
  prepare_step: {calls: gate, else: END}
  gate: {settled: execute, else: END}
  execute: {else: END}
"""


def names(family: Family) -> list[object]:
    """Return who is run where, as a tree."""
    return [(one.node, one.name, names(one.family)) for one in members(family)]


def test_the_agents_of_an_agent_are_found_at_any_depth() -> None:
    """They run where its tools run."""
    assert [("execute", "kid", [("execute", "leaf", [])])] == names(
        family_of(Agent(ScriptedModel(()), tools=[KID]))
    )
    assert [] == names(family_of(Agent(ScriptedModel(()))))


def test_the_agents_of_a_graph_are_its_nodes_and_those_it_is_given() -> None:
    """A node that is a graph brings its own agents along."""
    child = sub_graph(Agent(ScriptedModel(()), tools=[LEAF], name="writer"))
    append = Append()
    graph: Graph[None] = Graph(
        "g", child, {child: {Answered: append, ...: END}, append: {...: END}}
    )

    assert [("writer", "writer", [("execute", "leaf", [])])] == names(family_of(graph))
    standard = Agent(ScriptedModel(())).graph
    assert [("execute", "leaf", [])] == names(family_of(standard, [LEAF]))


def test_the_agents_of_a_file_are_those_that_it_says() -> None:
    """As tools, and as nodes."""
    assert [("execute", "helper", [])] == names(family_of(load(FILE)))
    chain = with_agents(CHAIN, {"writer": REPLY, "judge": REPLY})
    assert [("draft", "writer", []), ("vote", "judge", [])] == names(family_of(chain))
