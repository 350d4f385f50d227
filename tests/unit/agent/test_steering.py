"""Steering a run under way: aborts, and messages of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from graphloop import END, Agent, EndReason, Graph, RunResult, RunStream, Tool
from graphloop.errors import ConfigError
from graphloop.events import Event, ModelReplied
from graphloop.media import image
from graphloop.nodes.append import Append
from graphloop.nodes.model_call import ModelCall
from graphloop.outcomes import Failed
from graphloop.providers.script import Entry
from graphloop.stores.base import Ask, ReleaseStatus, Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import TextPart, UserMessage
from tests.passing_store import PassingStore
from tests.strategies import call, reply, wrong
from tests.unit.agent.doubles import (
    Hanging,
    every,
    gated,
    kinds,
    read,
    stream,
    tasks_left,
    tool_of,
    within,
)


def aborted(result: RunResult, reason: str = "enough") -> bool:
    """Whether the run was aborted for this reason; asserts that every call is answered."""
    for step in result.steps:
        assert len(step.tool_calls) == len(step.tool_results)
    return (EndReason.ABORTED, (reason,)) == (result.end_reason, result.stopped_by)


async def test_an_abort_before_the_first_look_ends_the_run_at_once() -> None:
    model = ScriptedModel(["hi"])
    one = Agent(model).stream("go")
    one.abort("enough")

    assert aborted(await one.result())
    assert ["run-start", "step-start", "finish"] == kinds(await every(one))
    assert [] == model.requests


async def test_an_abort_during_text_keeps_no_half_answer() -> None:
    one = stream("one two three")
    texts: list[str] = []
    async for text in one.text_stream:
        texts.append(text)
        one.abort("enough")
    result = await one.result()
    assert aborted(result)
    assert (["one "], (), "") == (texts, result.messages, result.text)


def agent(*script: Entry, tools: Sequence[Tool] = (), store: Store | None = None) -> Agent:
    """Return an agent whose model says this."""
    return Agent(ScriptedModel(script), tools=tools, store=store)


@pytest.mark.parametrize("names", [("one",), ("one", "two")], ids=["inline", "parallel"])
async def test_an_abort_during_a_tool_answers_every_call(names: tuple[str, ...]) -> None:
    hanging = Hanging(*names)
    one = agent(hanging.calls, tools=hanging.tools).stream("go")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(one.result())
        await hanging.begun.wait()
        one.abort("enough")
    assert aborted(running.result())
    assert {"unknown"} == {result.status for result in running.result().steps[0].tool_results}
    assert 0 == tasks_left()


async def test_an_abort_after_the_step_lets_the_turn_come_to_its_end() -> None:
    model = ScriptedModel([reply(call()), "done"])

    one = Agent(model, tools=[read]).stream("go")
    async for part in one.full_stream:
        if part.type == "step-start":
            one.abort("enough", after_step=True)
    result = await one.result()

    assert (1, EndReason.ABORTED) == (len(model.requests), result.end_reason)
    assert ["text"] == [one.text for one in result.steps[0].tool_results]
    assert ("enough",) == result.stopped_by


@pytest.mark.parametrize("said", [5, None, b"hurry", []])
def test_steering_takes_a_prompt(said: object) -> None:
    one = Agent(ScriptedModel(["done"])).stream("go")

    with pytest.raises(ConfigError, match="`steer`: expected a string, or"):
        one.steer(wrong(said))
    with pytest.raises(ConfigError, match="`follow_up`: expected a string, or"):
        one.follow_up(wrong(said))

    assert "done" == within(one.result()).text


def test_a_picture_can_be_sent_while_the_run_goes_on() -> None:
    """A person who chats sends what a question may hold, and at any time."""
    picture = image(b"\x89PNG\r\n\x1a\n")
    model = ScriptedModel(["done", "seen"])
    one = Agent(model).stream("go")
    one.follow_up(["And this?", picture])

    assert "seen" == within(one.result()).text
    sent = model.requests[1].messages[-1]
    assert UserMessage((TextPart("And this?"), picture), origin="follow_up") == sent


def test_steering_after_the_end_is_refused() -> None:
    one = Agent(ScriptedModel(["done"])).stream("go")
    within(one.result())

    one.abort()
    with pytest.raises(ConfigError, match="`steer` comes too late"):
        one.steer("hurry")
    with pytest.raises(ConfigError, match="`follow_up` comes too late"):
        one.follow_up("and then?")


def too_late(one: RunStream) -> None:
    """Steer a stream that is over."""
    with pytest.raises(ConfigError, match="`steer` comes too late"):
        one.steer("hurry")
    with pytest.raises(ConfigError, match="`follow_up` comes too late"):
        one.follow_up("and then?")


class Slow(PassingStore):
    """A store that shows when it is about to keep a reply."""

    def __init__(self) -> None:
        super().__init__()
        self.keeping = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events; a reply waits for `go_on`."""
        if any(isinstance(event, ModelReplied) for event in events):
            self.keeping.set()
            await self.go_on.wait()
        await super().append(run_id, seq, *events)


@pytest.mark.parametrize("last", [True, False])
async def test_steering_during_the_last_answer_counts_or_fails(last: bool) -> None:
    model = ScriptedModel([*([] if last else [reply(call())]), "done", "never"])

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
    result = running.result()

    assert "done" == result.text
    assert last is not (UserMessage("hurry", origin="steering") in result.messages)


async def test_steering_a_stopped_run_is_refused() -> None:
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
    assert ["Queued", "Cancelled"] == [type(event).__name__ for event in await store.load("r")][-2:]


class Parking(PassingStore):
    """A store that sets an event when a driver releases its run."""

    def __init__(self) -> None:
        super().__init__()
        self.parks: dict[str, Callable[[], None]] = {}

    async def claim(self, run_id: str) -> None:
        """Begin to drive a run."""
        await self.disk.claim(run_id)

    async def release(
        self,
        run_id: str,
        status: ReleaseStatus,
        asks: Sequence[Ask],
        *,
        seen: int = 0,
        wake_s: float | None = None,
        ending: str = "",
    ) -> None:
        """Call out, and end the claim."""
        self.parks.pop(run_id, lambda: None)()
        await self.disk.release(run_id, status, asks, seen=seen, wake_s=wake_s, ending=ending)


async def test_steering_while_a_child_parks_is_journaled() -> None:
    store = Parking()
    helper = Agent(ScriptedModel([reply(call("act")), "did"], label="h"), tools=[gated("act")])
    asks = call("helper", "x", '{"prompt": "?"}')
    model = ScriptedModel([reply(asks), "done"])
    top = Agent(model, tools=[helper.as_tool(name="helper", description="helps")], store=store)
    one = top.stream("go", run_id="r")
    store.parks = {"r/c0.0": lambda: one.steer("hurry"), "r": lambda: too_late(one)}
    (ask,) = (await one.result()).pending
    assert (
        UserMessage("hurry", origin="steering")
        in (await top.resume("r", approvals={ask.key: True})).messages
    )


def test_a_graph_that_hears_no_follow_up_refuses_it() -> None:
    model, append = ModelCall(), Append()
    graph: Graph[None] = Graph(
        "one", model, {model: {Failed: END, ...: append}, append: {...: END}}
    )

    one = graph.stream(None, prompt="go", model=ScriptedModel(["done"]))

    with pytest.raises(ConfigError, match=r"`follow_up` has no effect.*Verify"):
        one.follow_up("and then?")
