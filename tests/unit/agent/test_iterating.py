"""A run that its caller iterates: what it yields, and how it comes to an end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import pytest

from graphloop import Agent, EndReason, PendingTurn, RunResult, Tool, ToolRunner
from graphloop.effects import AwaitCaller
from graphloop.errors import ConfigError
from graphloop.events import Event, Steered
from graphloop.parts.kinds import Finish, Part, RunStart, ToolResultPart
from graphloop.providers.base import TextDelta
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, FinishReason, Message, ToolResult, UserMessage
from tests.passing_store import PassingStore
from tests.strategies import call, reply, wrong
from tests.unit.agent.doubles import within

TOOLS = reply("let me see", call("read", "a"), call("write", "b"))


def counting(name: str, ran: list[str], *, gated: bool = False) -> Tool:
    """Return a tool that notes that it ran."""

    async def execute(arguments: dict[str, object]) -> str:
        ran.append(name)
        return f"{name} is done"

    return Tool(name=name, parameters={"type": "object"}, execute=execute, needs_approval=gated)


def agent(
    *script: Entry, ran: list[str] | None = None, store: str | None = None, steps: int = 20
) -> Agent:
    """Return an agent with two tools, a gated one and a client tool."""
    ran = [] if ran is None else ran
    tools = [
        counting("read", ran),
        counting("write", ran),
        counting("pay", ran, gated=True),
        Tool(name="client", parameters={"type": "object"}),
    ]
    return Agent(ScriptedModel(script), tools=tools, store=store, max_steps=steps)


async def test_each_turn_of_the_model_is_yielded_before_its_tools_run() -> None:
    ran: list[str] = []

    assert [
        (0, "let me see", FinishReason.TOOL_CALLS, ["c0.0", "c0.1"], 0),
        (1, "done", FinishReason.STOP, [], 2),
    ] == [
        (one.index, one.text, one.finish_reason, list(one.calls), len(ran))
        async for one in agent(TOOLS, "done", ran=ran).iter("go")
    ]


def told(messages: tuple[Message, ...]) -> list[str]:
    """Return messages in short."""
    return [
        f"{one.name}: {one.content}"
        if isinstance(one, ToolResult)
        else f"{one.role}: {one.text if isinstance(one, AssistantMessage) else one.content}"
        for one in messages
    ]


async def test_the_conversation_includes_the_turn_in_hand() -> None:
    first, second = [told(one.messages) async for one in agent(TOOLS, "done").iter("go")]

    assert ["user: go", "assistant: let me see"] == first
    assert [*first, "read: read is done", "write: write is done", "assistant: done"] == second


def test_the_history_is_valid_at_every_moment() -> None:
    async def iterate() -> list[str]:
        runner = agent(TOOLS, "done").iter("go")
        assert () == runner.messages
        assert runner.run is None
        async for turn in runner:
            if turn.calls:
                open_turn = told(runner.messages)
                await turn.generate_tool_response()
                assert told(runner.messages)[2:] == ["read: read is done", "write: write is done"]
                return open_turn
        raise AssertionError

    messages = within(iterate())

    assert ["user: go", "assistant: let me see"] == messages[:2]
    assert all("Not run" in one for one in messages[2:])


async def all_turns(runner: ToolRunner) -> list[PendingTurn]:
    """Look at every turn."""
    return [turn async for turn in runner]


async def first_turn(runner: ToolRunner) -> None:
    """Look at one turn and break."""
    async for _ in runner:
        break


async def test_a_runner_is_iterated_once() -> None:
    model = ScriptedModel([TOOLS, "done"])
    runner = Agent(model, tools=[counting("read", []), counting("write", [])]).iter("go")
    await first_turn(runner)
    assert 1 == len(model.requests)
    assert [AwaitCaller] == [type(one) for one in wrong(runner.run).pending.values()]

    with pytest.raises(ConfigError, match="iterated once"):
        await all_turns(runner)


async def closed(runner: ToolRunner) -> None:
    """Look at one turn and close."""
    await first_turn(runner)
    await runner.aclose()


async def closed_unseen(runner: ToolRunner) -> None:
    """Close without a look."""
    await runner.aclose()
    await runner.aclose()


async def left_context(runner: ToolRunner) -> None:
    """Break out of the `with`."""
    async with runner as same:
        assert same is runner
        await first_turn(runner)


async def nothing(runner: ToolRunner) -> None:
    """Never look."""


async def whole_context(runner: ToolRunner) -> None:
    """Come to the end inside the `with`."""
    async with runner:
        await all_turns(runner)


@pytest.mark.parametrize(
    ("look", "end_reason", "ran"),
    [
        (nothing, EndReason.COMPLETED, 2),
        (first_turn, EndReason.COMPLETED, 2),
        (all_turns, EndReason.COMPLETED, 2),
        (whole_context, EndReason.COMPLETED, 2),
        (closed, EndReason.ABORTED, 0),
        (left_context, EndReason.ABORTED, 0),
        (closed_unseen, EndReason.ABORTED, 0),
    ],
)
async def test_until_done_works_after_any_iteration(
    look: Callable[[ToolRunner], Awaitable[None]], end_reason: EndReason, ran: int
) -> None:
    executed: list[str] = []

    runner = agent(TOOLS, "done", ran=executed).iter("go")
    await look(runner)
    result = await runner.until_done()
    assert result is await runner.until_done()
    assert runner.messages == (UserMessage("go"), *result.messages)

    assert end_reason is result.end_reason
    assert ran == len(executed)
    answered = [one for one in result.messages if isinstance(one, ToolResult)]
    assert len(answered) == sum(len(step.tool_calls) for step in result.steps)


async def test_a_model_that_fails_ends_the_loop_with_its_error() -> None:
    seen: list[int] = []

    async def look(runner: ToolRunner) -> None:
        async for turn in runner:
            seen.append(turn.index)  # noqa: PERF401 - the loop is to raise in its second turn

    runner = agent(TOOLS, ConnectionError("line")).iter("go")
    with pytest.raises(ConnectionError):
        await look(runner)
    with pytest.raises(ConnectionError):
        await runner.until_done()

    assert [0] == seen
    assert ["read: read is done", "write: write is done"] == told(runner.messages)[2:]


@pytest.mark.parametrize("name", ["pay", "client"])
def test_a_run_that_parked_is_iterated_further(tmp_path: Path, name: str) -> None:
    ran: list[str] = []
    path = str(tmp_path / "runs.db")

    async def park() -> None:
        one = agent(reply(call(name, "p"), call("read", "r")), ran=ran, store=path)
        runner = one.iter("go", run_id="r")
        async for turn in runner:
            turn.append_messages("be short")
        assert ["c0.0"] == [pending.key for pending in (await runner.until_done()).pending]
        await one.aclose()

    async def go_on() -> tuple[list[tuple[int, list[str]]], RunResult]:
        one = agent(TOOLS, "done", ran=ran, store=path)
        runner = one.resume_iter(
            "r",
            approvals={"c0.0": True} if name == "pay" else None,
            tool_results={"c0.0": "theirs"} if name == "client" else None,
        )
        turns: list[tuple[int, list[str]]] = []
        async for turn in runner:
            turns.append((turn.index, list(turn.calls)))
            if turn.calls:
                turn.skip_tools("not today")
        result = await runner.until_done()
        await one.aclose()
        return turns, result

    within(park())
    turns, result = within(go_on())

    assert [(1, ["c1.0", "c1.1"]), (2, [])] == turns
    assert (["pay", "read"] if name == "pay" else ["read"]) == ran
    assert ["user: go", "user: be short"] == [
        one for one in told(tuple(result.run.messages)) if one.startswith("user")
    ]
    assert ["not today"] * 2 == [one.content for one in result.steps[1].tool_results]
    assert EndReason.COMPLETED is result.end_reason


@pytest.mark.parametrize("ahead", [False, True])
def test_the_turn_in_hand_when_a_process_died_is_in_hand_again(tmp_path: Path, ahead: bool) -> None:
    ran: list[str] = []
    path = str(tmp_path / "runs.db")

    async def die() -> None:
        one = agent(TOOLS, ran=ran, store=path)
        async for turn in one.iter("go", run_id="r"):
            if ahead:
                await turn.generate_tool_response()
            turn.append_messages("this is lost")
            break
        await one.aclose()

    async def go_on() -> tuple[list[list[str]], RunResult]:
        one = agent("done", ran=ran, store=path)
        runner = one.resume_iter("r")
        seen: list[list[str]] = []
        async for turn in runner:
            results = await turn.generate_tool_response()
            seen.append([one.text for one in results or ()])
            if results:
                turn.override_tool_results({"c0.1": "mine"})
                turn.append_messages("be short")
        result = await runner.until_done()
        await one.aclose()
        return seen, result

    within(die())
    assert (["read", "write"] if ahead else []) == ran
    seen, result = within(go_on())

    assert [["read is done", "write is done"], []] == seen
    assert ["read", "write"] == ran
    assert [
        "user: go",
        "assistant: let me see",
        "read: read is done",
        "write: mine",
        "user: be short",
        "assistant: done",
    ] == told(tuple(result.run.messages))


async def test_only_a_run_of_iter_is_iterated_further() -> None:
    one = agent(reply(call("pay", "p")), "done")
    parked = await one.generate("go")
    before = await parked.store.load(parked.run_id)
    with pytest.raises(ConfigError, match=r"not started by `iter`.*`resume_stream`"):
        await all_turns(one.resume_iter(parked, approvals={"c0.0": True}))
    assert before == await parked.store.load(parked.run_id)


async def test_closing_leaves_a_run_that_waits_as_it_is() -> None:
    one = agent(reply(call("pay", "p")), "done")
    async with one.iter("go") as runner:
        await all_turns(runner)
    parked = await runner.until_done()
    before = await parked.store.load(parked.run_id)

    async with one.resume_iter(parked, approvals={"c0.0": True}):
        pass

    assert before == await parked.store.load(parked.run_id)
    assert "done" == (await one.resume(parked, approvals={"c0.0": True})).text


def test_an_abort_stops_at_once_and_answers_the_calls() -> None:
    async def iterate(*, after_step: bool) -> RunResult:
        runner = agent(TOOLS, "done").iter("go")
        async for _ in runner:
            runner.abort("enough", after_step=after_step)
        return await runner.until_done()

    now, later = within(iterate(after_step=False)), within(iterate(after_step=True))

    assert (EndReason.ABORTED, ("enough",)) == (now.end_reason, now.stopped_by)
    assert ["not_run"] * 2 == [one.status for one in now.steps[0].tool_results]
    assert (EndReason.ABORTED, ("enough",)) == (later.end_reason, later.stopped_by)
    assert ["ok"] * 2 == [one.status for one in later.steps[0].tool_results]
    assert 1 == len(later.steps)


async def test_closing_stops_tools_that_another_task_has_running() -> None:
    under_way, ended = asyncio.Event(), asyncio.Event()

    async def hang(arguments: dict[str, object]) -> str:
        under_way.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    tool = Tool(name="read", parameters={"type": "object"}, execute=hang)
    runner = Agent(ScriptedModel([reply(call())]), tools=[tool]).iter("go")
    turn = await anext(aiter(runner))
    async with asyncio.TaskGroup() as group:
        ahead = group.create_task(turn.generate_tool_response())
        await under_way.wait()
        await runner.aclose()
        assert ended.is_set()
    assert ahead.result() is None
    result = await runner.until_done()

    assert EndReason.ABORTED is result.end_reason
    assert ["unknown"] == [one.status for one in result.steps[0].tool_results]


def test_on_part_gets_the_parts_of_an_iterated_run() -> None:
    parts: list[Part] = []
    seen: list[int] = []

    async def on_part(part: Part) -> None:
        parts.append(part)

    async def iterate() -> None:
        async for _ in agent(TOOLS, "two words").iter("go", on_part=on_part):
            seen.append(len(parts))
            assert any(isinstance(one, TextDelta) for one in parts)

    async def streamed() -> list[Part]:
        return [one async for one in agent(TOOLS, "two words").stream("go", run_id="r").full_stream]

    within(iterate())

    assert isinstance(parts[0], RunStart)
    assert isinstance(parts[-1], Finish)
    assert any(isinstance(one, ToolResultPart) for one in parts[seen[0] : seen[1]])
    assert [type(one) for one in within(streamed())] == [type(one) for one in parts]


async def test_a_listener_that_raises_does_not_harm_the_run() -> None:
    def on_part(part: Part) -> None:
        if isinstance(part, RunStart | Finish):
            raise OSError(type(part).__name__)

    result = await agent("done").iter("go", on_part=on_part).until_done()

    assert "done" == result.text
    assert ("on_part raised OSError: RunStart", "on_part raised OSError: Finish") == result.warnings


class Steerless(PassingStore):
    """A store in memory to which something happens when the caller's say is journaled."""

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._happens = happens

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, unless it is the caller's say."""
        if any(isinstance(event, Steered) for event in events):
            await self._happens()
        await super().append(run_id, seq, *events)


