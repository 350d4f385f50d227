"""A tool that does not heed its cancellation: it is left behind, and nothing of it is heard.

It swallows `CancelledError`, or awaits in a `finally`. A time limit of half a second took as long
as the tool liked, and so did an abort.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from graphloop import Agent, EndReason, RunResult, RunStream, Tool, ToolContext, allow, ask
from graphloop.driver import cancellation
from graphloop.events import ToolReturned
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools import execution
from tests.strategies import call, reply

DEADLINE_S = 5.0


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave behind soon: no test waits for a time, but this one is waited for."""
    monkeypatch.setattr(execution, "GRACE_S", 0.02)
    monkeypatch.setattr(cancellation, "LEAVE_S", 0.05)


class Deserter:
    """A tool that goes on until it is let, whatever it is told."""

    def __init__(self, *, deep: bool = False, timeout_s: float | None = None) -> None:
        self.inside, self.may_end, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.store = MemoryStore()
        self.ran = 0
        self._deep, self._timeout_s = deep, timeout_s

    def agent(self, *names: str, step_timeout_s: float | None = None) -> Agent:
        """Return an agent whose first turn calls these tools, or one above it."""
        free: dict[str, object] = {"type": "object"}
        tools = [
            Tool(name="stay", parameters=free, execute=self.stay, timeout_s=self._timeout_s),
            Tool(name="fine", parameters=free, execute=self._fine),
        ]
        calls = reply(*[call(name) for name in names])
        if not self._deep:
            model = ScriptedModel([calls, "done"])
            return Agent(model, tools=tools, store=self.store, step_timeout_s=step_timeout_s)
        kid = Agent(ScriptedModel([calls, "done"]), tools=tools, name="kid")
        below = kid.as_tool(description="stays")
        model = ScriptedModel([{"calls": [{"name": "kid", "arguments": {"prompt": "x"}}]}, "done"])
        return Agent(model, tools=[below], store=self.store, step_timeout_s=step_timeout_s)

    async def _fine(self, arguments: dict[str, object]) -> str:
        return "fine"

    async def stay(self, arguments: dict[str, object]) -> str:
        """Stay, and answer late."""
        self.ran += 1
        self.inside.set()
        try:
            while not self.may_end.is_set():
                try:
                    await self.may_end.wait()
                except asyncio.CancelledError:
                    continue
        finally:
            self.ended.set()
        if self.ran > 1:
            return "late"
        raise ValueError("too late for anybody")


@asynccontextmanager
async def quiet(one: Deserter) -> AsyncGenerator[None]:
    """Let the deserter end at last; asyncio must have nothing to tell of it."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    try:
        yield
    finally:
        one.may_end.set()
        await one.ended.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        gc.collect()
    assert [] == told
    assert not execution.LEFT_BEHIND


async def stopped(
    one: Deserter, stream: RunStream, stop: Callable[[RunStream], object]
) -> RunResult:
    """Stop a stream while its tool stays, and return its result while it still does."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.result())
        await one.inside.wait()
        stop(stream)
    assert not one.ended.is_set()
    return running.result()


def abort(stream: RunStream) -> None:
    """Abort a stream."""
    stream.abort("enough")


def nothing(_: RunStream) -> None:
    """Let its own time limit stop it."""


@pytest.mark.parametrize("names", [("stay",), ("stay", "fine")], ids=["alone", "beside another"])
@pytest.mark.parametrize(
    ("why", "deep"),
    [("abort", False), ("abort", True), ("step_timeout_s", False)],
    ids=["abort", "abort above it", "step_timeout_s"],
)
async def test_a_run_that_is_stopped_ends_while_its_tool_stays(
    why: str, deep: bool, names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The call may have had its effect, and is answered so; its own answer is void."""
    one = Deserter(deep=deep)
    limit_s = 0.05 if why == "step_timeout_s" else None
    async with quiet(one):
        stream = one.agent(*names, step_timeout_s=limit_s).stream("go", run_id="r")
        result = await stopped(one, stream, abort if why == "abort" else nothing)
        known = len(await one.store.load("r"))
    before, after = known, len(await one.store.load("r"))

    assert (EndReason.ABORTED if why == "abort" else EndReason.TIMEOUT) is result.end_reason
    assert "unknown" == result.steps[0].tool_results[0].status
    assert before == after
    assert 1 == sum("left behind" in one for one in caplog.messages)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_that_stays_beyond_its_time_limit_is_answered_for(
    streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The model is told, and the run goes on."""
    one = Deserter(timeout_s=0.01)
    async with quiet(one):
        agent = one.agent("stay")
        result = await (agent.stream("go").result() if streamed else agent.generate("go"))
        assert not one.ended.is_set()

    assert (EndReason.COMPLETED, "done") == (result.end_reason, result.text)
    assert "timeout" == result.steps[0].tool_results[0].status
    assert "stay: expected to end within 0.02 s of being cancelled" in caplog.text


async def test_an_answer_within_the_grace_is_what_the_tool_has_done() -> None:
    """It was asked to end, and it told how."""
    inside = asyncio.Event()

    async def tidy(arguments: dict[str, object]) -> str:
        inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "undone"
        return "never"

    tool = Tool(name="tidy", parameters={"type": "object"}, execute=tidy, timeout_s=100)
    stream = Agent(ScriptedModel([reply(call("tidy"))]), tools=[tool]).stream("go")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.result())
        await inside.wait()
        stream.abort()
    result = running.result()

    assert EndReason.ABORTED is result.end_reason
    assert [("ok", "undone")] == [(one.status, one.text) for one in result.steps[0].tool_results]


