"""What is bounded by more than the engine goes along with is not proven."""

from __future__ import annotations

from typing import Final, TypeVar

import pytest

from graphloop.agent.graph import Graph
from graphloop.errors import GraphError
from graphloop.events import Cancelled, Started
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Node
from graphloop.nodes import (
    Append,
    Branch,
    Child,
    Critique,
    Execute,
    Fallback,
    Gate,
    Limit,
    MapOver,
    ModelCall,
    Parallel,
    PrepareStep,
    Retrying,
    Verify,
)
from graphloop.outcomes import (
    Aborted,
    Accepted,
    Answered,
    Done,
    Failed,
    Go,
    Outcome,
    Ready,
    Rejected,
    Settled,
    Stop,
    Unplanned,
)
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.proofs.checking import check
from graphloop.proofs.endless_cycles import find_abort_cycles, find_long_stretches
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.ranking import Ranking
from graphloop.proofs.report import Unknown
from graphloop.step import TRANSITIONS_MAX, begin, step
from graphloop.testing.sim import World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.topology.document import with_graphs
from graphloop.values import AssistantMessage, TextPart, evolve
from tests.strategies import QUESTION, SETUP, reply
from tests.topology_data import graph_of, standard

S = TypeVar("S")

NOBODY = World(model=lambda _: reply("unasked"), tool=lambda effect: ToolOutcome(effect.key, "ok"))


def spin(times: int) -> NodeGraph[None]:
    """Return a graph that goes round in one node."""
    limit = Limit(times)
    edges: Edges[None] = {limit: {Go: limit, Stop: END}}
    return NodeGraph("spin", limit, edges)


def row(nodes: int) -> NodeGraph[None]:
    """Return a graph of so many nodes, one after the other."""
    limits: list[Node[None, Outcome]] = [Limit(1, f"limit-{number}") for number in range(nodes)]
    edges: Edges[None] = {
        one: {Go: limits[at + 1] if at + 1 < nodes else END, Stop: END}
        for at, one in enumerate(limits)
    }
    return NodeGraph("row", limits[0], edges)


def round_by(node: Node[None, Outcome], outcome: type[Outcome]) -> NodeGraph[None]:
    """Return a graph that goes round by a node that may have nothing to wait for."""
    limit = Limit(TRANSITIONS_MAX)
    edges: Edges[None] = {node: {outcome: limit, ...: END}, limit: {Go: node, Stop: END}}
    return NodeGraph("round", node, edges)


def told(graph: NodeGraph[None]) -> list[Unknown]:
    """Return what is told of a graph alone, whatever it runs."""
    return list(find_long_stretches(Ranking(ProofGraph(graph))))


@pytest.mark.parametrize(
    "graph",
    [
        spin(2 * TRANSITIONS_MAX),
        row(TRANSITIONS_MAX + 200),
        round_by(Gate(), Settled),
        round_by(Verify(), Accepted),
        round_by(Execute(), Done),
        round_by(PrepareStep(), Ready),
    ],
    ids=["spin", "row", "gate", "verify", "execute", "prepare_step"],
)
def test_a_run_that_the_engine_ends_is_not_proven_bounded(graph: NodeGraph[None]) -> None:
    """The engine takes it for one that is lost."""
    report = check(graph)
    (unknown,) = (one for one in report.unknown if one.code == "GL4")

    assert "without waiting" in unknown.reason
    assert unknown.node
    with pytest.raises(GraphError, match="without waiting"):
        simulate(graph, QUESTION, NOBODY, None, setup=SETUP)


LIMIT: Final = Limit(1)
BEGINNING: Final[tuple[Node[None, Outcome], ...]] = (
    Child("agent"),
    Parallel((Branch("agent"), Branch("agent"))),
    MapOver("agent", 3),
    Retrying(Child("agent"), 2),
    Fallback(Child("agent"), Child("agent", "another")),
    with_graphs(Child("agent"), {"agent": spin(1)}),
    sub_graph(Graph("one", LIMIT, {LIMIT: {...: END}}), name="agent"),
)
"""Nodes that begin child runs, unless the run is too deep for them."""


@pytest.mark.parametrize("node", BEGINNING, ids=lambda node: type(node).__name__)
def test_a_node_that_may_begin_no_child_run_is_none_that_waits(node: Node[None, Outcome]) -> None:
    """It is left by `Failed` at once where the run is too deep, as only the run knows."""
    graph, deep = round_by(node, Failed), evolve(SETUP, depth=2, depth_max=2)
    planned = (*QUESTION, AssistantMessage((TextPart('["item"]'),)))

    assert told(graph)
    with pytest.raises(GraphError, match="without waiting"):
        simulate(graph, planned, NOBODY, None, setup=deep)


def test_a_map_over_has_nothing_to_wait_for_without_a_plan() -> None:
    """It says so at once, to whoever wrote the plan."""
    graph = round_by(MapOver("agent", 3), Unplanned)

    assert told(graph)
    with pytest.raises(GraphError, match="without waiting"):
        simulate(graph, QUESTION, NOBODY, None, setup=SETUP)


@pytest.mark.parametrize(
    "graph",
    [spin(TRANSITIONS_MAX - 1), row(TRANSITIONS_MAX), graph_of(standard(max_steps=100_000))],
    ids=["spin", "row", "standard"],
)
def test_what_the_engine_goes_along_with_is_proven(graph: NodeGraph[None]) -> None:
    """However often a loop goes round that waits for its model."""
    assert "GL4" in check(graph).proven


def critic_led_to(target: str) -> NodeGraph[None]:
    """Return a loop whose critic, and whose model behind a reply, lead `Aborted` to a node."""
    prepare, model, critic = PrepareStep(), ModelCall(), Critique("Good?")
    append, bound = Append(), Limit(2)
    nodes = {one.name: one for one in (prepare, model, critic, append, bound)}
    return NodeGraph(
        "circled",
        prepare,
        {
            prepare: {Ready: model, ...: END},
            model: {Answered: append, Aborted: critic, ...: append},
            append: {...: critic, Aborted: END},
            critic: {Rejected: bound, Aborted: nodes.get(target, END), ...: END},
            bound: {Go: prepare, Stop: END},
        },
    )


def test_rows_that_lead_a_stopped_run_in_a_circle_are_told() -> None:
    """The engine ends it there; whoever wrote the row meant something else."""
    graph = critic_led_to("prepare_step")

    (found,) = find_abort_cycles(ProofGraph(graph))

    assert ("GL13", "warning", "prepare_step") == (found.code, found.severity, found.node)
    assert "prepare_step -> model_call -> critique -> prepare_step" in found.message
    assert "GL13" not in check(graph).proven


def test_a_run_takes_the_circle_that_is_told() -> None:
    """It is a run, which was stopped; it starts nothing, and ends as stopped."""
    graph = critic_led_to("prepare_step")
    run = begin(graph, Started(0.0, "r", "circled", QUESTION, SETUP), None).run

    stopped = step(graph, run, Cancelled(1.0, "enough"))

    assert ((), True, True) == (stopped.effects, stopped.run.ended, stopped.run.was_stopped)
    assert TRANSITIONS_MAX / 10 < stopped.run.turn.number


@pytest.mark.parametrize("target", ["append", "limit", "END"])
def test_rows_that_lead_a_stopped_run_to_its_end_are_proven(target: str) -> None:
    """On the way no node starts anything."""
    assert "GL13" in check(graph_of(standard())).proven
    assert "GL13" in check(critic_led_to(target)).proven
