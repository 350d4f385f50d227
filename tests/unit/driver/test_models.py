"""Asking models: what comes of a stream, and what a call has cost however it ended."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import final

import pytest

from graphloop import Agent, EndReason, RunResult, Tool
from graphloop.driver.models import ModelCallInFlight, Models
from graphloop.driver.observers import RunLog
from graphloop.driver.performer import Performer
from graphloop.driver.ports import Parked, Ports
from graphloop.effects import CallModel
from graphloop.errors import Overloaded, StreamTruncated
from graphloop.events import Cancelled, EffectFailed, ModelReplied, Queued
from graphloop.providers.base import (
    Live,
    ModelSession,
    Provider,
    Restarted,
    StreamItem,
    TextDelta,
    UsageSoFar,
)
from graphloop.spending import Spent
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.toolbox import Toolbox
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    Reply,
    TextPart,
    Usage,
    evolve,
)
from tests.strategies import call, reply

USED = Usage(100, 7)
ASK = CallModel(1, "wire:big", ModelRequest(()))


@final
class Talking:
    """A provider that says these things, raises these errors, and waits at None for ever."""

    def __init__(self, *items: StreamItem | Exception | None, label: str = "wire:big") -> None:
        self.label = label
        self.items = items
        self.waiting = asyncio.Event()
        self.sessions = 0

    def session(self) -> ModelSession:
        """Return itself."""
        self.sessions += 1
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Say it."""
        for item in self.items:
            if item is None:
                self.waiting.set()
                await asyncio.Event().wait()
            elif isinstance(item, Exception):
                raise item
            else:
                yield item

    async def aclose(self) -> None:
        """Do nothing."""


def priced(one: Reply) -> float | None:
    """Price one model."""
    return one.usage.total_tokens / 100 if one.model == "big" else None


def models(provider: Provider) -> Models[None]:
    """Return models with this one."""
    ports: Ports[None] = Ports(
        store=MemoryStore(),
        models={provider.label: provider},
        toolbox=Toolbox(()),
        price=lambda one, _: priced(one),
        clock=lambda: 3.0,
    )
    return Models(ports, Performer(ports))


async def asked(
    one: Models[None], effect: CallModel = ASK
) -> list[Live | ModelReplied | EffectFailed]:
    """Return all that comes of asking."""
    asking, items = ModelCallInFlight(one, effect), list[Live | ModelReplied | EffectFailed]()
    while not items or not isinstance(items[-1], ModelReplied | EffectFailed):
        item = await asking.__anext__()
        assert not isinstance(item, Parked)
        items.append(item)
    return items


def failed(one: Models[None], effect: CallModel = ASK) -> EffectFailed:
    """Return the failure that asking comes to."""
    last = asyncio.run(asked(one, effect))[-1]
    assert isinstance(last, EffectFailed)
    return last


def test_deltas_come_before_the_reply_which_is_priced() -> None:
    """The reply is the only fact among them."""
    said = reply("hi")

    items = asyncio.run(asked(models(Talking(TextDelta("hi"), said))))

    assert [TextDelta("hi"), ModelReplied(3.0, 1, said, None)] == items


def test_a_model_has_one_session_a_run() -> None:
    """What a session knows of the last request makes the next one cheaper."""
    provider = Talking(reply("hi"))
    one = models(provider)

    asyncio.run(asked(one))
    asyncio.run(asked(one))

    assert 1 == provider.sessions


def test_a_failed_call_counts_what_it_had_used() -> None:
    """§9 #24: a server bills what it has said before it broke off."""
    failure = failed(models(Talking(UsageSoFar(Usage(1)), UsageSoFar(USED), Overloaded("529"))))

    assert Spent(1, 0, USED, 1.07, 0) == failure.spent
    assert failure.failure.retryable
    assert not failure.content_seen


def test_a_call_that_has_used_nothing_is_no_call() -> None:
    """Nobody bills a refused connection."""
    assert Spent() == failed(models(Talking(Overloaded("529")))).spent


def test_content_was_seen_where_void_deltas_were_not_announced() -> None:
    """Listeners are told once what is void."""
    error = StreamTruncated("cut")

    assert not failed(models(Talking(error))).content_seen
    assert failed(models(Talking(TextDelta("ha"), error))).content_seen
    assert not failed(models(Talking(TextDelta("ha"), Restarted(), error))).content_seen


async def test_what_is_under_way_is_counted_once() -> None:
    """When the call is given up, or until its reply is in the journal."""

    one = models(Talking(UsageSoFar(USED), TextDelta("a"), reply("a")))
    async with aclosing(ModelCallInFlight(one, ASK)) as asking:
        assert TextDelta("a") == await anext(asking)
    assert Spent(1, 0, USED, 1.07, 0) == one.unfinished()
    assert Spent() == one.unfinished()
    await asked(one)
    assert Usage(10, 5) == one.unfinished().usage
    await asked(one)
    del one.calls[ASK.id]
    assert Spent() == one.unfinished()


def test_a_failure_is_paid_for_until_it_is_in_the_journal() -> None:
    """An abort may come in between, and then the failure is never heard of."""
    one = models(Talking(UsageSoFar(USED), Overloaded("529")))

    event = failed(one)

    assert USED == event.spent.usage == one.unfinished().usage
    del one.calls[failed(one).effect]
    assert Spent() == one.unfinished()


