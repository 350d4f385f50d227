"""The door to stored runs, entered with an agent or its graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Runs, tool
from graphloop.testing import ScriptedModel


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


@pytest.mark.parametrize("own", [None, "own.db"])
async def test_an_agent_opens_the_door_to_runs_in_any_store(
    own: str | None, tmp_path: Path
) -> None:
    pays = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}
    agent = Agent(ScriptedModel([pays, "done"], restart=True), tools=[pay])
    there = str(tmp_path / "runs.db")
    async with agent.with_options(store=there) as starter:
        await starter.generate("pay", run_id="r")
        await starter.generate("pay", run_id="s")
    runs = Runs(there, agent.with_options(store=None if own is None else str(tmp_path / own)))

    assert "accepted" == await runs.approve("r", "c0.0")
    assert 3 == (await runs.replay("r")).seq
    assert "done" == (await runs.resume("r")).text
    assert EndReason.ABORTED is (await runs.cancel("s")).end_reason
    assert {"r": "done", "s": "cancelled"} == {one.run_id: one.status for one in await runs.list()}
