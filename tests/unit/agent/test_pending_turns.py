"""PendingTurn: the changes that a caller makes in a turn, and their effect on the history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from graphloop import Agent, PendingTurn, RunResult, Tool, ToolChoice, ToolError
from graphloop.errors import ConfigError
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import (
    Message,
    ToolCall,
    ToolResult,
    UserMessage,
    evolve,
)
from tests.strategies import call, reply, said, wrong
from tests.unit.agent.doubles import statuses, texts

DONE = evolve(said("done"), wire="script")


GO = UserMessage("go")


READ = ToolResult("c0.0", "a", "read", "read 1")


Say = Callable[[PendingTurn], Awaitable[None]]


TWO = reply("two", call("read", "a"), call("write", "b"))


TURN = TWO.message


WRITE = ToolResult("c0.1", "b", "write", "write 1")


async def nothing(turn: PendingTurn) -> None:
    """Seed, case 1: change nothing."""


async def push_assistant(turn: PendingTurn) -> None:
    """Seed, case 3: push the turn only; its tools still run."""
    turn.append_messages(turn.message)


async def push_both(turn: PendingTurn) -> None:
    """Seed, case 2: run the tools ahead, push the turn and its results."""
    results = await turn.generate_tool_response()
    assert results is not None
    turn.append_messages(turn.message, *results)


async def push_user(turn: PendingTurn) -> None:
    """Seed, case 4: push a user's message only; in the seed, the turn is lost."""
    turn.append_messages("hurry")


