"""Runs: the one door to stored runs, by their ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent, EndReason, tool
from graphloop.agent.runs import Runs
from graphloop.errors import ConfigError, UnknownRun
from graphloop.providers.script import Entry
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel

PAY: Entry = {"calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "p"}]}


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def payer(store: Store | str) -> Agent:
    """Return an agent that pays on approval."""
    return Agent(ScriptedModel([PAY, "done"]), tools=[pay], store=store, name="payer")


async def test_a_store_lists_its_runs_and_the_calls_that_wait(tmp_path: Path) -> None:
    """By its path alone: no agent is needed to look."""

    path = f"{tmp_path}/runs.db"
    async with payer(path) as agent:
        await agent.generate("go", run_id="r")
    runs = Runs[None](path)
    assert [("r", "payer", "suspended")] == [
        (one.run_id, one.graph, one.status) for one in await runs.list()
    ]
    assert ["c0.0"] == [one.key for one in await runs.pending("r")]
    assert "accepted" == await runs.decline("r", "c0.0", "too much")
    result = await payer(path).runs.resume("r")
    assert "too much" in str(result.messages)
    with pytest.raises(UnknownRun):
        await runs.pending("s")


async def test_a_run_is_cancelled_by_its_id() -> None:
    """Each of its calls is answered, and the tool does not run."""

    agent = payer(MemoryStore())
    await agent.generate("go", run_id="r")
    result = await agent.runs.cancel("r", "nobody wants it")
    assert EndReason.ABORTED is result.end_reason
    assert "5 paid" not in str(result.messages)
    assert ["cancelled"] == [one.status for one in await agent.runs.list()]


async def test_a_call_is_approved_and_its_run_resumed_by_the_id() -> None:
    """One object has all the doors."""

    runs = payer(MemoryStore())
    await runs.generate("go", run_id="r")
    assert "accepted" == await runs.runs.approve("r", "c0.0")
    copy = await runs.runs.fork("r", at=1, new_id="copy")
    assert "copy" == (await runs.runs.replay(copy)).id
    assert "done" == (await runs.runs.resume("r")).text


async def test_what_only_an_agent_can_do_says_so(tmp_path: Path) -> None:
    """A store holds journals, not models and tools."""

    with pytest.raises(ConfigError, match="expected an agent to resume it with"):
        await Runs[None](MemoryStore()).resume("r")
    with pytest.raises(ConfigError, match="expected the runs' graph"):
        await Runs[None](MemoryStore()).replay("r")
    with pytest.raises(ConfigError, match="keeps no catalog"):
        await Runs[None](JsonlStore(tmp_path)).list()
    with pytest.raises(ConfigError, match="does not know what runs wait for"):
        await Runs[None](JsonlStore(tmp_path)).pending("r")
    with pytest.raises(ConfigError, match="from a `store`"):
        await Runs[None](None).list()
