"""What files may name."""

from __future__ import annotations

from functools import partial

import pytest

from graphloop.errors import ConfigError
from graphloop.nodes import Append
from graphloop.topology.registration import Registry


def test_set_back_forgets_new_registrations() -> None:
    """Two versions of one file may be compared: both register tools of the same names."""
    own = Registry()
    own.tool(len, name="kept")
    with own.set_back():
        own.tool(len, name="passing")
        assert ("kept", "passing") == own.names("tool")

    assert ("kept",) == own.names("tool")


@pytest.mark.parametrize(
    ("category", "given", "name", "said"),
    [
        ("function", max, "len", "expected one function named 'len'"),
        ("node", len, "", "a node, or a frozen dataclass"),
        ("predicate", 3, "", "expected a function"),
        ("predicate", partial(len), "", "found none for"),
        ("node", Append("own"), "gate", "found 'gate', a node of the library"),
        ("node", Append(), "", "found 'append', a node of the library"),
    ],
)
def test_a_name_means_one_thing(category: str, given: object, name: str, said: str) -> None:
    """A mistake shows where it is made; `use: gate` means the library's."""
    own = Registry()
    assert len is own.function(len) is own.function(len) is own.get("function", "len")
    own.node(Append("own"))
    own.tool(len, name="gate")

    assert ("own",) == own.names("node")
    with pytest.raises(ConfigError, match=said):
        getattr(own, category)(given, name=name)
