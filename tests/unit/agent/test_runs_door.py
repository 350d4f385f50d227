"""The door to stored runs, entered with an agent or its graph."""

from __future__ import annotations

from pathlib import Path

from graphloop import Agent, Runs, tool
from graphloop.testing import ScriptedModel


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


async def test_an_agent_opens_the_door_to_its_runs(tmp_path: Path) -> None:
    """In any store, also one that is not the agent's own."""
    pays = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}
    model = ScriptedModel([pays, "done"], restart=True)
    agent = Agent(model, tools=[pay], store=str(tmp_path / "runs.db"))
    await agent.generate("pay", run_id="r")
    runs = Runs(tmp_path / "runs.db", agent)

    assert "accepted" == await runs.approve("r", "c0.0")
    assert 3 == (await runs.replay("r")).seq
    assert "done" == (await runs.resume("r")).text


def test_a_saved_picture_draws_the_agents_that_are_tools(tmp_path: Path) -> None:
    """`detail` draws the graphs that nodes run, as the command line does."""
    inner = Agent(ScriptedModel(["x"]), name="researcher")
    outer = Agent(ScriptedModel(["y"]), tools=[inner.as_tool(description="Looks it up.")])

    drawn = outer.graph.save(tmp_path / "outer.mmd", level="detail")

    assert "researcher" in drawn.read_text(encoding="utf-8")
