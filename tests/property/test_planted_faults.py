"""One line leads elsewhere: what is told of it is a run, and names the line.

The graphs are put together at random, the same ones every time; 80 on every push.
"""

from __future__ import annotations

from graphloop.proofs.checking import check
from tests.planted_graphs import planted
from tests.sizes import sized
from tests.witness import is_run

NAMED_MIN = 0.8
"""Of how many findings the line is told that was led elsewhere."""


def test_each_witness_is_a_run_and_the_changed_line_is_told() -> None:
    """A counterexample that cannot happen, or a victim's line, costs trust and an afternoon."""
    told, named = 0, 0
    for graph, line in planted(sized(80, 500)):
        for finding in check(graph).findings:
            assert not finding.outcomes or is_run(graph, finding), finding
            told += 1
            named += line in finding.rows

    assert told > 20
    assert named >= NAMED_MIN * told, (named, told)
