"""Recorder: a run and its journal are at one, or it is known that they may not be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from graphloop.drivers import children
from graphloop.drivers.caller import Caller
from graphloop.drivers.perform import Performer
from graphloop.drivers.ports import Ports
from graphloop.drivers.recorder import Recorder
from graphloop.errors import IllegalEvent, RunBusy, StoreError
from graphloop.events import Cancelled, Event, Resumed, Started
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.tools import Toolbox
from graphloop.values import evolve
from tests.strategies import QUESTION, SETUP, loop

STARTED = Started(0.0, "r", "agent", QUESTION, SETUP)


class Refusing:
    """Keeps an event, or not, and tells neither: it says that the disk is gone.

    Args:
        at: the number of the event.
        keeps: whether it is kept.
    """

    def __init__(self, at: int, *, keeps: bool) -> None:
        self.disk = MemoryStore()
        self._at = at
        self._keeps = keeps

    async def append(self, run_id: str, seq: int, event: Event) -> None:
        """Keep an event."""
        if seq != self._at or self._keeps:
            await self.disk.append(run_id, seq, event)
        if seq == self._at:
            raise StoreError("the disk is gone")

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return a journal."""
        return await self.disk.load(run_id)

    async def runs(self) -> Sequence[str]:
        """Return all ids."""
        return await self.disk.runs()


def recorder(store: Store, path: tuple[str, ...] = ()) -> Recorder[None]:
    """Return one of a run that has not begun, this deep below the top."""
    ports: Ports[None] = Ports(store=store, models={}, toolbox=Toolbox(), path=path)
    return Recorder(loop(), ports, None, Caller(), Performer(ports))


def test_what_is_taken_is_in_the_journal_and_in_the_run() -> None:
    """In this order, and both at the same number."""

    async def scenario() -> list[int]:
        store = MemoryStore()
        one = recorder(store)
        with pytest.raises(IllegalEvent, match="starts with Started"):
            _ = one.driven
        found: list[int] = []
        for event in (STARTED, Resumed(1.0)):
            taken, cut = await one.take(event)
            assert (taken.run, None) == (one.driven, cut)
            found += [one.driven.seq, len(await store.load("r"))]
        assert {False} == {one.is_torn, one.is_ending, one.is_over}
        await one.take(Cancelled(2.0))
        assert one.is_ending
        assert one.is_over
        return found

    assert [1, 1, 2, 2] == asyncio.run(scenario())


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("keeps", [True, False])
def test_a_run_that_is_torn_from_its_journal_stands_as_that_says(at: int, keeps: bool) -> None:
    """Also where it may not have begun; what is new in it has been shown to nobody."""

    async def scenario() -> None:
        one = recorder(Refusing(at, keeps=keeps))
        if at > 1:
            await one.take(STARTED)
        with pytest.raises(StoreError, match="gone"):
            await one.take(Cancelled(1.0) if at > 1 else STARTED)
        assert one.is_torn
        assert (at > 1) is one.is_ending
        await one.read_again("r")
        assert not one.is_torn
        assert (at > 1 and keeps) is one.is_ending
        assert (at if keeps else at - 1) == (0 if one.run is None else one.run.seq)
        assert int(keeps) == len(one.unseen)
        assert all(taken.run == one.run for taken in one.unseen)

    asyncio.run(scenario())


@pytest.mark.parametrize("path", [(), ("c0.0",)], ids=["at the top", "below"])
def test_a_run_that_another_has_taken_further_is_busy_and_known_as_it_is_now(
    path: tuple[str, ...],
) -> None:
    """A new run whose id is taken is another matter, but for a child's, which is its parent's."""

    async def scenario() -> None:
        store = MemoryStore()
        one, other, third = (recorder(store, path) for _ in range(3))
        await one.take(STARTED)
        other.run = one.run
        await one.take(Resumed(1.0))
        with pytest.raises(StoreError) as new:
            await third.take(evolve(STARTED, at=2.0))
        assert bool(path) is isinstance(new.value, RunBusy)
        with pytest.raises(RunBusy, match="from event 1 to 2: resume it"):
            await other.take(Resumed(2.0))
        assert (one.run, False) == (other.run, other.is_torn)
        await other.refuse_outrun("r")
        await other.take(Cancelled(3.0))
        with pytest.raises(RunBusy, match="from event 2 to 3"):
            await one.refuse_outrun("r")
        await one.refuse_outrun("r")
        assert one.is_over

    asyncio.run(scenario())


def test_what_a_store_has_kept_and_denies_is_nobody_else_s() -> None:
    """It is read again by whoever goes on; nobody else drives the run."""

    async def scenario() -> StoreError:
        one = recorder(Refusing(2, keeps=True))
        await one.take(STARTED)
        with pytest.raises(StoreError, match="gone") as error:
            await one.take(Resumed(1.0))
        return error.value

    assert StoreError is type(asyncio.run(scenario()))


def test_who_is_cancelled_while_an_event_is_kept_is_told_so_with_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is at one with its journal, and the cancellation is not lost."""
    monkeypatch.setattr(children, "GRACE_S", 60.0)

    class Slow(Refusing):
        """Keeps everything, once it is let."""

        free = asyncio.Event()

        async def append(self, run_id: str, seq: int, event: Event) -> None:
            """Keep an event."""
            await self.free.wait()
            await self.disk.append(run_id, seq, event)

    async def scenario() -> None:
        store = Slow(0, keeps=True)
        store.free = asyncio.Event()
        one = recorder(store)
        task = asyncio.create_task(one.take(STARTED))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        store.free.set()
        taken, cut = await task
        assert isinstance(cut, asyncio.CancelledError)
        assert (1, False) == (taken.run.seq, one.is_torn)

    asyncio.run(scenario())
