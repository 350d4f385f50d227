"""The floors of the house: who may import whom, and what the kernel may import at all."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

# The standard library as the kernel knows it: data types and text, and no way to reach a clock,
# a file, a thread or a cache. import-linter keeps a list of bans; this is the list of permits.
KERNEL_IMPORTS = frozenset(
    {
        "__future__",
        "bisect",
        "collections",
        "contextlib",
        "dataclasses",
        "difflib",
        "enum",
        "fnmatch",
        "hashlib",
        "itertools",
        "json",
        "msgspec",
        "math",
        "operator",
        "re",
        "types",
        "typing",
        "unicodedata",
    }
)

WIRES = frozenset({"anthropic", "google", "openai", "script"})


def test_the_import_contracts_hold(root: Path) -> None:
    """An upward import is the first crack: it ends in a cycle, or in a kernel that waits."""
    linter = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=root, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_kernel_imports_only_what_cannot_wait_or_guess(
    root: Path, trees: Mapping[str, ast.Module]
) -> None:
    """Replay, simulation and the proofs rest on a kernel that gives one answer to one question."""
    kernel = _kernel(root)

    strangers = [
        f"{path}:{line} imports {name}"
        for path, tree in trees.items()
        if any(_is_within(path, module) for module in kernel)
        for line, name in _outside_imports(tree)
        if name.partition(".")[0] not in KERNEL_IMPORTS
    ]

    assert not strangers


def test_the_package_imports_itself_by_relative_names(trees: Mapping[str, ast.Module]) -> None:
    """An absolute name would let the alias `nodes` import a second copy of every class."""
    absolute = [
        f"{path}:{line} imports {name}"
        for path, tree in trees.items()
        for line, name in _outside_imports(tree)
        if name.partition(".")[0] == "graphloop"
    ]

    assert not absolute


def test_the_kernel_never_waits(root: Path, trees: Mapping[str, ast.Module]) -> None:
    """A kernel that awaits has two callers, and soon a twin of itself for each."""
    kernel = _kernel(root)
    waits = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)

    found = [
        path
        for path, tree in trees.items()
        if any(_is_within(path, module) for module in kernel)
        and any(isinstance(node, waits) for node in ast.walk(tree))
    ]

    assert not found


def test_no_wire_borrows_from_another(trees: Mapping[str, ast.Module]) -> None:
    """Wires look alike today; a helper they share changes for one and breaks the other.

    The files of a wire begin with its name. What all wires need has a file without one.
    """
    borrowed = [
        f"{path}:{node.lineno} imports {node.module}"
        for path, tree in trees.items()
        if path.startswith("graphloop/providers/") and (wire := _wire_of(path)) in WIRES
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module is not None
        if _wire_of(node.module) in WIRES - {wire}
    ]

    assert not borrowed


def _kernel(root: Path) -> list[str]:
    """Return the modules of floors 0 to 5, as the contract about them names them."""
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    (kernel,) = (each["source_modules"] for each in contracts if each["id"] == "pure-kernel")
    return [str(module) for module in kernel]


def _wire_of(file: str) -> str:
    return Path(file).stem.partition("_")[0]


def _is_within(path: str, module: str) -> bool:
    file = module.replace(".", "/")
    return path == f"{file}.py" or path.startswith(f"{file}/")


def _outside_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, each.name) for each in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield node.lineno, name
            case _:
                pass
