"""Carried: what nodes bring along, and whether a graph asks a model."""

from __future__ import annotations

import pytest

from graphloop import END, Agent, Graph, node
from graphloop.agent.bindings import (
    agents_named,
    asks_model,
    carried_by,
    functions_named,
    models_named,
)
from graphloop.conversation.compaction import Compaction
from graphloop.errors import ConfigError, GraphError
from graphloop.graph import Edges
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Child,
    Compact,
    Critique,
    Fallback,
    MapOver,
    ModelCall,
    Parallel,
    PrepareStep,
    Retrying,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Outcome
from graphloop.own_nodes import sub_graph
from graphloop.testing import ScriptedModel
from tests.own_nodes import Billing, Ticket, route
from tests.strategies import wrong


def test_what_wrapped_nodes_bring_is_brought_too() -> None:
    """A function that is tried again is still the user's."""
    child = sub_graph(Agent(ScriptedModel(["hi"]), name="writer"))

    carried = carried_by([Retrying(route, 2), child, Append()])

    assert {"route"} == set(carried.callbacks)
    assert {"writer"} == set(carried.agents)


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


def test_a_graph_whose_nodes_bring_two_things_of_one_name_is_refused() -> None:
    """Every run of it would be; and what is set aside of the one would be of the other."""
    first, second = (sub_graph(Agent(ScriptedModel([]), name=one), name="kid") for one in "ab")
    retried, again = Retrying(first, 1, name="first"), Retrying(second, 1, name="second")
    edges: Edges[None] = {retried: {...: again}, again: {...: END}}

    with pytest.raises(GraphError, match="two different agents are brought along as 'kid'"):
        Graph("desk", retried, edges)
    same = Retrying(first, 1, name="same")
    Graph("desk", retried, {retried: {...: same}, same: {...: END}})


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


def test_models_are_named_by_the_nodes_that_ask_them() -> None:
    """Those within others, too; the first that names one is told."""
    critique: Node[None, Outcome] = Critique("Good?", model="judge")
    wrapped: Node[None, Outcome] = Retrying(critique, 2)
    nodes: list[Node[None, Outcome]] = [
        ModelCall(model="large", fallbacks=("small", "judge")),
        wrapped,
        Compact(compaction=Compaction(context_window=9_000, summary_model="cheap")),
        Compact(name="later"),
        ModelCall(name="own"),
        Append(),
    ]

    assert {
        "large": "model_call",
        "small": "model_call",
        "judge": "model_call",
        "cheap": "compact",
    } == models_named(nodes)


def test_agents_are_named_by_the_nodes_that_run_them() -> None:
    """As their contracts tell it; a node within another is looked at, too."""
    pair: Node[None, Outcome] = Fallback(Child("a"), Child("b"))
    nodes: list[Node[None, Outcome]] = [
        *(Retrying(pair, 2), Parallel(wrong(("b", "c"))), MapOver("d", 3), Append()),
    ]

    assert {"a": "a_or_b", "b": "a_or_b", "c": "parallel", "d": "map_over"} == agents_named(nodes)


def test_functions_are_named_by_the_nodes_that_invoke_them() -> None:
    """Each node of the library that can name one."""
    checks = (AnswerCheck("good", 1), AnswerCheck("short", 1))
    vote: Node[None, Outcome] = Parallel(wrong(("a",)), callback="join")
    nodes: list[Node[None, Outcome]] = [
        *(PrepareStep(callback="prepare"), StopCheck(callback="stop"), Compact(callback="shorten")),
        *(Retrying(vote, 2), MapOver("a", 3, callback="gather"), Verify(checks)),
        *(Append(), PrepareStep(name="bare")),
    ]

    assert {
        "prepare": "prepare_step",
        "stop": "stop_check",
        "shorten": "compact",
        "join": "parallel",
        "gather": "map_over",
        "good": "verify",
        "short": "verify",
    } == functions_named(nodes)
    assert {"route": "route"} == functions_named([route])
