"""What files may name."""

from __future__ import annotations

from functools import partial
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from graphloop.errors import ConfigError
from graphloop.nodes import Append
from graphloop.topology import registration
from graphloop.topology.registration import RegisteredNames, Registry


def test_a_name_is_given_once() -> None:
    """Two functions of one name would be one too few."""
    registry = Registry()
    given = registry.function(len)

    assert len is given is registry.function(len)
    assert registry.get("function", "len") is len
    with pytest.raises(ConfigError, match="expected one function named 'len'"):
        registry.function(max, name="len")


def test_what_is_none_is_refused() -> None:
    """A mistake shows where it is made."""
    registry = Registry()
    registry.node(Append("own"))

    assert ("own",) == registry.names("node")
    with pytest.raises(ConfigError, match="a node, or a frozen dataclass"):
        registry.node(len)
    with pytest.raises(ConfigError, match="expected a function"):
        registry.predicate(3)
    with pytest.raises(ConfigError, match="found none for"):
        registry.predicate(partial(len))


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


@pytest.mark.parametrize("name", ["gate", "limit", "verify"])
def test_the_names_of_the_librarys_nodes_are_taken(name: str) -> None:
    """A file that says `use: gate` means the library's."""
    with pytest.raises(ConfigError, match=f"found {name!r}, a node of the library"):
        Registry().node(Append("own"), name=name)
    with pytest.raises(ConfigError, match="found 'append', a node of the library"):
        Registry().node(Append())
    Registry().tool(len, name=name)


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
