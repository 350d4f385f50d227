"""What files may name."""

from __future__ import annotations

from functools import partial
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from graphloop.errors import ConfigError
from graphloop.nodes import Append
from graphloop.topology import registration
from graphloop.topology.registration import RegisteredNames, Registry


def test_entry_points_are_loaded_when_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken package breaks only the files that name it."""
    points = EntryPoints(
        [
            EntryPoint("length", "builtins:len", "graphloop.functions"),
            EntryPoint("broken", "no_such_module:x", "graphloop.functions"),
        ]
    )
    monkeypatch.setattr(registration, "entry_points", lambda: points)
    names = RegisteredNames(Registry())

    assert len is names.find("function", "length")
    assert ("length", "broken") == names.known("function")
    assert names.find("node", "length") is None
    with pytest.raises(ConfigError, match="'broken' of an installed package"):
        names.find("function", "broken")


def test_what_is_registered_in_between_is_forgotten() -> None:
    """Two versions of one file may be compared: both register tools of the same names."""
    own = Registry()
    own.tool(len, name="kept")
    with own.set_back():
        own.tool(len, name="passing")
        assert ("kept", "passing") == own.names("tool")

    assert ("kept",) == own.names("tool")


def test_a_package_cannot_take_the_name_of_a_library_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it offers under such a name is not on offer."""
    points = EntryPoints(
        [
            EntryPoint("gate", "builtins:len", "graphloop.nodes"),
            EntryPoint("own", "builtins:len", "graphloop.nodes"),
        ]
    )
    monkeypatch.setattr(registration, "entry_points", lambda: points)

    assert ("own",) == RegisteredNames(Registry()).known("node")
    assert RegisteredNames(Registry()).find("node", "gate") is None


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
