"""What a type checker knows about `deps`. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_type

from graphloop import (
    Agent,
    AnswerInfo,
    NodeContext,
    Pending,
    RunResult,
    StepChanges,
    StepInfo,
    ToolContext,
    agent_tool,
    ask,
    generate_text,
    generate_text_sync,
    node,
    tool,
)
from graphloop.agent import StopContext
from graphloop.outcomes import Outcome
from graphloop.own_nodes import sub_graph
from graphloop.own_nodes.node_decorator import OwnNode


@dataclass
class Deps:
    """The dependencies of a program."""

    user: str
    credit_usd: float


@dataclass
class Office:
    """The dependencies of a larger program."""

    deps: Deps


@tool
async def refund(order: int, context: ToolContext[Deps]) -> str:
    """Refund."""
    assert_type(context, ToolContext[Deps])
    assert_type(context.deps, Deps)
    assert_type(context.deps.user, str)
    return context.deps.user


def plain(context: ToolContext) -> str:
    """A tool that reads no deps."""
    assert_type(context.deps, object)
    return context.key


def over(arguments: Mapping[str, object], context: ToolContext[Deps]) -> bool:
    return context.deps.credit_usd > 1


def prepare(info: StepInfo[Deps]) -> StepChanges | None:
    assert_type(info.deps, Deps)
    return None


def prepare_plain(info: StepInfo) -> None:
    assert_type(info.deps, object)


def enough(info: StopContext[Deps]) -> bool:
    assert_type(info.deps, Deps)
    return info.step_count > 3


def verify(info: AnswerInfo[Deps]) -> bool:
    assert_type(info.deps, Deps)
    return True


def verify_number(info: AnswerInfo[Deps, int]) -> bool:
    assert_type(info.output, int)
    return info.output > info.deps.credit_usd


def verify_any(info: AnswerInfo) -> bool:
    assert_type(info.output, object)
    assert_type(info.deps, object)
    return True


def decide(pending: Pending, deps: Deps) -> bool:
    return deps.credit_usd > 1 and pending.name == "refund"


async def instructions(deps: Deps) -> str:
    return deps.user


agent = Agent(
    "openai:x",
    deps_type=Deps,
    tools=[refund, plain],
    gate=ask("refund", when=over),
    prepare_step=prepare,
    stop_when=[enough, lambda info: info.deps.credit_usd > 2],
    verify=verify,
    instructions=instructions,
    approve_tool_call=decide,
    on_step_finish=lambda step, deps: (step.index, deps.user),
)
assert_type(agent, Agent[Deps, str])
typed = Agent("openai:x", deps_type=Deps, output_type=int, instructions=lambda deps: deps.user)
assert_type(typed, Agent[Deps, int])
assert_type(Agent("openai:x", deps_type=Deps, prepare_step=prepare_plain), Agent[Deps, str])
checked = Agent("openai:x", deps_type=Deps, output_type=int, verify=verify_number)
assert_type(checked, Agent[Deps, int])
assert_type(checked.with_options(done_when=verify_any), Agent[Deps, int])
assert_type(checked.with_options(verify=lambda info: info.output > 3), Agent[Deps, int])
assert_type(generate_text_sync("openai:x", "hi", output_type=int, verify=verify_any).output, int)
assert_type(Agent("openai:x", deps_type=Deps | None), Agent[Deps | None, str])
assert_type(Agent("openai:x", instructions=lambda: "Be brief."), Agent[None, str])
assert_type(typed.with_options(prepare_step=prepare), Agent[Deps, int])
deps = Deps("ada", 1.0)
assert_type(typed.generate_sync("hi", deps=deps), RunResult[int])
assert_type(typed.resume_sync("run", deps=deps), RunResult[int])
cashier = agent.as_tool(description="pays", deps=lambda office: office.deps)
expert = agent_tool("openai:x", name="expert", description="knows", deps_type=Deps)
boss = Agent("openai:x", deps_type=Office, tools=[cashier, expert])
pay = sub_graph(agent, deps=lambda office: office.deps)


class Done(Outcome):
    """The work is done."""


@node
async def publish(state: int, context: NodeContext[Deps]) -> Done:
    assert_type(context.deps, Deps)
    return Done()


assert_type(publish, OwnNode[int, Done])


async def use() -> None:
    assert_type(await agent.generate("hi", deps=deps), RunResult[str])
    agent.stream("hi", deps=deps)
    agent.iter("hi", deps=deps)
    agent.resume_stream("run", deps=deps)
    agent.resume_iter("run", deps=deps)
    await agent.runs.resume("run", deps=deps)
    assert_type(await generate_text("openai:x", "hi", deps=deps, tools=[refund]), RunResult[str])
    await generate_text("openai:x", "hi", deps=deps, prepare_step=prepare, output_type=int)
    assert_type(ToolContext(deps=deps), ToolContext[Deps])
    assert_type(await refund(7, ToolContext(deps=deps)), str)


# What is wrong must be said before it is run.
agent.generate_sync("hi", deps=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.resume_sync("hi", deps=Office(deps))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", deps_type=Office, prepare_step=prepare)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", deps_type=Office, verify=verify)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", deps_type=Office, verify=verify_number)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", deps_type=Office, stop_when=enough)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("openai:x", deps_type=Office, instructions=instructions)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
none: Agent[None, str] = agent  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
agent.as_tool(description="pays", deps=deps)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
