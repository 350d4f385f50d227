"""A child run that somebody else drives: its parent keeps all it has, and waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import END, Agent, AgentTool, EndReason, Graph, Tool
from graphloop.own_nodes.compose import parallel
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from tests.agent_tree import Ledger, Plans, batch, tree

ALONE: Plans = {"go": [batch("kid")], "kid": [batch("note")]}
AMONG_OTHERS: Plans = {"go": [batch("note", "kid", "note")], "kid": [batch("note")]}
DEEP: Plans = {"go": [batch("kid", "note")], "kid": [batch("leaf", "note")]}
GATED: Plans = {"go": [batch("note", "kid")], "kid": [batch("pay")]}


def store_at(folder: Path) -> SqliteStore:
    """Return the store of one process."""
    return SqliteStore(folder / "runs.db", durability="process")


@pytest.mark.parametrize(
    ("plans", "busy", "done"),
    [
        (ALONE, "r/c0.0", []),
        (AMONG_OTHERS, "r/c0.1", ["note", "note"]),
        (DEEP, "r/c0.0/c0.0", ["note", "note"]),
    ],
    ids=["alone", "among others", "a child's child"],
)
async def test_a_run_waits_for_a_child_that_another_process_drives(
    plans: Plans, busy: str, done: list[str], tmp_path: Path
) -> None:
    """Its siblings' work is kept; once the child is free, all goes on and nothing happens twice."""
    mine, theirs, ledger = store_at(tmp_path), store_at(tmp_path), Ledger()
    await theirs.claim(busy)
    parked = await tree(ledger, plans, mine).generate("go", run_id="r")
    by_then = list(ledger.names.elements())
    await theirs.release(busy, "parked", ())
    result = await tree(ledger, plans, mine).resume("r")
    await mine.aclose()
    await theirs.aclose()

    assert EndReason.PARKED is parked.end_reason
    assert f"run {busy!r} is being driven by" in parked.warnings[0]
    assert done == by_then
    assert EndReason.COMPLETED is result.end_reason
    assert () == result.warnings
    assert {1} == set(ledger.done.values())
    assert {"ok"} == {one.status for one in result.steps[0].tool_results}


async def test_an_answer_for_a_child_driven_elsewhere_is_not_lost(tmp_path: Path) -> None:
    """It waits in the mailbox; and whoever drives the child may end it, too."""
    mine, theirs, ledger = store_at(tmp_path), store_at(tmp_path), Ledger()
    ends: list[EndReason] = []

    async def resumed(**approvals: bool) -> None:
        answers = {"c0.1/c0.0": True} if approvals else None
        result = await tree(ledger, GATED, mine).resume("r", approvals=answers)
        ends.append(result.end_reason)

    await tree(ledger, GATED, mine).generate("go", run_id="r")
    await theirs.claim("r/c0.1")
    await resumed(yes=True)
    await theirs.release("r/c0.1", "parked", ())
    await resumed()
    await mine.aclose()
    await theirs.aclose()
    names = ledger.names

    assert [EndReason.PARKED, EndReason.COMPLETED] == ends
    assert {"note": 1, "pay": 1} == names


async def test_an_abort_waits_for_no_child_that_is_driven_elsewhere(tmp_path: Path) -> None:
    """It cannot be stopped from here; the run above ends, and the child's driver goes on."""
    mine, theirs = store_at(tmp_path), store_at(tmp_path)
    await tree(Ledger(), GATED, mine).generate("go", run_id="r")
    await theirs.claim("r/c0.1")
    stream = tree(Ledger(), GATED, mine).resume_stream("r")
    stream.abort("enough")
    result = await stream.result()
    await theirs.release("r/c0.1", "parked", ())
    last = type((await mine.load("r/c0.1"))[-1]).__name__
    await mine.aclose()
    await theirs.aclose()

    assert EndReason.ABORTED is result.end_reason
    assert 2 == result.run.spent.model_calls
    assert "ModelReplied" == last
    (warning,) = result.warnings
    assert "run 'r/c0.1' is being driven by" in warning
    assert "not counted here" in warning


def hurried(
    ledger: Ledger, wished: Plans, *, deep: bool
) -> tuple[Graph[None], dict[str, AgentTool]]:
    """Return a graph that takes the first of two answers, and its agents: both have to be told."""
    fan = parallel("kid", "quick", join="first")
    kid = tree(
        ledger, {"go": wished["kid"], "kid": wished["leaf"]} if deep else {"go": wished["kid"]}
    )
    quick = Agent(
        ScriptedModel([{"calls": [{"name": "told"}]}, "fine"]),
        tools=[Tool(name="told", parameters={"type": "object"})],
    )
    agents = {
        "kid": kid.as_tool(description="a", name="kid"),
        "quick": quick.as_tool(description="a", name="quick"),
    }
    return Graph("hurried", fan, {fan: {...: END}}), agents


@pytest.mark.parametrize(
    ("wished", "busy"),
    [
        ({"kid": [batch("pay")]}, "r/parallel.1"),
        ({"kid": [batch("kid")], "leaf": [batch("pay")]}, "r/parallel.1/c0.0"),
    ],
    ids=["a child", "a child's child"],
)
async def test_an_abandoned_child_driven_elsewhere_is_waited_for(
    wished: Plans, busy: str, tmp_path: Path
) -> None:
    """It spends on: whoever went on by now would have the same money twice."""
    ledger, deep = Ledger(), "/" in busy.removeprefix("r/")
    graph, agents = hurried(ledger, wished, deep=deep)

    mine, theirs = store_at(tmp_path), store_at(tmp_path)
    await graph.run(None, prompt="go", agents=agents, store=mine, run_id="r", max_agent_depth=2)
    await theirs.claim(busy)
    parked = await graph.resume(
        "r", agents=agents, store=mine, tool_results={"parallel.2/c0.0": "told"}, max_agent_depth=2
    )
    await theirs.release(busy, "parked", ())
    result = await graph.resume("r", agents=agents, store=mine, max_agent_depth=2)
    ends = [type((await mine.load(one))[-1]).__name__ for one in sorted({busy, "r/parallel.1"})]
    await mine.aclose()
    await theirs.aclose()

    assert (EndReason.PARKED, ()) == (parked.end_reason, parked.pending)
    (warning,) = parked.warnings
    assert f"run {busy!r} is being driven by" in warning
    assert (EndReason.COMPLETED, ()) == (result.end_reason, result.warnings)
    assert {"Cancelled"} == set(ends)
    assert 0 == ledger.names["pay"]
    assert 3 + deep == result.run.spent.model_calls
