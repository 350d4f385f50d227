"""What a type checker knows about agents and graphs. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_type

from graphloop import (
    END,
    Agent,
    Approval,
    EndReason,
    FinishReason,
    Graph,
    RunResult,
    RunStream,
    StepChanges,
    StepInfo,
    StepResult,
    Tool,
    ToolChoice,
    ToolContext,
    Usage,
    generate_text,
    generate_text_sync,
    stop,
    stream_chat,
    tool,
)
from graphloop.drivers.ports import Callback
from graphloop.events import Answer, Changes
from graphloop.front.result import Pending
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import Answered, AnsweredCalls, Calls, Go, Ready, Settled
from graphloop.run import Run
from graphloop.stop import StopInfo
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import Message
from graphloop.views.parts import Part


@tool
async def get_weather(city: str) -> str:
    """Weather."""
    return city


@tool(needs_approval=True)
def refund(amount: int, context: ToolContext) -> int:
    """Refund."""
    return amount


def plain(city: str) -> str:
    """Anything callable is a tool."""
    return city


client = Tool(name="ask", parameters={"type": "object"})


def prepare(info: StepInfo) -> StepChanges | None:
    assert_type(info.messages, Sequence[Message])
    return StepChanges(active_tools=["plain"], tool_choice="none") if info.step_index else None


async def prepare_later(info: StepInfo) -> StepChanges:
    return StepChanges(model="openai:other", tool_choice=ToolChoice("tool", "plain"))


def enough(info: StopInfo) -> bool:
    return info.spent.cost_usd > 1


async def enough_later(info: StopInfo) -> bool:
    return info.step_count > 3


async def approve(pending: Pending) -> Approval:
    return Approval(pending.name != "refund", "too much")


def listen(step: StepResult) -> None:
    assert_type(step.usage, Usage)


agent = Agent(
    "anthropic:claude-opus-4-8",
    tools=[get_weather, refund, client, plain],
    max_steps=5,
    stop_when=[stop.cost_exceeds(1.0), enough, enough_later, lambda info: info.step_count > 9],
    prepare_step=prepare,
    approve_tool_call=approve,
    on_step_finish=listen,
    store=MemoryStore(),
)
by_name = Agent(ScriptedModel(["hi"]), tools={"weather": get_weather, "find": plain})
assert_type(agent.graph, Graph[None])
assert_type(agent.with_options(prepare_step=prepare_later, stop_when=enough), Agent)
assert_type(agent.generate_sync("hi"), RunResult[None])


async def use(history: list[Message]) -> None:
    result = await agent.generate(messages=[*history, {"role": "user", "content": "hi"}])
    assert_type(result, RunResult[None])
    assert_type(result.text, str)
    assert_type(result.steps, tuple[StepResult, ...])
    assert_type(result.messages, tuple[Message, ...])
    assert_type(result.cost_usd, float | None)
    assert_type(result.finish_reason, FinishReason | None)
    assert_type(result.end_reason, EndReason)
    assert_type(result.pending, tuple[Pending, ...])
    history += result.messages
    for waiting in result.pending:
        resumed = await agent.resume(result, approvals={waiting.key: True})
        assert_type(resumed, RunResult[None])
    answers: Mapping[str, Approval] = {"c0.0": Approval(approved=True)}
    assert_type(agent.resume_stream("run", approvals=answers), RunStream[None])
    await agent.resume("run", tool_results={"c0.1": {"anything": 1}})

    stream = agent.stream("hi")
    assert_type(stream, RunStream[None])
    assert_type(stream.full_stream, AsyncIterator[Part])
    async for part in stream.full_stream:
        if part.type == "text-delta":
            assert_type(part.text, str)
        elif part.type == "finish":
            assert_type(part.end_reason, EndReason)
        elif part.type == "error":
            assert_type(part.error, Exception)
    async for text in stream.text_stream:
        assert_type(text, str)

    assert_type(await generate_text("script:x.yaml", "hi", tools=[plain]), RunResult[None])
    assert_type(generate_text_sync(ScriptedModel([]), "hi", max_steps=1), RunResult[None])
    assert_type(stream_chat("openai:x", "hi", temperature=0.5), RunStream[None])


@dataclass(frozen=True)
class Essay:
    """A state of the user's."""

    topic: str


start, model, gate, execute = PrepareStep(), ModelCall(), Gate(), Execute()
append, check = Append(), StopCheck(max_steps=3)
loop: Graph[None] = Graph(
    "loop",
    start,
    {
        start: {Ready: model, ...: END},
        model: {Calls: gate, Answered: append, ...: END},
        gate: {Settled: execute, ...: append},
        execute: {...: append},
        append: {AnsweredCalls: check, ...: END},
        check: {Go: start, ...: END},
    },
)
essay: Graph[Essay] = Graph("essay", start, {start: {...: END}}, state_type=Essay)


async def think(run: Run[Essay]) -> Answer:
    assert_type(run.state, Essay)
    return Changes()


async def use_graphs() -> None:
    callbacks: Mapping[str, Callback[Essay]] = {"think": think}
    result = await essay.run(Essay("x"), model="openai:x", prompt="hi", callbacks=callbacks)
    assert_type(result, RunResult[Essay])
    assert_type(result.state.topic, str)
    assert_type(loop.stream(None, model=ScriptedModel([]), prompt="hi"), RunStream[None])


# What is wrong must be said before it is run.
Agent("openai:x", max_step=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Agent("openai:x", max_steps="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", tool_choice="requird")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", stop_when=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", prepare_step=enough)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.stream("hi", max_steps=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent.stream(["hi"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.generate("hi")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
agent.resume_stream("run", approvals=["c0.0"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.resume_stream("run", approvals={"c0.0": "yes"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
StepChanges(tools=["x"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
loop.stream(None, model="openai:x", max_steps=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
loop.stream(None, prompt="hi")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
essay.stream("x", model="openai:x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Graph("g", start, {start: {Ready: 5}})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
result_of: RunResult[Essay] = agent.generate_sync("hi")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
