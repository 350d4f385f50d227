"""Every module has its own test file, at the same place in `tests/unit`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

# Modules whose own test file is not written yet. This list only shrinks: a module that has its
# test may not stay on it, and a new module may not join it.
UNTESTED: frozenset[str] = frozenset(
    {
        "graphloop/providers/base.py",
        "graphloop/stores/base.py",
    }
)


def test_every_module_has_its_test_file(root: Path, trees: Mapping[str, ast.Module]) -> None:
    """Whoever changes a module knows which file to open, and which file to run."""
    modules = {path for path in trees if not path.endswith("/__init__.py")}

    missing = {path for path in modules if not (root / _test_of(path)).is_file()}

    assert missing == UNTESTED


def test_every_unit_test_file_has_its_module(root: Path, trees: Mapping[str, ast.Module]) -> None:
    """A test that survives its module tests a memory."""
    expected = {_test_of(path) for path in trees}
    found = {path.relative_to(root).as_posix() for path in (root / "tests/unit").rglob("test_*.py")}

    assert not sorted(found - expected)


def _test_of(path: str) -> str:
    """Return a module's test file: graphloop/nodes/gate.py → tests/unit/nodes/test_gate.py."""
    module = Path(path).relative_to("graphloop")
    return (Path("tests/unit") / module.parent / f"test_{module.name}").as_posix()
