"""Children as their parent hears of them: what a child's end says, and what counts as an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from graphloop import Agent, EndReason, RunResult, Tool, ToolError
from graphloop.driver import cancellation
from graphloop.driver.cancellation import CancelScope, journaled
from graphloop.driver.children import ChildDriver, ChildRuns, child_ended
from graphloop.driver.driver import AsyncDriver
from graphloop.driver.models import Models
from graphloop.driver.performer import Performer
from graphloop.driver.ports import (
    ChildRun,
    ChildStep,
    Item,
    Parked,
    Ports,
    Resumption,
)
from graphloop.effects import StartRun
from graphloop.errors import StoreError
from graphloop.events import Cancelled, ChildEnded, EffectFailed, Event, Failure, Started
from graphloop.providers.base import TextDelta
from graphloop.providers.script import Entry
from graphloop.run import Ending, History, Run, evolve
from graphloop.spending import Spent
from graphloop.step import Step
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.turn import StepResult
from graphloop.values import FinishReason, Usage
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.runs import changed
from tests.strategies import QUESTION, call, fresh, reply


def read(arguments: dict[str, object]) -> str:
    """Read."""
    return "text"


def file(arguments: dict[str, object]) -> str:
    """File."""
    return "filed"


TOOLS: list[Tool] = [
    Tool(name="read", parameters={"type": "object"}, execute=read),
    Tool(name="close", parameters={"type": "object"}, execute=file, ends_run=True),
]


def ended(*script: Entry, steps: int = 20) -> ChildEnded:
    """Return how a child with this script ended, for its parent."""
    agent = Agent(ScriptedModel(script), tools=TOOLS, max_steps=steps)
    result = asyncio.run(agent.generate("go"))
    return child_ended(5.0, 3, result.run)


def step_of(index: int, text: str) -> StepResult:
    """Return a turn that said this."""
    return StepResult(index, reply(text), (), (), Usage(), ())


def test_a_child_s_answer_is_its_last_text() -> None:
    """With all that it has spent, and why it ended."""
    event = ended(reply("hm", call()), "42")

    assert ("42", "ok", "completed") == (event.content, event.status, event.end_reason)
    assert (5.0, 3) == (event.at, event.effect)
    assert (2, 1, Usage(20, 6)) == (
        event.spent.model_calls,
        event.spent.tool_calls,
        event.spent.usage,
    )


@pytest.mark.parametrize(
    "script", [[reply("so far", call())], [reply("so far", call()), reply(call())]]
)
def test_a_child_that_was_cut_has_no_answer_and_quotes_its_last_words(script: list[Entry]) -> None:
    """D08: what it found out is worth something, and what it meant to do is no report of it."""
    event = ended(*script, steps=len(script))

    expected = "it ended by max_steps. Its last words, which are no answer: so far"
    assert f"The agent gave no answer; {expected}" == event.content
    assert "error" == event.status


@pytest.mark.parametrize(
    ("reason", "last", "status"),
    [
        (EndReason.COMPLETED, "42", "ok"),
        (EndReason.COMPLETED, "", "error"),
        (EndReason.STOP_CONDITION, "42", "ok"),
        (EndReason.STOP_CONDITION, "", "error"),
        (EndReason.BUDGET, "42", "error"),
        (EndReason.LENGTH, "42", "error"),
        (EndReason.MAX_STEPS, "42", "error"),
    ],
)
def test_only_a_wanted_end_makes_the_last_turn_an_answer(
    reason: EndReason, last: str, status: str
) -> None:
    """And never a turn before it: that was said before the work was done."""
    run: Run[None] = changed(
        fresh(),
        steps=History([step_of(0, "All is done."), step_of(1, last)]),
        ending=Ending(reason),
    )

    event = child_ended(1.0, 1, run)

    assert status == event.status
    quoted = f"Its last words, which are no answer: {last or 'All is done.'}"
    assert (last == event.content) if status == "ok" else event.content.endswith(quoted)


def test_a_tool_that_ends_a_child_gives_its_answer() -> None:
    """What the model said beside the call is not the answer; a failed call is none."""
    assert "filed" == ended(reply("filing", call("close"))).content
    assert "filed\nfiled" == ended(reply(call("close"), call("close", "b"))).content


@pytest.mark.parametrize(
    ("reason", "failure", "content"),
    [
        (EndReason.ERROR, Failure("OSError", "disk"), "The agent failed: OSError: disk"),
        (EndReason.REFUSAL, None, "The agent gave no answer; it ended by refusal."),
        (EndReason.COMPLETED, None, "The agent gave no answer; it ended by completed."),
    ],
)
def test_a_child_without_an_answer_is_an_error(
    reason: EndReason, failure: Failure | None, content: str
) -> None:
    """The calling model is told why, and may do something else."""
    run: Run[None] = evolve(fresh(), ending=Ending(reason, failure=failure), spent=Spent(2))

    event = child_ended(1.0, 1, run)

    assert (content, "error", Spent(2)) == (event.content, event.status, event.spent)


def test_a_refusal_is_no_answer_whatever_was_said_before() -> None:
    """Last words are told as such."""
    event = ended(reply("I will not", finish=FinishReason.REFUSAL))

    assert "error" == event.status
    assert "it ended by refusal. Its last words, which are no answer: I will not" in event.content


def grown(depth: int) -> Agent:
    """Return an agent with this many agents below it, one in the other."""
    agent = Agent(ScriptedModel(["deep"], label="leaf"), name="a0")
    for level in range(depth):
        script: list[Entry] = [reply(call(f"a{level}", "", '{"prompt": "x"}')), f"up {level}"]
        model = ScriptedModel(script, label=f"m{level}")
        agent = Agent(
            model,
            tools=[agent.as_tool(description="below")],
            name=f"a{level + 1}",
            max_agent_depth=depth,
        )
    return agent


async def test_what_is_seen_in_a_child_of_a_child_is_wrapped_twice() -> None:
    """One stream shows every run; the keys tell them apart."""

    agent = grown(2)
    runner = agent._terms  # pyright: ignore[reportPrivateUsage]
    store = MemoryStore()
    ports: Ports[None] = runner.ports(store)
    driver = AsyncDriver(runner.graph, ports, None)
    started = Started(0.0, "r", agent.name, QUESTION, runner.setup)
    items = [item async for item in driver.start(started)]
    assert {"r/c0.0", "r/c0.0/c0.0"} == set(driver.children.descendants)
    assert ["r", "r/c0.0", "r/c0.0/c0.0"] == list(await store.runs())
    twice = [
        one.seen
        for one in list(items)
        if isinstance(one, ChildStep) and isinstance(one.seen, ChildStep)
    ]
    assert all((one.key, one.agent) == ("c0.0", "a0") for one in twice)
    assert any(isinstance(one.seen, TextDelta) for one in twice)
    assert any(isinstance(one.seen, Step) and one.seen.run.ended for one in twice)


def test_a_failing_tool_of_a_child_is_the_child_s_own_matter() -> None:
    """The parent hears of it only if the child says so."""

    def broken(arguments: dict[str, object]) -> str:
        raise ToolError("broken")

    tool = Tool(name="broken", parameters={"type": "object"}, execute=broken)
    script: list[Entry] = [reply(call("broken")), "it is broken"]
    child = Agent(ScriptedModel(script, label="c"), tools=[tool], name="kid")
    parent_script: list[Entry] = [reply(call("kid", "", '{"prompt": "x"}')), "done"]
    parent = Agent(ScriptedModel(parent_script), tools=[child.as_tool(description="d")])

    result: RunResult = asyncio.run(parent.generate("go"))

    (answer,) = result.steps[0].tool_results
    assert ("it is broken", "ok") == (answer.content, answer.status)
    assert ["error"] == [
        one.status for one in result.children[f"{result.run_id}/c0.0"].record.steps[0].tool_results
    ]


class Gate:
    """A store whose append waits until it is told how to end."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.kept: list[int] = []

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, in a while."""
        self.began.set()
        await self.end
        self.kept += range(seq, seq + len(events))

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return nothing."""
        return ()

    async def runs(self) -> Sequence[str]:
        """Return nothing."""
        return ()


