"""RunStream: lookers, late lookers, and lookers that leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from itertools import pairwise
from typing import Literal, TypeVar

import pytest

from graphloop import END, Agent, EndReason, Graph, Pending, RunResult, RunStream, Tool
from graphloop.agent.opened import RunHandle
from graphloop.driver.driver import AsyncDriver
from graphloop.driver.ports import Ports
from graphloop.errors import BadReply, ConfigError, RunFailed
from graphloop.events import Event, ModelReplied, Queued
from graphloop.nodes.append import Append
from graphloop.nodes.model_call import ModelCall
from graphloop.outcomes import Failed
from graphloop.parts.parts import ErrorPart, Finish, ObjectDelta, Part, RunStart, ToolState
from graphloop.providers.base import Delta, ModelSession, TextDelta
from graphloop.providers.script import Entry
from graphloop.replay import replay
from graphloop.run import Ending, evolve
from graphloop.stores.base import Ask, ReleaseStatus, Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.toolbox import Toolbox
from graphloop.turn import StepResult
from graphloop.values import FinishReason, ModelRequest, Reply, UserMessage
from tests.agents import drain, fold
from tests.strategies import call, fresh, loop, reply, wrong

ERROR = {"text": "half of it", "error": "the line broke"}


def stream(*script: Entry) -> RunStream[None]:
    """Return the stream of a run with this script."""
    return Agent(ScriptedModel(script)).stream("go")


class Silent:
    """A model that answers only when it is told to."""

    label = "silent"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.told = asyncio.Event()

    def session(self) -> ModelSession:
        """Return itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Wait, perhaps for ever."""
        self.asked.set()
        await self.told.wait()
        yield reply("at last")

    async def aclose(self) -> None:
        """Do nothing."""


def test_nothing_happens_before_somebody_looks() -> None:
    """And afterwards everything has."""

    async def scenario() -> None:
        one = stream("hi")
        assert one.run is None
        result = await one.result()
        assert one.run is result.run

    asyncio.run(scenario())


def test_all_lookers_see_all_parts_in_the_same_order() -> None:
    """At the same time, one after the other, and after the end."""

    async def scenario() -> None:
        one = stream("some words here")
        first, second = await asyncio.gather(drain(one), drain(one))
        third = await drain(one)
        assert first == second == third
        assert "finish" == first[0][-1].type

    asyncio.run(scenario())


def test_lookers_of_a_slow_model_wait_together() -> None:
    """One drives, the others wait for it; each gets the same result."""

    async def scenario() -> None:
        model = Silent()
        one = Agent(model).stream("go")
        async with asyncio.TaskGroup() as group:
            lookers = [group.create_task(one.result()) for _ in range(3)]
            await model.asked.wait()
            model.told.set()
        assert ["at last"] * 3 == [looker.result().text for looker in lookers]

    asyncio.run(scenario())


def test_a_waiting_looker_that_is_cancelled_harms_nobody() -> None:
    """Only who drives the run can stop it."""

    async def scenario() -> None:
        model = Silent()
        one = Agent(model).stream("go")
        driving = asyncio.ensure_future(one.result())
        await model.asked.wait()
        waiting = asyncio.ensure_future(one.result())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        model.told.set()
        assert "at last" == (await driving).text

    asyncio.run(scenario())


def test_the_text_of_a_stream_that_breaks_raises_after_what_came() -> None:
    """A cut answer must not look whole."""

    async def scenario() -> None:
        texts, came = stream(ERROR).text_stream, ""
        while came != "half of it":
            came += await anext(texts)
        with pytest.raises(BadReply, match="line broke"):
            await anext(texts)

    asyncio.run(scenario())


def test_consuming_never_raises() -> None:
    """The error is the result's."""

    async def scenario() -> None:
        one = stream(ERROR)
        await one.consume()
        with pytest.raises(BadReply):
            await one.result()

    asyncio.run(scenario())


