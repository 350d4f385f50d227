"""An answer to a child's call is given to the run at the top, whichever id it was given under.

It was accepted under the child's id, put into a mailbox that nothing reads, and lost.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, Graph, Runs, approve, ask, tool
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel

PAID: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return "paid"


def desk(store: Path) -> tuple[Agent, Agent]:
    """Return an agent that calls another, which asks before it pays."""
    call: Any = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}
    model = ScriptedModel([call, "paid"], label="script:payer", restart=True)
    payer = Agent(model, name="payer", tools=[pay], gate=ask("pay"), store=str(store))
    told: Any = {"calls": [{"name": "payer", "arguments": {"prompt": "pay"}}]}
    above = ScriptedModel([told, "done"], label="script:top", restart=True)
    top = Agent(above, name="top", tools=[payer.as_tool(description="pays")], store=str(store))
    PAID.clear()
    return top, payer


@pytest.mark.parametrize("by", ["top", "child", "graph"])
async def test_an_approval_under_a_childs_id_reaches_its_run(tmp_path: Path, by: str) -> None:
    """It is accepted once, by the run at the top, whoever gives it."""
    top, payer = desk(tmp_path / "runs.db")

    await top.generate("go", run_id="r")
    doors: dict[str, Agent | Graph[None]] = {"top": top, "child": payer, "graph": payer.graph}
    door, given = doors[by], approve() if by != "top" else approve(edit={"amount": 4})
    if isinstance(door, Agent):
        said: list[str] = [await door.runs.approve("r/c0.0", "c0.0", given)]
    else:
        said = [await Runs(tmp_path / "runs.db", door).approve("r/c0.0", "c0.0", given)]
    said += [await top.runs.approve("r", "c0.0/c0.0", approve())]
    await top.resume("r")
    assert ["accepted", "answered" if by == "top" else "duplicate"] == said
    assert [4 if by == "top" else 5] == PAID


def test_a_key_that_the_top_run_does_not_wait_for_is_refused(tmp_path: Path) -> None:
    """With the id of that run, and what it waits for."""
    top, payer = desk(tmp_path / "runs.db")

    async def answered() -> None:
        await top.generate("go", run_id="r")
        await payer.runs.approve("r/c0.0", "c0.0/c0.0")

    with pytest.raises(
        ConfigError, match=r"run 'r' does not wait for .*; it waits for c0\.0/c0\.0"
    ):
        asyncio.run(answered())


@pytest.mark.parametrize("option", ["approvals", "tool_results"])
async def test_a_child_that_is_resumed_by_itself_takes_no_answers(
    tmp_path: Path, option: str
) -> None:
    """It is told where they go, before anything is recorded; and the right answer counts then."""
    top, payer = desk(tmp_path / "runs.db")

    await top.generate("go", run_id="r")
    given: Any = {option: {"c0.0": True}}
    with pytest.raises(ConfigError, match=r"'r/c0\.0' is a part of run 'r'.*'c0\.0/c0\.0'"):
        await payer.resume("r/c0.0", **given)
    await top.resume("r", approvals={"c0.0/c0.0": True})
    assert [5] == PAID
