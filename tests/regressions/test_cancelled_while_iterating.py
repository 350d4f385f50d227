"""Who iterates a run, is cancelled, and goes on: they see all of it, once.

What was being journaled when they were cancelled was kept and taken, and shown to nobody: a
listener saw the result of a call that it had never seen, or a run that never began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from graphloop import Agent, EndReason, Tool
from graphloop.driver.driver import AsyncDriver, Seen
from graphloop.events import Event, Started
from graphloop.parts.kinds import Part
from graphloop.providers.script import Entry
from graphloop.step import Step
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from tests.passing_store import PassingStore
from tests.strategies import QUESTION, call, reply

DEADLINE_S = 5.0


class AtOne(PassingStore):
    """Tells when it keeps one event, and waits there until it is let go on.

    Args:
        seq: the number of the event; 0 for none.
    """

    def __init__(self, seq: int) -> None:
        super().__init__()
        self.there = asyncio.Event()
        self.free = asyncio.Event()
        self._seq = seq

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if seq <= self._seq < seq + len(events):
            self.there.set()
            await self.free.wait()
        await super().append(run_id, seq, *events)


def text(arguments: dict[str, object]) -> str:
    """Read."""
    return "text"


async def seen(at: int) -> tuple[list[str], int]:
    """Return the kinds of parts that are seen of a run, which is cancelled once; and its length."""
    store = AtOne(at)
    read = Tool(name="read", parameters={"type": "object"}, execute=text)
    script: list[Entry] = [reply("A", call()), reply("B", call(), call()), "done"]
    agent = Agent(ScriptedModel(script), tools=[read], store=store)
    parts: list[Part] = []
    turns = agent.iter("go", run_id="r", on_part=parts.append)

    async def iterating() -> None:
        async for _ in turns:
            pass

    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(iterating())
        if at:
            await store.there.wait()
            task.cancel()
            await asyncio.wait((asyncio.create_task(asyncio.sleep(0)),))
            store.free.set()
        with suppress(asyncio.CancelledError):
            await task
        result = await turns.until_done()
    assert EndReason.COMPLETED is result.end_reason
    kinds = [type(part).__name__ for part in parts]
    return kinds, len(await store.load("r"))


def test_all_parts_come_in_order_wherever_a_caller_cancels() -> None:
    """At each event of the run, the first and the last among them."""
    whole, events = asyncio.run(seen(0))

    assert events > len("ABd")
    for at in range(1, events + 1):
        kinds, _ = asyncio.run(seen(at))
        assert whole == kinds, at


async def test_what_was_said_and_had_not_been_taken_is_seen_as_well() -> None:
    """It is kept as whoever is cancelled goes away, and so has to be seen when they go on."""
    began, free = asyncio.Event(), asyncio.Event()

    async def wait(arguments: dict[str, object]) -> str:
        began.set()
        await free.wait()
        return "late"

    tools = [Tool(name="read", parameters={"type": "object"}, execute=wait, effect="pure")]
    agent = Agent(ScriptedModel([reply(call()), "done"]), tools=tools)
    store = MemoryStore()
    runner = agent._terms  # pyright: ignore[reportPrivateUsage]
    one: AsyncDriver[None] = AsyncDriver(runner.graph, runner.ports(store), None)
    steps: list[Step[None]] = []

    async def looking(seen: AsyncGenerator[Seen[None], None]) -> None:
        steps.extend([item async for item in seen if isinstance(item, Step)])

    seen = one.start(Started(0.0, "r", "agent", QUESTION, runner.setup))
    task = asyncio.create_task(looking(seen))
    await began.wait()
    one.queue(UserMessage("and this"), follow_up=False)
    task.cancel()
    await asyncio.wait([task])
    free.set()
    steps.clear()
    assert one.run is not None
    await looking(one.resume(one.run))
    assert ["Queued", "Resumed"] == [type(step.event).__name__ for step in steps][:2]
