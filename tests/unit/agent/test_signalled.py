"""result_of: a buffered call that is stopped by a signal is the drained stream, aborted."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import Agent, EndReason, Tool, generate_text
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply


class World:
    """A model that calls two tools, one after the other; the second waits for ever."""

    def __init__(self) -> None:
        self.inside = asyncio.Event()
        self.model = ScriptedModel([reply(call("note")), reply(call("wait")), "done"])
        free: dict[str, object] = {"type": "object"}
        self.tools = [
            Tool(name="note", parameters=free, execute=self._note),
            Tool(name="wait", parameters=free, execute=self._wait),
        ]

    async def _note(self, arguments: dict[str, object]) -> str:
        return "noted"

    async def _wait(self, arguments: dict[str, object]) -> str:
        self.inside.set()
        await asyncio.Event().wait()
        return "never"


@pytest.mark.parametrize("way", ["Agent.generate", "generate_text"])
async def test_a_signal_ends_a_buffered_call_as_aborted_with_what_there_is(way: str) -> None:
    """Cancelling its task would lose the first tool's result."""

    world, signal = World(), asyncio.Event()
    if way == "Agent.generate":
        asked = Agent(world.model, tools=world.tools).generate("go", signal=signal)
    else:
        asked = generate_text(world.model, "go", tools=world.tools, signal=signal)
    running = asyncio.create_task(asked)
    await world.inside.wait()
    signal.set()
    result, tasks = await running, len(asyncio.all_tasks())

    assert (EndReason.ABORTED, ("the signal was set",)) == (result.end_reason, result.stopped_by)
    assert ["noted"] == [one.text for one in result.steps[0].tool_results]
    assert "unknown" == result.steps[1].tool_results[0].status
    assert 1 == tasks


async def test_a_signal_that_is_set_before_asks_nothing() -> None:
    """The caller has changed their mind before anything was sent."""

    world, signal = World(), asyncio.Event()
    signal.set()
    result = await Agent(world.model, tools=world.tools).generate("go", signal=signal)
    turns = len(result.steps)

    assert (EndReason.ABORTED, 0) == (result.end_reason, turns)


async def test_a_signal_that_is_never_set_changes_nothing() -> None:
    """And leaves no task behind."""

    agent = Agent(ScriptedModel(["done"]))
    result = await agent.generate("go", signal=asyncio.Event())
    await asyncio.sleep(0)
    assert ("done", 1) == (result.text, len(asyncio.all_tasks()))
