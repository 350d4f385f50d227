"""Problems of a file."""

from __future__ import annotations

import pickle

import pytest

from graphloop.errors import GraphError, Problem
from graphloop.topology.diagnostics import PROBLEMS_MAX, Diagnostics, TopologyError
from graphloop.topology.tree import Mark


def test_problems_are_told_in_the_order_of_the_file() -> None:
    """A reader goes through the file once."""
    diagnostics = Diagnostics("a.yaml")
    diagnostics.note(Mark(10, 1), "late.", "x.")
    diagnostics.note(Mark(9, 2), "early.", "y.")

    with pytest.raises(TopologyError, match=r"2 problem\(s\):\n  1. a.yaml:9:2: early. Fix: y."):
        diagnostics.refuse()


def test_no_more_is_noted_than_anybody_reads() -> None:
    """A file of a megabyte can be wrong a hundred thousand times."""
    diagnostics = Diagnostics("a")
    for line in range(PROBLEMS_MAX + 5):
        diagnostics.note(Mark(line + 1, 1), "x.", "y.")

    assert PROBLEMS_MAX == len(diagnostics.problems)
    assert not diagnostics.nearest("nme", ["name"])


def test_a_closed_place_takes_no_further_problem() -> None:
    """What stands in for a number that cannot be read is nobody's mistake."""
    diagnostics = Diagnostics("a")
    diagnostics.note_last(Mark(1, 1), "x.", "y.")
    diagnostics.note(Mark(1, 1), "follows from it.", "y.")

    assert [Problem("a:1:1", "x.", "y.")] == diagnostics.problems


def test_a_topology_error_is_a_graph_error_and_survives_a_process_pool() -> None:
    """So `graphloop check` reports it like any other."""
    error = TopologyError("a", [Problem("a:1:1", "x.", "y.")])

    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - of our own making

    assert isinstance(back, GraphError)
    assert (str(error), error.problems) == (str(back), back.problems)


def test_no_problem_drives_a_terminal_or_fills_it() -> None:
    """Names are the file's, and the file may be anybody's."""
    diagnostics = Diagnostics("a\x1b[2J.yaml")
    diagnostics.note(Mark(1, 1), f"there is no node '\x1b[2J{'k' * 100_000}\u202e'.", "add `\n`.")

    text = str(diagnostics.problems[0])
    assert text.isprintable()
    assert len(text) < 600
    assert "there is no node '\\x1b[2Jkkk" in text
    assert "kkk\\u202e'. Fix: add `\\n`." in text
