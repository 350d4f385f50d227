"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

TESTS = """
from graphloop import Agent
from graphloop.testing import ScriptedModel
from tests.unit.testing.planted import BUGS

def test_sound(fuzz_graph):
    assert 30 == fuzz_graph(Agent(ScriptedModel(()))).seeds

def test_broken(fuzz_graph):
    fuzz_graph(BUGS["no gate at all"][1](), seeds=50)
"""


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with graphloop on its path."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_fixture_fails_a_test_with_what_was_found(tmp_path: Path) -> None:
    """The report is the message: its story, and how to see it again."""
    (tmp_path / "test_own.py").write_text(TESTS, encoding="utf-8")
    installed = entry_points(group="pytest11", name="graphloop")
    plugin = () if installed else ("-p", "graphloop.testing.pytest_plugin")

    done = python(
        "-m",
        "pytest",
        "-p",
        "no:anyio",
        "-p",
        "no:cacheprovider",
        *plugin,
        "--graphloop-seeds",
        "30",
        cwd=tmp_path,
    )

    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "no gate has checked this call" in done.stdout
    assert 'again: replay_token(graph, "f1-' in done.stdout


def test_loading_the_plugin_loads_nothing_but_pytest(tmp_path: Path) -> None:
    """It is loaded in every run of pytest of everybody who has graphloop installed."""
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport graphloop.testing.pytest_plugin\n"
        "print(*sorted(one for one in set(sys.modules) - before))"
    )

    done = python("-c", code, cwd=tmp_path)

    expected = ["graphloop", "graphloop.lazy", "graphloop.testing"]
    expected.append("graphloop.testing.pytest_plugin")
    assert expected == done.stdout.split(), done.stderr


@pytest.mark.parametrize("word", ["fuzz_graph", "--graphloop-seeds"])
def test_the_plugin_is_an_entry_point_of_the_package(word: str) -> None:
    """So that nobody has to ask for it."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    source = (ROOT / "graphloop" / "testing" / "pytest_plugin.py").read_text(encoding="utf-8")

    assert (
        '[project.entry-points.pytest11]\ngraphloop = "graphloop.testing.pytest_plugin"' in declared
    )
    assert word in source
