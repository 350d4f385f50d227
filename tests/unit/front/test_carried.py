"""Carried: what nodes bring along, and whether a graph asks a model."""

from __future__ import annotations

import pytest

from graphloop import END, Agent, Graph, node, sub_graph
from graphloop.errors import ConfigError
from graphloop.front.carried import asks_model, carried_by, unwrapped
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Critique, ModelCall, Retrying
from graphloop.outcomes import Outcome
from graphloop.testing import ScriptedModel
from tests.own_nodes import Billing, Ticket, route


def test_what_wrapped_nodes_bring_is_brought_too() -> None:
    """A function that is tried again is still the user's."""
    child = sub_graph(Agent(ScriptedModel(["hi"]), name="writer"))

    carried = carried_by([Retrying(route, 2), child, Append()])

    assert {"route"} == set(carried.callbacks)
    assert {"writer"} == set(carried.agents)
    assert ["append"] == [one.name for one in unwrapped([Append()])]


def test_two_things_of_one_name_are_refused() -> None:
    """A wish names what it wants; the same thing twice is one."""

    @node(name="route")
    def twin(ticket: Ticket) -> Billing:
        return Billing()

    assert {"route"} == set(carried_by([route, Retrying(route, 2)]).callbacks)
    with pytest.raises(ConfigError, match="two different functions are brought along as 'route'"):
        carried_by([route, twin])
    agents = [sub_graph(Agent(ScriptedModel([]), name=one), name="kid") for one in "ab"]
    with pytest.raises(ConfigError, match="two different agents are brought along as 'kid'"):
        carried_by(agents)


def test_a_graph_that_asks_a_model_says_so() -> None:
    """Whatever the node is called; a child's model is the child's own."""
    child = sub_graph(Agent(ScriptedModel(["hi"]), name="writer"))

    nodes: list[tuple[Node[Ticket, Outcome], bool]] = [
        (ModelCall(), True),
        (Critique("?"), True),
        (child, False),
        (route, False),
    ]

    for one, asks in nodes:
        assert asks == asks_model(Graph("a", one, {one: {...: END}}, state_type=Ticket))
