"""Overheard: a graph that tells what its nodes decide, and decides nothing else."""

from __future__ import annotations

from graphloop.node_protocol import Leave, Node, Reaction
from graphloop.outcomes import Outcome, outcome_name
from graphloop.replay import overheard
from graphloop.values import FinishReason
from tests.strategies import Adversary, call, loop, reply

DONE = Adversary((reply("done", finish=FinishReason.STOP), reply(call())))


def test_every_way_that_a_node_is_left_is_heard_in_order() -> None:
    """And the run is the same as without anybody listening."""
    left: list[tuple[str, str]] = []

    def hear(node: Node[None, Outcome], reaction: Reaction[None, Outcome]) -> None:
        if isinstance(reaction, Leave):
            left.append((node.name, outcome_name(type(reaction.outcome))))

    graph = loop()
    heard = DONE.run(overheard(graph, hear))

    assert DONE.run(graph).run == heard.run
    assert [("prepare_step", "ready"), ("model_call", "calls"), ("gate", "settled")] == left[:3]
    assert ("verify", "accepted") == left[-1]


def test_the_table_is_the_graph_s_own() -> None:
    """What is drawn and proven of one holds for the other."""
    graph = loop()
    heard = overheard(graph, lambda node, reaction: None)

    assert (graph.table, graph.start, graph.name) == (heard.table, heard.start, heard.name)
    assert [(one.name, one.kind, one.outcomes) for one in graph.nodes.values()] == [
        (one.name, one.kind, one.outcomes) for one in heard.nodes.values()
    ]
