"""Resuming a run: what it needs, the tree of its children, and what changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Unpack

import pytest

from graphloop import Agent, EndReason
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError, RunFailed
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.mortal_store import Died, Fate, MortalStore
from tests.planned_model import PlannedModel
from tests.strategies import call, reply
from tests.unit.agent.doubles import PAY, Till


def test_a_run_is_taken_up_by_its_id_in_another_process(tmp_path: Path) -> None:
    Till(PAY, store=str(tmp_path)).parked("r")
    later = Till("done", store=str(tmp_path))

    result = later.resumed("r", {"c0.0": True})

    assert (["r.jsonl"], [7]) == ([one.name for one in tmp_path.iterdir()], later.paid)
    assert ("done", EndReason.COMPLETED) == (result.text, result.end_reason)


def agent(kept_in: Store | str | None = None, **options: Unpack[AgentOptions]) -> Agent:
    """Return an agent whose model asks for a tool that is not there, then is done."""
    model = ScriptedModel([reply(call("nowhere")), "done"], restart=True)
    merged: AgentOptions = {**options}
    merged["store"] = kept_in
    return Agent(model, **merged)


async def test_resuming_an_ended_run_returns_its_result() -> None:
    store = MemoryStore()

    one = agent(store)
    first = await one.generate("go", run_id="r")
    before = len(await store.load("r"))
    second = await one.resume("r")
    assert first.run == second.run
    assert before == len(await store.load("r"))


def test_a_resume_without_the_run_s_tools_changes_nothing() -> None:
    till = Till(PAY, "done")
    first = till.parked()

    with pytest.raises(ConfigError, match="offers tools that this agent lacks: 'pay'"):
        asyncio.run(Agent(till.model).resume(first, approvals={"c0.0": True}))

    assert [] == till.paid
    assert EndReason.COMPLETED is till.resumed(first, approvals={"c0.0": True}).end_reason


async def _awaited(ask: Awaitable[object]) -> object:
    return await ask


def test_without_a_store_a_run_is_reached_by_its_result_only() -> None:
    till = Till(PAY, "done")
    first = till.parked("r")

    with pytest.raises(ConfigError, match=r"this agent has no `store`.*resume with the RunResult"):
        till.resumed("r", {"c0.0": True})
    for ask in (
        till.agent.runs.approve("r", "c0.0"),
        till.agent.runs.replay("r"),
        till.agent.runs.fork("r", at=1),
    ):
        with pytest.raises(ConfigError, match="this agent has no `store`"):
            asyncio.run(_awaited(ask))
    assert "done" == till.resumed(first, {"c0.0": True}).text


def test_a_failed_run_that_is_resumed_tells_its_failure_again() -> None:
    till = Till(ValueError("broken"), store=MemoryStore())
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(till.agent.generate("go", run_id="r"))

    with pytest.raises(RunFailed, match="ValueError: broken"):
        till.resumed("r")
    with pytest.raises(ConfigError, match=r"takes no answers: it is over \(error\)"):
        till.resumed("r", {"c0.0": True})


PLANS: Plans = {
    "go": [batch("note", "kid", "kid")],
    "kid": [batch("leaf", "note")],
    "leaf": [batch("pay", "pay")],
}


NAMES = ("note", "pay", "client", "kid")


def resume_with(agent: Callable[[Ledger, Store], Agent], message: str) -> None:
    """Assert that another agent refuses to resume a with_parked tree, and changes nothing."""

    async def scenario() -> None:
        ledger, store = Ledger(), MemoryStore()
        await tree(ledger, PLANS, store).generate("go", run_id="r")
        before = {one: await store.load(one) for one in await store.runs()}
        with pytest.raises(ConfigError, match=message):
            await agent(ledger, store).resume("r")
        assert before == {one: await store.load(one) for one in await store.runs()}

    asyncio.run(scenario())


def test_a_run_is_not_resumed_without_what_it_was_started_with() -> None:
    planned = PlannedModel(lambda prompt: PLANS[prompt])

    def without_tool(ledger: Ledger, store: Store) -> Agent:
        return Agent(planned, tools=[ledger.tool("pay", gated=True)], store=store)

    def without_agent(ledger: Ledger, store: Store) -> Agent:
        return tree(ledger, PLANS, store, root={"tools": [ledger.tool(one) for one in NAMES]})

    def other_model(ledger: Ledger, store: Store) -> Agent:
        return Agent(ScriptedModel([], label="other"), store=store)

    resume_with(
        without_tool, "offers tools that this agent lacks: 'note', 'kid'. Fix: resume it with"
    )
    resume_with(without_agent, "expected agent 'kid', found")
    resume_with(other_model, "needs model 'planned', which this agent lacks")


def test_a_run_is_not_resumed_without_its_children_s_tools() -> None:
    def without(ledger: Ledger, store: Store) -> Agent:
        return tree(ledger, PLANS, store, kid={"tools": [ledger.tool("note")]})

    resume_with(without, "run 'r/c0.1' offers tools that this agent lacks: .*'pay'")


async def test_a_child_that_died_before_it_began_is_begun_anew() -> None:
    plans: Plans = {"go": [batch("kid")], "kid": [batch("note")]}

    ledger, disk, last = Ledger(), MemoryStore(), ""
    for moments in range(20):
        try:
            await tree(ledger, plans, MortalStore(disk, Fate(moments))).generate(
                "go", run_id=f"r{moments}"
            )
        except Died:
            if await disk.runs() and f"r{moments}/c0.0" not in await disk.runs():
                last = f"r{moments}"
    store = MortalStore(disk, Fate())
    result, _ = await tree(ledger, plans, store).resume(last), ledger

    assert EndReason.COMPLETED is result.end_reason
    assert {f"{result.run_id}/c0.0"} == set(result.children)
