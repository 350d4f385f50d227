"""The door to stored runs, entered with an agent or its graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Runs, tool
from graphloop.errors import ConfigError, UnknownRun
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
    assert 2 == (await runs.replay("r")).seq
    assert "done" == (await runs.resume("r")).text
    assert EndReason.ABORTED is (await runs.cancel("s")).end_reason
    assert {"r": "done", "s": "cancelled"} == {one.run_id: one.status for one in await runs.list()}


@pytest.mark.parametrize("place", ["runs.db", "runs"])
async def test_a_look_at_what_runs_wait_for_changes_nothing(place: str, tmp_path: Path) -> None:
    """A dashboard looks often: a look that drove the run would journal, claim and resume."""
    pays = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}
    agent = Agent(ScriptedModel([pays, "done"], restart=True), tools=[pay])
    there = str(tmp_path / place)
    async with agent.with_options(store=there) as starter:
        await starter.generate("pay", run_id="r")
        await starter.generate("pay", run_id="s")
        before = (await starter.runs.replay("r")).seq

        (call,) = await agent.pending("r", store=there)

        assert ("pay", '{"amount": 5}') == (call.name, call.arguments)
        assert before == (await starter.runs.replay("r")).seq
        done = await starter.resume("r", approvals={call.key: call.approve()})
        assert ("done", ()) == (done.text, await starter.pending("r"))
        assert 1 == len(await agent.runs(there).waiting("s"))
        with pytest.raises(UnknownRun, match="'t'"):
            await agent.pending("t", store=there)


async def test_a_look_without_an_agent_or_a_store_is_refused(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel(["done"]))

    with pytest.raises(ConfigError, match="expected the agent that"):
        await Runs[None](str(tmp_path / "runs.db")).waiting("r")
    with pytest.raises(ConfigError, match="no `store`"):
        await agent.pending("r")
