"""The public names: pinned, lazy, and the same for people and for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import graphloop


def test_every_public_name_is_there() -> None:
    """A name that only a type checker can see breaks at the first run."""
    assert dir(graphloop) == sorted(graphloop.__all__)
    for name in graphloop.__all__:
        assert getattr(graphloop, name) is not None


def test_type_checkers_and_python_find_each_name_in_the_same_place() -> None:
    """The homes are written twice; they must not part."""
    tree = ast.parse(Path(graphloop.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))

    seen = {
        f".{node.module}": tuple(alias.name for alias in node.names)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }

    assert seen == graphloop._HOMES  # pyright: ignore[reportPrivateUsage]


def test_another_name_is_an_attribute_error_that_names_it() -> None:
    """What is misspelt must not import something else, or nothing."""
    with pytest.raises(AttributeError, match="Agnet"):
        graphloop.__getattr__("Agnet")
