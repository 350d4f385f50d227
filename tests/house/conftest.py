"""What the house rules look at: the repository's root and the syntax tree of every module."""

from __future__ import annotations

import ast
import gc
from collections.abc import Mapping
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root(pytestconfig: pytest.Config) -> Path:
    """Return the repository's root."""
    return pytestconfig.rootpath


@pytest.fixture(scope="session")
def trees(root: Path) -> Mapping[str, ast.Module]:
    """Return each module of the package, by its path from the root ("graphloop/nodes/gate.py").

    The trees are 700,000 objects, so later collections of garbage are told to pass them over.
    """
    paths = sorted((root / "graphloop").rglob("*.py"))
    parsed = {
        path.relative_to(root).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }
    gc.freeze()
    return parsed
