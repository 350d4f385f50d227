"""What becomes of calls: every place of the standard loop is one that a run can be in."""

from __future__ import annotations

from graphloop.proofs.calls import OWED, CallWalk
from graphloop.proofs.ground import END, Ground
from tests.graphs import agent


def test_the_standard_loop_comes_to_its_tools_with_calls_that_are_gated() -> None:
    """And with no others."""
    walk = CallWalk(Ground(agent()))

    assert {(True, "gated")} == {
        (one.gated, one.duty) for one in walk.found if one.node == "execute"
    }


def test_nothing_is_owed_at_the_end_of_the_standard_loop() -> None:
    """Whatever way it ends."""
    walk = CallWalk(Ground(agent()))

    ends = [one for one in walk.found if one.node == END]
    assert ends
    assert not [one for one in ends if one.duty in OWED]


def test_the_way_to_a_place_begins_at_the_start() -> None:
    """And is a path of the table."""
    graph = agent()
    walk = CallWalk(Ground(graph))

    for place in walk.found:
        walked = walk.trail(place)
        assert not walked or walked[0].source == graph.start
        assert all(graph.table[one.source][one.outcome] == one.target for one in walked)
