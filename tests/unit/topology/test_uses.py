"""The names of the library's nodes in files."""

from __future__ import annotations

from graphloop import nodes
from graphloop.topology.uses import LIBRARY

NO_NODES = {"AnswerCheck", "Branch"}


def test_every_node_of_the_library_can_be_used() -> None:
    """A new node has its name in files, too."""
    assert set(nodes.__all__) - NO_NODES == {one.__name__ for one in LIBRARY.values()}
