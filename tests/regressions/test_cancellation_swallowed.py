"""A tool that keeps its cancellation to itself: whoever asked for it is heeded all the same.

Alone in its turn, it is awaited in its caller's own task. A run went on to its end then, asking the
model again and again, and nobody waited for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphloop import Agent, EndReason, Tool
from graphloop.events import ToolReturned
from graphloop.stores.memory import MemoryStore
from tests.planned_model import PlannedModel, call


class World:
    """An agent with a careless tool, or one above it that calls it; `asked` counts its replies."""

    def __init__(self, calls: int, *, deep: bool) -> None:
        self.store = MemoryStore()
        self.inside = asyncio.Event()
        self.ran = self.asked = 0
        self._calls = calls
        self._deep = deep

    def agent(self) -> Agent:
        """Return the agent at the top."""
        tool = Tool(name="sleep", parameters={"type": "object"}, execute=self._sleep)
        options: dict[str, Any] = {} if self._deep else {"store": self.store}
        kid = Agent(PlannedModel(self._plan), tools=[tool], name="kid", **options)
        if not self._deep:
            return kid
        below = kid.as_tool(description="sleeps")
        model = PlannedModel(lambda _: [[call("kid", prompt="x")]])
        return Agent(model, tools=[below], store=self.store)

    def _plan(self, _: str) -> list[Any]:
        self.asked += 1
        return [[call("sleep")] * self._calls]

    async def _sleep(self, arguments: dict[str, object]) -> str:
        self.ran += 1
        self.inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "failed"
        return "never"


@pytest.mark.parametrize("deep", [False, True], ids=["at the top", "in a child"])
@pytest.mark.parametrize("calls", [1, 2])
async def test_no_tool_holds_back_a_caller_who_goes_away(calls: int, deep: bool) -> None:
    """What the tool has answered is kept, and the run goes on where it was left."""

    world = World(calls, deep=deep)
    task = asyncio.create_task(world.agent().generate("go", run_id="r"))
    await world.inside.wait()
    asked = world.asked
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert asked == world.asked
    kept = await world.store.load("r/c0.0" if deep else "r")
    answers = sum(isinstance(one, ToolReturned) for one in kept)
    end = (await world.agent().resume("r")).end_reason
    ran = world.ran

    assert (calls, calls, EndReason.COMPLETED) == (answers, ran, end)


@pytest.mark.parametrize("deep", [False, True], ids=["at the top", "in a child"])
async def test_no_tool_holds_back_the_stop_of_a_run(deep: bool) -> None:
    """A child that went on would spend for a run that is over."""

    world = World(1, deep=deep)
    stream = world.agent().stream("go", run_id="r")
    task = asyncio.create_task(stream.result())
    await world.inside.wait()
    asked = world.asked
    stream.abort("enough")
    end, before, after = (await task).end_reason, asked, world.asked

    assert EndReason.ABORTED is end
    assert before == after
