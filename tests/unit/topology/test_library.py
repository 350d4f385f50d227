"""The nodes that files may use."""

from __future__ import annotations

import dataclasses

import pytest

from graphloop.errors import ConfigError
from graphloop.topology.library import kind_of_class, node_kind
from graphloop.topology.uses import LIBRARY


@pytest.mark.parametrize("use", LIBRARY)
def test_every_field_of_a_node_is_a_parameter(use: str) -> None:
    """A new option can be written down at once; a kind is not for data to say."""
    kind = node_kind(use)
    fields = {one.name for one in dataclasses.fields(kind.made)}

    free = {"kind"} if use == "function" else set[str]()
    # What a generator asks for, its own annotations say: none is written in a file.
    assert fields - {"asks", "name", "kind"} | free == set(kind.record.parameters)
    assert all(one.doc for one in kind.record.parameters.values() if one.needed)


@dataclasses.dataclass(frozen=True)
class Used:
    """A node with a parameter that a file has no room for."""

    use: str


def test_a_field_named_use_is_refused() -> None:
    """In a file it would say which kind of node it is."""
    with pytest.raises(ConfigError, match="the field 'use' of Used"):
        kind_of_class("used", Used)
