"""Which lines are taken only so often while a run stays where it is."""

from __future__ import annotations

from graphloop.proofs.ground import Ground
from graphloop.proofs.ranking import Ranking
from tests.topology_data import Topology, graph_of, standard


def bounded(topology: Topology) -> list[set[tuple[str, str]]]:
    """Return what bounds each part of a graph, part by part, as it comes apart."""
    ranking = Ranking(Ground(graph_of(topology)))
    todo = list(ranking.parts(*ranking.whole()))
    found: list[set[tuple[str, str]]] = []
    while todo:
        names, ways = todo.pop(0)
        out = set(ranking.bounded(ways))
        found.append({(ranking.node(way.source), way.word) for way in out})
        if out:
            todo += ranking.parts(names, [way for way in ways if way not in out])
    return found


def test_the_standard_loop_comes_apart_at_its_stop_check_first() -> None:
    """Then what is left goes round in a turn.

    How often answers are sent back bounds nothing: whoever asks again may do so as often.
    """
    first, *rest = bounded(standard(retries=(1,)))

    assert {("stop", "go")} == first
    assert {("extend", "retry")} in rest
    assert {("execute", "held")} in rest


def test_checks_bound_what_they_send_back_where_nobody_asks_again() -> None:
    """A follow-up that does not lead back leaves them their number."""
    topology = standard(retries=(1,))
    topology["edges"]["verify"]["follow_up"] = "END"

    assert {("stop", "go"), ("verify", "rejected")} == bounded(topology)[0]


def test_a_turn_that_is_opened_anew_does_not_count() -> None:
    """A conversation that was made shorter is asked about again, in the same turn."""
    topology = standard(context_window=1_000)
    topology["edges"]["compact"]["compacted"] = "stop"

    assert ("stop", "go") not in bounded(topology)[0]


def test_without_a_turn_nothing_bounds_a_stop_check() -> None:
    """It counts turns."""
    topology = standard()
    topology["edges"]["stop"]["go"] = "model"

    assert set() in bounded(topology)
