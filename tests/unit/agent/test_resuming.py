"""Taking a run up again: the tree of its children, the answers for each, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, RunResult
from graphloop.agent.answers import Answers
from graphloop.agent.journals import descendants, resumption, waiting
from graphloop.driver.ports import Ports
from graphloop.errors import ConfigError, UnknownRun
from graphloop.events import Decided, ToolReturned
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.mortal_store import Died, Fate, MortalStore
from tests.planned_model import PlannedModel

PLANS: Plans = {
    "go": [batch("note", "kid", "kid")],
    "kid": [batch("leaf", "note")],
    "leaf": [batch("pay", "pay")],
}
KEYS = [f"c0.{kid}/c0.0/c0.{place}" for kid in (1, 2) for place in (0, 1)]


def parked(
    work: Callable[[RunResult[None], Ports[None], Ledger], Awaitable[None]],
    plans: Plans = PLANS,
    store: Store | None = None,
) -> None:
    """Do something with a run that is parked, and the world to resume it in."""

    async def scenario() -> None:
        ledger, disk = Ledger(), store or MemoryStore()
        agent = tree(ledger, plans, disk)
        result = await agent.generate("go", run_id="r")
        assert EndReason.PARKED is result.end_reason
        await work(result, agent._terms.ports(disk), ledger)  # pyright: ignore[reportPrivateUsage]

    asyncio.run(scenario())


def test_a_run_is_taken_up_with_its_children_at_any_depth() -> None:
    """And each answer is where its call is."""

    async def work(result: RunResult[None], ports: Ports[None], _: Ledger) -> None:
        taken = await resumption(result.run, ports, Answers({KEYS[1]: True, KEYS[2]: False}))

        assert ("c0.1", "c0.2") == tuple(taken.children)
        assert () == taken.answers
        first, second = (kid.children["c0.0"] for kid in taken.children.values())
        assert [True, False] == [
            one.approved for one in (*first.answers, *second.answers) if isinstance(one, Decided)
        ]
        assert 1 == len(first.answers) == len(second.answers)
        assert {"r/c0.1", "r/c0.2", "r/c0.1/c0.0", "r/c0.2/c0.0"} == set(descendants(taken))

    parked(work)


def test_what_a_run_waits_for_is_told_by_its_journals_alone() -> None:
    """Without driving anything, and without changing anything."""

    async def work(result: RunResult[None], ports: Ports[None], _: Ledger) -> None:
        before = {one: await ports.store.load(one) for one in await ports.store.runs()}

        found = await waiting(result.run, ports)

        assert KEYS == [one.key for one in found]
        assert result.pending == found
        assert [("kid", "leaf")] * 4 == [one.agents for one in found]
        assert before == {one: await ports.store.load(one) for one in await ports.store.runs()}

    parked(work)


def test_an_answer_counts_once_it_is_in_the_mailbox() -> None:
    """And the first one does, whoever gives another later."""

    async def work(result: RunResult[None], ports: Ports[None], _: Ledger) -> None:
        await resumption(result.run, ports, Answers({KEYS[0]: False}))
        again = await resumption(result.run, ports, Answers({KEYS[0]: True}))

        (event,) = again.children["c0.1"].children["c0.0"].answers
        assert isinstance(event, Decided)
        assert not event.approved

    parked(work)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (Answers({"c0.1/c0.0/c9.9": True}), "does not wait for"),
        (Answers({"c0.1": True}), "does not wait for"),
        (Answers({KEYS[0]: True, "c0.1/c0.0/c9.9": True}), "does not wait for"),
    ],
)
def test_an_answer_that_fits_nowhere_changes_nothing(answers: Answers, message: str) -> None:
    """Not even the others that came with it are recorded."""

    async def work(result: RunResult[None], ports: Ports[None], _: Ledger) -> None:
        with pytest.raises(ConfigError, match=message):
            await resumption(result.run, ports, answers)
        assert isinstance(ports.store, MemoryStore)
        assert {} == await ports.store.posted("r")

    parked(work)


def test_client_tools_of_children_are_answered_too() -> None:
    """By the same kind of key."""
    plans: Plans = {"go": [batch("kid")], "kid": [batch("client")]}

    async def work(result: RunResult[None], ports: Ports[None], _: Ledger) -> None:
        taken = await resumption(result.run, ports, Answers(tool_results={"c0.0/c0.0": "theirs"}))

        (event,) = taken.children["c0.0"].answers
        assert isinstance(event, ToolReturned)
        assert "theirs" == event.content

    parked(work, plans)


def resume_with(agent: Callable[[Ledger, Store], Agent], message: str) -> None:
    """Assert that another agent refuses to resume a parked tree, and changes nothing."""

    async def scenario() -> None:
        ledger, store = Ledger(), MemoryStore()
        await tree(ledger, PLANS, store).generate("go", run_id="r")
        before = {one: await store.load(one) for one in await store.runs()}
        with pytest.raises(ConfigError, match=message):
            await agent(ledger, store).resume("r")
        assert before == {one: await store.load(one) for one in await store.runs()}

    asyncio.run(scenario())


def test_a_run_is_not_resumed_without_what_it_was_started_with() -> None:
    """It would end over a forgotten tool, model or agent; the message says which."""
    planned = PlannedModel(lambda prompt: PLANS[prompt])

    def without_tool(ledger: Ledger, store: Store) -> Agent:
        return Agent(planned, tools=[ledger.tool("pay", gated=True)], store=store)

    def without_agent(ledger: Ledger, store: Store) -> Agent:
        return tree(ledger, PLANS, store, root={"tools": [ledger.tool(one) for one in NAMES]})

    def other_model(ledger: Ledger, store: Store) -> Agent:
        return Agent(ScriptedModel([], label="other"), store=store)

    resume_with(
        without_tool, "run 'r' offers tools that are not here: 'note', 'kid'. Resume it with"
    )
    resume_with(without_agent, "waits for agent 'kid', which is not here")
    resume_with(other_model, "asks model 'planned', which is not here")


NAMES = ("note", "pay", "client", "kid")


def test_nor_are_its_children() -> None:
    """What is missing two levels down is missed before anything is driven."""

    def without(ledger: Ledger, store: Store) -> Agent:
        return tree(ledger, PLANS, store, kid={"tools": [ledger.tool("note")]})

    resume_with(without, "run 'r/c0.1' offers tools that are not here: .*'pay'")


def test_a_run_that_is_over_needs_nothing() -> None:
    """Its result can be had without its tools and models."""

    async def scenario() -> RunResult[None]:
        store = MemoryStore()
        await Agent(PlannedModel(lambda _: ["all done"]), store=store).generate("go", run_id="r")
        return await Agent(ScriptedModel([], label="other"), store=store).resume("r")

    assert "all done" == asyncio.run(scenario()).text


def test_an_unknown_run_is_said_to_be_unknown(tmp_path: Path) -> None:
    """By the store that was asked."""

    async def scenario() -> None:
        store = SqliteStore(tmp_path / "r.db", durability="process")
        agent = tree(Ledger(), PLANS, store)
        with pytest.raises(UnknownRun):
            await agent.resume("nobody's")
        await store.aclose()

    asyncio.run(scenario())


def test_a_child_that_died_before_it_began_is_begun_anew() -> None:
    """Its call is in the parent's journal, and nothing of it anywhere else."""
    plans: Plans = {"go": [batch("kid")], "kid": [batch("note")]}

    async def scenario() -> tuple[RunResult[None], Ledger]:
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
        return await tree(ledger, plans, store).resume(last), ledger

    result, _ = asyncio.run(scenario())

    assert EndReason.COMPLETED is result.end_reason
    assert {f"{result.run_id}/c0.0"} == set(result.children)