async def journaling(
    store: Gate, caller: CancelScope | None = None
) -> asyncio.CancelledError | None:
    """Journal an event of a run at the top; of a child, where somebody else is the caller."""
    if caller is None:
        caller = CancelScope()
        caller.enter()
    return await journaled(store, ("r", 7), (Cancelled(0.0),), caller)


async def cancelled_in_append(
    *, child: bool, error: Exception | None = None
) -> tuple[asyncio.CancelledError | None, list[int]]:
    """Cancel, twice, who journals an event; return what it hears, and what is kept by then."""
    store = Gate()
    task = asyncio.create_task(journaling(store, CancelScope() if child else None))
    await store.began.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.wait((asyncio.create_task(asyncio.sleep(0)),))
    if not store.end.done() and error is None:
        store.end.set_result(None)
    elif not store.end.done() and error is not None:
        store.end.set_exception(error)
    return await task, store.kept


def test_the_run_at_the_top_can_be_cancelled_while_it_journals() -> None:
    """A store that hangs must not hang its caller; nothing is journaled after that."""
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_in_append(child=False))


async def test_a_store_that_hangs_is_waited_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever cancels once, as a time limit does, gets away too; what was kept, nobody knows."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)

    store = Gate()
    task = asyncio.create_task(journaling(store))
    await store.began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (True, []) == (task.cancelled(), store.kept)


