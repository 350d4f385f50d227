"""The asynchronous driver: parallel effects, aborts, cancellations, and worlds that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import final

import pytest

from graphloop import Agent, EndReason, RunResult, Tool
from graphloop.drivers.aio import AsyncDriver, Seen
from graphloop.drivers.ports import Ports
from graphloop.effects import CallModel, Effect
from graphloop.errors import BadReply, ConfigError, IllegalEvent, RunFailed
from graphloop.events import Event, Setup, Started
from graphloop.graph import END, Graph
from graphloop.node import Kind, Leave, Reaction, Wait
from graphloop.outcomes import Aborted, Done, Outcome
from graphloop.providers.base import Delta, ModelSession, TextDelta
from graphloop.run import Run
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools import Toolbox
from graphloop.values import ModelRequest, Reply
from tests.strategies import QUESTION, call, loop, reply, wrong

DEADLINE_S = 5.0
"""A driver that hangs fails here instead of holding up the suite."""

Execute = Callable[[dict[str, object]], object]
TWO = reply(call("one"), call("two"))


def tool_of(name: str, execute: Execute, timeout_s: float | None = None) -> Tool:
    """Return a tool that takes anything."""
    return Tool(name=name, parameters={"type": "object"}, execute=execute, timeout_s=timeout_s)


def agent(*tools: Tool, script: Reply = TWO) -> Agent:
    """Return an agent whose model calls the tools once, then is done."""
    return Agent(ScriptedModel([script, "done"]), tools=tools)


async def fine(arguments: dict[str, object]) -> str:
    """Return at once."""
    return "fine"


def within(work: Awaitable[RunResult[None]]) -> RunResult[None]:
    """Run to the end, or fail if it does not come."""

    async def bounded() -> RunResult[None]:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(bounded())


def statuses(result: RunResult[None]) -> list[str]:
    """Return how the calls of the first turn ended."""
    return [one.status for one in result.steps[0].tool_results]


def test_tools_of_one_turn_run_at_the_same_time() -> None:
    """Two tools that wait for each other only end if both are under way."""
    meeting = asyncio.Barrier(2)

    async def meet(arguments: dict[str, object]) -> str:
        await meeting.wait()
        return "met"

    result = within(agent(tool_of("one", meet), tool_of("two", meet)).generate("go"))

    assert ["met", "met"] == [one.text for one in result.steps[0].tool_results]


@pytest.mark.parametrize("script", [TWO, reply(call("one"))], ids=["in parallel", "alone"])
def test_a_tool_that_hangs_is_given_up_at_its_time_limit(script: Reply) -> None:
    """One lost connection must not hold up the run for ever."""

    async def hang(arguments: dict[str, object]) -> str:
        await asyncio.Event().wait()
        return "never"

    looped = agent(tool_of("one", hang, timeout_s=0.001), tool_of("two", fine), script=script)

    result = within(looped.generate("go"))

    assert "timeout" == statuses(result)[0]
    assert "done" == result.text


@pytest.mark.parametrize("script", [TWO, reply(call("one"))], ids=["in parallel", "alone"])
def test_a_tool_that_cancels_itself_has_failed(script: Reply) -> None:
    """Awaiting a task that somebody else cancelled is the tool's error, not the run's end."""

    async def await_cancelled(arguments: dict[str, object]) -> str:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task
        return "never"

    looped = agent(tool_of("one", await_cancelled), tool_of("two", fine), script=script)

    result = within(looped.generate("go"))

    assert "error" == statuses(result)[0]
    assert "done" == result.text


class Unheard(BaseException):
    """What `except Exception` does not catch: pytest's own failures are of this kind."""


@pytest.mark.parametrize("script", [TWO, reply(call("one"))], ids=["in parallel", "alone"])
def test_what_no_boundary_catches_reaches_the_caller(script: Reply) -> None:
    """A `pytest.fail` inside a tool must fail the test, not hang it."""

    async def explode(arguments: dict[str, object]) -> str:
        raise Unheard

    looped = agent(tool_of("one", explode), tool_of("two", fine), script=script)

    with pytest.raises(Unheard):
        within(looped.generate("go"))


def test_an_abort_during_tools_answers_every_call() -> None:
    """Stop while two tools run: both are answered, and the history can be used again."""

    async def scenario() -> RunResult[None]:
        under_way = asyncio.Event()

        async def hang(arguments: dict[str, object]) -> str:
            under_way.set()
            await asyncio.Event().wait()
            return "never"

        stream = agent(tool_of("one", hang), tool_of("two", fine)).stream("go")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(stream.result())
            await under_way.wait()
            stream.abort("enough")
            stream.abort("again")
        return running.result()

    result = within(scenario())

    assert EndReason.ABORTED is result.end_reason
    assert ("enough",) == result.stopped_by
    assert ["c0.0", "c0.1"] == [one.key for one in result.steps[0].tool_results]
    assert "not_run" == statuses(result)[0]


async def aborted_alone(hang: Execute, waiting: asyncio.Event) -> int:
    """Abort while one tool runs; return how often the driving task is still being cancelled."""
    stream = agent(tool_of("one", hang), script=reply(call("one"))).stream("go")

    async def drive() -> int:
        result = await stream.result()
        assert EndReason.ABORTED is result.end_reason
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    async with asyncio.TaskGroup() as group:
        driving = group.create_task(drive())
        await waiting.wait()
        stream.abort()
        stream.abort()
    return driving.result()


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_abort_leaves_no_cancellation_behind(stubborn: bool) -> None:
    """A task that counts as cancelled breaks every later timeout of its owner."""

    async def scenario() -> int:
        waiting = asyncio.Event()

        async def hang(arguments: dict[str, object]) -> str:
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not stubborn:
                    raise
            return "I do not care"

        async with asyncio.timeout(DEADLINE_S):
            return await aborted_alone(hang, waiting)

    assert 0 == asyncio.run(scenario())