class Tools:
    """Two tools that count their executions, and a gated one."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def agent(self, *script: Entry) -> Agent:
        """Return an agent with these tools."""
        self.model = ScriptedModel(script)
        return Agent(
            self.model, tools=[self.tool("read"), self.tool("write"), self.tool("pay", gated=True)]
        )

    def tool(self, name: str, *, gated: bool = False) -> Tool:
        """Return a tool whose result says how often it has run."""

        async def execute(arguments: dict[str, object]) -> str:
            self.ran.append(name)
            return f"{name} {self.ran.count(name)}"

        return Tool(name=name, parameters={"type": "object"}, execute=execute, needs_approval=gated)


def steered(say: Say, *script: Entry) -> tuple[RunResult, Tools]:
    """Return the result of a run whose caller says this in its first turn."""
    tools = Tools()

    async def iterate() -> RunResult:
        runner = tools.agent(*(script or (TWO, "done", "more"))).iter("go")
        async for turn in runner:
            if turn.index == 0:
                await say(turn)
        return await runner.until_done()

    return asyncio.run(iterate()), tools


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        (nothing, (GO, TURN, READ, WRITE, DONE)),
        (push_both, (GO, TURN, READ, WRITE, DONE)),
        (push_assistant, (GO, TURN, READ, WRITE, DONE)),
        (push_user, (GO, TURN, READ, WRITE, UserMessage("hurry", origin="steering"), DONE)),
    ],
    ids=["no change", "push both", "push assistant only", "push user only"],
)
def test_the_four_cases_of_the_seed(say: Say, expected: tuple[Message, ...]) -> None:
    result, tools = steered(say)

    assert expected == tuple(result.run.messages)
    assert ["read", "write"] == tools.ran
    assert list(expected) == [*tools.model.requests[-1].messages, DONE]


def test_the_tools_run_once_however_often_they_are_asked() -> None:
    seen: list[object] = []

    async def say(turn: PendingTurn) -> None:
        seen.extend(
            await asyncio.gather(turn.generate_tool_response(), turn.generate_tool_response())
        )
        turn.append_messages("in between")
        turn.set_params(max_tokens=5)
        seen.append(await turn.generate_tool_response())

    _, tools = steered(say)

    assert [(READ, WRITE)] * 3 == seen
    assert ["read", "write"] == tools.ran


def history(say: Say, *script: Entry) -> tuple[Message, ...]:
    """Return the whole conversation after such a run."""
    return tuple(steered(say, *script)[0].run.messages)


def test_a_turn_without_calls_has_nothing_to_run() -> None:
    async def say(turn: PendingTurn) -> None:
        assert await turn.generate_tool_response() is None

    assert (GO, DONE) == history(say, "done")


SAME = reply(call("read", "same"), call("read", "same"))


def test_a_result_with_a_key_answers_that_call() -> None:
    async def by_key(turn: PendingTurn) -> None:
        turn.append_messages(ToolResult("c0.1", "same", "read", "second"))

    async def by_place(turn: PendingTurn) -> None:
        results = [ToolResult("", "same", "", "first"), ToolResult("", "same", "", "second")]
        turn.append_messages(*results)

    keyed, placed = history(by_key, SAME, "done"), history(by_place, SAME, "done")

    one = [
        ToolResult("c0.0", "same", "read", "read 1"),
        ToolResult("c0.1", "same", "read", "second"),
    ]
    assert one == list(keyed[2:4])
    assert [evolve(one[0], content="first"), one[1]] == list(placed[2:4])


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (["x", ToolResult("", "a", "read", "late")], "cannot follow"),
        ([said(call("read", "new"))], "cannot follow"),
        ([ToolResult("", "nobody's", "read", "x")], "which this turn does not make"),
        ([{"role": "robot"}], "role"),
    ],
)
def test_messages_that_would_break_the_history_are_refused(
    messages: list[Message], message: str
) -> None:
    async def say(turn: PendingTurn) -> None:
        with pytest.raises(ConfigError, match=message):
            turn.append_messages(*messages)

    assert (GO, TURN, READ, WRITE, DONE) == history(say)


def test_calls_can_be_answered_in_place_of_their_tools() -> None:
    async def say(turn: PendingTurn) -> None:
        turn.override_tool_results({"c0.0": {"n": 1}, "c0.1": ToolError("no")})

    result, tools = steered(say)

    assert ['{"n":1}', "no"] == [one.content for one in result.steps[0].tool_results]
    assert ["ok", "error"] == [one.status for one in result.steps[0].tool_results]
    assert [] == tools.ran


def test_an_answer_can_still_replace_what_a_tool_returned() -> None:
    async def before(turn: PendingTurn) -> None:
        turn.override_tool_results({"c0.0": "mine"})
        results = await turn.generate_tool_response()
        assert results == (evolve(READ, content="mine"), WRITE)

    async def after(turn: PendingTurn) -> None:
        await turn.generate_tool_response()
        turn.override_tool_results({"c0.0": ToolResult("x", "x", "x", "mine")})

    (first, ran), (second, ran_all) = steered(before), steered(after)

    assert first.messages == second.messages
    assert ["write"] == ran.ran
    assert ["read", "write"] == ran_all.ran


def test_tools_can_be_skipped_with_a_reason_before_they_run() -> None:
    async def before(turn: PendingTurn) -> None:
        with pytest.raises(ConfigError, match=r"no call 'c9\.9'; it has c0\.0, c0\.1"):
            turn.override_tool_results({"c9.9": "x"})
        turn.override_tool_results({"c0.0": "known"})
        turn.skip_tools("too dear")

    async def after(turn: PendingTurn) -> None:
        await turn.generate_tool_response()
        turn.skip_tools()

    result, tools = steered(before)
    assert ["known", "too dear"] == texts(result)
    assert (["ok", "not_run"], []) == (statuses(result), tools.ran)
    assert (GO, TURN, READ, WRITE, DONE) == history(after)


ANEW = (UserMessage("anew"),)


def test_a_conversation_can_be_put_in_place_of_the_history() -> None:
    async def say(turn: PendingTurn) -> None:
        turn.replace_messages(ANEW)

    result, tools = steered(say)

    assert (*ANEW, DONE) == tuple(result.run.messages)
    assert [] == tools.ran
    assert 2 == len(result.steps)


OTHER = said("other", ToolCall("z", "read", '{"other": 1}'), ToolCall("z", "write", "{}"))


def test_exactly_the_open_calls_of_a_new_conversation_run() -> None:
    async def all_open(turn: PendingTurn) -> None:
        turn.replace_messages([GO, OTHER])

    async def one_open(turn: PendingTurn) -> None:
        turn.replace_messages([GO, OTHER, ToolResult("", "z", "read", "known")])

    (every, ran_all), (last, ran_one) = steered(all_open), steered(one_open)

    results = (
        ToolResult("c0.0", "z", "read", "read 1"),
        ToolResult("c0.1", "z", "write", "write 1"),
    )
    assert (GO, OTHER, *results, DONE) == tuple(every.run.messages)
    assert ["read", "write"] == ran_all.ran
    assert ["known", "write 1"] == [
        one.content for one in last.run.messages if isinstance(one, ToolResult)
    ]
    assert ["write"] == ran_one.ran


def test_calls_that_ran_do_not_run_again_in_a_new_conversation() -> None:
    async def same(turn: PendingTurn) -> None:
        await turn.generate_tool_response()
        turn.replace_messages([UserMessage("edited"), turn.message])

    async def other(turn: PendingTurn) -> None:
        await turn.generate_tool_response()
        turn.replace_messages([GO, OTHER])

    (kept, ran), (new, ran_new) = steered(same), steered(other)

    assert (UserMessage("edited"), TURN, READ, WRITE, DONE) == tuple(kept.run.messages)
    assert ["read", "write"] == ran.ran
    keys = [one.key for one in new.run.messages if isinstance(one, ToolResult)]
    assert ["c1.0", "c1.1"] == keys
    assert ["read", "write"] * 2 == ran_new.ran


@pytest.mark.parametrize("anew", [ANEW, (GO, OTHER)])
def test_calls_that_ran_stay_in_the_steps(anew: tuple[Message, ...]) -> None:
    async def say(turn: PendingTurn) -> None:
        await turn.generate_tool_response()
        turn.replace_messages(anew)

    first, *_ = steered(say)[0].steps

    assert (TURN.calls, (READ, WRITE)) == (first.tool_calls, first.tool_results)
    assert () == first.messages


def test_calls_skipped_or_answered_do_not_run_anew() -> None:
    async def skip_first(turn: PendingTurn) -> None:
        turn.skip_tools("no")
        turn.replace_messages([UserMessage("edited"), turn.message])

    async def skip_last(turn: PendingTurn) -> None:
        turn.replace_messages([UserMessage("edited"), turn.message])
        turn.skip_tools("no")

    async def skip_other(turn: PendingTurn) -> None:
        turn.replace_messages([UserMessage("edited"), OTHER])
        turn.skip_tools("no")

    async def override(turn: PendingTurn) -> None:
        turn.replace_messages([UserMessage("edited"), turn.message])
        turn.override_tool_results({"c0.0": "no", "c0.1": "no"})

    for say in (skip_first, skip_last, skip_other, override):
        result, tools = steered(say)
        assert [] == tools.ran
        contents = [one.content for one in result.run.messages if isinstance(one, ToolResult)]
        assert ["no", "no"] == contents
        assert UserMessage("edited") == result.run.messages[0]


def test_a_new_conversation_may_be_added_to() -> None:
    async def say(turn: PendingTurn) -> None:
        turn.replace_messages([GO, OTHER])
        assert await turn.generate_tool_response() is None
        turn.append_messages("hurry")

    result, tools = steered(say)
    roles = [one.role for one in result.run.messages]
    assert ["user", "assistant", "tool", "tool", "user", "assistant"] == roles
    assert ["read", "write"] == tools.ran


def test_params_change_from_the_next_turn_on() -> None:
    other = ScriptedModel(["other says"], label="other")

    async def say(turn: PendingTurn) -> None:
        turn.set_params(temperature=0.5, max_tokens=10, top_p=0.1, stop_sequences=["x"], seed=3)
        turn.set_params(max_tokens=20, tool_choice="none", model=other, seed=None)
        turn.set_params(provider_options={"a": 1})

    result, tools = steered(say)

    assert "other says" == result.text
    (first,), (second,) = tools.model.requests, other.requests
    settings = second.settings
    assert (None, None) == (first.settings.max_tokens, first.settings.temperature)
    assert (20, 0.5, 0.1) == (settings.max_tokens, settings.temperature, settings.top_p)
    assert (("x",), None) == (settings.stop_sequences, settings.seed)
    assert '{"a":1}' == settings.options.replace(" ", "")
    assert ToolChoice("none") == second.tool_choice
    assert (GO, TURN, READ, WRITE) == tuple(second.messages)


def test_a_setting_that_cannot_take_effect_is_refused() -> None:
    late = ToolChoice("required", scope="first_step")

    async def say(turn: PendingTurn) -> None:
        with pytest.raises(ConfigError, match="has no effect in"):
            turn.set_params(tool_choice=late)
        with pytest.raises(ConfigError, match=r"expected settings among.*found store"):
            turn.set_params(**wrong({"store": "runs.db"}))

    assert (GO, TURN, READ, WRITE, DONE) == history(say)


async def test_a_turn_that_is_over_takes_no_changes() -> None:
    turns = [turn async for turn in Tools().agent(TWO, "done").iter("go")]
    turn = turns[0]

    changes: tuple[Callable[[], None], ...] = (
        lambda: turn.append_messages("x"),
        lambda: turn.replace_messages(ANEW),
        lambda: turn.override_tool_results({}),
        lambda: turn.skip_tools("x"),
        lambda: turn.set_params(seed=1),
    )
    for change in changes:
        with pytest.raises(ConfigError, match="this turn is over"):
            change()
    with pytest.raises(ConfigError, match="this turn is over"):
        await turn.generate_tool_response()
