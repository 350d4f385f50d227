"""A turn that waits for somebody outside is a turn: the result says what the model said in it."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import Agent, FinishReason, RunResult, Tool
from graphloop.parts.kinds import Finish
from graphloop.testing import ScriptedModel
from tests.regressions.worlds import NUMBER, call, calls, counting

ASK = {"text": "I shall pay.", **calls(call("pay"))}
LOOK = {"text": "First a look.", **calls(call("look"))}
DOORS = ("generate", "stream", "iter")


def agent(*replies: object, tool: Tool | None = None) -> Agent:
    """Return an agent with a tool that waits, and one that runs."""
    waits = counting([], needs_approval=True) if tool is None else tool
    script = ScriptedModel(replies)
    return Agent(script, tools=[waits, counting([], "look")])


async def came_to(one: Agent, door: str) -> RunResult:
    """Return what a run comes to through this door."""
    match door:
        case "generate":
            return await one.generate("Go")
        case "stream":
            stream = one.stream("Go")
            finish = [part async for part in stream.full_stream][-1]
            result = await stream.result()
            assert isinstance(finish, Finish)
            assert finish.finish_reason is result.finish_reason
            return result
        case _:
            return await one.iter("Go").until_done()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["approval", "client tool"])
def test_a_parked_turn_is_the_last_step_of_the_result(door: str, kind: str) -> None:
    """What is shown to the person who decides is in it."""
    tool = None if kind == "approval" else Tool(name="pay", parameters=NUMBER, kind="client")

    result = asyncio.run(came_to(agent(LOOK, ASK, tool=tool), door))

    assert [step.index for step in result.steps] == [0, 1]
    assert result.text == result.steps[-1].text == "I shall pay."
    assert result.finish_reason is FinishReason.TOOL_CALLS
    assert [one.name for one in result.steps[-1].tool_calls] == ["pay"]
    assert result.steps[0].usage + result.steps[1].usage == result.total_usage


async def test_a_parked_turn_is_one_step_after_the_resume() -> None:
    """It is recorded once, when it closes."""
    one = agent(ASK, "done")
    parked = await one.generate("Go")
    done = await one.resume(parked, approvals={parked.pending[0].key: True})

    assert ([0], [0, 1]) == ([one.index for one in parked.steps], [one.index for one in done.steps])
    assert [one.content for one in done.steps[0].tool_results] == ["pay 1 done"]
    assert done.text == "done"
