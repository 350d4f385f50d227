"""Contract 4 and §6: whatever the caller of an iterated run does, no call runs twice.

A random caller pushes, replaces, runs ahead, overrides, skips and leaves; the history stays paired
at every look, and the bounds of the run hold.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from graphloop import Agent, EndReason, PendingTurn, RunResult, Tool, ToolContext, ToolRunner
from graphloop.effects import AwaitCaller
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    Message,
    Reply,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import call, reply

MAX_STEPS = 4
OTHER = AssistantMessage((ToolCall("z", "read", '{"other": 1}'), ToolCall("z", "read", "{}")))


def assert_answered(history: Sequence[Message]) -> None:
    """Assert that every call is answered right after its turn, and that no key is used twice."""
    keys = [one.key for one in history if isinstance(one, ToolResult) and one.key]
    assert len(keys) == len(set(keys))
    at = 0
    while at < len(history):
        message = history[at]
        assert not isinstance(message, ToolResult), f"orphan result at {at}"
        at += 1
        if isinstance(message, AssistantMessage):
            asked = message.calls
            got = [one for one in history[at : at + len(asked)] if isinstance(one, ToolResult)]
            assert [(one.id, one.name) for one in asked] == [(one.call_id, one.name) for one in got]
            at += len(asked)


class Executions:
    """Counts which calls have run, by their keys, and notes which the caller answered himself."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.answered: set[str] = set()

    def tool(self, name: str, *, gated: bool = False) -> Tool:
        """Return a tool that counts its executions."""

        async def execute(arguments: dict[str, object], context: ToolContext) -> str:
            self.count[context.key] += 1
            await asyncio.sleep(0)
            return f"{name} {sorted(arguments)}"

        return Tool(name=name, parameters={"type": "object"}, execute=execute, needs_approval=gated)


