"""result_of: a buffered call that is stopped by a signal is the drained stream, aborted."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from graphloop import Agent, EndReason, RunResult, Tool, generate_text
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply

T = TypeVar("T")

DEADLINE_S = 5.0


def within(work: Coroutine[object, object, T]) -> T:
    """Run to the end, or fail if it does not come."""

    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(bounded())


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
def test_a_signal_ends_a_buffered_call_as_aborted_with_what_there_is(way: str) -> None:
    """Cancelling its task would lose the first tool's result."""

    async def scenario() -> tuple[RunResult[None], int]:
        world, signal = World(), asyncio.Event()
        if way == "Agent.generate":
            asked = Agent(world.model, tools=world.tools).generate("go", signal=signal)
        else:
            asked = generate_text(world.model, "go", tools=world.tools, signal=signal)
        running = asyncio.create_task(asked)
        await world.inside.wait()
        signal.set()
        return await running, len(asyncio.all_tasks())

    result, tasks = within(scenario())

    assert (EndReason.ABORTED, ("the signal was set",)) == (result.end_reason, result.stopped_by)
    assert ["noted"] == [one.text for one in result.steps[0].tool_results]
    assert "unknown" == result.steps[1].tool_results[0].status
    assert 1 == tasks


def test_a_signal_that_is_set_before_asks_nothing() -> None:
    """The caller has changed their mind before anything was sent."""

    async def scenario() -> tuple[RunResult[None], int]:
        world, signal = World(), asyncio.Event()
        signal.set()
        result = await Agent(world.model, tools=world.tools).generate("go", signal=signal)
        return result, len(result.steps)

    result, turns = within(scenario())

    assert (EndReason.ABORTED, 0) == (result.end_reason, turns)


def test_a_signal_that_is_never_set_changes_nothing() -> None:
    """And leaves no task behind."""

    async def scenario() -> tuple[str, int]:
        agent = Agent(ScriptedModel(["done"]))
        result = await agent.generate("go", signal=asyncio.Event())
        await asyncio.sleep(0)
        return result.text, len(asyncio.all_tasks())

    assert ("done", 1) == within(scenario())
