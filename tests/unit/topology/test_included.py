"""Nodes with the graphs of their agents."""

from __future__ import annotations

from graphloop.contract import contract_of
from graphloop.effects import AskModel
from graphloop.graph import END, NodeGraph
from graphloop.nodes import Append, Branch, Child, MapOver, Parallel
from graphloop.nodes.dialogue import Asks
from graphloop.nodes.function import Function
from graphloop.outcomes import Answered
from graphloop.topology.included import Included, agents_of, graphs_run, with_graphs

INNER: NodeGraph[None] = NodeGraph("inner", Append(), {Append(): {...: END}})


def test_the_proofs_see_the_graphs_of_agents() -> None:
    """A child that is known by name only would be unknown to them."""
    for node in (Child("a", "x"), MapOver("a", 3), Parallel((Branch("a"), Branch("b")))):
        wrapped = with_graphs(node, {"a": INNER})

        promised = contract_of(wrapped)
        assert isinstance(wrapped, Included)
        assert promised is not None
        assert {"a": INNER} == {one.name: one.graph for one in promised.children if one.graph}
        assert (node.name, node.kind, node.outcomes) == (
            wrapped.name, wrapped.kind, wrapped.outcomes,
        )  # fmt: skip
        assert agents_of(node) == agents_of(wrapped)


def test_what_a_generator_asks_is_an_agent_too() -> None:
    """As is what any node declares that it runs."""
    asks = Asks(frozenset({AskModel}), model_calls=0, agents=(("a", 3), ("b", 1)))
    node = Function("ask", frozenset({Answered}), asks=asks)

    wrapped = with_graphs(node, {"a": INNER})

    promised = contract_of(wrapped)
    assert promised is not None
    assert [("a", 3, INNER), ("b", 1, None)] == [
        (one.name, one.runs, one.graph) for one in promised.children
    ]
    assert ("a", "b") == agents_of(wrapped)
    assert wrapped is with_graphs(wrapped, {"a": INNER})


def test_a_node_whose_agents_are_not_known_stays_as_it_is() -> None:
    """As does one that runs none."""
    assert Child("b") is not with_graphs(Append(), {"a": INNER}) == Append()
    assert Child("b") == with_graphs(Child("b"), {"a": INNER})


def test_graphs_are_added_one_after_another_and_replaced() -> None:
    """Two agents of one node may come from two places; the later of two graphs counts."""
    other: NodeGraph[None] = NodeGraph("other", Append(), {Append(): {...: END}})
    both = Parallel((Branch("a"), Branch("b")))
    one = with_graphs(both, {"a": INNER})

    assert with_graphs(both, {"a": INNER, "b": other}) == with_graphs(one, {"b": other})
    assert {"a": other, "b": None} == graphs_run([with_graphs(one, {"a": other})])
    assert {"a": INNER, "b": None} == graphs_run([one, both])