def append_text(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.append_messages("go on")


def append_own(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.append_messages(turn.message)


def append_both(turn: PendingTurn, results: Sequence[ToolResult]) -> None:
    turn.append_messages(turn.message, *results)


def override_one(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.override_tool_results(dict.fromkeys(list(turn.calls)[:1], "overridden"))


def skip(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.skip_tools("not now")


def replace_same(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.replace_messages(turn.messages)


def replace_answered(turn: PendingTurn, results: Sequence[ToolResult]) -> None:
    turn.replace_messages([*turn.messages, *results[:1]])


def replace_other(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.replace_messages([*turn.messages[:-1], OTHER])


def replace_anew(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.replace_messages([UserMessage("something else")])


def change_params(turn: PendingTurn, _: Sequence[ToolResult]) -> None:
    turn.set_params(max_tokens=9, tool_choice="auto")


Act = Callable[[PendingTurn, Sequence[ToolResult]], None]

ACTS: tuple[Act, ...] = (
    append_text,
    append_own,
    append_both,
    override_one,
    skip,
    replace_same,
    replace_answered,
    replace_other,
    replace_anew,
    change_params,
)
GENERATE = "generate"
BREAK = "break"
CLOSE = "close"
STOP = "stop after this step"

acts = st.sampled_from([*ACTS, GENERATE, GENERATE, BREAK, CLOSE, STOP])
programs = st.lists(st.lists(acts, max_size=4), max_size=MAX_STEPS + 1)
replies = st.sampled_from(
    [
        reply("done"),
        reply(call("read", "a")),
        reply("both", call("read", "same"), call("write", "same"), call("read", "same")),
        reply(call("gated", "g"), call("read", "r")),
        reply(call("nowhere", ""), call("read", "")),
        reply(call("read", "bad", "{")),
    ]
)


async def steer(
    runner: ToolRunner, program: Sequence[Sequence[Act | str]], executions: Executions
) -> RunResult:
    """Iterate a run as the program says; look at the history whenever it could be broken."""
    at = 0
    async for turn in runner:
        results: Sequence[ToolResult] = ()
        for act in program[at] if at < len(program) else ():
            assert_answered(runner.messages)
            if not waits_for_caller(runner):
                break
            if act == GENERATE:
                results = await turn.generate_tool_response() or ()
                assert all(one.key in turn.calls for one in results)
            elif act == STOP:
                runner.abort("enough", after_step=True)
            elif act == CLOSE:
                await runner.aclose()
            elif act == BREAK:
                return await runner.until_done()
            elif not isinstance(act, str):
                act(turn, results)
                if act in {skip, override_one} and replace_other not in program[at]:
                    mine = list(turn.calls)[: None if act is skip else 1]
                    executions.answered |= {one for one in mine if one not in executions.count}
        assert_answered(runner.messages)
        at += 1
    return await runner.until_done()


def waits_for_caller(runner: ToolRunner) -> bool:
    """Whether the run has neither ended nor parked."""
    run = runner.run
    return run is not None and any(isinstance(one, AwaitCaller) for one in run.pending.values())


def steered(
    script: Sequence[Reply], program: Sequence[Sequence[Act | str]]
) -> tuple[RunResult, Executions, ScriptedModel]:
    """Return what came of a program, what has run, and what the model was asked."""
    executions = Executions()
    model = ScriptedModel([*script, *[reply("done")] * (MAX_STEPS + 2)])
    agent = Agent(
        model,
        tools=[
            executions.tool("read"),
            executions.tool("write"),
            executions.tool("gated", gated=True),
        ],
        max_steps=MAX_STEPS,
    )
    result = asyncio.run(steer(agent.iter("go"), program, executions))
    return result, executions, model


@given(script=st.lists(replies, max_size=4), program=programs)
@example(script=[reply(call("read", "a"))], program=[[GENERATE, skip]])
@example(script=[reply(call("read", "a"))], program=[[GENERATE, append_own]])
@example(script=[reply(call("read", "a"))], program=[[skip, replace_same]])
@example(script=[reply(call("read", "a"))], program=[[GENERATE, replace_other, append_text]])
@example(script=[reply(call("read", "a"))], program=[[append_text, GENERATE, replace_other]])
def test_no_caller_runs_a_call_twice_or_breaks_the_history(
    script: list[Reply], program: list[list[Act | str]]
) -> None:
    """R22, §9 #30, #31: what is pushed, replaced or run ahead never costs a second execution."""
    result, executions, model = steered(script, program)

    assert all(count == 1 for count in executions.count.values()), executions.count
    assert_answered(tuple(result.run.messages))
    assert len(model.requests) <= MAX_STEPS
    assert len(result.steps) <= MAX_STEPS
    for request in model.requests:
        assert_answered(tuple(request.messages))
    if result.end_reason is EndReason.PARKED:
        assert not any(one.key in executions.count for one in result.pending)


@given(script=st.lists(replies, max_size=4), program=programs)
@example(script=[reply(call("read", "a"))], program=[[skip, replace_same]])
@example(script=[reply(call("read", "a"))], program=[[replace_same, override_one]])
def test_a_call_that_was_answered_by_the_caller_never_runs(
    script: list[Reply], program: list[list[Act | str]]
) -> None:
    """Skipped and overridden calls are somebody's decision; a tool may not know better."""
    _, executions, _ = steered(script, program)

    assert not executions.answered & executions.count.keys()


@given(script=st.lists(replies, max_size=4))
def test_a_run_that_is_only_watched_is_the_buffered_run(script: list[Reply]) -> None:
    """Iterating changes nothing by itself: the same history, turns, usage and end."""
    watched, executions, _ = steered(script, [])
    expected = Executions()
    model = ScriptedModel([*script, *[reply("done")] * MAX_STEPS])
    tools = [expected.tool("read"), expected.tool("write"), expected.tool("gated", gated=True)]
    buffered = asyncio.run(Agent(model, tools=tools, max_steps=MAX_STEPS).generate("go"))

    assert buffered.messages == watched.messages
    assert buffered.steps == watched.steps
    assert buffered.end_reason is watched.end_reason
    assert buffered.total_usage == watched.total_usage
    assert expected.count == executions.count


@given(script=st.lists(replies, max_size=4))
def test_running_ahead_and_pushing_both_is_the_same_as_doing_nothing(script: list[Reply]) -> None:
    """The seed's pattern: its caller edits results on the way, and must get them only once."""
    idle, _, _ = steered(script, [])
    pushed, _, _ = steered(script, [[GENERATE, append_both]] * MAX_STEPS)

    assert idle.messages == pushed.messages
    assert idle.end_reason is pushed.end_reason
