"""How long a file and a function may be: one concept a file, one job a function."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60


def test_no_file_is_longer_than_its_cap(root: Path, trees: Mapping[str, ast.Module]) -> None:
    """A file beyond the cap holds a second concept that has not been named yet."""
    lines = {path: len((root / path).read_text(encoding="utf-8").splitlines()) for path in trees}

    too_long = {path: count for path, count in lines.items() if count > FILE_LINES_MAX}

    assert not too_long


def test_no_function_is_longer_than_its_cap(trees: Mapping[str, ast.Module]) -> None:
    """Loops of a thousand lines grow one line at a time; this stops them at sixty."""
    too_long = {
        f"{path}:{node.lineno} {node.name}": lines
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := _lines_of(node)) > FUNCTION_LINES_MAX
    }

    assert not too_long


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines from `def` to the end, without the docstring."""
    return _span(function) - (_span(function.body[0]) if ast.get_docstring(function) else 0)


def _span(node: ast.stmt) -> int:
    end = node.end_lineno
    assert end is not None
    return end - node.lineno + 1
