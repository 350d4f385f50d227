"""Deltas as they come: a reader that is alone asks the model itself, and gives up no promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import final

import pytest

from graphloop import Agent, EndReason, RunStream
from graphloop.driver import in_flight
from graphloop.errors import RunFailed
from graphloop.parts import ErrorPart, Finish, Part
from graphloop.providers.base import (
    Delta,
    ReasoningDelta,
    Restarted,
    StreamItem,
    TextDelta,
)
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply, UserMessage
from tests.strategies import reply

DEADLINE_S = 5.0
WORDS = ("one", "two", "three", "four")


@final
class Talker:
    """A model that says each word when it is let, and then replies.

    Args:
        deaf: whether the model ignores its cancellation, and talks on.
    """

    label = "talker"

    def __init__(self, *, deaf: bool = False) -> None:
        self.waits, self.goes = asyncio.Event(), asyncio.Event()
        self.requests: list[ModelRequest] = []
        self.ended = 0
        self._deaf = deaf

    def session(self) -> Talker:
        """Return the model itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Say two words at once, and the others when the test lets them out."""
        self.requests.append(request)
        try:
            yield TextDelta(WORDS[0])
            yield TextDelta(WORDS[1])
            self.waits.set()
            try:
                await self.goes.wait()
            except asyncio.CancelledError:
                if not self._deaf:
                    raise
            yield ReasoningDelta("hm")
            yield TextDelta(WORDS[2])
            yield TextDelta(WORDS[3])
            yield reply("".join(WORDS))
        finally:
            self.ended += 1

    async def aclose(self) -> None:
        """Close nothing."""


async def read(stream: RunStream) -> list[Part]:
    """Return all parts."""
    return [part async for part in stream.full_stream]


def texts(parts: list[Part]) -> list[str]:
    """Return the text of each delta."""
    return [part.text for part in parts if isinstance(part, TextDelta)]


async def test_several_readers_get_every_delta_once() -> None:
    """Whoever asks the model, its words are for all."""
    model = Talker()
    stream = Agent(model).stream("go")
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        readers = [group.create_task(read(stream)) for _ in range(3)]
        await model.waits.wait()
        late = group.create_task(read(stream))
        model.goes.set()

    for one in (*readers, late):
        assert list(WORDS) == texts(one.result())
        assert 1 == sum(isinstance(part, ReasoningDelta) for part in one.result())
        assert isinstance(one.result()[-1], Finish)


async def test_a_reader_that_is_cancelled_while_the_model_is_silent_ends_the_stream() -> None:
    """The model's line is closed, and the others hear why nothing more comes."""
    model = Talker()
    stream = Agent(model).stream("go")
    async with asyncio.timeout(DEADLINE_S):
        reader = asyncio.create_task(read(stream))
        await model.waits.wait()
        reader.cancel()
        await asyncio.wait([reader])
        parts = await read(stream)
        with pytest.raises(RunFailed):
            await stream.result()

    assert reader.cancelled()
    assert isinstance(parts[-1], ErrorPart)
    assert 1 == model.ended


async def test_a_deaf_model_does_not_keep_its_reader_from_being_cancelled() -> None:
    """It goes on with its words, but the reader was told to stop."""
    model = Talker(deaf=True)
    stream = Agent(model).stream("go")
    async with asyncio.timeout(DEADLINE_S):
        reader = asyncio.create_task(read(stream))
        await model.waits.wait()
        reader.cancel()
        await asyncio.wait([reader])

    assert reader.cancelled()
    assert stream.failed


