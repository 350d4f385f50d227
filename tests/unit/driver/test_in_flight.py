"""Hearing: effects are begun, heard of one at a time, and ended when nobody listens any more."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar

import pytest

from graphloop import Tool
from graphloop.driver.cancellation import CancelScope
from graphloop.driver.in_flight import INBOX_MAX, InFlight
from graphloop.driver.performer import Performer
from graphloop.driver.ports import ChildStep, Item, LeftOpen, Parked, Ports
from graphloop.effects import AskHuman, CallModel, CallTool, StartRun
from graphloop.errors import ToolError
from graphloop.events import ChildEnded, EffectFailed, ModelReplied, ToolReturned
from graphloop.graph import NodeGraph
from graphloop.policy.approvals import Approval
from graphloop.providers.base import TextDelta
from graphloop.run import Run
from graphloop.step import Step
from graphloop.stores.memory import MemoryStore
from graphloop.tools.toolbox import Toolbox
from graphloop.turn import CallVerdict
from graphloop.values import ModelRequest, evolve
from tests.strategies import call, fresh, loop, replied, reply

DEADLINE_S = 5.0
MODEL = CallModel(1, "m", ModelRequest(()))
CHILD = StartRun(2, "c0.0", "kid", "{}", ())
SAID = ModelReplied(0.0, 1, reply("done"))
RUN: Run[None] = replied(reply(call(), call()), CallVerdict("run"), CallVerdict("run"))


async def fine(arguments: dict[str, object]) -> str:
    """Return at once."""
    return "fine"


async def later(effect: AskHuman, run: Run[None]) -> Approval:
    """Decide nothing now."""
    raise LeftOpen


def hearing(
    listen: Callable[[CallModel | StartRun], AsyncGenerator[Item, None]],
    execute: Callable[[dict[str, object]], Awaitable[str]] = fine,
    caller: CancelScope | None = None,
) -> InFlight[None]:
    """Return a hearing of these models and children, with one tool, and an undecided person."""
    tool = Tool(name="read", parameters={"type": "object"}, execute=execute)
    ports: Ports[None] = Ports(
        store=MemoryStore(),
        models={},
        toolbox=Toolbox([tool]),
        clock=lambda: 0.0,
        approve=later,
    )
    return InFlight(Performer(ports), listen, caller or CancelScope())


async def talk(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
    """Say a word and reply; a child parks."""
    if isinstance(effect, StartRun):
        yield Parked(effect.id)
        return
    yield TextDelta("a")
    yield SAID


async def heard(one: InFlight[None]) -> list[object]:
    """Return all that is heard until nothing more will be."""
    items: list[object] = []
    async with asyncio.timeout(DEADLINE_S):
        while one.todo or not items or items[-1] is not None:
            items.append(await one.next(RUN))
    return items


@pytest.mark.parametrize("waits", [CHILD, AskHuman(2, "c0.0", call())])
async def test_what_waits_for_somebody_ends_unheard(waits: StartRun | AskHuman) -> None:
    """A child that parks, or a question left open: alone, nothing is heard; others are."""

    one = hearing(talk)
    one.todo = [waits]
    alone = await heard(one)
    one.todo = [waits, CallTool(3, "c0.0", call()), CallTool(4, "c0.1", call())]
    beside = await heard(one)

    assert [None] == alone
    assert [ToolReturned(0.0, 3, "fine"), ToolReturned(0.0, 4, "fine"), None] == beside


def test_more_deltas_than_there_is_room_for_are_all_heard() -> None:
    """Whoever listens slowly slows the talking down; nothing is dropped."""

    async def chatter(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        for _ in range(2 * INBOX_MAX):
            yield TextDelta("a")
        yield ModelReplied(0.0, effect.id, reply("done"))

    async def scenario() -> list[object]:
        one = hearing(chatter)
        one.todo = [MODEL, CallModel(5, "m", ModelRequest(()))]
        return await heard(one)

    assert 4 * INBOX_MAX == sum(isinstance(one, TextDelta) for one in asyncio.run(scenario()))


def stepped(effect: CallModel | StartRun) -> ChildStep:
    """Return a step seen in a child, or in a child of it."""
    graph: NodeGraph[None] = loop()
    taken: Step[None] = Step(SAID, fresh(), ())
    inner = ChildStep("c0.1", "leaf", graph, taken)
    return inner if effect.id % 2 else ChildStep("c0.0", "kid", graph, inner)


def test_children_go_no_further_while_nobody_listens() -> None:
    """Whoever stops looking stops the run, however many children it has; and may look again."""
    steps: list[int] = []

    async def work(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        for _ in range(5):
            steps.append(effect.id)
            yield stepped(effect)
            await asyncio.sleep(0)
        yield ChildEnded(0.0, effect.id, "done")

    async def scenario() -> list[object]:
        one = hearing(work)
        one.todo = [evolve(CHILD, id=number) for number in (2, 3, 4)]
        first = await one.next(RUN)
        for _ in range(100):
            await asyncio.sleep(0)
        assert [2, 3, 4] == sorted(steps)
        return [first, *await heard(one)]

    items = asyncio.run(scenario())

    assert 15 == len(steps) == sum(isinstance(one, ChildStep) for one in items)
    assert 3 == sum(isinstance(one, ChildEnded) for one in items)


async def test_a_child_that_waits_for_a_listener_can_be_dropped_or_closed() -> None:
    """It waits for nobody then."""
    closed: list[int] = []

    async def work(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        try:
            while True:
                yield stepped(effect)
        finally:
            closed.append(effect.id)

    one = hearing(work)
    one.todo = [evolve(CHILD, id=number) for number in (2, 3)]
    await one.next(RUN)
    await one.drop(evolve(CHILD, id=2))
    assert [2] == closed
    assert [] == await one.close()

    assert [2, 3] == closed


def test_garbage_collection_ends_no_child_that_waits_for_a_listener() -> None:
    """In any order, and half-way: whoever has forgotten a run has its driver end it."""

    async def work(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        while True:
            yield stepped(effect)

    async def begun() -> int:
        one = hearing(work)
        one.todo = [evolve(CHILD, id=number) for number in (2, 3)]
        await one.next(RUN)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    async def scenario() -> None:
        count = await begun()
        gc.collect()
        assert count == len(asyncio.all_tasks())

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))


async def test_an_answer_is_known_however_much_waits_before_it() -> None:
    """A tool has ended, nobody listens, and a model has said more than there is room for."""

    async def chatter(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        while True:
            yield TextDelta("a")

    gate = asyncio.Event()

    async def wait(arguments: dict[str, object]) -> str:
        await gate.wait()
        return "late"

    one = hearing(chatter, wait)
    one.todo = [MODEL, CallTool(3, "c0.0", call())]
    await one.next(RUN)
    gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert [ToolReturned(0.0, 3, "late")] == (await one.close())


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_no_failure_of_an_effect_is_raised_where_it_is_heard(beside: bool) -> None:
    """A journal that cannot be written, in a child say, must not look like a tool's error."""

    async def explode(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        raise KeyboardInterrupt
        yield TextDelta("never")

    async def scenario() -> str:
        one = hearing(explode)
        one.todo = [MODEL, CallTool(3, "c0.0", call())] if beside else [MODEL]
        try:
            while True:
                await one.next(RUN)
        except KeyboardInterrupt:
            await one.close()
            return "raised"

    assert "raised" == asyncio.run(scenario())


@pytest.mark.parametrize("deaf", ["a tool", "a model"])
async def test_who_is_cancelled_hears_of_it_whatever_is_made_of_it(deaf: str) -> None:
    """What the deaf one answers is kept for whoever goes on, but the listener is not the deaf."""
    began = asyncio.Event()

    async def wait(arguments: dict[str, object]) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "failed"
        return "never"

    async def model(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        await wait({})
        yield SAID

    answer = ToolReturned(0.0, 3, "failed") if deaf == "a tool" else SAID

    caller = CancelScope()
    one = hearing(model, wait, caller)
    one.todo = [CallTool(3, "c0.0", call())] if deaf == "a tool" else [MODEL]

    async def listening() -> None:
        caller.enter()
        await one.next(RUN)

    task = asyncio.create_task(listening())
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [answer] == (await one.close())


@pytest.mark.parametrize("beside", [False, True])
def test_what_somebody_else_cancelled_is_no_end_of_the_listener(beside: bool) -> None:
    """Nobody cancelled whoever listens, and an effect that died in silence was waited for."""

    async def die(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
        raise asyncio.CancelledError
        yield TextDelta("never")

    async def scenario() -> None:
        one = hearing(die)
        one.todo = [MODEL, CallTool(3, "c0.0", call())] if beside else [MODEL]
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    await one.next(RUN)
        finally:
            await one.close()

    with pytest.raises(ToolError, match="cancelled from inside"):
        asyncio.run(scenario())


def test_one_of_several_effects_can_be_dropped() -> None:
    """Also one that has answered already, and one that does not heed its cancellation at once."""

    async def scenario() -> list[object]:
        stubborn = asyncio.Event()

        async def listen(effect: CallModel | StartRun) -> AsyncGenerator[Item, None]:
            if isinstance(effect, CallModel):
                yield SAID
                return
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                stubborn.set()
                for _ in range(2 * INBOX_MAX):
                    yield TextDelta("late")

        one = hearing(listen)
        late = StartRun(3, "c0.1", "kid", "{}", ())
        one.todo = [MODEL, CHILD, late]
        assert SAID == await one.next(RUN)
        one.todo = [StartRun(4, "c0.2", "kid", "{}", ())]
        async with asyncio.timeout(DEADLINE_S):
            for effect in (CHILD, late, one.todo[0], MODEL):
                await one.drop(effect)
            assert stubborn.is_set()
            assert {asyncio.current_task()} == asyncio.all_tasks()
            return await heard(one)

    items = asyncio.run(scenario())

    assert {TextDelta("late"), None} >= set(items)
    assert None is items[-1]


async def test_the_answer_of_a_dropped_effect_is_not_heard() -> None:
    """It was on its way: nobody waits for it any more."""

    one = hearing(talk)
    one.todo = [MODEL, CHILD]
    await one.next(RUN)  # The reply is in the inbox by now, behind the first word.
    await asyncio.sleep(0)
    await one.drop(MODEL)
    assert [None] == (await heard(one))


def cancel_this() -> None:
    """Cancel the task that runs now."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@pytest.mark.parametrize("keeps", [False, True])
async def test_a_tool_beside_another_may_cancel_its_own_task(keeps: bool) -> None:
    """As some time limits do; nobody has cancelled whoever listens, nor the other tool."""

    async def limited(arguments: dict[str, object]) -> str:
        cancel_this()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not keeps:
                raise
        return "timed out"

    caller = CancelScope()
    caller.enter()
    one = hearing(talk, limited, caller)
    calls = [CallTool(3, "c0.0", call()), CallTool(4, "c0.1", call())]
    one.todo = [*calls]
    async with asyncio.timeout(DEADLINE_S):
        answers = [await one.next(RUN) for _ in [*one.todo]]
    for at, answer in enumerate(answers):
        if keeps:
            assert ToolReturned(0.0, 3 + at, "timed out") == answer
        else:
            assert isinstance(answer, EffectFailed)
            assert (3 + at, "ToolError") == (answer.effect, answer.failure.error)
            assert "cancelled from inside" in answer.failure.message
    assert not caller.is_left
    assert [] == await one.close()


async def test_context_variables_of_a_tool_that_is_alone_stay_set() -> None:
    """A trace goes on, and what is cached for a request is found by the next tool."""
    seen = ContextVar("seen", default="nothing")

    async def note(arguments: dict[str, object]) -> str:
        before = seen.get()
        seen.set("something")
        return before

    expected = [ToolReturned(0.0, 3, "nothing"), ToolReturned(0.0, 4, "something")]

    one = hearing(talk, note)
    answers: list[object] = []
    for effect in (CallTool(3, "c0.0", call()), CallTool(4, "c0.1", call())):
        one.todo = [effect]
        answers.append(await one.next(RUN))
    assert expected == answers


async def test_a_tool_that_stops_its_own_run_is_let_finish() -> None:
    """It runs inside the wait of whoever listens."""
    caller = CancelScope()

    async def stop(arguments: dict[str, object]) -> str:
        caller.interrupt()
        await asyncio.sleep(0)
        return "stopped"

    one = hearing(talk, stop, caller)
    one.todo = [CallTool(3, "c0.0", call())]
    caller.enter()
    assert ToolReturned(0.0, 3, "stopped") == await one.next(RUN)
    assert not caller.is_interrupted
