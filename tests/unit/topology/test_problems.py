"""Problems of a file."""

from __future__ import annotations

import pickle

import pytest

from graphloop.errors import GraphError, Problem
from graphloop.topology.problems import PROBLEMS_MAX, Complaints, Mark, TopologyError


def test_problems_are_told_in_the_order_of_the_file() -> None:
    """A reader goes through the file once."""
    complaints = Complaints("a.yaml")
    complaints.note(Mark(10, 1), "late.", "x.")
    complaints.note(Mark(9, 2), "early.", "y.")

    with pytest.raises(TopologyError, match=r"2 problem\(s\):\n  1. a.yaml:9:2: early. Fix: y."):
        complaints.refuse()


def test_no_more_is_noted_than_anybody_reads() -> None:
    """A file of a megabyte can be wrong a hundred thousand times."""
    complaints = Complaints("a")
    for line in range(PROBLEMS_MAX + 5):
        complaints.note(Mark(line + 1, 1), "x.", "y.")

    assert PROBLEMS_MAX == len(complaints.problems)
    assert not complaints.nearest("nme", ["name"])


def test_a_spoilt_place_is_told_once() -> None:
    """What stands in for a number that cannot be read is nobody's mistake."""
    complaints = Complaints("a")
    complaints.spoil(Mark(1, 1), "x.", "y.")
    complaints.note(Mark(1, 1), "follows from it.", "y.")

    assert [Problem("a:1:1", "x.", "y.")] == complaints.problems


def test_a_topology_error_is_a_graph_error_and_survives_a_process_pool() -> None:
    """So `graphloop check` reports it like any other."""
    error = TopologyError("a", [Problem("a:1:1", "x.", "y.")])

    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - of our own making

    assert isinstance(back, GraphError)
    assert (str(error), error.problems) == (str(back), back.problems)


def test_no_problem_drives_a_terminal_or_fills_it() -> None:
    """Names are the file's, and the file may be anybody's."""
    complaints = Complaints("a\x1b[2J.yaml")
    complaints.note(Mark(1, 1), f"there is no node '\x1b[2J{'k' * 100_000}\u202e'.", "add `\n`.")

    text = str(complaints.problems[0])
    assert text.isprintable()
    assert len(text) < 600
    assert "there is no node '\\x1b[2Jkkk" in text
    assert "kkk\\u202e'. Fix: add `\\n`." in text
