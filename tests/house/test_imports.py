"""What an import costs, and what must refuse to be imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

# None of these is needed to declare a graph or an agent; together they cost more than all of ours.
HEAVY = (
    "anthropic",
    "anyio",
    "fpdf",
    "genai_prices",
    "httpx",
    "httpx2",
    "jsonschema",
    "mcp",
    "openai",
    "opentelemetry",
    "rich",
    "typer",
    "yaml",
)
FOREIGN = ("a2a", "google", "graphloop.mcp", "mcp", "mcp_types", "openai", "starlette")
MODULES_MAX = 163


@pytest.mark.parametrize("statement", ["import graphloop", "from graphloop import Agent"])
def test_the_front_door_loads_nothing_heavy(root: Path, statement: str) -> None:
    """Everybody pays for an import, on every start: of a test, a worker, a command line."""
    code = f"import sys\n{statement}\nprint(*sorted(set(sys.modules) & set({HEAVY!r})))"

    done = _python(root, code)

    assert done.returncode == 0, done.stderr
    assert not done.stdout.split()


def test_an_agent_loads_no_room_of_other_protocols(root: Path) -> None:
    """An agent without foreign servers pays for none; the number of its modules may only fall."""
    code = (
        "import sys\nfrom graphloop import Agent\nAgent('openai:gpt-5', api_key='k')\n"
        "ours = [name for name in sys.modules if name.startswith('graphloop')]\n"
        f"print(len(ours), *sorted(set(sys.modules) & set({FOREIGN!r})))"
    )

    done = _python(root, code)

    assert done.returncode == 0, done.stderr
    modules, *foreign = done.stdout.split()
    assert foreign == []
    assert int(modules) <= MODULES_MAX


def test_the_alias_points_at_the_nodes(root: Path) -> None:
    """`nodes` is the signpost at the door; the house itself is `graphloop/nodes`."""
    alias = root / "nodes"

    assert alias.is_symlink()
    assert Path("graphloop/nodes") == alias.readlink()


def test_the_alias_refuses_to_be_imported(root: Path) -> None:
    """Imported under two names, a class is two classes, and `match` believes neither."""
    done = _python(root, "import nodes")

    assert done.returncode != 0
    assert "attempted relative import beyond top-level package" in done.stderr


def test_other_rooms_are_entered_by_their_front_door(trees: Mapping[str, ast.Module]) -> None:
    """What a room does not offer is its own, and may change without a look at other rooms."""
    rooms = {path.split("/")[1] for path in trees if path.count("/") > 1}
    around = [
        f"{path}:{node.lineno} {'.'.join(target)}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for target in [[*Path(path).parts[: -node.level], *(node.module or "").split(".")]]
        if len(target) > 2 and target[1] in rooms and target[1] != path.split("/")[1]
    ]

    assert not around


def _python(root: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that starts at the repository's root."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
