"""What is bounded by more than the engine goes along with is not proven."""

from __future__ import annotations

import pytest

from graphloop.drivers.sim import World, simulate
from graphloop.errors import GraphError
from graphloop.graph import END, Edges, Graph
from graphloop.node_protocol import Node
from graphloop.nodes import Execute, Gate, Limit, PrepareStep, Verify
from graphloop.outcomes import Accepted, Done, Go, Outcome, Ready, Settled, Stop
from graphloop.proofs.check import check
from graphloop.step import SETTLE_MAX
from graphloop.tool_outcome import ToolOutcome
from tests.strategies import QUESTION, SETUP, reply
from tests.topology_data import graph_of, standard

NOBODY = World(model=lambda _: reply("unasked"), tool=lambda effect: ToolOutcome(effect.key, "ok"))


def spin(times: int) -> Graph[None]:
    """Return a graph that goes round in one node."""
    limit = Limit(times)
    edges: Edges[None] = {limit: {Go: limit, Stop: END}}
    return Graph("spin", limit, edges)


def row(nodes: int) -> Graph[None]:
    """Return a graph of so many nodes, one after the other."""
    limits: list[Node[None, Outcome]] = [Limit(1, f"limit-{number}") for number in range(nodes)]
    edges: Edges[None] = {
        one: {Go: limits[at + 1] if at + 1 < nodes else END, Stop: END}
        for at, one in enumerate(limits)
    }
    return Graph("row", limits[0], edges)


def round_by(node: Node[None, Outcome], outcome: type[Outcome]) -> Graph[None]:
    """Return a graph that goes round by a node that may have nothing to wait for."""
    limit = Limit(SETTLE_MAX)
    edges: Edges[None] = {node: {outcome: limit, ...: END}, limit: {Go: node, Stop: END}}
    return Graph("round", node, edges)


@pytest.mark.parametrize(
    "graph",
    [
        spin(2 * SETTLE_MAX),
        row(SETTLE_MAX + 200),
        round_by(Gate(), Settled),
        round_by(Verify(), Accepted),
        round_by(Execute(), Done),
        round_by(PrepareStep(), Ready),
    ],
    ids=["spin", "row", "gate", "verify", "execute", "prepare_step"],
)
def test_a_run_that_would_be_broken_off_is_not_proven_to_be_bounded(graph: Graph[None]) -> None:
    """The engine takes it for one that is lost."""
    report = check(graph)
    (unknown,) = (one for one in report.unknown if one.code == "GL4")

    assert "without waiting" in unknown.reason
    assert unknown.node
    with pytest.raises(GraphError, match="without waiting"):
        simulate(graph, QUESTION, NOBODY, None, setup=SETUP)


@pytest.mark.parametrize(
    "graph",
    [spin(SETTLE_MAX - 2), row(SETTLE_MAX - 1), graph_of(standard(max_steps=100_000))],
    ids=["spin", "row", "standard"],
)
def test_what_the_engine_goes_along_with_is_proven(graph: Graph[None]) -> None:
    """However often a loop goes round that waits for its model."""
    assert "GL4" in check(graph).proven


@pytest.mark.parametrize("graph", [spin(SETTLE_MAX - 2), row(SETTLE_MAX - 1)], ids=["spin", "row"])
def test_the_engine_goes_along_with_it(graph: Graph[None]) -> None:
    """The bound is exact where a run can come to it."""
    simulation = simulate(graph, QUESTION, NOBODY, None, setup=SETUP)

    assert simulation.run.ending is not None
