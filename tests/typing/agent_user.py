"""What a type checker knows about agents and graphs. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

from pydantic import BaseModel

from graphloop import (
    END,
    Agent,
    AgentTool,
    AnswerInfo,
    Approval,
    Budget,
    Compaction,
    EndReason,
    FinishReason,
    Graph,
    ModelPrice,
    ObjectResult,
    Pending,
    PendingTurn,
    Policy,
    Review,
    RunResult,
    RunStream,
    StepChanges,
    StepInfo,
    StepResult,
    Tool,
    ToolChoice,
    ToolContext,
    ToolRunner,
    Usage,
    agent_tool,
    allow,
    approve,
    ask,
    budget,
    decline,
    deny,
    generate_object,
    generate_object_sync,
    generate_text,
    generate_text_sync,
    stream_chat,
    tool,
)
from graphloop.driver.ports import Callback
from graphloop.events import CallbackAnswer, Changes
from graphloop.graph import NodeGraph
from graphloop.limits import stop
from graphloop.limits.stop import StopInfo
from graphloop.media import file
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.otel import otel
from graphloop.outcomes import Answered, AnsweredCalls, Calls, Go, Ready, Settled
from graphloop.parts.kinds import Part
from graphloop.providers import Timeouts
from graphloop.run import Run
from graphloop.step import Step
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import Message, ToolCall, ToolResult


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


async def decide(pending: Pending) -> Approval:
    return decline("too much") if pending.name == "refund" else pending.approve()


def listen(step: StepResult) -> None:
    assert_type(step.usage, Usage)


class Watcher:
    def see(self, step: Step[object], graph: NodeGraph[object], path: tuple[str, ...], /) -> None:
        assert_type(step.run.seq, int)


agent: Agent = Agent(
    "anthropic:claude-opus-4-8",
    tools=[get_weather, refund, client, plain],
    max_steps=5,
    stop_when=[stop.cost_exceeds(1.0), enough, enough_later, lambda info: info.step_count > 9],
    prepare_step=prepare,
    approve_tool_call=decide,
    on_step_finish=listen,
    watch=[Watcher(), otel()],
    store=MemoryStore(),
)
by_name = Agent(ScriptedModel(["hi"]), tools={"weather": get_weather, "find": plain})
assert_type(agent.graph, Graph[None])
assert_type(agent.with_options(prepare_step=prepare_later, stop_when=enough), Agent)
assert_type(agent.generate_sync("hi"), RunResult)


async def use(history: list[Message]) -> None:
    result = await agent.generate(messages=[*history, {"role": "user", "content": "hi"}])
    assert_type(result, RunResult)
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
        assert_type(resumed, RunResult)
    answers: Mapping[str, Approval] = {"c0.0": Approval(approved=True)}
    assert_type(agent.resume_stream("run", approvals=answers), RunStream)
    await agent.resume("run", tool_results={"c0.1": {"anything": 1}})

    stream = agent.stream("hi")
    assert_type(stream, RunStream)
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

    assert_type(await generate_text("script:x.yaml", "hi", tools=[plain]), RunResult)
    assert_type(generate_text_sync(ScriptedModel([]), "hi", max_steps=1), RunResult)
    assert_type(stream_chat("openai:x", "hi", temperature=0.5), RunStream)


class City(BaseModel):
    """The form of an answer."""

    name: str


def over_limit(arguments: Mapping[str, object], context: ToolContext) -> bool:
    return context.turn > 3


async def over_limit_later(arguments: object, context: ToolContext) -> bool:
    return False


def is_done(info: AnswerInfo) -> bool:
    return info.attempt > 0 or "done" in info.text


async def judge(info: AnswerInfo) -> bool | Review:
    return True if info.output else Review(ok=False, feedback="Answer.")


def shorten(info: StepInfo) -> Sequence[Message]:
    return info.messages[-3:]


rules = allow("get_*", plain.__name__) | ask(refund, when=over_limit, ttl_s=60) | deny("*")
assert_type(rules, Policy)
assert_type(allow(when=over_limit_later) | deny("x", reason="no"), Policy)
assert_type(budget(tokens=9, usd=0.5, seconds=60, tool_calls=3, agent_calls=2), Budget)
assert_type(approve(edit={"amount": 5}), Approval)
assert_type(approve(), Approval)
assert_type(decline("no"), Approval)

everything = Agent(
    "openai:x",
    tools=[get_weather, refund],
    gate=rules,
    approval_ttl_s=3600,
    approval_secret=b"secret",
    budget=budget(usd=1),
    max_agent_depth=1,
    step_timeout_s=60,
    on_bad_history="refuse",
    prices={"x": ModelPrice(1.0, 2.0)},
    max_consecutive_denials=3,
    run_ungated=True,
    fallback_models=["anthropic:y", ScriptedModel([])],
    output_type=City,
    output_mode="tool",
    max_output_retries=1,
    done_when=is_done,
    max_done_retries=1,
    verify=judge,
    max_verify_retries=1,
    compaction=Compaction(200_000),
    compact=shorten,
    tool_choice=ToolChoice("required", scope="first_step"),
    prepare_step=lambda info: StepChanges(add_tools=[plain], withdraw_tools=["refund"]),
)
helper = everything.as_tool(name="helper", description="helps", needs_approval=True)
assert_type(helper, AgentTool)
expert = agent_tool("openai:x", name="expert", description="knows", takes_over=True)
assert_type(expert, AgentTool)
boss = Agent("openai:x", tools=[helper, expert, plain])
by_name_too = Agent("openai:x", tools={"a": helper, "b": plain})


async def answer_later() -> None:
    parked = await boss.generate("hi")
    assert_type(parked.output, str)
    approvals = {one.key: one.approve(edit={"amount": 1}) for one in parked.pending}
    assert_type(await boss.resume(parked, approvals=approvals), RunResult)
    denials = {one.key: one.decline("no") for one in parked.pending}
    assert_type(boss.resume_sync(parked, approvals=denials), RunResult)
    stateless = await boss.generate(
        messages=parked.messages, approvals={"a": True}, tool_results={"b": {"x": 1}}
    )
    assert_type(stateless, RunResult)


async def answers_of_a_type() -> None:
    found = await generate_object("openai:x", City, "where?", max_output_retries=1)
    assert_type(found, ObjectResult[City])
    assert_type(found.object, City)
    assert_type(found.usage, Usage | None)
    assert_type(found.cost_usd, float | None)
    assert_type((await generate_object("openai:x", list[int], "?")).object, list[int])
    assert_type((await generate_object("openai:x", City | None, "?")).object, City | None)
    assert_type(generate_object_sync("openai:x", {"type": "object"}, "?").object, Any)
    assert_type(generate_object_sync("openai:x", str, "?").object, str)


def show(part: Part) -> None:
    """Any listener will do."""


async def steer() -> None:
    runner = agent.iter("hi")
    assert_type(runner, ToolRunner)
    async for turn in runner:
        assert_type(turn, PendingTurn)
        assert_type(turn.calls, Mapping[str, ToolCall])
        turn.append_messages("Be brief.", {"role": "user", "content": "please"})
        turn.set_params(max_tokens=9, tool_choice="none", model="openai:other")
        turn.override_tool_results({key: {"any": "thing"} for key in turn.calls})
        turn.skip_tools()
        turn.replace_messages([{"role": "user", "content": "anew"}])
        assert_type(await turn.generate_tool_response(), tuple[ToolResult, ...] | None)
    result = await runner.until_done()
    assert_type(result, RunResult)
    again = agent.resume_iter(
        result,
        approvals={one.key: one.approve() for one in result.pending},
        tool_results={"c0.0": 1},
        on_part=show,
    )
    assert_type(again, ToolRunner)
    assert_type(agent.resume_iter("run id"), ToolRunner)
    stream = agent.stream("hi")
    stream.steer("hurry")
    stream.follow_up("and then?")
    stream.abort("enough", after_step=True)
    assert_type(stream.object_stream, AsyncIterator[object])


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


async def think(run: Run[Essay]) -> CallbackAnswer:
    assert_type(run.state, Essay)
    return Changes()


def think_at_once(run: Run[Essay]) -> Changes:
    return Changes(model=run.state.topic)


async def use_graphs() -> None:
    bounded = loop.run(
        None,
        model="openai:x",
        prompt="hi",
        tools=[plain],
        gate=allow("plain"),
        budget=budget(tool_calls=3),
        agents={"helper": helper},
        approval_ttl_s=60,
        on_bad_history="repair",
    )
    assert_type(await bounded, RunResult)
    callbacks: Mapping[str, Callback[Essay]] = {"think": think, "plain": think_at_once}
    result = await essay.run(Essay("x"), model="openai:x", prompt="hi", callbacks=callbacks)
    assert_type(result, RunResult[str, Essay])
    assert_type(result.state.topic, str)
    assert_type(loop.stream(None, model=ScriptedModel([]), prompt="hi"), RunStream)


async def options_of_one_call(model: ScriptedModel) -> None:
    """A call takes options of its own; a test replaces those of a global agent."""
    limits = Timeouts(total_s=3)
    result = await agent.generate("hi", model=model, max_steps=3, temperature=0.1, timeouts=limits)
    assert_type(result, RunResult[str])
    assert_type(agent.stream("hi", headers={"x-team": "a"}, seed=1), RunStream[str])
    assert_type(agent.stream(["What is it?", Path("a.png"), b"%PDF-", file(b"a")]), RunStream[str])
    assert_type(agent.with_options(model="openai:x"), Agent[None, str])
    await agent.resume("run", model="openai:x", headers={"x-team": "a"})
    with agent.override(model=model, tools=[], temperature=0.0) as nothing:
        assert_type(nothing, None)


# What is wrong must be said before it is run.
agent.stream("hi", max_steps="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.resume_stream("run", seed=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent.override(modle="openai:x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Agent("openai:x", max_step=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Agent("openai:x", max_steps="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", tool_choice="requird")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", stop_when=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", prepare_step=enough)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.stream("hi", max_step=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent.stream([5])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
agent.generate("hi")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
agent.resume_stream("run", approvals=["c0.0"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.resume_stream("run", approvals={"c0.0": "yes"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
StepChanges(tools=["x"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
loop.stream(None, model="openai:x", max_steps=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
essay.stream("x", model="openai:x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Graph("g", start, {start: {Ready: 5}})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
result_of: RunResult[str, Essay] = agent.generate_sync("hi")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
Agent("openai:x", gate=["read"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", gate=allow("a") and "b")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", budget={"tokens": 3})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", on_bad_history="mend")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", output_mode="json")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", verify=enough)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", done_when=judge)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
allow(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
deny("x", ttl_s=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
budget(dollars=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent.as_tool("name")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent_tool("openai:x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ToolChoice("required", scope="always")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
city: ObjectResult[City] = generate_object_sync("openai:x", int, "?")  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]
