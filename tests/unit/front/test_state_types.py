"""The type of a graph's state: told by its functions, and the same in all of them."""

from __future__ import annotations

import pytest

from graphloop import END, Graph, node
from graphloop import graph as kernel
from graphloop.errors import ConfigError, GraphError
from graphloop.front.states import check_first, known_state_type
from graphloop.nodes import PrepareStep, Retrying
from graphloop.outcomes import Ready
from tests.own_nodes import Billing, Ticket, judge, route
from tests.strategies import wrong


@node
def stateless(_: None) -> Billing:
    """Take no state."""
    return Billing()


@node
def texts(text: str) -> Billing:
    """Take another state."""
    return Billing()


def test_a_graph_knows_the_state_of_its_functions() -> None:
    """Nobody has to say it twice; wrapped ones count."""
    prepare = PrepareStep()

    assert Ticket is Graph("a", route, {route: {...: END}}).state_type
    assert Graph("a", stateless, {stateless: {...: END}}).state_type is None
    assert Graph("a", prepare, {prepare: {...: END}}).state_type is None
    late = Graph(
        "a", prepare, {prepare: {Ready: route, ...: END}, route: {...: END}}, state_type=Ticket
    )
    assert Ticket is late.state_type
    wrapped = Retrying(route, 2)
    assert Ticket is Graph("a", wrapped, {wrapped: {...: END}}, state_type=Ticket).state_type


def test_functions_of_different_states_are_named() -> None:
    """All of them, before anything runs."""
    edges = {route: {Billing: texts, ...: END}, texts: {...: stateless}, stateless: {...: END}}

    with pytest.raises(GraphError, match="2 problem") as raised:
        Graph("a", route, wrong(edges))

    assert "node 'texts': takes a state of type str, and the graph's is of type Ticket" in str(
        raised.value
    )
    with pytest.raises(GraphError, match="the graph's is of type str"):
        Graph("a", judge, wrong({judge: {...: END}}), state_type=wrong(str))


def test_the_state_that_a_run_begins_with_is_of_the_graph_s_type() -> None:
    """Where nobody knows the type, any is."""
    graph = Graph("desk", route, {route: {...: END}})
    bare = kernel.Graph("bare", route, {route: {...: END}})

    assert (Ticket, None) == (known_state_type(graph), known_state_type(bare))
    check_first(graph, Ticket("x"), kept=True)
    check_first(bare, "x", kept=True)
    with pytest.raises(ConfigError, match="a run of graph 'desk' begins with a state of type Tick"):
        check_first(graph, "x", kept=False)
