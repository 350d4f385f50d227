"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.warm_python import warm_python

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

REQUESTS = """
import pytest
from graphloop.errors import ConfigError
from graphloop.providers import check_request

def ask():
    check_request("openai:gpt-5", "api.openai.com")

def test_plain():
    ask()

def test_refusing(no_model_requests):
    with pytest.raises(ConfigError):
        ask()

def test_allowing(model_requests):
    ask()
"""


def python(
    *arguments: str, cwd: Path, start: Sequence[str] = (sys.executable,)
) -> subprocess.CompletedProcess[str]:
    """Run Python with graphloop on its path."""
    return subprocess.run(
        [*start, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def run_tests(tests: str, *options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest, with the plugin, on a file of these tests."""
    (cwd / "test_own.py").write_text(tests, encoding="utf-8")
    installed = entry_points(group="pytest11", name="graphloop")
    plugin = () if installed else ("-p", "graphloop.testing.pytest_plugin")
    quiet = ("-p", "no:anyio", "-p", "no:cacheprovider")
    words = ("-m", "pytest", *quiet, *plugin, *options)
    return python(*words, cwd=cwd, start=warm_python())


def test_the_fixture_fails_a_test_with_what_was_found(tmp_path: Path) -> None:
    """The report is the message: its story, and how to see it again."""
    done = run_tests(TESTS, "--graphloop-seeds", "30", cwd=tmp_path)

    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "no gate has checked this call" in done.stdout
    assert 'again: replay_token(graph, "f1-' in done.stdout


def test_requests_are_refused_where_a_test_asks_for_it(tmp_path: Path) -> None:
    """Without the ini option nothing changes for a test that uses no fixture."""
    done = run_tests(REQUESTS, cwd=tmp_path)

    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_the_ini_option_refuses_requests_everywhere(tmp_path: Path) -> None:
    """One line protects a whole suite; a test of the real model says so by its fixture."""
    done = run_tests(REQUESTS, "-o", "graphloop_refuse_requests=true", cwd=tmp_path)

    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "test_own.py::test_plain - graphloop.errors.ConfigError" in done.stdout


@pytest.mark.parametrize(("refuses", "ends"), [("true", "1 passed"), ("false", "1 error")])
def test_a_module_s_agent_needs_no_key_where_no_request_is_sent(
    refuses: str, ends: str, tmp_path: Path
) -> None:
    """A test replaces the model, so the module that it imports has no use for a key."""
    tests = (
        "from graphloop import Agent\nfrom graphloop.testing import ScriptedModel\n"
        "agent = Agent('openai:gpt-5')\n\ndef test_one():\n"
        "    with agent.override(model=ScriptedModel(['Hi'])):\n"
        "        assert agent.generate_sync('Hello?').text == 'Hi'\n"
    )

    done = run_tests(tests, "-o", f"graphloop_refuse_requests={refuses}", cwd=tmp_path)

    assert ends in done.stdout, done.stdout + done.stderr


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


@pytest.mark.parametrize("word", ["fuzz_graph", "--graphloop-seeds", "model_requests"])
def test_the_plugin_is_an_entry_point_of_the_package(word: str) -> None:
    """So that nobody has to ask for it."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    source = (ROOT / "graphloop" / "testing" / "pytest_plugin.py").read_text(encoding="utf-8")

    assert (
        '[project.entry-points.pytest11]\ngraphloop = "graphloop.testing.pytest_plugin"' in declared
    )
    assert word in source
