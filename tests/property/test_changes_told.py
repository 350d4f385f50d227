"""No change of a graph is passed over: any parameter of any node, of any graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from types import EllipsisType
from typing import Any, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.errors import ConfigError, GraphError
from graphloop.graph import END, EndType, NodeGraph
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Approve,
    Critique,
    Execute,
    Gate,
    Limit,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Outcome
from graphloop.policy.policy import Rule
from graphloop.proofs.comparison import compare
from graphloop.proofs.guards import gate_changes
from graphloop.proofs.parameter_changes import node_changes
from tests.varied_graphs import seeded, varied

LOOSENED: Final[tuple[Callable[[Any], Any], ...]] = (
    lambda node: replace(node, max_steps=node.max_steps + 1),
    lambda node: replace(node, max_consecutive_denials=node.max_consecutive_denials + 1),
    lambda node: replace(node, max_consecutive_tool_errors=node.max_consecutive_tool_errors * 1000),
    lambda node: replace(node, max_pauses=node.max_pauses + 1),
    lambda node: replace(node, times=node.times + 1),
    lambda node: replace(node, prompt=f"{node.prompt} Say yes."),
    lambda node: replace(node, ttl_s=None),
    lambda node: replace(node, checks=()),
    lambda node: replace(node, hold=False),
    lambda node: replace(
        node, rules=tuple([Rule("allow", one.tools, one.condition) for one in node.rules])
    ),
    lambda node: replace(node, rules=(*node.rules, Rule("allow", ("new_*",)))),
    lambda node: replace(node, rules=()),
)
GUARDING: Final = (StopCheck, Limit, Critique, Approve, Verify, Execute, Gate)


@dataclass(frozen=True)
class Other:
    """A graph, and the same with one node changed."""

    before: NodeGraph[None]
    after: NodeGraph[None]
    node: str


def with_node(
    graph: NodeGraph[None], name: str, node: Node[None, Outcome]
) -> NodeGraph[None] | None:
    """Return the graph with another node in the place of one; None where it does not fit."""
    nodes: dict[str, Node[None, Outcome]] = {**graph.nodes, name: node}
    to: dict[str, Node[None, Outcome] | EndType] = {**nodes, "END": END}
    rows: dict[Node[None, Outcome], dict[type[Outcome] | EllipsisType, Any]] = {
        nodes[source]: {outcome: to[target] for outcome, target in row.items()}
        for source, row in graph.table.items()
    }
    try:
        return NodeGraph(graph.name, nodes[graph.start], rows)
    except GraphError:
        return None


def others(value: object) -> Iterator[object]:  # noqa: C901 - a kind a line
    """Yield other values in the place of one."""
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value + 1
            yield value + 7
        case str():
            yield f"{value}x"
        case None:
            yield from (1, 2.0, ("read",))
        case tuple():
            listed = cast("tuple[object, ...]", value)
            yield ()
            for at, one in enumerate(listed):
                yield from ((*listed[:at], two, *listed[at + 1 :]) for two in others(one))
        case frozenset():
            every = cast("frozenset[object]", value)
            yield from (every - {one} for one in every)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for one in fields(value):
                for two in others(getattr(value, one.name)):
                    try:
                        yield replace(value, **{one.name: two})
                    except (ConfigError, ValueError, TypeError, LookupError):
                        continue
        case _:
            return


def changed(seed: int) -> Iterator[Other]:
    """Yield a random graph with each of a few changes of a node."""
    rng = seeded(seed)
    graph = varied(rng).graph
    name = rng.choice(sorted(graph.nodes))
    every = [one for one in others(graph.nodes[name]) if getattr(one, "name", "") == name]
    for node in rng.sample(every, min(3, len(every))):
        after = with_node(graph, name, node)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        if after is not None:
            yield Other(graph, after, name)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_a_change_of_any_parameter_is_told(seed: int) -> None:
    """A change that somebody could have meant must not be passed as nothing."""
    for one in changed(seed):
        found = compare(one.before, one.after)

        assert found.none is (one.before == one.after)
        assert {each.node for each in found.changes if each.subject == "node"} <= {one.node}


@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_two_graphs_are_one_if_they_say_the_same(seed: int) -> None:
    """The same seed makes the same graph, of other objects."""
    one, other = (varied(seeded(seed)).graph for _ in "ab")

    assert compare(one, other).none


@pytest.mark.parametrize("loosened", LOOSENED)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_what_is_loosened_is_never_not_weaker(loosened: Callable[[Any], Any], seed: int) -> None:
    """In any graph, of any node that keeps something from happening."""
    rng = seeded(seed)
    graph = varied(rng).graph
    check = AnswerCheck("strict", 1)
    extra: tuple[Any, ...] = (Approve(ttl_s=9.0), Verify((check,)), Execute(), Gate())
    for node in (*graph.nodes.values(), *extra):
        if not isinstance(node, GUARDING):
            continue
        try:
            looser = loosened(node)
        except (ConfigError, TypeError, AttributeError):
            continue
        if looser == node:
            continue
        if isinstance(node, Gate) and node.hold is looser.hold:
            # What stands behind a rule about all tools lets nothing through.
            decided = any("*" in one.tools and not one.condition for one in node.rules)
            vain = decided and looser.rules[: len(node.rules)] == node.rules
            if node.rules and not vain:
                told = gate_changes("it", node.rules, looser.rules)
                assert "weaker" in {one.effect for one in told}
            continue
        assert "weaker" in {one.effect for one in node_changes(node, looser)}
