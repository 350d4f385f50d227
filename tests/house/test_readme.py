"""The README shows what the code does: its diagram is printed, its Python runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel

import graphloop
from graphloop import Agent, ToolContext
from graphloop.graph import NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.views.render import save

WORDS = re.compile(r"<text[^>]*>([^<]+)</text>")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MODEL = '"anthropic:claude-opus-4-8"'
SCRIPT = """
- calls:
    - {name: get_weather, arguments: {city: NYC}}
    - {name: get_weather, arguments: {city: London}}
- text: Sunny and rainy.
"""
REPORT = """
- calls:
    - {name: search, arguments: {query: all}}
    - {name: delete_account, arguments: {}}
- calls: [{name: final_answer, arguments: {title: Bare}}]
- calls: [{name: final_answer, arguments: {title: A source}}]
"""


@pytest.fixture
def blocks(root: Path) -> list[str]:
    """Return the README's blocks of Python."""
    return PYTHON.findall((root / "README.md").read_text(encoding="utf-8"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory of the test, with recorded replies in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weather.yaml").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def test_the_picture_shows_the_table_that_runs(root: Path, tmp_path: Path) -> None:
    """After a change, `graphloop draw agent -o docs/loop.svg` draws it again.

    With `--theme dark` it draws `docs/loop-dark.svg`, for readers with a dark page.
    """
    nodes = Standard()
    graph = NodeGraph("agent", nodes.prepare, standard_edges(nodes))

    save(graph, tmp_path / "loop.svg")

    for shown in ("loop.svg", "loop-dark.svg"):
        assert words(tmp_path / "loop.svg") == words(root / "docs" / shown)
        assert f"docs/{shown}" in (root / "README.md").read_text("utf-8")


def test_the_twenty_lines_run_as_they_stand(
    blocks: list[str], desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what a newcomer pastes first; only the model is a recorded one here."""
    source = blocks[0]
    assert source.count(MODEL) == 1
    (desk / "twenty.py").write_text(source.replace(MODEL, '"script:weather.yaml"'), "utf-8")

    ran = runpy.run_path("twenty.py")

    first, *report = capsys.readouterr().out.splitlines()
    contents = [one.content for one in ran["result"].steps[0].tool_results]
    assert contents == ["72°F and sunny", "55°F and rainy"]
    assert first.startswith("Sunny and rainy. completed Usage(")
    assert "no problem found" in "\n".join(report)
    assert "<svg" in (desk / "loop.svg").read_text(encoding="utf-8")


def test_the_lines_about_rules_run_as_they_stand(blocks: list[str], desk: Path) -> None:
    """Every name that they use is public, and what they promise comes true."""
    called: list[str] = []

    def search(query: str) -> str:
        """Search."""
        called.append(query)
        return "found"

    def refund(amount: int) -> str:
        """Pay back."""
        raise AssertionError("nobody has approved")

    def delete_account() -> str:
        """Delete."""
        raise AssertionError("it is denied")

    def over_limit(arguments: object, context: ToolContext) -> bool:
        return True

    source = blocks[1]
    assert source.count(MODEL) == 1
    names: dict[str, object] = {
        name: getattr(graphloop, name) for name in ("Agent", "allow", "ask", "budget", "deny")
    }
    names |= {"search": search, "refund": refund, "delete_account": delete_account}
    names |= {"over_limit": over_limit, "Report": Report}
    (desk / "report.yaml").write_text(REPORT, encoding="utf-8")
    (desk / "rules.py").write_text(source.replace(MODEL, '"script:report.yaml"'), "utf-8")

    agent = cast("Agent[None, Report]", runpy.run_path("rules.py", names)["agent"])
    result = agent.generate_sync("Report")

    assert result.output == Report(title="A source")
    assert called == ["all"]
    assert [one.status for one in result.steps[0].tool_results] == ["ok", "denied"]
    assert len(result.steps) == 3, "the first report names no source, and was sent back"


def test_every_python_block_is_run(blocks: list[str]) -> None:
    """A further one would need a test of its own."""
    assert len(blocks) == 2


class Report(BaseModel):
    """What was asked for."""

    title: str


def words(drawing: Path) -> list[str]:
    """Return the words of a picture."""
    return sorted(WORDS.findall(drawing.read_text("utf-8")))
