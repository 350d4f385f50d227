"""The README shows what the code does: its diagram is printed, its Python runs."""

from __future__ import annotations

import asyncio
import re
import runpy
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import indent
from typing import cast

import pytest

from graphloop import Agent, tool
from graphloop.graph import Graph
from graphloop.loop import standard_edges
from graphloop.nodes.execute import Execute
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.nodes.stop_check import StopCheck
from graphloop.testing import ScriptedModel
from graphloop.views.mermaid import mermaid

DIAGRAM = re.compile(
    r"<!-- diagram:agent -->\s*```mermaid\n(.*?)```\s*<!-- /diagram -->", re.DOTALL
)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MODEL = '"anthropic:claude-opus-4-8"'
SCRIPT = """
- calls:
    - {name: get_weather, arguments: {city: NYC}}
    - {name: get_weather, arguments: {city: London}}
- text: Sunny and rainy.
"""
REFUND = "- calls: [{name: refund, arguments: {order: 7}}]\n- text: Done.\n"


@pytest.fixture
def blocks(root: Path) -> list[str]:
    """Return the README's blocks of Python."""
    return PYTHON.findall((root / "README.md").read_text(encoding="utf-8"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory of the test, with recorded replies in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weather.yaml").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "refund.yaml").write_text(REFUND, encoding="utf-8")
    return tmp_path


def test_the_diagram_is_what_the_table_prints(root: Path) -> None:
    """The table runs and the picture is believed; they may not part."""
    prepare = PrepareStep()
    graph = Graph("agent", prepare, standard_edges(prepare, Execute(), StopCheck()))
    readme = (root / "README.md").read_text(encoding="utf-8")

    shown: list[str] = DIAGRAM.findall(readme)

    assert [mermaid(graph).strip()] == [each.strip() for each in shown]


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


def test_the_lines_about_streams_run_as_they_stand(
    blocks: list[str], desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Watched, parked and taken up again, with the agent, model and tool that they speak of."""
    paid: list[int] = []

    @tool(needs_approval=True)
    async def refund(order: int) -> str:
        """Pay back."""
        paid.append(order)
        return "paid"

    body = indent(f"{blocks[1]}return result", "    ")
    head = "async def main(Agent, agent, model, refund):\n"
    (desk / "streams.py").write_text(head + body, encoding="utf-8")
    main = cast("Callable[..., Awaitable[object]]", runpy.run_path("streams.py")["main"])

    async def ran() -> object:
        watched = Agent(ScriptedModel(["Sunny."]))
        return await main(Agent, watched, ScriptedModel.from_file("refund.yaml"), refund)

    result = asyncio.run(ran())

    assert getattr(result, "text", None) == "Sunny."
    assert "TextDelta(" in capsys.readouterr().out
    assert paid == [7]
    assert len(list((desk / "runs").iterdir())) == 1


def test_every_python_block_is_run(blocks: list[str]) -> None:
    """A third one would need a test of its own."""
    assert len(blocks) == 2