def test_a_looker_that_is_cancelled_leaves_an_error_to_the_others() -> None:
    """Text that simply stops would be taken for the whole answer."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_a_stream_that_was_closed_says_so() -> None:
    """Its run stays where its journal is."""

    async def scenario() -> None:
        one = stream("some words")
        async for _ in one.full_stream:
            break
        await one.aclose()
        await one.aclose()
        with pytest.raises(RunFailed):
            await one.result()
        finished = stream("hi")
        await finished.result()
        await finished.aclose()
        assert "hi" == (await finished.result()).text

    asyncio.run(scenario())


def test_an_abort_before_the_first_look_ends_the_run_at_once() -> None:
    """The model is never asked."""
    model = ScriptedModel(["hi"])

    async def scenario() -> EndReason:
        one = Agent(model).stream("go")
        one.abort("changed my mind")
        return (await one.result()).end_reason

    assert EndReason.ABORTED is asyncio.run(scenario())
    assert [] == model.requests


def test_a_tool_may_abort_its_own_run() -> None:
    """It is let finish, its result is kept, and no cancellation is left behind."""

    async def scenario() -> None:
        streams: list[RunStream[None]] = []

        def stopper() -> str:
            streams[0].abort("found it")
            return "stopped"

        agent = Agent(ScriptedModel([reply(call("stopper")), "done"]), tools=[stopper])
        streams.append(agent.stream("go"))
        result = await streams[0].result()
        await asyncio.sleep(0)
        assert EndReason.ABORTED is result.end_reason
        assert ["stopped"] == [one.text for one in result.steps[0].tool_results]

    asyncio.run(scenario())


@pytest.mark.parametrize("awaited", [False, True])
def test_each_turn_is_reported_and_a_listener_that_fails_only_warns(awaited: bool) -> None:
    """A listener cannot fail a run."""
    seen: list[int] = []

    def listen(step: StepResult) -> object:
        seen.append(step.index)
        if not awaited:
            raise ValueError("bug")

        async def later() -> None:
            raise ValueError("bug")

        return later()

    async def scenario() -> None:
        model = ScriptedModel([reply(call("nowhere")), "done"])
        parts, result = await drain(Agent(model, on_step_finish=listen).stream("go"))
        assert not isinstance(result, Exception)
        assert ("on_step_finish raised ValueError: bug",) * 2 == result.warnings
        assert 2 == [part.type for part in parts].count("warning")

    asyncio.run(scenario())
    assert [0, 1] == seen


T = TypeVar("T")

DEADLINE_S = 5.0
"""A stream that hangs fails here instead of holding up the suite."""


def within(work: Awaitable[T]) -> T:
    """Run to the end, or fail if it does not come."""

    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(bounded())


def agent(*script: Entry, tools: Sequence[Tool] = (), store: Store | None = None) -> Agent:
    """Return an agent whose model says this."""
    return Agent(ScriptedModel(script), tools=tools, store=store)


def tool_of(name: str, execute: Callable[[dict[str, object]], object]) -> Tool:
    """Return a tool that takes anything."""
    return Tool(name=name, parameters={"type": "object"}, execute=execute)


def done(arguments: dict[str, object]) -> str:
    """Do it."""
    return "done"


def gated(name: str) -> Tool:
    """Return a tool that needs an approval."""
    return Tool(name=name, parameters={"type": "object"}, execute=done, needs_approval=True)


CLIENT = Tool(name="client", parameters={"type": "object"})


class Hanging:
    """Tools that begin and never end, with an event for "they have begun"."""

    def __init__(self, *names: str) -> None:
        self.begun = asyncio.Event()
        self.runs = 0
        self.tools = tuple(tool_of(name, self._hang) for name in names)
        self.calls = reply(*(call(name) for name in names))

    async def _hang(self, arguments: dict[str, object]) -> str:
        self.runs += 1
        if self.runs == len(self.tools):
            self.begun.set()
        await asyncio.Event().wait()
        return "never"


def tasks_left() -> int:
    """Count the tasks that are alive beside the caller's."""
    return len(asyncio.all_tasks()) - 1


async def every(one: RunStream[None]) -> list[Part]:
    """Return all parts."""
    return [part async for part in one.full_stream]


def kinds(parts: list[Part]) -> list[str]:
    """Return the parts' names."""
    return [part.type for part in parts]


def aborted(result: RunResult[None], reason: str = "enough") -> bool:
    """Whether the run was aborted for this reason; asserts that every call is answered."""
    for step in result.steps:
        assert len(step.tool_calls) == len(step.tool_results)
    return (EndReason.ABORTED, (reason,)) == (result.end_reason, result.stopped_by)


def test_a_stream_that_is_made_and_looked_away_from_asks_nothing() -> None:
    """The first part is the run's id: with it, the run can be found whatever comes."""
    model = ScriptedModel(["done"])

    async def scenario() -> None:
        one = Agent(model).stream("go")
        await asyncio.sleep(0)
        assert [] == model.requests
        first = await anext(one.full_stream)
        assert one.run is not None
        assert RunStart(one.run.id) == first
        assert [] == model.requests
        await one.consume()

    within(scenario())
    assert 1 == len(model.requests)


def test_a_run_goes_once_however_many_look() -> None:
    """A log, a screen and a caller look at one run."""
    model = ScriptedModel([reply("two words", call("nowhere")), "done"])

    async def scenario() -> None:
        one = Agent(model).stream("go")
        async with asyncio.TaskGroup() as group:
            left, right = group.create_task(every(one)), group.create_task(every(one))
            result = group.create_task(one.result())
            group.create_task(one.consume())
        assert left.result() == right.result() == await every(one)
        assert result.result() is await one.result()

    within(scenario())
    assert 2 == len(model.requests)


def test_a_looker_waits_while_another_drives() -> None:
    """Both wait for one answer; when it does not come, both learn why."""

    async def scenario() -> None:
        silent = Silent()
        one = Agent(silent).stream("go")
        driving = asyncio.ensure_future(every(one))
        await silent.asked.wait()
        waiting = asyncio.ensure_future(every(one))
        await asyncio.sleep(0)
        one.abort("enough")
        assert await driving == await waiting
        assert aborted(await one.result())

    within(scenario())


def test_lookers_at_different_speeds_see_the_same() -> None:
    """One reads a part and waits, the other drains: neither loses anything."""

    async def scenario() -> None:
        one = stream("one two three")
        slow = aiter(one.full_stream)
        begun = [await anext(slow), await anext(slow), await anext(slow)]
        fast = await every(one)
        assert fast == begun + [part async for part in slow]

    within(scenario())


def test_the_text_stream_is_the_text_of_all_turns() -> None:
    """Text alone: no reasoning, no calls."""
    said = {"text": "let me see", "reasoning": "hm", "calls": [{"name": "nowhere"}]}

    async def scenario() -> list[str]:
        return [text async for text in stream(said, "done").text_stream]

    assert ["let ", "me ", "see", "done"] == within(scenario())


