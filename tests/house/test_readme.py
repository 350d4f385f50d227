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
from pydantic import BaseModel

import graphloop
from graphloop import Agent, RunResult, ToolContext, tool
from graphloop.graph import NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from graphloop.views.levels import picture
from graphloop.views.mermaid import mermaid_of

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
REFUND = "- calls: [{name: refund, arguments: {amount: 7}}]\n- text: Done.\n"
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
    (tmp_path / "refund.yaml").write_text(REFUND, encoding="utf-8")
    return tmp_path


def test_the_diagram_is_what_the_table_prints(root: Path) -> None:
    """The table runs and the picture is believed; they may not part."""
    nodes = Standard()
    graph = NodeGraph("agent", nodes.prepare, standard_edges(nodes))
    readme = (root / "README.md").read_text(encoding="utf-8")

    shown: list[str] = DIAGRAM.findall(readme)

    assert [mermaid_of(picture(graph)).strip()] == [each.strip() for each in shown]


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
    """Watched, parked, edited and taken up again, with the tool and the model they speak of."""
    paid: list[int] = []

    @tool(needs_approval=True)
    async def refund(amount: int, order: int = 0) -> str:
        """Pay back."""
        paid.append(amount)
        return "paid"

    main = function(f"{blocks[1]}return result, agent", "Agent, agent, model, refund", desk)

    async def ran() -> object:
        watched = Agent(ScriptedModel(["Sunny."]))
        model = ScriptedModel.from_file("refund.yaml")
        result, agent = cast("tuple[RunResult, Agent]", await main(Agent, watched, model, refund))
        await agent.aclose()
        return result.text

    assert asyncio.run(ran()) == "Sunny."
    assert "TextDelta(" in capsys.readouterr().out
    assert paid == [5]
    assert (desk / "runs.db").is_file()


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

    source = blocks[2]
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


def test_the_lines_about_steering_run_as_they_stand(
    blocks: list[str], desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Turn by turn, and from the side."""
    ran: list[str] = []

    def clean(branch: str) -> str:
        """Clean up."""
        ran.append(branch)
        return "gone"

    script: list[Entry] = [
        {"calls": [{"name": "clean", "arguments": {"branch": "old"}}]},
        *["done"] * 9,
    ]
    model = ScriptedModel(script)
    agent = Agent(model, tools=[clean], max_steps=3)
    other = ScriptedModel(["one", "two"])
    stream = Agent(other).stream("go")
    main = function(blocks[3], "agent, stream", desk)

    async def scenario() -> str:
        await main(agent, stream)
        return (await stream.result()).text

    assert asyncio.run(scenario()) == "two"
    assert UserMessage("Also check the tests", origin="steering") in other.requests[0].messages
    assert ran == ["old"]
    assert "gone" in capsys.readouterr().out
    assert UserMessage("Leave `release` alone.", origin="steering") in model.requests[1].messages


def test_the_lines_about_agents_run_as_they_stand(blocks: list[str]) -> None:
    """They make two agents, of which one is a tool of the other."""

    def search(query: str) -> str:
        """Search."""
        return query

    def publish(text: str) -> str:
        """Publish."""
        return text

    names: dict[str, object] = {"Agent": Agent, "model": ScriptedModel(["done"])}
    names |= {"search": search, "publish": publish}

    exec(blocks[4], names)  # noqa: S102 - the README's own lines

    writer = cast("Agent", names["writer"])
    assert writer.generate_sync("Write").text == "done"
    model = cast("ScriptedModel", names["model"])
    assert [one.name for one in model.requests[0].tools] == ["researcher", "publish"]


def test_every_python_block_is_run(blocks: list[str]) -> None:
    """A further one would need a test of its own."""
    assert len(blocks) == 5


class Report(BaseModel):
    """What was asked for."""

    title: str


def function(lines: str, parameters: str, desk: Path) -> Callable[..., Awaitable[object]]:
    """Return lines of the README as an async function of these parameters."""
    source = f"async def main({parameters}):\n{indent(lines, '    ')}"
    (desk / "lines.py").write_text(source, encoding="utf-8")
    return cast("Callable[..., Awaitable[object]]", runpy.run_path("lines.py")["main"])
