"""A child that was taken over while its driver stood still: those above it are free afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Tool, ToolContext
from graphloop.errors import Fenced
from graphloop.stores.sqlite.store import SqliteStore
from tests.planned_model import PlannedModel, call

Execute = Callable[[dict[str, object], ToolContext], Awaitable[str]]


async def noted(arguments: dict[str, object], context: ToolContext) -> str:
    """Do it at once."""
    return "noted"


def agents(store: SqliteStore, note: Execute = noted) -> tuple[Agent, Agent]:
    """Return an agent that notes something, and one above that has it done."""
    tool = Tool(name="note", parameters={"type": "object"}, execute=note, effect="pure")
    kid = Agent(PlannedModel(lambda _: [[call("note")]]), name="kid", tools=[tool], store=store)
    top = Agent(
        PlannedModel(lambda _: [[call("kid", prompt="note it")]]),
        tools=[kid.as_tool(description="notes")],
        store=store,
    )
    return kid, top


@pytest.mark.parametrize("here", [True, False], ids=["the same process", "another process"])
async def test_a_driver_whose_child_is_taken_over_returns_its_run(
    here: bool, tmp_path: Path
) -> None:
    """Its lease was prolonged for as long as its process lived, and nobody drove the run."""
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def slow(arguments: dict[str, object], context: ToolContext) -> str:
        inside.set()
        await go_on.wait()
        return "noted"

    path = tmp_path / "runs.db"
    late = SqliteStore(path)
    driving = asyncio.create_task(agents(late, slow)[1].generate("go", run_id="r"))
    await inside.wait()
    # To this one the other stands still for longer than its lease.
    quick = SqliteStore(path, clock=lambda: time.time() + 100.0)
    below = await agents(quick)[0].resume("r/c0.0")
    go_on.set()
    with pytest.raises(Fenced, match=r"run 'r/c0\.0'"):
        await driving
    after = late if here else SqliteStore(path)
    result = await agents(after)[1].resume("r")
    statuses = [str(one.status) for one in await after.overview()]
    for store in {late, quick, after}:
        await store.aclose()
    assert (EndReason.COMPLETED, EndReason.COMPLETED, ["done", "done"]) == (
        below.end_reason,
        result.end_reason,
        statuses,
    )
