"""The public names: pinned, lazy, and the same for people and for type checkers."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import graphloop


def test_every_public_name_is_there() -> None:
    """A name that only a type checker can see breaks at the first run."""
    assert dir(graphloop) == sorted(graphloop.__all__)
    for name in graphloop.__all__:
        assert getattr(graphloop, name) is not None


PARTLY = {".nodes", ".stores"}
"""Rooms of which the other names are loaded with the room."""


@pytest.mark.parametrize(
    "package", ["", ".nodes", ".proofs", ".providers", ".stores", ".testing", ".views"]
)
def test_type_checkers_and_python_find_each_name_in_the_same_place(package: str) -> None:
    """The homes are written twice; they must not part."""
    door = import_module(f"graphloop{package}")
    tree = ast.parse(Path(str(door.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))

    seen = {
        alias.name: import_module("." * node.level + (node.module or ""), door.__name__)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert set(seen) == set(door.__all__) or package in PARTLY
    for name, home in seen.items():
        assert getattr(door, name) is getattr(home, name)


def test_another_name_is_an_attribute_error_that_names_it() -> None:
    """What is misspelt must not import something else, or nothing."""
    with pytest.raises(AttributeError, match="Agnet"):
        graphloop.__getattr__("Agnet")
