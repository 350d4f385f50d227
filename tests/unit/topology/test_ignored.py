"""What a file sets aside: findings of nodes that there are, each once."""

from __future__ import annotations

import pytest

from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.loaded import load
from graphloop.topology.reader import read_text
from graphloop.topology.registration import RegisteredNames, Registry

FILE = """\
graphloop: 1
name: t
start: draft
agents:
  writer:
    graph:
      name: inner
      start: said
      agents:
        deep:
          graph:
            {name: d, start: low, nodes: {low: {use: append}}, edges: {low: {else: END}}}
      nodes: {said: {use: append}, ask: {use: child, agent: deep}}
      edges: {said: {else: ask}, ask: {else: END}}
  other: {given: true}
nodes: {draft: {use: child, agent: writer}, ask: {use: child, agent: other}, own: {use: mine}}
edges: {draft: {else: ask}, ask: {else: own}, own: {else: END}}
"""


def names() -> RegisteredNames:
    """Return what the file names: a node that brings a graph."""
    text = "graphloop: 1\nname: b\nstart: bit\nnodes: {bit: {use: append}}\n"
    brought = load(text + "edges: {bit: {else: END}}\n")
    registry = Registry()
    registry.node(sub_graph(brought, name="own"), name="mine")
    return RegisteredNames(registry, installed=False)


def ignoring(*nodes: str) -> str:
    """Return the file that sets a finding of each of these nodes aside."""
    said = ", ".join(f"{{node: '{one}', code: GL3, reason: seen}}" for one in nodes)
    return f"{FILE}ignore: [{said}]\n"


def test_nodes_at_any_depth_are_set_aside() -> None:
    """Of agents, of agents' agents, of what a registered node brings; an agent as a whole."""
    every = ("draft", "writer/said", "writer/", "writer/deep/low", "writer/deep/", "own/bit")

    document = read_text(ignoring(*every), names())

    assert [(one, "GL3") for one in every] == [*document.ignore]


def test_below_an_agent_that_is_given_nobody_knows_the_nodes() -> None:
    """A run brings it."""
    assert 1 == len(read_text(ignoring("other/anything/at all"), names()).ignore)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("drft", "there is no node 'drft'. Did you mean 'draft'"),
        ("writer", "there is no node 'writer'. Fix: write 'writer/' for the agent as a whole"),
        ("writer/sad", "there is no node 'sad' of the agent 'writer'. Did you mean 'said'"),
        ("writer/deep/lw", "there is no node 'lw' of the agent 'deep'. Did you mean 'low'"),
        ("wrter/said", "'wrter' is no agent, so nothing stands below it. Did you mean 'writer'"),
        ("draft/said", "'draft' runs no agent, so nothing stands below it"),
        ("writer/said/x", "'said' of the agent 'writer' runs no agent"),
        ("own/bat", "there is no node 'bat' of the agent 'own'. Did you mean 'bit'"),
    ],
)
def test_a_node_that_there_is_not_is_refused_where_it_stands(path: str, said: str) -> None:
    """It would set nothing aside, and only the checker would say so."""
    with pytest.raises(TopologyError) as refused:
        read_text(ignoring("draft", path), names())

    (problem,) = refused.value.problems
    assert said in str(problem)
    line, column = problem.place.split(":")[1:]
    assert path == ignoring("draft", path).splitlines()[int(line) - 1][int(column) :][: len(path)]


def test_a_finding_is_set_aside_once() -> None:
    """Of two reasons one would be dropped."""
    twice = FILE + (
        "ignore:\n- {node: draft, code: GL3, reason: seen by Ann}\n"
        "- {code: GL3, reason: of the graph}\n- {node: draft, code: GL3, reason: seen by Bob}\n"
    )

    with pytest.raises(TopologyError) as refused:
        read_text(twice, names(), "a.yaml")

    lines = twice.splitlines()
    first = lines.index("- {node: draft, code: GL3, reason: seen by Ann}") + 1
    (problem,) = refused.value.problems
    assert f"a.yaml:{first + 2}:3" == problem.place
    assert f"GL3 of 'draft' is set aside twice, first on line {first}." == problem.found


def test_what_a_registered_agent_has_below_is_set_aside() -> None:
    """It is one of the tools; its nodes are found by their own names."""
    registry = Registry()
    brought = "graphloop: 1\nname: b\nstart: a\nnodes: {a: {use: append}}\n"
    graph = load(brought + "edges: {a: {else: END}}\n")
    registry.tool(graph.as_tool(None, description="helps", name="helper"), name="helper")
    text = FILE.replace("own: {use: mine}", "own: {use: append}")
    text += "tools: [helper]\nignore: [{node: helper/a, code: GL3, reason: seen}]\n"

    read = read_text(text, RegisteredNames(registry, installed=False))

    assert {("helper/a", "GL3"): "seen"} == read.ignore
