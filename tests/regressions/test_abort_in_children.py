"""A run that is stopped while one of its child runs writes its journal.

A stop from above cancels a child wherever it is. In the middle of an append that left a journal one
event ahead of its run: the run could not be cancelled any more, and the stop was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from graphloop import Agent, EndReason
from graphloop.events import Cancelled, Event, ModelReplied, Started
from graphloop.replay import replay
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import Usage
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.mortal_store import Fate, MortalSqliteStore, MortalStore
from tests.regressions.worlds import paired
from tests.sizes import NIGHTLY

Disk: TypeAlias = MemoryStore | SqliteStore

DEADLINE_S = 60.0
LEAF = [batch("note")]
ONE: Plans = {"go": [batch("kid")], "kid": [batch("note", "leaf")], "leaf": LEAF}
TWO: Plans = {"go": [batch("kid", "note", "kid")], "kid": [batch("leaf")], "leaf": LEAF}
TURNS_TO_BE_HEARD = 20
"""After how many turns of the event loop a cancellation has reached every task of a run."""


class SlowStore(MortalStore):
    """Calls `stop` in the middle of the n-th append of a child, which ends once that was heard.

    Args:
        disk: where the journals go.
        moment: the number of the append; 0 for none.
        kept: whether the event is kept before the stop, or after it.
    """

    def __init__(self, disk: Disk, moment: int, *, kept: bool) -> None:
        super().__init__(disk, Fate())
        self.appends = 0
        self.stop: Callable[[], Awaitable[None]] | None = None
        self.before: Callable[[str, Event], Awaitable[None]] | None = None
        self.stopping: asyncio.Task[None] | None = None
        self._moment = moment
        self._kept = kept

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if self.before is not None:
            for event in events:
                await self.before(run_id, event)
        self.appends += "/" in run_id
        if "/" not in run_id or self.appends != self._moment:
            await self.disk.append(run_id, seq, *events)
            return
        heard = asyncio.Event()
        self.stopping = asyncio.create_task(self._stop(heard))
        if self._kept:
            await self.disk.append(run_id, seq, *events)
        await heard.wait()
        if not self._kept:
            await self.disk.append(run_id, seq, *events)

    async def _stop(self, heard: asyncio.Event) -> None:
        assert self.stop is not None, "the test has said how to stop"
        stop = asyncio.ensure_future(self.stop())
        for _ in range(TURNS_TO_BE_HEARD):
            await asyncio.sleep(0)
        heard.set()
        await stop


class SlowSqliteStore(SlowStore, MortalSqliteStore):
    """The same over a database, with its leases."""


def slowed(disk: Disk, moment: int, *, kept: bool) -> SlowStore:
    """Return a store that is slow at one moment."""
    if isinstance(disk, SqliteStore):
        return SlowSqliteStore(disk, moment, kept=kept)
    return SlowStore(disk, moment, kept=kept)


async def assert_whole(disk: Disk, total: Usage | None) -> None:
    """Assert that every journal can be replayed, and that all that was used has been counted."""
    used = Usage()
    for run_id in await disk.runs():
        first, *others = await disk.load(run_id)
        assert isinstance(first, Started)
        graph = Agent(ScriptedModel([]), name=first.graph).graph
        assert replay(graph, (first, *others)).ended, f"{run_id} goes on"
        for event in others:
            if isinstance(event, ModelReplied):
                used += event.reply.usage
    assert used == total


async def aborted(plan: Plans, disk: Disk, moment: int, *, kept: bool) -> bool:
    """Abort a run at a moment, and look at what is left; tell whether the moment came."""
    store, ledger = slowed(disk, moment, kept=kept), Ledger()
    agent = tree(ledger, plan, store)
    stream = agent.stream("go", run_id="r")

    async def stop() -> None:
        stream.abort("enough")

    store.stop = stop
    result = await stream.result()
    if store.stopping is None:
        assert EndReason.COMPLETED is result.end_reason
        return False
    await store.stopping
    assert (EndReason.ABORTED, ("enough",)) == (result.end_reason, result.stopped_by)
    assert isinstance((await disk.load("r"))[-1], Cancelled)
    assert await agent.runs.replay("r") == result.run
    assert paired(result.run.messages)
    assert max(ledger.done.values(), default=1) == 1
    await assert_whole(disk, result.total_usage)
    return True


async def left(plan: Plans, disk: Disk, moment: int, *, kept: bool) -> bool:
    """Leave a run at a moment, and resume it; tell whether the moment came."""
    store, ledger = slowed(disk, moment, kept=kept), Ledger()
    stream = tree(ledger, plan, store).stream("go", run_id="r")
    store.stop = stream.aclose
    await stream.consume()
    if store.stopping is None:
        return False
    await store.stopping
    agent = tree(ledger, plan, slowed(disk, 0, kept=kept))
    result = await agent.resume("r")
    assert EndReason.COMPLETED is result.end_reason
    await assert_whole(disk, result.total_usage)
    return True


async def at_every_moment(
    scenario: Callable[..., Awaitable[bool]], plan: Plans, file: Path | None, *, kept: bool
) -> int:
    """Play a scenario for each append of a child; return how many there were."""
    moment, came = 0, True
    async with asyncio.timeout(DEADLINE_S):
        while came:
            moment += 1
            disk: Disk = MemoryStore()
            if file is not None:
                path = file / f"{moment}.db"
                disk = SqliteStore(path, durability="process")
            came = await scenario(plan, disk, moment, kept=kept)
            if isinstance(disk, SqliteStore):
                await disk.aclose()
    return moment - 1


@pytest.mark.parametrize("kept", [True, False], ids=["kept before", "kept after"])
@pytest.mark.parametrize(
    ("plan", "on_file"),
    [(ONE, False), (TWO, True), *([(ONE, True), (TWO, False)] if NIGHTLY else [])],
)
@pytest.mark.parametrize("scenario", [aborted, left])
def test_a_stop_keeps_a_child_s_journal_and_run_the_same(
    scenario: Callable[..., Awaitable[bool]],
    plan: Plans,
    tmp_path: Path,
    *,
    on_file: bool,
    kept: bool,
) -> None:
    """An abort at any instant ends as aborted, with all usage; a run that is left goes on later."""
    file = tmp_path if on_file else None

    assert asyncio.run(at_every_moment(scenario, plan, file, kept=kept)) > 8


async def test_a_stream_closed_during_an_abort_lets_the_abort_end() -> None:
    """Nor does whoever drives it see a cancellation that nobody asked for."""

    store = SlowStore(MemoryStore(), 3, kept=False)
    stream = tree(Ledger(), TWO, store).stream("go", run_id="r")
    driving = asyncio.create_task(stream.consume())
    cancelling = asyncio.Event()

    async def stop() -> None:
        stream.abort("enough")
        await cancelling.wait()

    async def close(run_id: str, event: Event) -> None:
        if "/" in run_id and isinstance(event, Cancelled) and not cancelling.is_set():
            cancelling.set()
            closing.append(asyncio.create_task(stream.aclose()))
            for _ in range(TURNS_TO_BE_HEARD):
                await asyncio.sleep(0)

    closing: list[asyncio.Task[None]] = []
    store.stop, store.before = stop, close
    await driving
    await asyncio.gather(*closing)
    assert isinstance((await store.load("r"))[-1], Cancelled)
