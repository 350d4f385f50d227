"""A caller who goes away while the store hangs in the middle of a child's journal.

A child waited for its store however often its caller cancelled, because a stop from above has to be
journaled: `asyncio.wait_for` around a run with one child never came back. With two children a
second cancellation came through, but left what both had begun behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from graphloop import Agent
from graphloop.driver import cancellation
from graphloop.events import Cancelled, Event
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.passing_store import PassingStore

DEADLINE_S = 3.0
EVER_S = 3600.0
TURNS_TO_BE_HEARD = 40
LEAF = [batch("note")]
BELOW: Mapping[str, Plans] = {
    "one": {"go": [batch("kid")], "kid": LEAF},
    "two": {"go": [batch("kid", "kid")], "kid": LEAF},
    "deep": {"go": [batch("kid")], "kid": [batch("leaf")], "leaf": LEAF},
    "two deep": {"go": [batch("kid")], "kid": [batch("leaf", "leaf")], "leaf": LEAF},
    "two, and deep": {"go": [batch("kid", "kid")], "kid": [batch("leaf")], "leaf": LEAF},
}


class Hanging(PassingStore):
    """Keeps nothing from the second event of an agent's run on, until `free` is set.

    Args:
        below: how deep below the top the run is.
    """

    def __init__(self, below: int) -> None:
        super().__init__()
        self.hangs = asyncio.Event()
        self.free = asyncio.Event()
        self.given_up = 0
        self._below = below

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if seq >= 1 and run_id.count("/") == self._below:
            self.hangs.set()
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                self.given_up += 1
                raise
        await super().append(run_id, seq, *events)


def world(plans: Plans) -> tuple[Agent, Hanging]:
    """Return an agent with these plans below it, and its store, which will hang at the lowest."""
    store = Hanging(2 if "leaf" in plans else 1)
    return tree(Ledger(), plans, store), store


async def turns() -> None:
    """Let everybody hear what was said."""
    for _ in range(TURNS_TO_BE_HEARD):
        await asyncio.sleep(0)


def left() -> list[str]:
    """Return the tasks that are left."""
    return [one.get_name() for one in asyncio.all_tasks() if one is not asyncio.current_task()]


@pytest.mark.parametrize("below", BELOW)
async def test_a_caller_who_cancels_once_leaves_nothing_behind(
    below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a time limit around a run does."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)

    agent, store = world(BELOW[below])
    running = asyncio.create_task(agent.generate("go"))
    await store.hangs.wait()
    running.cancel()
    await asyncio.wait((running,), timeout=DEADLINE_S)
    await turns()
    cancelled, behind, given_up = running.cancelled(), left(), store.given_up

    assert cancelled
    assert not behind
    assert given_up


@pytest.mark.parametrize("below", BELOW)
async def test_a_caller_who_cancels_again_waits_no_longer(
    below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever presses Ctrl-C twice means it; what was begun is given up, not left to run."""
    monkeypatch.setattr(cancellation, "GRACE_S", EVER_S)
    monkeypatch.setattr(cancellation, "LEAVE_S", EVER_S)

    agent, store = world(BELOW[below])
    running = asyncio.create_task(agent.generate("go"))
    await store.hangs.wait()
    running.cancel()
    await turns()
    waited = not running.done()
    running.cancel()
    await turns()
    assert (True, True, []) == (waited, running.cancelled(), left())


@pytest.mark.parametrize("below", BELOW)
def test_a_stop_waits_for_the_store_until_its_caller_goes_away(
    below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is stopped says so in all its journals; who cancels is in a hurry."""
    monkeypatch.setattr(cancellation, "GRACE_S", 0.01)

    async def scenario(*, cancels: bool) -> tuple[bool, list[str], list[type[Event]]]:
        agent, store = world(BELOW[below])
        stream = agent.stream("go")
        running = asyncio.create_task(stream.consume())
        await store.hangs.wait()
        stream.abort("enough")
        await asyncio.sleep(0.05)
        assert not running.done(), "the store has not kept what it was told"
        if cancels:
            running.cancel()
        else:
            store.free.set()
        await asyncio.wait((running,), timeout=DEADLINE_S)
        await turns()
        last = [type((await store.disk.load(one))[-1]) for one in await store.runs()]
        return running.cancelled(), left(), last

    assert (True, []) == asyncio.run(scenario(cancels=True))[:2]
    cancelled, behind, last = asyncio.run(scenario(cancels=False))
    assert (False, []) == (cancelled, behind)
    assert {Cancelled} == {*last}
