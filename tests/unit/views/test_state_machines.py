"""State machines have the states and transitions of the table."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from graphloop.agent.agent import Agent
from graphloop.graph import END, NodeGraph
from graphloop.nodes import Append, Limit
from graphloop.providers.script import ScriptedModel
from graphloop.views.state_machines import NAMESPACE, scxml, xstate

XMLNS = "{http://www.w3.org/2005/07/scxml}"


def odd() -> NodeGraph[None]:
    """Return a graph whose names are no XML ids."""
    first, second = Limit(1, name='a <"b" & c>'), Append("node-1")
    return NodeGraph("odd & end", first, {first: {...: second}, second: {...: END}})


GRAPHS = pytest.mark.parametrize("graph", [Agent(ScriptedModel(())).graph, odd()])


@GRAPHS
def test_scxml_is_the_table(graph: NodeGraph[None]) -> None:
    root = ElementTree.fromstring(scxml(graph))  # noqa: S314 - of our own making
    states = [*root.iter(f"{XMLNS}state"), *root.iter(f"{XMLNS}final")]
    names = {
        state.attrib["id"]: state.get(f"{{{NAMESPACE}}}name", state.attrib["id"])
        for state in states
    }

    assert [(edge.source, edge.outcome, edge.target) for edge in graph.edges] == [
        (names[state.attrib["id"]], line.attrib["event"], names[line.attrib["target"]])
        for state in states
        for line in state.iter(f"{XMLNS}transition")
    ]
    assert graph.start == names[root.attrib["initial"]]
    assert graph.name == root.attrib["name"]
    assert [*graph.nodes, "END"] == [*names.values()]


@GRAPHS
def test_xstate_is_the_table(graph: NodeGraph[None]) -> None:
    machine = json.loads(xstate(graph))
    states = machine["states"]
    names = {key: state.get("meta", {"name": "END"})["name"] for key, state in states.items()}

    assert [(edge.source, edge.outcome, edge.target) for edge in graph.edges] == [
        (names[key], event, names[target])
        for key, state in states.items()
        for event, target in state.get("on", {}).items()
    ]
    assert graph.start == names[machine["initial"]]
    assert ["END"] == [key for key, state in states.items() if state.get("type") == "final"]
