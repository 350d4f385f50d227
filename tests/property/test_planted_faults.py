"""One line leads elsewhere: what is told of it is a run, and names the line.

The graphs are put together at random, the same ones every time; 60 on every push, and 3 of each
example.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphloop.proofs.checking import check
from tests.planted_graphs import Planted, planted, planted_in_examples
from tests.sizes import sized
from tests.witness import is_run

NAMED_MIN = 0.8
"""Of how many findings the line is told that was led elsewhere."""


@pytest.mark.parametrize(
    "graphs",
    [planted(sized(60, 500)), planted_in_examples(sized(3, 80))],
    ids=["at random", "examples"],
)
def test_each_witness_is_a_run_and_the_changed_line_is_told(graphs: Iterator[Planted]) -> None:
    """A counterexample that cannot happen, or a victim's line, costs trust and an afternoon."""
    told, named = 0, 0
    for graph, line in graphs:
        for finding in check(graph).findings:
            assert not finding.outcomes or is_run(graph, finding), finding
            told += 1
            named += line in finding.rows

    assert told > 20
    assert named >= NAMED_MIN * told, (named, told)
