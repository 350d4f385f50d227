"""An edit replaces all arguments at every door, and its refusal speaks to a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, Approval, Pending, approve, tool
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel

PAID: list[tuple[int, int, str]] = []
CALL: Any = {"calls": [{"name": "refund", "arguments": {"order": 7, "amount": 9, "unit": "USD"}}]}


@tool(needs_approval=True)
def refund(order: int, amount: int, unit: str = "EUR") -> str:
    """Pay back."""
    PAID.append((order, amount, unit))
    return "paid back"


def agent(store: Path, **options: Any) -> Agent:
    """Return an agent that asks before it pays back."""
    PAID.clear()
    model = ScriptedModel([CALL, "done"], label="script:desk", restart=True)
    return Agent(model, tools=[refund], store=str(store), **options)


async def resumed(store: Path) -> object:
    """Hand the edit to `resume`."""
    till = agent(store)
    parked = await till.generate("go", run_id="r")
    return await till.resume("r", approvals={parked.pending[0].key: approve(edit={"amount": 5})})


async def posted(store: Path) -> object:
    """Leave the edit in the store."""
    till = agent(store)
    await till.generate("go", run_id="r")
    return await till.runs.approve("r", "c0.0", approve(edit={"amount": 5}))


async def handed_in(store: Path) -> object:
    """Hand the edit in with the conversation."""
    till = agent(store)
    parked = await till.generate("go")
    history = [{"role": "user", "content": "go"}, *parked.messages]
    given: Any = {parked.pending[0].call_id: approve(edit={"amount": 5})}
    return await till.generate(messages=history, approvals=given)


@pytest.mark.parametrize("door", [resumed, posted, handed_in])
def test_an_edit_without_an_argument_is_refused_for_a_person(
    tmp_path: Path, door: Callable[[Path], Any]
) -> None:
    """Nobody who edits is told to call a tool again."""
    with pytest.raises(ConfigError) as refused:
        asyncio.run(door(tmp_path / "runs.db"))

    said = str(refused.value)
    assert "Fix: give every argument that is needed, since an edit replaces all of them." in said
    assert "order" in said
    assert "call the tool again" not in said


def test_what_an_edit_leaves_out_is_left_out_of_the_call(tmp_path: Path) -> None:
    """The default of the tool holds, not what the model gave: it is no patch."""

    def decide(_: Pending) -> Approval:
        return approve(edit={"order": 7, "amount": 5})

    till = agent(tmp_path / "runs.db", approve_tool_call=decide)

    asyncio.run(till.generate("go"))

    assert [(7, 5, "EUR")] == PAID
