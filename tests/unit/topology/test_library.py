"""The nodes that files may use."""

from __future__ import annotations

import dataclasses

import pytest

from graphloop import nodes
from graphloop.topology.library import LIBRARY, node_kind

NO_NODES = {"AnswerCheck", "Branch"}


def test_every_node_of_the_library_can_be_used() -> None:
    """A new node has its name in files, too."""
    assert set(nodes.__all__) - NO_NODES == {one.__name__ for one in LIBRARY.values()}


@pytest.mark.parametrize("use", LIBRARY)
def test_every_field_of_a_node_is_a_parameter(use: str) -> None:
    """A new option can be written down at once; a kind is not for data to say."""
    kind = node_kind(use)
    fields = {one.name for one in dataclasses.fields(kind.made)}

    free = {"kind"} if use == "function" else set[str]()
    assert fields - {"name", "kind"} | free == set(kind.record.parameters)
    assert all(one.doc for one in kind.record.parameters.values() if one.needed)
