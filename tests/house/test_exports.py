"""Public names: what a module offers is written down, exists, and explains itself.

The order within `__all__` is kept by ruff (RUF022).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from typing import TypeAlias

import graphloop

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_every_module_says_what_it_offers(trees: Mapping[str, ast.Module]) -> None:
    """Without `__all__` a helper becomes public the day somebody imports it."""
    silent = [
        path
        for path, tree in trees.items()
        if (_is_code(path) or len(tree.body) > 1) and _exports(tree) is None
    ]

    assert not silent


def test_every_offered_name_exists(trees: Mapping[str, ast.Module]) -> None:
    """A name in `__all__` that is not there breaks `import *`, and whoever reads the list."""
    missing = [
        f"{path}: {name}"
        for path, tree in trees.items()
        for name in _exports(tree) or ()
        if not hasattr(import_module(_module_name(path)), name)
    ]

    assert not missing


def test_every_public_definition_is_offered(trees: Mapping[str, ast.Module]) -> None:
    """A function without an underscore that is not offered is neither public nor private."""
    unsaid = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for node in _definitions(tree)
        if not node.name.startswith("_") and node.name not in (_exports(tree) or ())
    ]

    assert not unsaid


def test_every_public_definition_has_a_docstring(trees: Mapping[str, ast.Module]) -> None:
    """The docstring is the contract; what has none promises nothing."""
    bare = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for node in _definitions(tree)
        if node.name in (_exports(tree) or ())
        and not _is_overload(node)
        and not ast.get_docstring(node)
    ]

    assert not bare


def test_every_name_of_the_front_door_has_a_docstring() -> None:
    """`help(graphloop.Agent)` is the first manual most users open; the lazy names count too."""
    bare = [name for name in graphloop.__all__ if not getattr(graphloop, name).__doc__]

    assert not bare


def _definitions(tree: ast.Module) -> list[Definition]:
    return [node for node in tree.body if isinstance(node, Definition)]


def _is_overload(node: Definition) -> bool:
    return any(ast.unparse(each) == "overload" for each in node.decorator_list)


def _exports(tree: ast.Module) -> list[str] | None:
    """Return the names in `__all__`, or `None` where the module has none."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
                return [str(ast.literal_eval(name)) for name in names]
            case _:
                pass
    return None


def _is_code(path: str) -> bool:
    """Say whether a file is a module of its own; a bare `__init__` offers nothing."""
    return not path.endswith("/__init__.py")


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_a_door_gives_away_no_name_that_type_checkers_refuse(
    trees: Mapping[str, ast.Module],
) -> None:
    """A name that works at run time and is "not exported" for pyright misleads its finder.

    The command line is a program, whose names its users never import.
    """
    leaked = [
        f"{path}: {name}"
        for path, tree in trees.items()
        if not _is_code(path) and "/cli/" not in path
        for name, value in vars(import_module(_module_name(path))).items()
        if not name.startswith("_")
        and name not in (_exports(tree) or ())
        and str(getattr(value, "__module__", "")).startswith("graphloop.")
        and name != "front_door"
    ]

    assert not leaked
