"""Contract 13: who watches a run cannot change it, whatever becomes of them.

A store is no watcher: what cannot be journaled does not happen. But a store that fails loses
nothing either: the run goes on from its journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent, RunResult, StepResult, Tool
from graphloop.errors import StoreError
from graphloop.events import Event
from graphloop.providers.script import Entry
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.schema import parameters_of
from graphloop.values import Reply
from tests.agents import CLIENT, any_read, drain, write
from tests.passing_store import PassingStore
from tests.sizes import sized
from tests.strategies import call, model_moves, reply, wrong

PARAMETERS = parameters_of({"type": "object"}, "every tool")
READ = Tool(name="read", parameters=PARAMETERS, execute=any_read)
scripts = st.lists(model_moves, max_size=4)

RAISES, RAISES_LATER, CANCELS = "raises", "raises later", "cancels"
odd = st.sampled_from([RAISES, RAISES_LATER, CANCELS, None, 5, "text", float("nan"), float("inf")])


class Watcher:
    """A function of the user's that misbehaves; it may change all that it is given, if it can."""

    def __init__(self, says: object) -> None:
        self.says = says
        self.asked = 0

    def __call__(self, given: StepResult | Reply) -> object:
        """Misbehave."""
        self.asked += 1
        for name in ("text", "usage", "messages"):
            with pytest.raises(AttributeError):
                setattr(given, name, None)
        if self.says == RAISES:
            raise RuntimeError("watching failed")
        if self.says == CANCELS:
            raise asyncio.CancelledError
        return self.fail() if self.says == RAISES_LATER else self.says

    async def fail(self) -> None:
        """Fail later."""
        raise RuntimeError("watching failed later")


def agent(script: Sequence[Reply], store: MemoryStore | None = None, **watchers: Watcher) -> Agent:
    """Return an agent with these watchers."""
    options: dict[str, Callable[..., object]] = dict(watchers)
    return Agent(
        ScriptedModel([*script, *[reply("done")] * 20]),
        tools=[READ, write, CLIENT],
        max_steps=5,
        store=store,
        clock=lambda: 0.0,
        **wrong(options),
    )


def told(result: RunResult | Exception) -> object:
    """Return what a run came to, without what watchers add."""
    assert isinstance(result, RunResult)
    return result.messages, result.steps, result.end_reason, result.stopped_by, result.total_usage


@settings(max_examples=sized(20))
@given(script=scripts, says=odd)
@example(script=[reply(call("client"), call("read"))], says=RAISES)
def test_a_watcher_of_turns_changes_nothing(script: list[Reply], says: object) -> None:
    """Neither by what it raises nor by what it returns: it becomes a warning at most."""
    watcher = Watcher(says)
    _, calm = asyncio.run(drain(agent(script).stream("go", run_id="r")))

    _, result = asyncio.run(drain(agent(script, on_step_finish=watcher).stream("go", run_id="r")))

    assert told(calm) == told(result)
    assert isinstance(result, RunResult)
    # The result of a parked run has its open turn, too, which is not finished.
    finished = len(result.run.record.steps)
    assert finished == watcher.asked
    failing = says in (RAISES, RAISES_LATER, CANCELS)
    told_of = [one for one in result.warnings if one.startswith("on_step_finish")]
    assert (finished if failing else 0) == len(told_of)


@settings(max_examples=sized(12))
@given(script=scripts, says=odd)
def test_a_price_that_cannot_be_told_changes_nothing(script: list[Reply], says: object) -> None:
    """A reply that was paid for is not lost over its bill."""
    if says in (CANCELS, RAISES_LATER):
        return
    _, calm = asyncio.run(drain(agent(script).stream("go", run_id="r")))

    _, result = asyncio.run(drain(agent(script, price=Watcher(says)).stream("go", run_id="r")))

    assert told(calm) == told(result)
    assert isinstance(result, RunResult)
    known = says == 5 or result.run.spent.model_calls == 0
    assert known == (result.cost_usd is not None)


@settings(max_examples=sized(12))
@given(script=scripts, leaves=st.lists(st.integers(0, 12), min_size=1, max_size=3))
def test_lookers_that_leave_or_fail_change_nothing(script: list[Reply], leaves: list[int]) -> None:
    """Whoever stops looking, at whatever part, for whatever reason."""
    _, calm = asyncio.run(drain(agent(script).stream("go", run_id="r")))

    async def watched() -> tuple[RunResult, int, int]:
        stream = agent(script).stream("go", run_id="r")
        for leave in leaves:
            seen = 0
            async for _ in stream.full_stream:
                if seen == leave:
                    break
                seen += 1
        result = await stream.result()
        parts = [part async for part in stream.full_stream]
        again = [part async for part in stream.full_stream]
        return result, len(parts), len(again)

    result, parts, again = asyncio.run(watched())

    assert told(calm) == told(result)
    assert parts == again > 0


class Flaky(PassingStore):
    """A store whose n-th write fails, before or after the event is kept."""

    def __init__(self, disk: MemoryStore, fails_at: int, *, kept: bool) -> None:
        super().__init__(disk)
        self._left = fails_at
        self._kept = kept

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, or fail."""
        self._left -= 1
        if self._left != 0 or self._kept:
            await super().append(run_id, seq, *events)
        if self._left == 0:
            raise StoreError("the disk is full")


@settings(max_examples=sized(12))
@given(fails_at=st.integers(1, 30), kept=st.booleans(), calls=st.integers(1, 3))
def test_a_store_that_fails_stops_the_run_and_loses_nothing(
    fails_at: int, kept: bool, calls: int
) -> None:
    """What was not written down has not happened; what was, has: the run goes on from there."""
    ran: list[str] = []

    def act(n: int) -> str:
        """Act."""
        ran.append(f"{n}")
        return f"acted {n}"

    def make(store: MemoryStore | Flaky, said: int) -> Agent:
        asks: list[Entry] = [
            {"calls": [{"name": "act", "arguments": {"n": at}, "id": f"{at}"}]}
            for at in range(calls)
        ]
        return Agent(ScriptedModel([*asks, "done"][said:]), tools=[act], store=store)

    calm = asyncio.run(make(MemoryStore(), 0).generate("go", run_id="r"))
    ran.clear()
    disk = MemoryStore()
    try:
        result = asyncio.run(make(Flaky(disk, fails_at, kept=kept), 0).generate("go", run_id="r"))
    except StoreError:
        if not asyncio.run(disk.runs()):
            return
        journal = asyncio.run(disk.load("r"))
        said = sum(type(one).__name__ == "ModelReplied" for one in journal)
        result = asyncio.run(make(disk, said).resume("r"))

    assert len(ran) == len(set(ran)), "no call runs twice"
    unknown = [one for step in result.steps for one in step.tool_results if one.status == "unknown"]
    assert len(unknown) <= 1
    if not unknown:
        assert calm.messages == result.messages
