"""Streams: lookers, late lookers, lookers that leave, and listeners."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence

import pytest

from graphloop import Agent, EndReason, RunStream, Tool
from graphloop.agent.result import RunHandle
from graphloop.driver.driver import AsyncDriver
from graphloop.driver.ports import Ports
from graphloop.errors import BadReply, ConfigError, RunFailed, ScriptExhausted
from graphloop.events import Event, Queued
from graphloop.parts.kinds import ErrorPart, Finish, RunStart
from graphloop.providers.base import TextDelta
from graphloop.providers.script import Entry
from graphloop.run import Ending, evolve
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.toolbox import Toolbox
from graphloop.turn import StepResult
from tests.agents import drain, fold
from tests.passing_store import PassingStore
from tests.strategies import call, fresh, loop, reply, wrong
from tests.unit.agent.doubles import (
    CLIENT,
    Hanging,
    Silent,
    every,
    kinds,
    stream,
    tasks_left,
    tool_of,
)


async def test_a_stream_starts_at_the_first_look() -> None:
    model = ScriptedModel(["done"])
    one = Agent(model).stream("go")

    assert one.run is None
    first = await anext(one.full_stream)
    assert RunStart(wrong(one.run).id) == first
    assert [] == model.requests
    result = await one.result()
    assert one.run is result.run
    assert 1 == len(model.requests)


def test_an_ended_run_leaves_nothing_to_the_garbage_collector() -> None:
    """A cycle in each run would keep its messages for a while, and cost a tenth of a short run."""
    agent = Agent(
        ScriptedModel([reply(call()), "done"], restart=True), tools=[tool_of("read", str)]
    )

    async def left() -> int:
        await agent.generate("warm")
        gc.collect()
        await agent.generate("go")
        return gc.collect()

    gc.disable()
    try:
        found = [asyncio.run(left()) for _ in range(3)]
    finally:
        gc.enable()

    assert 0 == min(found), "what earlier tests have left may be found too, but not each time"


async def test_a_run_goes_once_however_many_look() -> None:
    model = ScriptedModel([reply("two words", call("nowhere")), "done"])
    one = Agent(model).stream("go")
    slow = aiter(one.full_stream)
    begun = [await anext(slow), await anext(slow), await anext(slow)]

    async with asyncio.TaskGroup() as group:
        left, right = group.create_task(every(one)), group.create_task(every(one))
        result = group.create_task(one.result())
        group.create_task(one.consume())
    seen = begun + [part async for part in slow]

    assert left.result() == right.result() == seen == await every(one)
    assert "finish" == seen[-1].type
    assert result.result() is await one.result()
    assert 2 == len(model.requests)


async def test_the_text_stream_is_the_text_of_all_turns() -> None:
    said = {"text": "let me see", "reasoning": "hm", "calls": [{"name": "nowhere"}]}

    assert ["let ", "me ", "see", "done"] == [
        text async for text in stream(said, "done").text_stream
    ]


ERROR = {"text": "half of it", "error": "the line broke"}


@pytest.mark.parametrize("entry", [ERROR, ValueError("the line broke")])
async def test_an_error_is_the_last_part_and_the_same_for_all(entry: Entry) -> None:
    one = stream(entry)
    with pytest.raises(Exception, match="line broke") as seen:
        _ = [text async for text in one.text_stream]
    with pytest.raises(Exception, match="line broke") as raised:
        await one.result()
    parts = await every(one)
    assert isinstance(parts[-1], ErrorPart)
    assert seen.value is raised.value is parts[-1].error
    assert ["error"] == [kind for kind in kinds(parts) if kind in {"error", "finish"}]


def agent(*script: Entry, tools: Sequence[Tool] = (), store: Store | None = None) -> Agent:
    """Return an agent whose model says this."""
    return Agent(ScriptedModel(script), tools=tools, store=store)


@pytest.mark.parametrize("script", [("done",), (ERROR,), ()], ids=["done", "cut", "exhausted"])
async def test_consuming_never_raises_and_is_safe_twice(script: tuple[Entry, ...]) -> None:
    one = stream(*script)
    await one.consume()
    await one.consume()

    assert ("finish" if script == ("done",) else "error") == kinds(await every(one))[-1]
    if script != ("done",):
        with pytest.raises((BadReply, ScriptExhausted)):
            await one.result()
        with pytest.raises((BadReply, ScriptExhausted)):
            await agent(*script).generate("go")


async def test_the_last_part_is_the_result_in_short() -> None:
    one = Agent(ScriptedModel(["done"]), price=lambda _: 0.25).stream("Hi")
    last = (await every(one))[-1]
    result = await one.result()

    ended = (result.finish_reason, EndReason.COMPLETED, ())
    assert Finish(*ended, result.total_usage, result.cost_usd) == last
    assert 0.25 == result.cost_usd


async def test_a_wrong_question_is_an_error_part_and_nothing_is_sent() -> None:
    model = ScriptedModel(["done"])
    one = Agent(model).stream()

    assert ["error"] == kinds(await every(one))
    assert one.run is None
    with pytest.raises(ConfigError, match="neither"):
        await one.result()
    assert [] == model.requests


async def test_a_failure_without_a_record_is_still_an_error() -> None:
    async def open_run() -> RunHandle[None]:
        failed = evolve(fresh(), node="END", ending=Ending(EndReason.ERROR))
        store = MemoryStore()
        ports: Ports[None] = Ports(store=store, models={}, toolbox=Toolbox(()))
        driver = AsyncDriver(loop(), ports, None)
        return RunHandle(loop(), ports, driver, driver.resume(failed), failed.id)

    with pytest.raises(RunFailed, match="unknown"):
        await RunStream(open_run).result()


async def test_a_run_taken_up_while_its_model_talks_is_heard() -> None:
    store = MemoryStore()

    silent = Silent()
    one = Agent(silent, store=store).stream("go", run_id="r")
    driving = asyncio.ensure_future(one.result())
    await silent.asked.wait()
    driving.cancel()
    await asyncio.wait([driving])
    other = Agent(ScriptedModel(["two words"], label="silent"), store=store)
    assert ["two ", "words"] == [text async for text in other.resume_stream("r").text_stream]


@pytest.mark.parametrize("awaited", [False, True])
async def test_each_turn_is_reported_and_a_failing_listener_only_warns(awaited: bool) -> None:
    seen: list[int] = []

    def listen(step: StepResult) -> object:
        seen.append(step.index)
        if not awaited:
            raise ValueError("bug")

        async def later() -> None:
            raise ValueError("bug")

        return later()

    model = ScriptedModel([reply(call("nowhere")), "done"])
    parts, result = await drain(Agent(model, on_step_finish=listen).stream("go"))
    assert not isinstance(result, Exception)
    assert ("on_step_finish raised ValueError: bug",) * 2 == result.warnings
    assert 2 == [part.type for part in parts].count("warning")
    assert [0, 1] == seen
    result = await Agent(ScriptedModel(["done"]), on_step_finish=listen).generate("go")
    assert ("on_step_finish raised ValueError: bug",) == result.warnings


async def test_a_listener_gets_each_turn_once_over_all_legs() -> None:
    told: list[StepResult] = []
    model = ScriptedModel([reply(call("nowhere")), reply(call("client")), "done"])
    one = Agent(model, tools=[CLIENT], on_step_finish=told.append)

    first = await one.generate("go")
    assert [0] == [step.index for step in told]
    result = await one.resume(first, tool_results={"c1.0": "theirs"})

    assert (result.steps, ()) == (tuple(told), result.warnings)
    assert 3 == len(told)


async def close(one: RunStream) -> bool:
    """Close it once more; return whether the stream was left."""
    await one.aclose()
    return one.over and one.failed


async def test_a_cancelled_looker_leaves_an_error_to_the_others() -> None:
    model = Silent()
    closed: list[bool] = []
    one = Agent(model).stream("go")

    async def close() -> None:
        closed.append(True)

    one.on_over = close
    driving = asyncio.ensure_future(one.result())
    await model.asked.wait()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving

    parts, error = await drain(one)
    assert isinstance(error, RunFailed)
    assert error is fold(parts).error
    with pytest.raises(RunFailed):
        assert [] == [text async for text in one.text_stream]
    assert [True] == closed


async def expire(hanging: Hanging, limit: asyncio.Timeout) -> None:
    """Let the time limit run out once the tools have begun."""
    await hanging.begun.wait()
    limit.reschedule(asyncio.get_running_loop().time())


@pytest.mark.parametrize("names", [("one",), ("one", "two")], ids=["inline", "parallel"])
async def test_a_caller_s_time_limit_leaves_no_task_and_a_journal(names: tuple[str, ...]) -> None:
    store = MemoryStore()

    hanging = Hanging(*names)
    one = agent(hanging.calls, tools=hanging.tools, store=store).stream("go", run_id="r")
    limit = asyncio.timeout(None)
    expiring = asyncio.ensure_future(expire(hanging, limit))

    async def limited() -> None:
        async with limit:
            await one.result()

    with pytest.raises(TimeoutError):
        await limited()
    await expiring
    assert 0 == tasks_left()
    assert "error" == kinds(await every(one))[-1]
    with pytest.raises(RunFailed, match="can be resumed"):
        await one.result()
    tools = [tool_of(name, lambda _: "fine") for name in names]
    result = await agent("done", tools=tools, store=store).resume("r")
    assert ("done", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert ["unknown"] * len(names) == [one.status for one in result.steps[0].tool_results]


async def test_a_listener_that_is_cancelled_leaves_nothing_running() -> None:
    store = MemoryStore()

    told = asyncio.Event()

    async def listen(step: StepResult) -> None:
        told.set()
        await asyncio.Event().wait()

    one = Agent(ScriptedModel(["done"]), on_step_finish=listen, store=store).stream(
        "go", run_id="r"
    )
    driving = asyncio.ensure_future(one.result())
    await told.wait()
    driving.cancel()
    await asyncio.wait([driving])
    assert 0 == tasks_left()
    with pytest.raises(RunFailed):
        await one.result()
    assert "done" == (await agent(store=store).resume("r")).text


async def test_a_stream_closed_before_it_began_is_an_error() -> None:
    model = ScriptedModel(["done"])
    one = Agent(model).stream("go")
    await one.aclose()

    with pytest.raises(RunFailed, match="was left"):
        await one.result()
    with pytest.raises(RunFailed, match="was left"):
        _ = [text async for text in one.text_stream]
    assert ["error"] == kinds(await every(one))
    assert [] == model.requests


async def test_a_stream_closed_early_leaves_a_run_that_can_be_resumed() -> None:
    model = ScriptedModel([reply("thinking", call("nowhere")), "done"])
    left = Agent(model, store=MemoryStore())
    one = left.stream("go", run_id="r")
    async for part in one.full_stream:
        if part.type == "step-finish":
            break
    await one.aclose()
    await one.aclose()

    with pytest.raises(RunFailed, match="was left"):
        _ = [text async for text in one.text_stream]
    assert 0 == tasks_left()
    result = await left.resume("r")
    assert ("done", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert 2 == len(model.requests)


async def test_closing_ends_the_tools_that_are_still_running() -> None:
    hanging = Hanging("slow")
    tools = [*hanging.tools, tool_of("fast", len)]
    one = agent(reply(call("slow"), call("fast")), tools=tools).stream("go")
    async for part in one.full_stream:
        if part.type == "tool-result":
            break
    assert 1 == tasks_left()
    await one.aclose()
    assert 0 == tasks_left()


async def test_tools_of_a_stream_that_end_at_once_share_one_task() -> None:
    """A run that can be stopped leaves a deaf tool behind; a tool that never waits pays nothing."""
    tasks: list[asyncio.Task[object] | None] = []

    async def note(arguments: object) -> str:
        tasks.append(asyncio.current_task())
        return "noted"

    calls = [reply(call("note")) for _ in range(3)]
    one = agent(*calls, "done", tools=[tool_of("note", note)]).stream("go")
    result = await one.result()

    assert ("done", 3) == (result.text, len(tasks))
    assert 1 == len({*tasks})
    assert asyncio.current_task() not in tasks


async def test_closing_ends_a_stream_that_another_task_drives() -> None:
    hanging = Hanging("one")
    one = agent(hanging.calls, tools=hanging.tools).stream("go")
    async with asyncio.TaskGroup() as group:
        group.create_task(one.consume())
        await hanging.begun.wait()
        await one.aclose()
    with pytest.raises(RunFailed, match="can be resumed"):
        await one.result()


@pytest.mark.parametrize("script", [("done",), (ERROR,), None], ids=["done", "cut", "left"])
async def test_what_a_stream_has_opened_is_closed_once(script: tuple[Entry, ...] | None) -> None:
    over: list[str] = []

    async def close() -> None:
        over.append("over")

    one = stream(*(script or ("done",)))
    one.on_over = close
    await anext(one.full_stream)
    assert [] == over
    if script is not None:
        async with asyncio.TaskGroup() as group:
            group.create_task(one.consume())
            group.create_task(one.consume())
        await one.consume()
    await one.aclose()
    await one.aclose()

    assert ["over"] == over


async def test_a_stream_is_over_even_if_closing_fails() -> None:
    tried: list[str] = []

    async def fail() -> None:
        tried.append("closing")
        raise OSError("cannot close")

    one = stream("done")
    one.on_over = fail
    with pytest.raises(OSError, match="cannot close"):
        await one.aclose()
    await one.consume()
    assert ["closing"] == tried


class Hearing(PassingStore):
    """A store that shows when it is about to keep what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.keeping = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events; a steering message waits for `go_on`."""
        if any(isinstance(event, Queued) for event in events):
            self.keeping.set()
            await self.go_on.wait()
        await super().append(run_id, seq, *events)


async def ask_for_it(one: RunStream) -> bool:
    """Ask for the result; return whether the stream was left."""
    try:
        await one.result()
    except RunFailed:
        return True
    return False


async def drive(one: RunStream) -> bool:
    """Consume it; return whether the stream was left."""
    await one.consume()
    return one.failed


async def see(one: RunStream) -> bool:
    """Look to the end; return whether it says that the stream was left."""
    last = [part async for part in one.full_stream][-1]
    return isinstance(last, ErrorPart) and isinstance(last.error, RunFailed)


async def seen_by(look: Awaitable[bool]) -> bool:
    """Return what a look says, as a task can have it."""
    return await look


@pytest.mark.parametrize("look", [see, ask_for_it, drive, close])
async def test_a_reader_of_a_closing_stream_waits_for_its_end(
    look: Callable[[RunStream], Awaitable[bool]],
) -> None:
    store = Hearing()
    one = agent({"text": "a b", "deltas": ["a ", "b"]}, "done", store=store).stream("go")
    async for part in one.full_stream:
        if isinstance(part, TextDelta):
            break
    one.steer("and one more thing")
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(one.aclose())
        await store.keeping.wait()
        looking = group.create_task(seen_by(look(one)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not looking.done()
        store.go_on.set()
    assert closing.done()
    assert looking.result()


async def test_a_close_that_is_cancelled_leaves_an_end_to_the_others() -> None:
    store = Hearing()
    one = agent({"text": "a b", "deltas": ["a ", "b"]}, "done", store=store).stream("go")
    async for part in one.full_stream:
        if isinstance(part, TextDelta):
            break
    one.steer("and one more thing")
    closing = asyncio.create_task(one.aclose())
    await store.keeping.wait()
    looking = asyncio.create_task(seen_by(see(one)))
    await asyncio.sleep(0)
    closing.cancel()
    assert await looking
