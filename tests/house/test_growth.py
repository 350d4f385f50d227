"""A new node touches two files, a new option three: each is added to a copy of the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NODE = '''"""tally: count how often a run comes by."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from ..contract import Contract
from ..effects import Effect
from ..events import Event
from ..node_protocol import Leave, Reaction, outcomes_of
from ..outcomes import Go
from ..run import Run, with_count
from .frozen_fields import FrozenFields

__all__ = ["Tally"]

S = TypeVar("S")


@dataclass(frozen=True)
class Tally(FrozenFields):
    """Count each visit."""

    by: int = 1
    name: str = "tally"
    kind: Literal["prepare"] = "prepare"
    outcomes = outcomes_of(Go)

    @property
    def contract(self) -> Contract:
        """It asks for nothing."""
        return Contract()

    def enter(self, run: Run[S], /) -> Reaction[S, Go]:
        """Count, and go on."""
        visits = run.counters.by_node.get(self.name, 0)
        return Leave(with_count(run, self.name, visits + self.by), Go())

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Go]:
        """Never happens: this node asks for nothing."""
        raise AssertionError(f"{self.name!r} waits for nothing")
'''
USE_NODE = """
import asyncio
from graphloop import check
from graphloop.nodes import Tally
from graphloop.testing import ScriptedModel
from graphloop.topology import dump, load

graph = load('''
graphloop: 1
name: counted
prompt: Say hello.
start: prepare_step
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  tally: {use: tally, by: 2}
  append: {use: append}
edges:
  prepare_step: {ready: model_call, calls: append, else: END}
  model_call: {failed: END, else: tally}
  tally: {go: append}
  append: {else: END}
''')
assert graph.nodes["tally"] == Tally(by=2)
assert check(graph).ok, check(graph)
result = asyncio.run(graph.run(None, model=ScriptedModel(["Hello."])))
assert result.text == "Hello."
assert "by: 2" in dump(graph), dump(graph)
assert "tally" in graph.mermaid()
"""
OPTION = {
    "nodes/stop_check.py": {
        "    max_consecutive_denials: int = MAX_DENIALS\n": "    max_words: int = 1_000_000\n",
        '        whole_number("max_consecutive_denials", self.max_consecutive_denials)\n': (
            '        whole_number("max_words", self.max_words)\n'
        ),
    },
    "agent/options.py": {
        "    max_consecutive_denials: int\n": "    max_words: int\n",
        "    max_consecutive_denials: int = 5\n": "    max_words: int = 1_000_000\n",
    },
    "agent/build_loop.py": {
        "            max_consecutive_denials=options.max_consecutive_denials,\n": (
            "            max_words=options.max_words,\n"
        ),
    },
}
USE_OPTION = """
from graphloop import Agent, check
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel
from graphloop.topology import dump

agent = Agent(ScriptedModel(["Hello."]), max_words=7)
assert agent.graph.nodes["stop_check"].max_words == 7
assert check(agent.graph).ok
assert agent.generate_sync("Hi").text == "Hello."
assert "max_words: 7" in dump(agent.graph)
try:
    Agent(ScriptedModel(["Hello."]), max_words=0)
except ConfigError as error:
    assert "max_words" in str(error)
else:
    raise AssertionError("a limit of no words is refused")
"""


def test_a_new_node_touches_two_files(root: Path, tmp_path: Path) -> None:
    """Files, schema, proofs, pictures and runs know it by its class."""
    package = _copy(root, tmp_path)
    (package / "nodes" / "tally.py").write_text(NODE, encoding="utf-8")
    _insert(
        package / "nodes" / "__init__.py",
        {
            "from .stop_check import StopCheck\n": "from .tally import Tally\n",
            "__all__ = [\n": '    "Tally",\n',
        },
    )

    assert not _failure(USE_NODE, tmp_path)


def test_a_new_option_touches_three_files(root: Path, tmp_path: Path) -> None:
    """The node that keeps it, the options that name it, and the loop that joins the two."""
    package = _copy(root, tmp_path)
    for path, lines in OPTION.items():
        _insert(package / path, lines)

    assert len(OPTION) <= 3
    assert not _failure(USE_OPTION, tmp_path)


def _copy(root: Path, to: Path) -> Path:
    package = to / "graphloop"
    shutil.copytree(root / "graphloop", package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def _insert(path: Path, after: Mapping[str, str]) -> None:
    """Put lines after lines that the file has exactly once."""
    text = path.read_text(encoding="utf-8")
    for line, more in after.items():
        assert text.count(line) == 1, (path, line)
        text = text.replace(line, line + more)
    path.write_text(text, encoding="utf-8")


def _failure(code: str, folder: Path) -> str:
    """Return what a fresh interpreter that finds the copy says of the code, if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""