def test_an_append_that_its_store_cancelled_is_an_error_of_the_store() -> None:
    """As one over a pool of connections does that is being closed: nobody here was cancelled."""

    async def cancelled() -> None:
        store = Gate()
        store.end.cancel()
        await journaling(store, CancelScope())

    with pytest.raises(StoreError, match=r"event 7 of run 'r' .*cancelled by something"):
        asyncio.run(cancelled())


def test_a_leaving_driver_waits_a_while_only_for_its_last_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody cancels them a second time: the store is told apart from one that has refused."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)

    async def going() -> None:
        await journaled(Gate(), ("r", 7), (Cancelled(0.0),), CancelScope(), leaving=True)

    with pytest.raises(StoreError, match=r"has not kept event 7 of run 'r' within 0\.01 s"):
        asyncio.run(going())


PARKING: Plans = {"go": [batch("kid")], "kid": [batch("client")]}
STOPPED = Cancelled(9.0, "enough")


def driver_of(child: ChildRun[Any], state: object) -> ChildDriver:
    """Return a driver as the driver of a run makes those of its children."""
    return AsyncDriver(child.graph, child.ports, state)


def runs_below(ports: Ports[None]) -> ChildRuns:
    """Return the children of a run in this world."""
    return ChildRuns(ports, Models(ports, Performer(ports)), driver_of)


async def parked() -> tuple[Ports[None], Run[None], StartRun, Run[Any]]:
    """Return a run that waits for a child, in its world: the wish, and the child as it stands."""
    runner = tree(Ledger(), PARKING)._terms  # pyright: ignore[reportPrivateUsage]
    ports = runner.ports(MemoryStore())
    driver: AsyncDriver[None] = AsyncDriver(runner.graph, ports, None)
    async for _ in driver.start(Started(0.0, "r", "agent", QUESTION, runner.setup)):
        pass
    assert driver.run is not None
    (effect,) = driver.run.pending.values()
    assert isinstance(effect, StartRun)
    return ports, driver.run, effect, driver.children.descendants["r/c0.0"]


def test_a_child_is_seen_until_it_parks_and_then_known() -> None:
    """It is begun where nobody has begun it, and taken up by the driver that has."""

    async def scenario() -> tuple[list[Item], list[Item], list[str]]:
        ports, run, effect, _ = await parked()
        below = runs_below(evolve(ports, store=MemoryStore()))
        assert {} == below.descendants
        begun: list[Item] = [one async for one in below.drive(effect, run)]
        again: list[Item] = [one async for one in below.drive(effect, run)]
        return begun, again, [*below.descendants]

    begun, again, known = asyncio.run(scenario())

    assert {ChildStep} == {type(one) for one in begun[:-1]}
    assert isinstance(begun[-1], Parked)
    assert begun[-1] == again[-1]
    assert len(again) < len(begun)
    assert ["r/c0.0"] == known


async def test_a_child_that_cannot_be_opened_has_failed() -> None:
    """It is the run's to handle, not the driver's."""

    ports, run, effect, _ = await parked()
    below = runs_below(evolve(ports, children={}))
    (failed,) = [one async for one in below.drive(effect, run)]

    assert isinstance(failed, EffectFailed)
    assert "kid" in failed.failure.message


async def test_a_child_of_another_process_is_ended_and_paid_for() -> None:
    """And one that nobody knows has not begun: there is nothing to end, and nothing to pay."""

    ports, run, effect, child = await parked()
    below = runs_below(ports)
    nothing = await below.end(effect, run, STOPPED, unless_busy=True)
    below.known = {effect.key: Resumption(child)}
    spent = await below.end(effect, run, STOPPED, unless_busy=True)
    had, ended = child.spent, below.descendants["r/c0.0"].ended

    assert Spent() == nothing
    assert had.model_calls == spent.model_calls == 1
    assert ended