async def disk_is_full() -> None:
    """Refuse."""
    raise OSError("the disk is full")


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_say_that_cannot_be_journaled_ends_the_loop(*, ahead: bool) -> None:
    ran: list[str] = []

    async def look(runner: ToolRunner, seen: list[int]) -> None:
        async for turn in runner:
            seen.append(turn.index)
            if ahead:
                assert await turn.generate_tool_response() is None

    seen: list[int] = []
    tools = [counting("read", ran), counting("write", ran)]
    one = Agent(ScriptedModel([TOOLS, "done"]), tools=tools, store=Steerless(disk_is_full))
    runner = one.iter("go")
    with pytest.raises(OSError, match="full"):
        await look(runner, seen)
    with pytest.raises(OSError, match="full"):
        await runner.until_done()
    await runner.aclose()
    assert [0] == seen
    assert [] == ran


@pytest.mark.parametrize("effect", ["at_most_once", "idempotent"])
async def test_a_time_limit_on_tools_leaves_the_run_where_it_is(
    effect: Literal["at_most_once", "idempotent"],
) -> None:
    began: list[str] = []

    started = asyncio.Event()

    async def execute(arguments: dict[str, object]) -> str:
        began.append("slow")
        if len(began) == 1:
            started.set()
            await asyncio.Event().wait()
        return "done at last"

    slow = Tool(name="slow", parameters={"type": "object"}, execute=execute, effect=effect)
    runner = Agent(ScriptedModel([reply(call("slow", "s")), "done"]), tools=[slow]).iter("go")
    turn = await anext(runner)
    waiting = asyncio.ensure_future(turn.generate_tool_response())
    await started.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    with pytest.raises(ConfigError, match="skip_tools comes too late"):
        turn.skip_tools()
    results = await turn.generate_tool_response() if effect == "idempotent" else None
    result, is_fine = await runner.until_done(), results is None or results[0].status == "ok"

    assert is_fine
    assert EndReason.COMPLETED is result.end_reason
    runs, status = (1, "unknown") if effect == "at_most_once" else (2, "ok")
    assert (runs, status) == (len(began), result.steps[0].tool_results[0].status)


async def test_a_cancelled_iteration_can_go_on() -> None:
    asked = asyncio.Event()

    async def hang(_: object) -> bool:
        asked.set()
        return await asyncio.Event().wait()

    one = Agent(ScriptedModel(["first", "done"]), verify=hang)
    runner = one.iter("go")
    await first_turn(runner)
    waiting = asyncio.ensure_future(runner.until_done())
    await asked.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert runner.run is not None
    assert not runner.run.ended
    await runner.aclose()
    assert "aborted" == (await runner.until_done()).end_reason.value
