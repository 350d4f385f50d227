"""Stopping a run, leaving it, and taking it up again are three things; none spoils another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from graphloop import Agent, EndReason, StepResult, Tool, ToolContext
from graphloop.parts.kinds import Finish, Part
from graphloop.providers.base import TextDelta
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from tests.regressions.worlds import NUMBER, call, calls, counting, paired


class Gate:
    """A tool that waits until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.tool = Tool(name="slow", parameters=NUMBER, execute=self.execute, effect="idempotent")

    async def execute(self, _: Mapping[str, int], __: ToolContext) -> str:
        self.begun.set()
        await self.over.wait()
        return "done"


async def test_vercel_ai_6502_a_resumed_run_can_be_stopped() -> None:
    """vercel/ai#6502: a stream that was resumed could not be stopped by anybody."""
    gate = Gate()
    ask = counting([], needs_approval=True)
    model = ScriptedModel([calls(call("pay")), calls(call("slow")), "never"])
    agent = Agent(model, tools=[gate.tool, ask])
    parked = await agent.generate("go")
    stream = agent.resume_stream(parked, approvals={parked.pending[0].key: True})
    ended = asyncio.ensure_future(stream.result())
    await gate.begun.wait()

    stream.abort("stop")

    assert EndReason.ABORTED is (await ended).end_reason
    assert 2 == len(model.requests)


async def test_vercel_ai_7900_an_aborted_stream_ends_with_its_finish() -> None:
    """vercel/ai#7900: `onFinish` was not called on an abort, and nothing could be kept."""
    gate = Gate()
    told: list[StepResult] = []
    agent = Agent(
        ScriptedModel([calls(call("slow"))]), tools=[gate.tool], on_step_finish=told.append
    )
    stream = agent.stream("go")
    seen = asyncio.ensure_future(_parts(stream.full_stream))
    await gate.begun.wait()
    stream.abort("stop")
    last = (await seen)[-1]
    result = await stream.result()

    assert isinstance(last, Finish)
    assert EndReason.ABORTED is last.end_reason
    assert last.usage == result.total_usage
    assert last.usage is not None
    assert [0] == [step.index for step in told]


async def _parts(stream: AsyncIterator[Part]) -> list[Part]:
    return [part async for part in stream]


async def test_vercel_ai_5459_stopping_is_no_error() -> None:
    """vercel/ai#5459: the stop button raised `ResponseAborted`, and the chat was not kept."""
    stream = Agent(ScriptedModel(["a long answer in many words"])).stream("go")
    async for part in stream.full_stream:
        if isinstance(part, TextDelta):
            stream.abort("the user pressed stop")
    result = await stream.result()

    assert EndReason.ABORTED is result.end_reason
    assert paired(result.messages)


async def test_vercel_chatbot_1060_a_leaving_reader_loses_no_run() -> None:
    """vercel/chatbot#1060: a closed browser lost the answer, and the work that it had cost."""
    gate, store = Gate(), MemoryStore()
    model = ScriptedModel([calls(call("slow")), "the answer"])
    agent = Agent(model, tools=[gate.tool], store=store)
    stream = agent.stream("go", run_id="left")
    reader = asyncio.ensure_future(stream.consume())
    await gate.begun.wait()
    await stream.aclose()
    await reader

    gate.over.set()
    result = await agent.resume("left")

    assert "the answer" == result.text
    assert 2 == len(model.requests)


async def test_vercel_ai_10638_an_abort_keeps_what_was_complete() -> None:
    """vercel/ai#10638: keeping the part of a run that was there before an abort was hard."""
    gate = Gate()
    model = ScriptedModel([calls(call("read")), calls(call("slow")), "on we go"])
    agent = Agent(model, tools=[gate.tool, counting([], "read")])
    stream = agent.stream("go")
    ended = asyncio.ensure_future(stream.result())
    await gate.begun.wait()
    stream.abort("stop")
    stopped = await ended
    gate.over.set()
    history = [UserMessage("go"), *stopped.messages, UserMessage("go on")]
    result = await agent.generate(messages=history)

    assert 2 == len(stopped.steps)
    assert "read 1 done" == stopped.steps[0].tool_results[0].content
    assert "on we go" == result.text


async def test_openai_agents_js_647_a_stream_stops_for_an_approval() -> None:
    """openai/openai-agents-js#647: streamed, a gated tool ran at once and nobody was asked."""
    ran: list[str] = []
    agent = Agent(ScriptedModel([calls(call("pay"))]), tools=[counting(ran, needs_approval=True)])

    stream = agent.stream("go")
    last = (await _parts(stream.full_stream))[-1]
    assert isinstance(last, Finish)
    assert EndReason.PARKED is last.end_reason
    assert 1 == len((await stream.result()).pending)
    assert [] == ran