@pytest.mark.parametrize("entry", [ERROR, ValueError("the line broke")])
def test_an_error_is_the_last_part_the_same_for_all_and_no_finish_comes(entry: Entry) -> None:
    """Who waits for `finish` and gets `error` knows that there is no result."""

    async def scenario() -> None:
        one = stream(entry)
        with pytest.raises(Exception, match="line broke") as seen:
            _ = [text async for text in one.text_stream]
        with pytest.raises(Exception, match="line broke") as raised:
            await one.result()
        parts = await every(one)
        assert isinstance(parts[-1], ErrorPart)
        assert seen.value is raised.value is parts[-1].error
        assert ["error"] == [kind for kind in kinds(parts) if kind in {"error", "finish"}]

    within(scenario())


def test_a_finished_run_tells_how_it_ended_in_its_last_part() -> None:
    """The finish part is the result in short."""

    async def scenario() -> None:
        one = stream("done")
        last = (await every(one))[-1]
        result = await one.result()
        assert Finish(result.finish_reason, EndReason.COMPLETED, (), result.total_usage) == last

    within(scenario())


def test_the_last_part_tells_what_the_run_has_cost() -> None:
    """As the result does; a listener should not have to add up."""

    async def scenario() -> None:
        one = Agent(ScriptedModel(["done"]), price=lambda _: 0.25).stream("Hi")
        last = (await every(one))[-1]
        assert isinstance(last, Finish)
        assert last.cost_usd == (await one.result()).cost_usd == 0.25

    within(scenario())


def test_a_wrong_question_is_an_error_part_and_nothing_is_sent() -> None:
    """`stream` itself does not raise: one place to handle errors."""
    model = ScriptedModel(["done"])

    async def scenario() -> None:
        one = Agent(model).stream()
        assert ["error"] == kinds(await every(one))
        assert one.run is None
        with pytest.raises(ConfigError, match="neither"):
            await one.result()

    within(scenario())
    assert [] == model.requests


@pytest.mark.parametrize("script", [("done",), (ERROR,), ()], ids=["done", "cut", "exhausted"])
def test_consuming_is_safe_twice_and_a_late_looker_learns_the_end(
    script: tuple[Entry, ...],
) -> None:
    """A background task drives the run; what became of it is asked for later."""

    async def scenario() -> str:
        one = stream(*script)
        await one.consume()
        await one.consume()
        return kinds(await every(one))[-1]

    assert ("finish" if script == ("done",) else "error") == within(scenario())


def test_an_abort_before_the_start_is_a_run_without_turns() -> None:
    """The user pressed stop before the first look; the parts still tell the story."""

    async def scenario() -> None:
        one = stream("done")
        one.abort("enough")
        assert aborted(await one.result())
        assert ["run-start", "step-start", "finish"] == kinds(await every(one))

    within(scenario())


def test_an_abort_during_text_keeps_no_half_answer() -> None:
    """A half answer is no message: the next run's history begins at the last whole one."""

    async def scenario() -> None:
        one = stream("one two three")
        texts: list[str] = []
        async for text in one.text_stream:
            texts.append(text)
            one.abort("enough")
        result = await one.result()
        assert aborted(result)
        assert (["one "], (), "") == (texts, result.messages, result.text)

    within(scenario())


@pytest.mark.parametrize("names", [("one",), ("one", "two")], ids=["inline", "parallel"])
def test_an_abort_during_a_tool_answers_every_call(names: tuple[str, ...]) -> None:
    """The history stays usable, and no tool runs on unheard."""

    async def scenario() -> None:
        hanging = Hanging(*names)
        one = agent(hanging.calls, tools=hanging.tools).stream("go")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(one.result())
            await hanging.begun.wait()
            one.abort("enough")
        assert aborted(running.result())
        assert {"unknown"} == {result.status for result in running.result().steps[0].tool_results}
        assert 0 == tasks_left()

    within(scenario())


def test_an_abort_by_a_looker_takes_effect_before_the_next_effect() -> None:
    """The looker itself drives the run: there is nobody else to be interrupted."""
    ran: list[object] = []

    async def scenario() -> None:
        one = agent(reply(call("one")), tools=[tool_of("one", ran.append)]).stream("go")
        async for part in one.full_stream:
            if isinstance(part, ToolState) and part.state == "executing":
                one.abort("enough")
        assert aborted(await one.result())

    within(scenario())
    assert [] == ran


def test_a_parked_run_is_aborted_by_taking_it_up_and_aborting_it() -> None:
    """Nobody will ever answer: the run is ended, with its call answered as not run."""
    waiting = agent(reply(call("client")), tools=[CLIENT], store=MemoryStore())

    async def scenario() -> None:
        one = waiting.stream("go", run_id="r")
        assert EndReason.PARKED is (await one.result()).end_reason
        one.abort("too late: this leg is over")
        assert EndReason.PARKED is (await one.result()).end_reason
        again = waiting.resume_stream("r")
        again.abort("enough")
        assert aborted(await again.result())
        assert EndReason.ABORTED is (await waiting.resume("r")).end_reason

    within(scenario())


