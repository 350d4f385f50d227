"""XState: read back, it is the table."""

from __future__ import annotations

import json

from graphloop.front.agent import Agent
from graphloop.graph import END, Graph
from graphloop.nodes import Append, Limit
from graphloop.providers.script import ScriptedModel
from graphloop.views.xstate import xstate


def odd() -> Graph[None]:
    """Return a graph whose names are not for every tool."""
    first, second = Limit(1, name='a <"b" & c>'), Append("node_1")
    return Graph("odd & end", first, {first: {...: second}, second: {...: END}})


def test_what_is_read_back_is_the_table() -> None:
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
