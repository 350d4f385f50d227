"""State machines: read back, they are the table."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from graphloop.agent.agent import Agent
from graphloop.graph import END, NodeGraph
from graphloop.nodes import Append, Limit
from graphloop.providers.script import ScriptedModel
from graphloop.views.state_machines import NAMESPACE, scxml, xstate

XMLNS = "{http://www.w3.org/2005/07/scxml}"


def odd() -> NodeGraph[None]:
    """Return a graph whose names are not for every tool."""
    first, second = Limit(1, name='a <"b" & c>'), Append("node-1")
    return NodeGraph("odd & end", first, {first: {...: second}, second: {...: END}})


def test_what_is_read_back_from_scxml_is_the_table() -> None:
    """Every edge, no other, in the same order; the start and the end, too."""
    for graph in (Agent(ScriptedModel(())).graph, odd()):
        root = ElementTree.fromstring(scxml(graph))  # noqa: S314 - of our own making
        places = [*root.iter(f"{XMLNS}state"), *root.iter(f"{XMLNS}final")]
        named = {
            one.attrib["id"]: one.get(f"{{{NAMESPACE}}}name", one.attrib["id"]) for one in places
        }

        read = [
            (named[place.attrib["id"]], one.attrib["event"], named[one.attrib["target"]])
            for place in places
            for one in place.iter(f"{XMLNS}transition")
        ]

        assert [(one.source, one.outcome, one.target) for one in graph.edges] == read
        assert graph.start == named[root.attrib["initial"]]
        assert graph.name == root.attrib["name"]
        assert [*graph.nodes, "END"] == [*named.values()]


def test_what_is_read_back_from_xstate_is_the_table() -> None:
    """Every edge, no other, in the same order; the start and the end, too."""
    for graph in (Agent(ScriptedModel(())).graph, odd()):
        machine = json.loads(xstate(graph))
        states = machine["states"]
        named = {key: one.get("meta", {"name": "END"})["name"] for key, one in states.items()}

        read = [
            (named[key], event, named[target])
            for key, one in states.items()
            for event, target in one.get("on", {}).items()
        ]

        assert [(one.source, one.outcome, one.target) for one in graph.edges] == read
        assert graph.start == named[machine["initial"]]
        assert ["END"] == [key for key, one in states.items() if one.get("type") == "final"]