def test_an_abort_straight_after_an_approval_says_that_nothing_has_run() -> None:
    """The call was let through, and nobody had begun it."""

    async def scenario() -> RunResult[None]:
        act = gated("act")
        asking = agent(reply(call("act")), tools=[act], store=MemoryStore())
        (ask,) = (await asking.generate("go", run_id="r")).pending
        stream = asking.resume_stream("r", approvals={ask.key: True})
        stream.abort("enough")
        return await stream.result()

    (answer,) = within(scenario()).steps[-1].tool_results

    assert ("not_run", "Not run: the run was cancelled.") == (answer.status, answer.text)


def test_an_abort_of_a_parked_agent_says_that_it_was_stopped() -> None:
    """It has begun, and what it did is done: that is no doubt about whether it ran."""

    async def scenario() -> RunResult[None]:
        helper = agent(reply(call("act")), tools=[gated("act")])
        asks = call("helper", "x", '{"prompt": "?"}')
        below = helper.as_tool(name="helper", description="helps")
        top = Agent(ScriptedModel([reply(asks)], label="top"), tools=[below], store=MemoryStore())
        await top.generate("go", run_id="r")
        stream = top.resume_stream("r")
        stream.abort("enough")
        return await stream.result()

    (answer,) = within(scenario()).steps[-1].tool_results

    assert "unknown" == answer.status
    assert answer.text.startswith("The agent was stopped before it had an answer")


def test_an_abort_while_a_human_is_asked_in_this_process_ends_the_run() -> None:
    """Nobody has decided, so nothing runs."""
    ran: list[object] = []

    async def scenario() -> None:
        asked = asyncio.Event()

        async def decide(pending: Pending) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

        gated = Tool(
            name="one",
            parameters={"type": "object"},
            execute=ran.append,
            needs_approval=True,
        )
        script = ScriptedModel([reply(call("one"))])
        one = Agent(script, tools=[gated], approve_tool_call=decide).stream("go")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(one.result())
            await asked.wait()
            one.abort("enough")
        assert aborted(running.result())

    within(scenario())
    assert [] == ran


def test_a_stream_closed_before_it_began_is_an_error_to_everybody() -> None:
    """A stream that ends without a word would be taken for an empty answer."""
    model = ScriptedModel(["done"])

    async def scenario() -> None:
        one = Agent(model).stream("go")
        await one.aclose()
        with pytest.raises(RunFailed, match="was left"):
            await one.result()
        with pytest.raises(RunFailed, match="was left"):
            _ = [text async for text in one.text_stream]
        assert ["error"] == kinds(await every(one))

    within(scenario())
    assert [] == model.requests


def test_a_stream_closed_early_leaves_a_run_that_can_be_resumed() -> None:
    """Closing is not aborting: the journal ends where it was left."""
    model = ScriptedModel([reply("thinking", call("nowhere")), "done"])
    left = Agent(model, store=MemoryStore())

    async def scenario() -> None:
        one = left.stream("go", run_id="r")
        async for part in one.full_stream:
            if part.type == "step-finish":
                break
        await one.aclose()
        with pytest.raises(RunFailed, match="was left"):
            _ = [text async for text in one.text_stream]
        assert 0 == tasks_left()
        result = await left.resume("r")
        assert ("done", EndReason.COMPLETED) == (result.text, result.end_reason)

    within(scenario())
    assert 2 == len(model.requests)


def test_closing_ends_the_tools_that_are_still_running() -> None:
    """One has answered, its sibling has not: nothing runs on when nobody watches."""

    async def scenario() -> None:
        hanging = Hanging("slow")
        tools = [*hanging.tools, tool_of("fast", len)]
        one = agent(reply(call("slow"), call("fast")), tools=tools).stream("go")
        async for part in one.full_stream:
            if part.type == "tool-result":
                break
        assert 1 == tasks_left()
        await one.aclose()
        assert 0 == tasks_left()

    within(scenario())


def test_closing_ends_a_stream_that_another_task_drives() -> None:
    """A tool that never ends must not keep whoever closes the stream for ever."""

    async def scenario() -> None:
        hanging = Hanging("one")
        one = agent(hanging.calls, tools=hanging.tools).stream("go")
        async with asyncio.TaskGroup() as group:
            group.create_task(one.consume())
            await hanging.begun.wait()
            await one.aclose()
        with pytest.raises(RunFailed, match="can be resumed"):
            await one.result()

    within(scenario())


def test_closing_a_stream_that_is_over_changes_nothing() -> None:
    """`aclosing(stream)` around everything must keep the result."""

    async def scenario() -> None:
        one = stream("done")
        before = await every(one)
        await one.aclose()
        assert "done" == (await one.result()).text
        assert before == await every(one)

    within(scenario())


def test_a_run_taken_up_while_its_model_talks_is_heard() -> None:
    """The process died during an answer: the next one asks again, and shows what it says."""
    store = MemoryStore()

    async def scenario() -> list[str]:
        silent = Silent()
        one = Agent(silent, store=store).stream("go", run_id="r")
        driving = asyncio.ensure_future(one.result())
        await silent.asked.wait()
        driving.cancel()
        await asyncio.wait([driving])
        other = Agent(ScriptedModel(["two words"], label="silent"), store=store)
        return [text async for text in other.resume_stream("r").text_stream]

    assert ["two ", "words"] == within(scenario())