async def test_nothing_that_was_left_behind_answers_a_run_that_goes_on() -> None:
    """The call is made again under the same number: the first one's answer is not its answer."""
    one = Deserter()
    agent = one.agent("stay", "fine").with_options(tools=repeatable(one))
    async with quiet(one):
        runner = agent.iter("go")
        running = asyncio.create_task(runner.until_done())
        await one.inside.wait()
        running.cancel()
        await asyncio.wait((running,))
        one.inside.clear()
        again = asyncio.create_task(runner.until_done())
        await one.inside.wait()
        one.may_end.set()
        await again
    run = runner.run
    assert run is not None
    texts, ran = [one.text for one in run.record.steps[0].tool_results], one.ran

    assert 2 == ran
    assert "late" in texts


def repeatable(one: Deserter) -> list[Tool[..., object]]:
    """Return the deserter as a tool that may simply run again."""
    free: dict[str, object] = {"type": "object"}
    return [
        Tool(name="stay", parameters=free, execute=one.stay, effect="pure"),
        Tool(name="fine", parameters=free, execute=one._fine),  # pyright: ignore[reportPrivateUsage]
    ]


@pytest.mark.parametrize("why", ["abort", "timeout_s"])
async def test_a_thread_learns_that_its_call_is_given_up(why: str) -> None:
    """It cannot be cancelled, so it has to ask."""
    began, learned = threading.Event(), threading.Event()

    def work(arguments: dict[str, object], context: ToolContext) -> str:
        assert not context.aborted.is_set()
        began.set()
        if context.aborted.wait(DEADLINE_S):
            learned.set()
        return "never heard"

    tool = Tool(
        name="work",
        parameters={"type": "object"},
        execute=work,
        thread=True,
        timeout_s=0.01 if why == "timeout_s" else None,
    )

    stream = Agent(ScriptedModel([reply(call("work")), "done"]), tools=[tool]).stream("go")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.result())
        await asyncio.to_thread(began.wait, DEADLINE_S)
        if why == "abort":
            stream.abort("enough")
    result = running.result()

    assert learned.wait(DEADLINE_S)
    assert "never heard" not in str(result.messages)


async def test_events_of_a_deserter_are_none_of_the_journal() -> None:
    """What it returns after all is not in the journal either."""
    one = Deserter()
    async with quiet(one):
        await stopped(one, one.agent("stay").stream("go", run_id="r"), abort)
    assert ToolReturned.__name__ not in [
        type(event).__name__ for event in await one.store.load("r")
    ]


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("needs_approval", "abort"),
        ("needs_approval", "step_timeout_s"),
        ("gate", "abort"),
        ("gate", "step_timeout_s"),
        ("gate above", "abort"),
    ],
)
async def test_a_stopped_run_ends_while_a_gate_s_condition_stays(
    where: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a function of the user's as a tool's own is: the call it was asked about never runs."""
    one = Deserter()

    async def stay(arguments: dict[str, object], _: ToolContext) -> bool:
        await one.stay(arguments)
        return False

    limit_s = 0.05 if why == "step_timeout_s" else None
    async with quiet(one):
        stream = _gated(where, stay, limit_s).stream("go")
        result = await stopped(one, stream, abort if why == "abort" else nothing)
    ran = one.ran

    assert (EndReason.ABORTED if why == "abort" else EndReason.TIMEOUT) is result.end_reason
    assert 1 == ran
    assert "left behind" in caplog.text


def _gated(
    where: str, stay: Callable[..., Coroutine[object, object, bool]], step_timeout_s: float | None
) -> Agent:
    """Return an agent that asks this function about a call, here or for the agent below it."""
    free: dict[str, object] = {"type": "object"}
    own = stay if where == "needs_approval" else False
    fine = Tool(name="fine", parameters=free, execute=_is_fine, needs_approval=own)
    model = ScriptedModel([reply(call("fine")), "done"])
    gate = ask("fine", when=stay) | allow("*")
    if where == "gate above":
        kid = Agent(model, tools=[fine], name="kid").as_tool(description="runs it")
        above = ScriptedModel([{"calls": [{"name": "kid", "arguments": {"prompt": "x"}}]}, "done"])
        return Agent(above, tools=[kid], gate=gate, step_timeout_s=step_timeout_s)
    if where == "gate":
        return Agent(model, tools=[fine], gate=gate, step_timeout_s=step_timeout_s)
    return Agent(model, tools=[fine], step_timeout_s=step_timeout_s)


def _is_fine(_: dict[str, object]) -> str:
    return "fine"
