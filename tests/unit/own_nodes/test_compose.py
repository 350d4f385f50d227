"""compose: short words for the composing nodes (their behaviour is told where they live)."""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError
from graphloop.graph import END, Edges, NodeGraph
from graphloop.nodes import (
    Append,
    Branch,
    Child,
    Critique,
    Fallback,
    Limit,
    MapOver,
    ModelCall,
    Parallel,
    Retrying,
    Router,
)
from graphloop.outcomes import Answered, Empty, Failed, Outcome
from graphloop.own_nodes.compose import fallback, loop_until, map_over, parallel, retry, router
from graphloop.own_nodes.route_outcomes import route_outcome
from graphloop.proofs.checking import check


class Billing(Outcome):
    """Money."""


def test_each_word_makes_the_node_of_its_name() -> None:
    """Nothing is hidden: what stands in the table can be made by hand."""
    a, b = Child("a"), Child("b")

    assert Parallel((Branch("a"), Branch("b", "!"))) == parallel("a", Branch("b", "!"))
    assert Parallel((Branch("a"),), "first", "first", "", 2, "n") == parallel(
        "a", join="first", concurrency=2, name="n"
    )
    assert MapOver("a", 3, "lines", "!") == map_over("a", 3, items="lines", prompt="!")
    assert Retrying(a, 2) == retry(a, 2)
    assert Retrying(ModelCall(), 2, frozenset({Empty}), "n") == retry(
        ModelCall(), 2, on=(Empty,), name="n"
    )
    assert Fallback(a, b, frozenset({Failed}), "n") == fallback(a, b, name="n")


def test_a_router_takes_types_or_names() -> None:
    """In the order they are written in, which is that of the model's choice."""
    by_name = router({"billing": "money", "other": "rest"}, name="desk")

    assert Router({Billing: "money"}, "?", model="m") == router({Billing: "money"}, "?", model="m")
    assert [route_outcome("billing"), route_outcome("other")] == list(by_name.routes)
    assert "desk" == by_name.name


def test_a_loop_is_a_table_that_is_complete_and_bounded() -> None:
    """It can be a graph by itself, or rows of another."""
    writer, last = Child("writer"), Append("last")
    alone: NodeGraph[None] = NodeGraph("alone", writer, loop_until(writer, Critique("?"), 3))
    edges: Edges[None] = {
        **loop_until(writer, Critique("?"), 3, after=last, given_up=last),
        last: {...: END},
    }
    within = NodeGraph("within", writer, edges)

    assert ["writer", "writer_append", "critique", "writer_limit"] == list(alone.nodes)
    assert Limit(3, "writer_limit") == alone.nodes["writer_limit"]
    assert {"END"} == {edge.target for edge in alone.edges if edge.outcome in {"accepted", "stop"}}
    assert {"last"} == {
        edge.target for edge in within.edges if edge.outcome in {"accepted", "stop"}
    }
    assert not [finding for finding in check(alone).findings if finding.severity == "error"]


@pytest.mark.parametrize(
    ("body", "judge", "found"),
    [
        (Append(), Critique("?"), "'append' never leaves by 'answered'"),
        (Child("a"), Child("b"), "'b' never leaves by 'accepted'"),
        (ModelCall(), Critique("?"), "opens its own turns.*'model_call' asks a model in one that"),
    ],
)
def test_a_loop_of_nodes_that_do_not_fit_is_refused(
    body: Child | Append, judge: Critique | Child, found: str
) -> None:
    """By the table, which names the outcome that a node does not have."""
    with pytest.raises(ConfigError, match=found):
        NodeGraph("loop", body, loop_until(body, judge, 1))


def test_composed_nodes_can_be_composed() -> None:
    """A loop around a fallback around a retry, in one row each."""
    body = fallback(retry(Child("a"), 1), retry(parallel("b", "b"), 1), name="body")
    graph: NodeGraph[None] = NodeGraph("deep", body, loop_until(body, Critique("?"), 2))

    assert Answered in body.outcomes
    assert {"body", "body_append", "critique", "body_limit"} == set(graph.nodes)