@pytest.mark.parametrize("limit_s", [None, DEADLINE_S], ids=["reader asks", "driver asks"])
@pytest.mark.parametrize("told", ["abort", "abort after the step", "steer"])
async def test_a_caller_is_heard_while_the_model_talks(told: str, limit_s: float | None) -> None:
    """The reader leaves the model to the driver, which knows what to do.

    With a time limit of a turn, the driver itself waits for each delta.
    """
    model = Talker()
    stream = Agent(model, step_timeout_s=limit_s).stream("go")
    async with asyncio.timeout(DEADLINE_S):
        reader = asyncio.create_task(read(stream))
        await model.waits.wait()
        if told == "steer":
            stream.steer("Say it again.")
        else:
            stream.abort("enough", after_step=told != "abort")
        model.goes.set()
        parts = await reader
        result = await stream.result()

    assert ["one", "two"] == texts(parts)[:2]
    assert (EndReason.ABORTED if told == "abort" else EndReason.COMPLETED) is result.end_reason
    assert ("onetwo" if told == "abort" else "") == result.partial_text
    asked = [one for request in model.requests for one in request.messages]
    said = [one for one in asked if isinstance(one, UserMessage) and one.origin == "steering"]
    assert (1 if told == "steer" else 0) == len(said) == len(model.requests) - 1


async def test_a_reader_may_change_its_task_between_two_deltas() -> None:
    """An abort interrupts the task that waits, and no other."""
    model = Talker()
    stream = Agent(model).stream("go")
    parts = aiter(stream.full_stream)
    async with asyncio.timeout(DEADLINE_S):
        seen = [await anext(parts), await anext(parts), await anext(parts), await anext(parts)]
        other = asyncio.create_task(_rest(parts))
        await model.waits.wait()
        stream.abort("enough")
        seen += await other
        result = await stream.result()

    assert ["one", "two"] == texts(seen)
    assert EndReason.ABORTED is result.end_reason
    assert "onetwo" == result.partial_text


@pytest.mark.parametrize(("way", "turns"), [("full", 3), ("text", 5), ("generate", 3)])
async def test_other_tasks_have_their_turn_beside_a_model_that_never_waits(
    monkeypatch: pytest.MonkeyPatch, way: str, turns: int
) -> None:
    """A model may talk for long without waiting, also to a caller who waits for the result."""
    monkeypatch.setattr(in_flight, "SHARE_S", -1.0)  # As if every delta had taken long.
    ticks, loop = 0, asyncio.get_running_loop()

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        loop.call_soon(tick)

    loop.call_soon(tick)
    words: Entry = {"text": "a b c d e", "deltas": ["a ", "b ", "c ", "d ", "e"]}
    agent = Agent(ScriptedModel([words]))
    match way:
        case "full":
            said = texts(await read(agent.stream("go")))
        case "text":
            said = [text async for text in agent.stream("go").text_stream]
        case _:
            said = [(await agent.generate("go")).text]

    assert "a b c d e" == "".join(said)
    assert ticks >= turns