async def test_a_reply_that_comes_together_with_an_abort_is_paid_for() -> None:
    """All of it had arrived, and the line was being closed: it is void, and on the bill."""

    class Closing:
        """A provider whose line closes only when it is cancelled."""

        label = "wire:big"

        def __init__(self) -> None:
            self.closing = asyncio.Event()

        def session(self) -> ModelSession:
            """Return itself."""
            return self

        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            """Reply."""
            try:
                yield evolve(reply("all of it"), usage=USED)
            finally:
                self.closing.set()
                await asyncio.Event().wait()

        async def aclose(self) -> None:
            """Close nothing."""

    provider = Closing()
    stream = Agent(provider, price=priced).stream("go")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.result())
        await provider.closing.wait()
        stream.abort("enough")
    result = running.result()

    assert EndReason.ABORTED is result.end_reason
    assert (1, USED) == (result.run.spent.model_calls, result.total_usage)


async def test_an_aborted_run_has_paid_for_what_the_model_had_said() -> None:
    """§9 #18: the usage of an answer that nobody waited for is part of the total."""

    provider = Talking(UsageSoFar(USED), TextDelta("a"), None)
    stream = Agent(provider, price=priced).stream("go")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.result())
        await provider.waiting.wait()
        stream.abort("enough")
    result = running.result()

    assert EndReason.ABORTED is result.end_reason
    assert USED == result.total_usage
    assert 1.07 == result.cost_usd


async def test_a_reply_that_is_in_the_journal_is_not_counted_again() -> None:
    """An abort in the middle of its tools pays for it once."""

    async def stop(arguments: dict[str, object]) -> str:
        stream.abort("enough")
        return "ended"

    tool = Tool(name="read", parameters={"type": "object"}, execute=stop)
    agent = Agent(Talking(UsageSoFar(USED), reply(call())), tools=[tool], price=priced)
    stream = agent.stream("go")
    result = await stream.result()

    assert EndReason.ABORTED is result.end_reason
    assert (1, Usage(10, 5)) == (result.run.spent.model_calls, result.total_usage)


def fallen_back(*items: StreamItem | Exception | None) -> RunResult:
    """Return the result of a run whose first model says this."""
    second = ScriptedModel(["second"], label="second")
    agent = Agent(Talking(*items), fallback_models=[second], price=lambda _: 1.0)
    return asyncio.run(agent.generate("go"))


def test_a_model_that_cannot_be_asked_gives_way_to_the_next() -> None:
    """§9 #47: call by call; what the first had used is part of the turn and of the run."""
    result = fallen_back(UsageSoFar(USED), Overloaded("529"))

    assert "second" == result.text
    assert USED + Usage(10, 1) == result.total_usage == result.steps[0].usage
    assert 2.0 == result.cost_usd


def test_an_answer_that_breaks_off_is_asked_of_the_next_model() -> None:
    """What was seen of it is void, which its listeners are told by a `step-retry`."""
    assert "second" == fallen_back(TextDelta("half"), StreamTruncated("cut")).text


class Leaving:
    """A provider whose stream waits while it is closed, as one that says goodbye to a server."""

    label = "leaving"

    def __init__(self) -> None:
        self.is_closed = False

    def session(self) -> ModelSession:
        """Return itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Say it twice, and wait at the end."""
        try:
            yield TextDelta("one")
            yield TextDelta("two")
        finally:
            await asyncio.sleep(0)
            self.is_closed = True

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("watch", [(), (RunLog(),)], ids=["alone", "observed"])
def test_a_loop_that_closes_leaves_the_stream_of_a_model_to_its_driver(
    watch: tuple[RunLog, ...],
) -> None:
    """Two closers of one generator are an error of the second, which the loop would log."""
    model, logged = Leaving(), list[object]()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: logged.append(context["message"]))
        stream = Agent(model, watch=watch).stream("go")
        texts = stream.text_stream
        assert "one" == await anext(texts)
        await loop.shutdown_asyncgens()

    asyncio.run(scenario())

    assert [] == logged
    assert model.is_closed


def test_a_stream_that_the_garbage_collector_finds_is_closed() -> None:
    """A server would go on to send, and to be paid, until the process ends."""
    model = Leaving()

    async def use() -> None:
        texts = Agent(model).stream("go").text_stream
        assert "one" == await anext(texts)
        cycle: list[object] = [texts]
        cycle.append(cycle)

    async def scenario() -> None:
        gc.disable()
        try:
            await use()
        finally:
            gc.enable()
        gc.collect()
        for _ in range(100):
            await asyncio.sleep(0)

    asyncio.run(scenario())

    assert model.is_closed


@final
class Rude(Leaving):
    """A provider whose stream fails when it is closed."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Say something, and reply."""
        try:
            yield TextDelta("one")
            await asyncio.sleep(0)
            yield Reply(AssistantMessage((TextPart("one"),)), FinishReason.STOP, Usage(1, 1))
        finally:
            raise ConnectionError("no goodbye")


def test_a_stream_that_fails_to_close_loses_no_reply() -> None:
    store = MemoryStore()

    result = asyncio.run(Agent(Rude(), store=store).generate("go", run_id="r"))

    assert (EndReason.COMPLETED, "one") == (result.end_reason, result.text)
    assert any("no goodbye" in warning for warning in result.warnings)
    assert any(isinstance(event, ModelReplied) for event in asyncio.run(store.load("r")))


@pytest.mark.parametrize("way", ["abort", "aclose"])
def test_a_stream_that_fails_to_close_loses_no_word_of_the_caller(way: str) -> None:
    store = MemoryStore()

    async def scenario() -> None:
        stream = Agent(Rude(), store=store).stream("go", run_id="r")
        async for _ in stream.text_stream:
            stream.steer("do not refund")
            if way == "abort":
                stream.abort("enough")
            else:
                break
        await stream.aclose()

    asyncio.run(scenario())

    kinds = [type(event) for event in asyncio.run(store.load("r"))]
    assert Queued in kinds
    assert (way == "abort") == (Cancelled in kinds)