async def expire(hanging: Hanging, limit: asyncio.Timeout) -> None:
    """Let the time limit run out once the tools have begun."""
    await hanging.begun.wait()
    limit.reschedule(asyncio.get_running_loop().time())


@pytest.mark.parametrize("names", [("one",), ("one", "two")], ids=["inline", "parallel"])
def test_a_time_limit_of_the_caller_leaves_no_task_and_a_journal_to_resume(
    names: tuple[str, ...],
) -> None:
    """`asyncio.timeout` around a run is the most natural thing, and must not leak or lose."""
    store = MemoryStore()

    async def scenario() -> None:
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

    within(scenario())
    tools = [tool_of(name, lambda _: "fine") for name in names]
    result = within(agent("done", tools=tools, store=store).resume("r"))
    assert ("done", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert ["unknown"] * len(names) == [one.status for one in result.steps[0].tool_results]


def test_a_listener_that_is_cancelled_leaves_nothing_running() -> None:
    """The caller gave up while a turn was being reported: the run waits in its journal."""
    store = MemoryStore()

    async def scenario() -> None:
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

    within(scenario())
    assert "done" == within(agent(store=store).resume("r")).text


class Unheard(BaseException):
    """What `except Exception` does not catch."""


def test_what_no_boundary_catches_leaves_a_stream_that_is_over() -> None:
    """A `pytest.fail` in a tool is raised; whoever asks afterwards gets an error, not a hang."""

    def explode(arguments: dict[str, object]) -> str:
        raise Unheard

    async def scenario() -> None:
        one = agent(reply(call("one")), tools=[tool_of("one", explode)]).stream("go")
        with pytest.raises(Unheard):
            await one.result()
        with pytest.raises(RunFailed, match="was left"):
            await one.result()

    within(scenario())


def test_a_listener_is_told_what_the_result_will_hold() -> None:
    """In order, each turn once, as it closes; a function that returns nothing is awaited not."""
    told: list[StepResult] = []
    one = Agent(ScriptedModel([reply(call("nowhere")), "done"]), on_step_finish=told.append)

    result = within(one.generate("go"))

    assert (result.steps, ()) == (tuple(told), result.warnings)


def test_a_resumed_run_reports_only_its_new_turns() -> None:
    """A bill that is written by a listener must not hold a turn twice."""
    told: list[int] = []

    def listen(step: StepResult) -> None:
        told.append(step.index)

    one = Agent(
        ScriptedModel([reply(call("nowhere")), reply(call("client")), "done"]),
        tools=[CLIENT],
        on_step_finish=listen,
    )

    async def scenario() -> None:
        first = await one.generate("go")
        assert [0] == told
        await one.resume(first, tool_results={"c1.0": "theirs"})

    within(scenario())
    assert [0, 1, 2] == told


def test_a_buffered_call_keeps_no_parts_and_still_warns() -> None:
    """`generate` drains the same stream; only what nobody can look at is not kept."""

    def fail(step: StepResult) -> None:
        raise OSError("full")

    one = Agent(ScriptedModel(["done"]), on_step_finish=fail)

    assert ("on_step_finish raised OSError: full",) == within(one.generate("go")).warnings


def test_a_buffered_call_raises_what_a_stream_would_tell() -> None:
    """No parts are kept, and the error is not lost with them."""
    with pytest.raises(BadReply, match="line broke"):
        within(agent(ERROR).generate("go"))


@pytest.mark.parametrize("script", [("done",), (ERROR,)], ids=["done", "cut"])
def test_what_must_happen_when_a_stream_is_over_happens_once(script: tuple[Entry, ...]) -> None:
    """Connections are closed once, at the end, however many look, however it ends."""
    over: list[str] = []

    async def close() -> None:
        over.append("over")

    async def scenario() -> None:
        one = stream(*script)
        one.on_over = close
        await anext(one.full_stream)
        assert [] == over
        async with asyncio.TaskGroup() as group:
            group.create_task(one.consume())
            group.create_task(one.consume())
        await one.consume()
        await one.aclose()

    within(scenario())
    assert ["over"] == over


def test_a_stream_that_is_left_closes_what_was_opened_for_it() -> None:
    """A stream that nobody read to its end has connections, too."""
    over: list[str] = []

    async def close() -> None:
        over.append("over")

    async def scenario() -> None:
        one = stream("done")
        one.on_over = close
        await anext(one.full_stream)
        await one.aclose()
        await one.aclose()

    within(scenario())
    assert ["over"] == over


def test_a_stream_is_over_even_if_closing_fails() -> None:
    """A connection that cannot be closed is told of once; the result is there all the same."""
    tried: list[str] = []

    async def fail() -> None:
        tried.append("closing")
        raise OSError("cannot close")

    async def scenario() -> None:
        one = stream("done")
        one.on_over = fail
        with pytest.raises(OSError, match="cannot close"):
            await one.aclose()
        await one.consume()

    within(scenario())
    assert ["closing"] == tried


def test_whatever_opening_raises_is_the_streams_error() -> None:
    """The seam for everything that can go wrong before a run."""

    async def refuse() -> RunHandle[None]:
        raise ConfigError("no such thing")

    async def scenario() -> None:
        one = RunStream(refuse)
        assert ["error"] == kinds(await every(one))
        with pytest.raises(ConfigError, match="no such thing"):
            await one.result()
        assert one.run is None

    within(scenario())


def test_a_failure_without_a_record_is_still_an_error() -> None:
    """A node of the user's may end a run in error and not say why."""

    async def open_run() -> RunHandle[None]:
        failed = evolve(fresh(), node="END", ending=Ending(EndReason.ERROR))
        store = MemoryStore()
        ports: Ports[None] = Ports(store=store, models={}, toolbox=Toolbox(()))
        driver = AsyncDriver(loop(), ports, None)
        return RunHandle(loop(), ports, driver, driver.resume(failed))

    async def scenario() -> None:
        with pytest.raises(RunFailed, match="unknown"):
            await RunStream(open_run).result()

    within(scenario())


async def objects_of(values: AsyncIterator[object]) -> list[object]:
    """Return everything that comes."""
    return [value async for value in values]


async def objects(one: RunStream[None]) -> list[object]:
    """Return everything that an object stream shows."""
    return await objects_of(one.object_stream)


def answering(*script: Entry, mode: Literal["native", "tool"] = "native") -> Agent:
    """Return an agent whose answer has a form."""
    form: Mapping[str, object] = {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "required": ["a", "b"],
    }
    return Agent(ScriptedModel(script), output_type=form, output_mode=mode)


WHOLE = {"a": "some words", "b": [1, 2]}


def spoken(mode: Literal["native", "tool"], value: object) -> Entry:
    """Return a turn that gives an answer: as text, word by word, or by a call."""
    text = json.dumps(value)
    return text if mode == "native" else reply(call("final_answer", "f", text))


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_an_answer_is_shown_while_it_grows_and_then_whole(mode: Literal["native", "tool"]) -> None:
    """A form on a screen fills up; only the last one has been checked."""

    async def scenario() -> None:
        one = answering(spoken(mode, WHOLE), mode=mode).stream("go")
        *growing, last = await objects(one)
        assert last == WHOLE == (await one.result()).output
        assert growing
        assert WHOLE == growing[-1]
        for before, after in pairwise(growing):
            assert isinstance(before, dict)
            assert isinstance(after, dict)
            assert before.keys() <= after.keys()

    within(scenario())


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_the_parts_of_a_stream_hold_the_growing_answer(mode: Literal["native", "tool"]) -> None:
    """Each right behind the delta that it came with; everything else is as without."""

    async def scenario() -> None:
        parts = await every(answering(spoken(mode, WHOLE), mode=mode).stream("go"))
        shown = [one.object for one in parts if isinstance(one, ObjectDelta)]
        assert WHOLE == shown[-1]
        before = {
            parts[at - 1].type for at, one in enumerate(parts) if isinstance(one, ObjectDelta)
        }
        assert before <= {"text-delta", "tool-call-delta", "step-finish"}
        assert EndReason.COMPLETED is fold(parts).end_reason

    within(scenario())


def test_an_answer_that_was_sent_back_is_followed_by_another_from_its_beginning() -> None:
    """What was shown of the first is void."""

    async def scenario() -> None:
        one = answering('{"a": 1}', spoken("native", WHOLE)).stream("go")
        shown = await objects(one)
        assert {"a": 1} in shown
        assert {"a": "some "} in shown[shown.index({"a": 1}) + 1 :]
        assert WHOLE == shown[-1]

    within(scenario())


def test_an_object_stream_raises_what_the_result_raises_after_what_came() -> None:
    """A cut answer must not look whole."""

    async def scenario() -> None:
        one = answering({"text": '{"a": "half of', "error": "the line broke"}).stream("go")
        values = aiter(one.object_stream)
        assert {} == await anext(values)
        with pytest.raises(BadReply):
            await objects_of(values)

    within(scenario())


def test_a_run_that_did_not_complete_has_no_last_object() -> None:
    """What came is shown; nothing of it is the answer."""
    script = [reply('{"a": 1', finish=FinishReason.LENGTH)] * 9

    async def scenario() -> None:
        one = answering(*script).stream("go")
        shown = await objects(one)
        assert EndReason.LENGTH is (await one.result()).end_reason
        assert {"a": 1} == shown[-1]

    within(scenario())


def test_an_object_stream_without_an_output_type_is_refused() -> None:
    """It would be empty, and look like a model that has nothing to say; nothing has begun."""

    async def scenario() -> None:
        one = stream("hi")
        with pytest.raises(ConfigError, match="output_type"):
            await objects(one)
        assert one.run is None

    within(scenario())


def test_a_stream_without_an_output_type_shows_no_objects() -> None:
    """A text that happens to be JSON is a text."""

    async def scenario() -> None:
        assert "object-delta" not in kinds(await every(stream('{"a": 1}')))

    within(scenario())


def said_to(model: ScriptedModel, at: int) -> list[tuple[object, str]]:
    """Return what users have said in a request, and from where it came."""
    messages = model.requests[at].messages
    return [(one.content, one.origin) for one in messages if isinstance(one, UserMessage)]


def read() -> str:
    """Read."""
    return "text"


def test_what_is_said_to_a_run_is_read_in_its_next_turn() -> None:
    """After the results of the turn under way, and never inside it."""
    model = ScriptedModel([reply(call()), "done"])

    async def scenario() -> RunResult[None]:
        one = Agent(model, tools=[read]).stream("go")
        async for part in one.full_stream:
            if part.type == "step-start" and part.step_index == 0:
                one.steer("hurry")
        return await one.result()

    result = within(scenario())

    assert [("go", ""), ("hurry", "steering")] == said_to(model, 1)
    assert ["assistant", "tool", "user", "assistant"] == [one.role for one in result.messages]


def test_what_is_said_before_the_first_look_is_read_too() -> None:
    """At once: the first request has it, the journal too, and the stream shows where it came in."""
    model, store = ScriptedModel(["in a hurry", "and more"]), MemoryStore()
    looped = Agent(model, store=store)
    one = looped.stream("go", run_id="r")
    one.follow_up("and then?")
    one.steer("hurry")

    async def scenario() -> tuple[list[str], RunResult[None]]:
        return kinds(await every(one)), await one.result()

    shown, result = within(scenario())

    assert ("hurry", "steering") == said_to(model, 0)[-1]
    assert ["run-start", "step-start", "message-injected"] == shown[:3]
    assert result.run == replay(looped.graph, asyncio.run(store.load("r")))


def test_what_is_said_after_the_end_is_refused() -> None:
    """Nobody would ever read it; an abort that comes too late has nothing to stop."""
    one = Agent(ScriptedModel(["done"])).stream("go")
    within(one.result())

    one.abort()
    with pytest.raises(ConfigError, match="`steer` comes too late: the stream is over"):
        one.steer("hurry")
    with pytest.raises(ConfigError, match="`follow_up` comes too late: the stream is over"):
        one.follow_up("and then?")


@pytest.mark.parametrize("said", [5, None, b"hurry", ["hurry"]])
def test_what_is_said_is_a_text(said: object) -> None:
    """A journal that holds something else could never be read again."""
    one = Agent(ScriptedModel(["done"])).stream("go")

    with pytest.raises(ConfigError, match="`steer` says a text; found"):
        one.steer(wrong(said))
    with pytest.raises(ConfigError, match="`follow_up` says a text; found"):
        one.follow_up(wrong(said))

    assert "done" == within(one.result()).text


def too_late(one: RunStream[None]) -> None:
    """Say something that nobody would read."""
    with pytest.raises(ConfigError, match="`steer` comes too late: the stream is over"):
        one.steer("hurry")
    with pytest.raises(ConfigError, match="`follow_up` comes too late: the stream is over"):
        one.follow_up("and then?")


def test_what_is_said_once_the_last_answer_is_in_is_refused() -> None:
    """The stream has more to show, and the run hears nothing more."""

    async def scenario() -> RunResult[None]:
        one = Agent(ScriptedModel(["done", "more"])).stream("go")
        async for part in one.full_stream:
            if part.type == "step-finish":
                too_late(one)
        return await one.result()

    assert "done" == within(scenario()).text


class Kept:
    """A store like the one in memory, for those below to change."""

    def __init__(self) -> None:
        self.kept = MemoryStore()

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep an event."""
        await self.kept.append(run_id, seq, event)

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return the events of a run."""
        return await self.kept.load(run_id)

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return await self.kept.runs()


class Slow(Kept):
    """A store that shows when it is about to keep a reply."""

    def __init__(self) -> None:
        super().__init__()
        self.keeping = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep an event; a reply only when told to."""
        if isinstance(event, ModelReplied):
            self.keeping.set()
            await self.go_on.wait()
        await super().append(run_id, seq, event)


@pytest.mark.parametrize("last", [True, False])
def test_what_is_said_while_an_answer_is_journaled_is_heard_or_refused(last: bool) -> None:
    """The answer decides: after the last one nothing is read, after any other everything is."""
    model = ScriptedModel([*([] if last else [reply(call())]), "done", "never"])

    async def scenario() -> RunResult[None]:
        store = Slow()
        one = Agent(model, tools=[tool_of("read", lambda _: "text")], store=store).stream("go")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(one.result())
            await store.keeping.wait()
            if last:
                too_late(one)
            else:
                one.steer("hurry")
            store.go_on.set()
        return running.result()

    result = within(scenario())

    assert "done" == result.text
    assert last is not (UserMessage("hurry", origin="steering") in result.messages)


def test_what_is_said_to_a_run_that_was_stopped_is_refused() -> None:
    """And what was said before is on record before the stop."""

    async def scenario() -> Sequence[str]:
        store = MemoryStore()
        asked = Hanging("read")
        one = agent(asked.calls, tools=asked.tools, store=store).stream("go", run_id="r")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(one.result())
            await asked.begun.wait()
            one.steer("hurry")
            one.abort()
            too_late(one)
        assert EndReason.ABORTED is running.result().end_reason
        return [type(event).__name__ for event in await store.load("r")]

    assert ["Queued", "Cancelled"] == within(scenario())[-2:]


class Parking(Kept):
    """A store that calls out when a run is left that somebody drove."""

    def __init__(self) -> None:
        super().__init__()
        self.parks: dict[str, Callable[[], None]] = {}

    async def claim(self, run_id: str) -> None:
        """Begin to drive a run."""
        await self.kept.claim(run_id)

    async def release(self, run_id: str, status: ReleaseStatus | None, asks: Sequence[Ask]) -> None:
        """Call out, and end the claim."""
        self.parks.pop(run_id, lambda: None)()
        await self.kept.release(run_id, status, asks)


def test_what_is_said_while_the_last_child_parks_waits_in_the_journal() -> None:
    """The parent parks with it, and hears of it when it goes on."""

    async def scenario() -> RunResult[None]:
        store = Parking()
        helper = Agent(ScriptedModel([reply(call("act")), "did"], label="h"), tools=[gated("act")])
        asks = call("helper", "x", '{"prompt": "?"}')
        model = ScriptedModel([reply(asks), "done"])
        top = Agent(model, tools=[helper.as_tool(name="helper", description="helps")], store=store)
        one = top.stream("go", run_id="r")
        store.parks = {"r/c0.0": lambda: one.steer("hurry"), "r": lambda: too_late(one)}
        (ask,) = (await one.result()).pending
        return await top.resume("r", approvals={ask.key: True})

    assert UserMessage("hurry", origin="steering") in within(scenario()).messages


class Hearing(Kept):
    """A store that shows when it is about to keep what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.keeping = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep an event; what was said only when told to."""
        if isinstance(event, Queued):
            self.keeping.set()
            await self.go_on.wait()
        await super().append(run_id, seq, event)


async def see(one: RunStream[None]) -> bool:
    """Look to the end; return whether it says that the stream was left."""
    last = [part async for part in one.full_stream][-1]
    return isinstance(last, ErrorPart) and isinstance(last.error, RunFailed)


async def ask_for_it(one: RunStream[None]) -> bool:
    """Ask for the result; return whether the stream was left."""
    try:
        await one.result()
    except RunFailed:
        return True
    return False


async def drive(one: RunStream[None]) -> bool:
    """Consume it; return whether the stream was left."""
    await one.consume()
    return one.failed


async def close(one: RunStream[None]) -> bool:
    """Close it once more; return whether the stream was left."""
    await one.aclose()
    return one.over and one.failed


@pytest.mark.parametrize("look", [see, ask_for_it, drive, close])
def test_who_looks_while_a_stream_is_closed_waits_for_its_end(
    look: Callable[[RunStream[None]], Awaitable[bool]],
) -> None:
    """A store takes its time to keep what was said, and nobody else drives the run meanwhile."""

    async def scenario() -> None:
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

    within(scenario())


def test_a_close_that_is_cancelled_leaves_an_end_to_the_others() -> None:
    """They waited for it."""

    async def scenario() -> None:
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

    within(scenario())


async def seen_by(look: Awaitable[bool]) -> bool:
    """Return what a look says, as a task can have it."""
    return await look


def test_a_run_that_would_be_done_goes_on_for_what_was_said() -> None:
    """The answer stays in the history; the next one is the run's."""
    model = ScriptedModel(["one", "two"])

    async def scenario() -> RunResult[None]:
        stream = Agent(model).stream("go")
        async for part in stream.full_stream:
            if part.type == "text-delta" and len(model.requests) == 1:
                stream.steer("once more")
        return await stream.result()

    result = within(scenario())

    assert ("two", 2) == (result.text, len(model.requests))


def test_follow_ups_wait_until_the_model_would_be_done_one_at_a_time() -> None:
    """In the order in which they were said."""
    model = ScriptedModel([reply(call()), "one", "two", "three"])
    one = Agent(model, tools=[read]).stream("go")
    one.follow_up("first")
    one.follow_up("second")

    result = within(one.result())

    assert [[], [], ["first"], ["first", "second"]] == [
        [said for said, origin in said_to(model, at) if origin == "follow_up"] for at in range(4)
    ]
    assert "three" == result.text


def test_a_graph_that_hears_no_follow_up_refuses_it() -> None:
    """It would be read by nobody; what `Verify` is for is to hear it."""
    model, append = ModelCall(), Append()
    graph: Graph[None] = Graph(
        "one", model, {model: {Failed: END, ...: append}, append: {...: END}}
    )

    one = graph.stream(None, prompt="go", model=ScriptedModel(["done"]))

    with pytest.raises(ConfigError, match=r"`follow_up` has no effect.*Verify"):
        one.follow_up("and then?")


def test_no_word_outweighs_a_bound() -> None:
    """A run that could be talked on for ever has no bound (CONTRACT §6.5)."""
    model = ScriptedModel(["again"] * 9)
    one = Agent(model, max_steps=2).stream("go")
    for number in range(5):
        one.follow_up(f"more {number}")

    result = within(one.result())

    assert (2, EndReason.MAX_STEPS) == (len(model.requests), result.end_reason)


def test_an_abort_after_the_step_lets_the_turn_come_to_its_end() -> None:
    """Its tools run and are answered; no further model is asked."""
    model = ScriptedModel([reply(call()), "done"])

    async def scenario() -> RunResult[None]:
        one = Agent(model, tools=[read]).stream("go")
        async for part in one.full_stream:
            if part.type == "step-start":
                one.abort("enough", after_step=True)
        return await one.result()

    result = within(scenario())

    assert (1, EndReason.ABORTED) == (len(model.requests), result.end_reason)
    assert ["text"] == [one.text for one in result.steps[0].tool_results]
    assert ("enough",) == result.stopped_by


def test_an_abort_after_the_step_leaves_an_answer_that_came_an_answer() -> None:
    """The run is at its end already."""

    async def scenario() -> RunResult[None]:
        one = stream("hi there")
        async for part in one.full_stream:
            if part.type == "text-delta":
                one.abort("enough", after_step=True)
        return await one.result()

    assert ("hi there", EndReason.COMPLETED) == ((one := within(scenario())).text, one.end_reason)