@final
class Busy:
    """A model that waits in many ways between its words, and may fail or stop its own run.

    Args:
        ends: what the model does after its words.
    """

    label = "busy"

    def __init__(self, ends: Callable[[], object] = lambda: None) -> None:
        self._ends = ends

    def session(self) -> Busy:
        """Return the model itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Say each word after another kind of wait."""
        loop = asyncio.get_running_loop()
        yield TextDelta(WORDS[0])
        await asyncio.sleep(0)
        yield TextDelta(WORDS[1])
        later: asyncio.Future[str] = loop.create_future()
        loop.call_soon(later.set_result, WORDS[2])
        yield TextDelta(await later)
        try:
            async with asyncio.timeout(0):
                await loop.create_future()
        except TimeoutError:
            yield TextDelta(WORDS[3])
        broken: asyncio.Future[str] = loop.create_future()
        loop.call_soon(broken.set_exception, ValueError("broken"))
        with pytest.raises(ValueError, match="broken"):
            await broken
        self._ends()
        yield reply("".join(WORDS))

    async def aclose(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize("limit_s", [None, 60.0], ids=["", "with a time limit"])
async def test_a_model_waits_between_its_deltas_as_in_any_task(limit_s: float | None) -> None:
    """Timers, failures and bare yields reach the model's own code, and no delta is lost."""
    async with asyncio.timeout(DEADLINE_S):
        parts = await read(Agent(Busy(), step_timeout_s=limit_s).stream("go"))
        result = await Agent(Busy()).generate("go")

    assert list(WORDS) == texts(parts)
    assert isinstance(parts[-1], Finish)
    assert "".join(WORDS) == result.text


async def test_a_model_that_fails_after_its_deltas_ends_the_stream_with_its_error() -> None:
    """The deltas came without a wait; the failure is heard all the same."""

    def fail() -> None:
        raise ValueError("out of words")

    parts = await read(Agent(Busy(fail)).stream("go"))

    assert list(WORDS) == texts(parts)
    assert isinstance(parts[-1], ErrorPart)
    assert "out of words" in str(parts[-1].error)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("first", [False, True])
async def test_a_restart_is_a_part_of_its_own(*, waits: bool, first: bool) -> None:
    """The deltas before it are void, also if it arrives among them without a wait."""

    @final
    class Restarting:
        """A model whose line breaks once, and begins anew."""

        label = "restarting"

        def session(self) -> Restarting:
            """Return the model itself."""
            return self

        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            """Say half of it, then all of it."""
            yield TextDelta(WORDS[0])
            if not first:
                yield TextDelta(WORDS[1])
            await asyncio.sleep(0) if waits else None
            yield Restarted()
            for word in WORDS:
                yield TextDelta(word)
            yield reply("".join(WORDS))

        async def aclose(self) -> None:
            """Close nothing."""

    async with asyncio.timeout(DEADLINE_S):
        parts = await read(Agent(Restarting()).stream("go"))

    kinds = [part.type for part in parts]
    assert 1 == kinds.count("step-retry")
    assert list(WORDS) == texts(parts[kinds.index("step-retry") :])
    assert (1 if first else 2) == len(texts(parts[: kinds.index("step-retry")]))


async def test_a_model_may_abort_its_own_run() -> None:
    """It runs in the task of the reader, which no abort interrupts then."""
    streams: list[RunStream] = []
    streams.append(Agent(Busy(lambda: streams[0].abort("enough"))).stream("go"))
    async with asyncio.timeout(DEADLINE_S):
        parts = await read(streams[0])
        result = await streams[0].result()

    assert list(WORDS) == texts(parts)
    assert EndReason.ABORTED is result.end_reason


async def test_readers_that_take_turns_get_every_delta_once() -> None:
    """The model is asked by the reader who wants more, and its words are kept for the other."""
    words = [f"{number} " for number in range(9)]
    entry: Entry = {"text": "".join(words), "deltas": list(words)}
    stream = Agent(ScriptedModel([entry])).stream("go")
    left, right = aiter(stream.full_stream), aiter(stream.full_stream)
    seen: dict[bool, list[Part]] = {True: [], False: []}
    for turn in [True, True, True, False, True, False, False, False, False, True, False, True]:
        seen[turn].append(await anext(left if turn else right))
    seen[True] += await _rest(left)
    seen[False] += await _rest(right)

    assert seen[True] == seen[False] == await read(stream)
    assert words == texts(seen[True])


async def test_a_delta_that_has_arrived_is_read_without_the_event_loop() -> None:
    """A reader who is not told to wait does not wait: the deltas of one chunk come at once."""
    entry: Entry = {"text": "a b c", "deltas": ["a ", "b ", "c"]}
    parts = aiter(Agent(ScriptedModel([entry])).stream("go").full_stream)
    while not isinstance(await anext(parts), TextDelta):
        pass
    reading = anext(parts)

    with pytest.raises(StopIteration) as read_at_once:
        reading.__await__().send(None)

    assert TextDelta("b ") == read_at_once.value.value


async def _rest(parts: AsyncIterator[Part]) -> list[Part]:
    return [part async for part in parts]
