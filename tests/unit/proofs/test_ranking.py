"""Which lines are taken only so often while a run stays where it is."""

from __future__ import annotations

from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.ranking import Ranking
from tests.topology_data import Topology, graph_of, standard


def bounded(topology: Topology) -> list[set[tuple[str, str]]]:
    """Return what bounds each part of a graph, part by part, as it comes apart."""
    ranking = Ranking(ProofGraph(graph_of(topology)))
    todo = list(ranking.components(*ranking.split_graph()))
    found: list[set[tuple[str, str]]] = []
    while todo:
        names, ways = todo.pop(0)
        out = set(ranking.bounded(ways))
        found.append({(ranking.node(way.source), way.word) for way in out})
        if out:
            todo += ranking.components(names, [way for way in ways if way not in out])
    return found


def test_the_standard_loop_comes_apart_at_its_stop_check_first() -> None:
    """Then what is left goes round in a turn.

    How often answers are sent back bounds nothing: whoever asks again may do so as often.
    """
    first, *rest = bounded(standard(retries=(1,)))

    assert {("stop", "go")} == first
    assert {("extend", "retry")} in rest
    assert {("execute", "approval_needed")} in rest


def test_a_turn_that_failed_to_open_is_no_way_round() -> None:
    """Whoever was broken off leaves the Append by Aborted, and is over."""
    topology = standard()
    topology["edges"]["prepare"] |= {"failed": "append", "aborted": "append"}

    first, *rest = bounded(topology)

    assert {("stop", "go")} == first
    assert {("execute", "approval_needed")} in rest
    assert set() not in rest


def test_calls_are_held_once_only_where_a_gate_asks_about_them() -> None:
    """Without one they are held again, and again."""
    topology = standard()
    topology["edges"]["execute"]["approval_needed"] = "execute"

    assert not any(("execute", "approval_needed") in part for part in bounded(topology))
    assert set() in bounded(topology)