@pytest.mark.parametrize("aborted", [False, True])
def test_a_cancellation_from_outside_is_never_swallowed(aborted: bool) -> None:
    """Who cancels a task waits for it to end; an abort at the same time changes nothing."""

    async def scenario() -> None:
        waiting = asyncio.Event()

        async def hang(arguments: dict[str, object]) -> str:
            waiting.set()
            await asyncio.Event().wait()
            return "never"

        stream = agent(tool_of("one", hang), script=reply(call("one"))).stream("go")
        driving = asyncio.ensure_future(stream.result())
        await waiting.wait()
        if aborted:
            stream.abort()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        with pytest.raises(RunFailed):
            await stream.result()

    asyncio.run(scenario())


@final
class Raw:
    """A provider that yields what it is given, right or wrong."""

    label = "raw"

    def __init__(self, *items: object) -> None:
        self.items = items

    def session(self) -> ModelSession:
        """Return itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Yield the items."""
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
            yield wrong(item)

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    "items",
    [(), (TextDelta("half"),), ("text",), (None,), (42, reply("done"))],
    ids=["nothing", "no reply", "a string", "none", "a number first"],
)
def test_a_provider_that_breaks_its_promise_is_a_bad_reply(items: tuple[object, ...]) -> None:
    """Users write providers; what they get wrong must be said, not stored."""
    store = MemoryStore()

    with pytest.raises(BadReply):
        within(Agent(Raw(*items), store=store).generate("go", run_id="r"))

    journal = asyncio.run(store.load("r"))
    assert ["Started", "EffectFailed"] == [type(event).__name__ for event in journal]


def test_a_provider_that_cancels_itself_has_failed() -> None:
    """A cancelled connection pool must not look like the user's own cancellation."""
    with pytest.raises(Exception, match="cancelled"):
        within(Agent(Raw(asyncio.CancelledError())).generate("go"))


def driver(models: ScriptedModel | None = None) -> AsyncDriver[None]:
    """Return a driver of the standard loop."""
    given = {} if models is None else {"model": models}
    ports: Ports[None] = Ports(
        store=MemoryStore(), models=given, toolbox=Toolbox(()), clock=lambda: 0.0
    )
    return AsyncDriver(loop(), ports, None)


async def drive(seen: AsyncGenerator[Seen[None], None]) -> int:
    """Exhaust a driver; return how much was to be seen."""
    return len([one async for one in seen])


STARTED = Started(0.0, "r", "agent", QUESTION, Setup("model"))


@dataclass(frozen=True)
class TwoMinds:
    """Asks two models at the same time, and leaves when both have answered."""

    name: str = "two_minds"
    kind: Kind = "model"
    outcomes: frozenset[type[Outcome]] = frozenset({Done, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Ask both."""
        request, first = ModelRequest(run.messages), run.next_effect
        return Wait(
            run, (CallModel(first, "left", request), CallModel(first + 1, "right", request))
        )

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Wait for the other."""
        if answered is None:
            return Leave(run, Aborted())
        return Wait(run) if run.pending else Leave(run, Done())


async def two_minds(*, abort: bool) -> tuple[list[object], AsyncDriver[None]]:
    """Return what is seen of two models that talk at once."""
    node = TwoMinds()
    graph: Graph[None] = Graph("agent", node, {node: {...: END}})
    models = {"left": ScriptedModel(["a b c"]), "right": ScriptedModel(["x y z"])}
    ports: Ports[None] = Ports(store=MemoryStore(), models=models, toolbox=Toolbox(()))
    one = AsyncDriver(graph, ports, None)
    seen: list[object] = []
    async for item in one.start(STARTED):
        seen.append(item)
        if abort and isinstance(item, TextDelta):
            one.abort()
    return seen, one


def test_two_models_can_talk_at_the_same_time() -> None:
    """A topology of one's own may ask as many as it likes; all deltas are heard."""
    seen, one = asyncio.run(two_minds(abort=False))

    words = [item.text for item in seen if isinstance(item, TextDelta)]
    assert ["a ", "b ", "c", "x ", "y ", "z"] == sorted(words)
    assert one.run is not None
    assert (2, True) == (one.run.spent.model_calls, one.run.ended)


def test_an_abort_stops_models_that_talk_at_the_same_time() -> None:
    """Both, at the next word of either."""
    seen, one = asyncio.run(two_minds(abort=True))

    assert 1 == sum(isinstance(item, TextDelta) for item in seen)
    assert one.run is not None
    assert one.run.ending is not None
    assert EndReason.ABORTED is one.run.ending.reason


def test_a_model_that_was_not_given_is_named() -> None:
    """The message says which label is missing, and which are there."""
    one = driver()

    asyncio.run(drive(one.start(STARTED)))

    assert one.run is not None
    assert one.run.ending is not None
    assert EndReason.ERROR is one.run.ending.reason
    assert isinstance(one.exception, ConfigError)
    assert "no models" in str(one.exception)


def test_a_driver_without_a_run_says_so() -> None:
    """Answers alone drive nothing."""
    one = driver()

    with pytest.raises(IllegalEvent, match="starts with Started"):
        asyncio.run(drive(one._drive(())))  # pyright: ignore[reportPrivateUsage]


def test_what_is_seen_is_every_step_and_every_delta() -> None:
    """The generator is the only window: what it does not show has not happened."""
    one = driver(ScriptedModel(["two words"]))

    count = asyncio.run(drive(one.start(STARTED)))

    assert 4 == count
    assert one.exception is None
