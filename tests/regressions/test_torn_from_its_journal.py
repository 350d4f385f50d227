"""Who iterates a run is cancelled while the store is slow: the event is kept when they are gone.

They went on from before it, so the store refused all that they did from then on, and blamed another
driver.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import pytest

from graphloop import Agent, EndReason, RunResult
from graphloop.driver import cancellation
from graphloop.errors import RunFailed
from graphloop.events import Event
from graphloop.parts.kinds import Part
from graphloop.stores.memory import MemoryStore
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.passing_store import PassingStore

DEADLINE_S = 5.0
NOBODY_GOES_ON: Final = {"Started", "Steered"}
TOP: Final[Plans] = {"go": [batch("note"), "done"]}
DEEP: Final[Plans] = {"go": [batch("kid"), "done"], "kid": [batch("note"), "told"]}


class Late(PassingStore):
    """Keeps one event only once whoever waits for it has given up; or not at all.

    Args:
        run_id: the run that it is an event of.
        seq: its number.
        keeps: whether it is kept.
    """

    def __init__(self, run_id: str, seq: int, *, keeps: bool) -> None:
        super().__init__()
        self.there = asyncio.Event()
        self._place = (run_id, seq)
        self._keeps = keeps

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        numbers = [(run_id, seq + at) for at in range(len(events))]
        if self._place in numbers and not self.there.is_set():
            self.there.set()
            try:
                await asyncio.Event().wait()
            finally:
                if self._keeps:
                    await super().append(run_id, seq, *events)
            return
        await super().append(run_id, seq, *events)


async def iterated(
    agent: Agent, store: Late | None, parts: list[Part], *, aborts: bool = False
) -> RunResult:
    """Iterate a run, be cancelled once the store is slow, and go on, or abort it."""
    turns = agent.iter("go", run_id="r", on_part=parts.append)

    async def iterating() -> None:
        async for _ in turns:
            pass

    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(iterating())
        if store is not None:
            await store.there.wait()
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if aborts:
            turns.abort("enough")
        return await turns.until_done()


async def whole(plans: Plans) -> tuple[list[str], dict[str, list[str]]]:
    """Return the parts of a run that nobody cancels, and what its journals hold."""
    store, parts = MemoryStore(), list[Part]()
    await iterated(tree(Ledger(), plans, store), None, parts)
    journals = {
        run: [type(one).__name__ for one in await store.load(run)] for run in await store.runs()
    }
    return [one.type for one in parts], journals


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("plans", [TOP, DEEP], ids=["top", "deep"])
def test_whoever_goes_on_reads_first_what_the_store_has_kept(
    plans: Plans, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each event of the run and of its child; no part is missing, and none comes twice."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)
    parts, journals = asyncio.run(whole(plans))
    places = [(run, at) for run, events in journals.items() for at in range(1, len(events) + 1)]

    for run, at in places:
        if run == "r" and journals[run][at - 1] in NOBODY_GOES_ON:
            continue
        store, ledger, seen = Late(run, at, keeps=keeps), Ledger(), list[Part]()
        result = asyncio.run(iterated(tree(ledger, plans, store), store, seen))
        assert EndReason.COMPLETED is result.end_reason, (run, at)
        if keeps:
            assert parts == [one.type for one in seen if one.type != "warning"], (run, at)
        assert 1 >= ledger.names["note"], (run, at)


@pytest.mark.parametrize("keeps", [True, False])
def test_whoever_aborts_reads_first_what_the_store_has_kept(
    keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child is ended where its journal stands, however it was torn from that."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)
    _, journals = asyncio.run(whole(DEEP))

    for at in range(1, len(journals["r/c0.0"]) + 1):
        store = Late("r/c0.0", at, keeps=keeps)
        result = asyncio.run(iterated(tree(Ledger(), DEEP, store), store, [], aborts=True))
        assert EndReason.ABORTED is result.end_reason, at


@pytest.mark.parametrize("keeps", [True, False])
def test_a_run_that_may_not_have_heard_its_caller_was_left(
    keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what to go on with: it is told so, and the journal can be taken up."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)
    _, journals = asyncio.run(whole(TOP))
    places = [at for at, name in enumerate(journals["r"], 1) if name in NOBODY_GOES_ON]

    assert len(NOBODY_GOES_ON) <= len(places)
    for at in places:
        store = Late("r", at, keeps=keeps)
        with pytest.raises(RunFailed, match="can be resumed"):
            asyncio.run(iterated(tree(Ledger(), TOP, store), store, []))
