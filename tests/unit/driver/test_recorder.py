"""Recorder: a run and its journal are at one, or it is known that they may not be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import pytest

from graphloop import Agent
from graphloop.driver import cancellation
from graphloop.driver.cancellation import CancelScope
from graphloop.driver.models import Models
from graphloop.driver.performer import Performer
from graphloop.driver.ports import Ports
from graphloop.driver.recorder import Recorder, first_events, not_before
from graphloop.errors import Fenced, IllegalEvent, RunBusy, StoreError
from graphloop.events import (
    Cancelled,
    Decided,
    Event,
    Queued,
    Resumed,
    Setup,
    Started,
)
from graphloop.replay import replay
from graphloop.run import Ending, EndReason, Run
from graphloop.stores.base import Ask, ReleaseStatus, Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.tool import Tool
from graphloop.tools.toolbox import Toolbox
from graphloop.values import UserMessage, evolve
from tests.passing_store import PassingStore
from tests.strategies import QUESTION, SETUP, call, fresh, loop, reply

STARTED = Started(0.0, "r", "agent", QUESTION, SETUP)


class Refusing(PassingStore):
    """Keeps an event, or not, and tells neither: it says that the disk is gone.

    Args:
        at: the number of the event.
        keeps: whether it is kept.
    """

    def __init__(self, at: int, *, keeps: bool) -> None:
        super().__init__()
        self._at = at
        self._keeps = keeps

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        is_there = seq <= self._at < seq + len(events)
        if not is_there or self._keeps:
            await super().append(run_id, seq, *events)
        if is_there:
            raise StoreError("the disk is gone")


def recorder(store: Store, path: tuple[str, ...] = ()) -> Recorder[None]:
    """Return one of a run that has not begun, this deep below the top."""
    ports: Ports[None] = Ports(store=store, models={}, toolbox=Toolbox(), path=path)
    made = Recorder(
        loop(), ports, None, CancelScope(), Models(ports, Performer(ports)), lambda _: (ASK,)
    )
    made.run_id = "r"
    return made


async def kept(one: Recorder[None], *events: Event) -> None:
    """Take events, and keep them at once."""
    for event in events:
        one.take(event)
    await one.keep()


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("keeps", [True, False])
async def test_a_run_that_is_torn_from_its_journal_stands_as_that_says(
    at: int, keeps: bool
) -> None:
    """Also where it may not have begun; what is new in it has been shown to nobody."""

    one = recorder(Refusing(at, keeps=keeps))
    if at > 1:
        await kept(one, STARTED)
    with pytest.raises(StoreError, match="gone"):
        await kept(one, Cancelled(1.0) if at > 1 else STARTED)
    assert one.is_torn
    assert (at > 1) is one.is_ending
    await one.read_again()
    assert not one.is_torn
    assert (at > 1 and keeps) is one.is_ending
    assert (at if keeps else at - 1) == (0 if one.run is None else one.run.seq)
    assert (at if keeps else at - 1) == len(one.unseen)


@pytest.mark.parametrize("path", [(), ("c0.0",)], ids=["at the top", "below"])
async def test_a_run_taken_further_elsewhere_is_busy_and_known_as_it_is(
    path: tuple[str, ...],
) -> None:
    """A new run whose id is taken is another matter, but for a child's, which is its parent's."""

    store = MemoryStore()
    one, other, third = (recorder(store, path) for _ in range(3))
    await kept(one, STARTED)
    other.set_run(one.latest_started)
    await kept(one, Resumed(1.0))
    with pytest.raises(StoreError) as new:
        await kept(third, evolve(STARTED, at=2.0))
    assert bool(path) is isinstance(new.value, RunBusy)
    with pytest.raises(RunBusy, match="from event 1 to 2: resume it"):
        await kept(other, Resumed(2.0))
    assert (one.run, False) == (other.run, other.is_torn)
    await other.refuse_outrun()
    await kept(other, Cancelled(3.0))
    with pytest.raises(RunBusy, match="from event 2 to 3"):
        await one.refuse_outrun()
    await one.refuse_outrun()
    assert one.is_over


async def test_what_a_store_has_kept_and_denies_is_nobody_else_s() -> None:
    """It is read again by whoever goes on; nobody else drives the run."""

    one = recorder(Refusing(2, keeps=True))
    await kept(one, STARTED)
    with pytest.raises(StoreError, match="gone") as error:
        await kept(one, Resumed(1.0))
    assert StoreError is type(error.value)


async def test_a_cancellation_while_an_event_is_kept_comes_with_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is at one with its journal, and the cancellation is not lost."""
    monkeypatch.setattr(cancellation, "GRACE_S", 60.0)

    class Slow(Refusing):
        """Keeps everything, once it is let."""

        free = asyncio.Event()

        async def append(self, run_id: str, seq: int, *events: Event) -> None:
            """Keep events."""
            await self.free.wait()
            await self.disk.append(run_id, seq, *events)

    store = Slow(0, keeps=True)
    store.free = asyncio.Event()
    one = recorder(store)
    task = asyncio.create_task(kept(one, STARTED))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    store.free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (1, False) == (one.latest_started.seq, one.is_torn)


ASK = Ask("c0.0", "approval", "pay", "{}")


class Leasing:
    """A store that only tells what is asked of it."""

    def __init__(self, *, busy: bool = False, lost: bool = False) -> None:
        self.told: list[object] = []
        self._busy = busy
        self._lost = lost

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep nothing."""

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return nothing."""
        return ()

    async def runs(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    async def claim(self, run_id: str) -> None:
        """Claim a run, if it is free."""
        if self._busy:
            raise RunBusy("driven elsewhere")
        self.told.append(run_id)

    async def release(
        self,
        run_id: str,
        status: ReleaseStatus | None,
        asks: Sequence[Ask],
        *,
        seen: int = 0,
        wake_s: float | None = None,
        ending: str = "",
    ) -> None:
        """Release it, unless it was lost."""
        if self._lost:
            raise Fenced("this run was taken over")
        self.told.append((run_id, status, asks))


class Plain:
    """A store that leases nothing."""

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep nothing."""

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return nothing."""
        return ()

    async def runs(self) -> Sequence[str]:
        """Return nothing."""
        return ()


def driven(store: Leasing | Plain, error: BaseException | None = None) -> None:
    """Drive a run that parks, or fails like this."""

    async def scenario() -> None:
        one = recorder(store)
        one.set_run(fresh())
        async with one:
            if error is not None:
                raise error

    asyncio.run(scenario())


def test_a_run_is_released_with_what_it_waits_for() -> None:
    """Also where its driver is cancelled, or breaks."""
    calm, cancelled, without = Leasing(), Leasing(), Plain()

    driven(calm)
    driven(without)
    with pytest.raises(asyncio.CancelledError):
        driven(cancelled, asyncio.CancelledError())

    assert ["r", ("r", "interrupted", (ASK,))] == calm.told == cancelled.told


def test_a_run_that_another_drives_is_not_driven() -> None:
    """It was never ours, so there is nothing to release."""
    busy = Leasing(busy=True)

    with pytest.raises(RunBusy):
        driven(busy)

    assert [] == busy.told


@pytest.mark.parametrize(
    "error", [Fenced("its append"), ValueError("…"), asyncio.CancelledError("gone")]
)
def test_what_is_under_way_is_told_rather_than_that_the_run_was_lost(error: BaseException) -> None:
    """A caller who has cancelled must see that; a run that was lost is not ours to release."""
    with pytest.raises(type(error), match=str(error)):
        driven(Leasing(lost=True), error)


def test_a_run_that_was_lost_unnoticed_is_told_at_its_release() -> None:
    """Its last word may never have been journaled here."""
    with pytest.raises(Fenced, match="taken over"):
        driven(Leasing(lost=True))


@pytest.mark.parametrize("which", ["claim", "release"])
def test_a_lease_that_its_store_cancelled_is_an_error_of_the_store(which: str) -> None:
    """Whoever drives has not been cancelled, and must not look as if."""

    class Closing(Leasing):
        async def claim(self, run_id: str) -> None:
            if which == "claim":
                raise asyncio.CancelledError

        async def release(
            self,
            run_id: str,
            status: ReleaseStatus | None,
            asks: Sequence[Ask],
            *,
            seen: int = 0,
            wake_s: float | None = None,
            ending: str = "",
        ) -> None:
            raise asyncio.CancelledError

    with pytest.raises(StoreError, match="the lease of run 'r' was cancelled from inside"):
        driven(Closing())


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (EndReason.COMPLETED, "done"),
        (EndReason.MAX_STEPS, "done"),
        (EndReason.ABORTED, "cancelled"),
        (EndReason.ERROR, "failed"),
        (EndReason.TIMEOUT, "failed"),
    ],
)
def test_a_run_is_called_by_how_it_ended(reason: EndReason, status: str) -> None:
    """A list of runs tells the stopped from the broken."""
    assert (status, ()) == released(evolve(fresh(), node="END", ending=Ending(reason)))


@pytest.mark.parametrize(("parked", "status"), [(True, "parked"), (False, "interrupted")])
def test_a_run_that_has_not_ended_is_parked_or_interrupted(parked: bool, status: str) -> None:
    """A run that waits for nobody would never be woken, if it were called parked."""
    expected = status, (ASK,)

    assert (None, ()) == released(None, parked=parked)
    assert expected == released(fresh(), parked=parked)
    assert expected == released(evolve(fresh(), ending=Ending(EndReason.ERROR)), parked=parked)


def released(
    run: Run[None] | None, *, parked: bool = False
) -> tuple[ReleaseStatus | None, Sequence[Ask]]:
    """Return the status that a run is released with, and its open questions."""
    found: list[tuple[ReleaseStatus | None, Sequence[Ask]]] = []

    class Noting(Leasing):
        async def release(
            self,
            run_id: str,
            status: ReleaseStatus | None,
            asks: Sequence[Ask],
            *,
            seen: int = 0,
            wake_s: float | None = None,
            ending: str = "",
        ) -> None:
            found.append((status, asks))

    async def scenario() -> None:
        one = recorder(Noting())
        async with one:
            one.run, one.is_parked = run, parked

    asyncio.run(scenario())
    return found[0]


def test_an_ending_event_loop_releases_no_run_that_is_driven() -> None:
    """It closes all generators side by side: the driver's own has yet to journal what it keeps."""

    async def scenario() -> list[object]:
        store = Leasing()
        async with recorder(store):
            await asyncio.get_running_loop().shutdown_asyncgens()
            return [*store.told]

    assert ["r"] == asyncio.run(scenario())


ASKING = Started(1.0, "r", "g", (UserMessage("go"),), Setup("m"))
STEERED = Queued(0.0, UserMessage("hurry"))
LATER = Queued(0.0, UserMessage("and then?"), follow_up=True)
STOP = Cancelled(0.0, "enough", after_step=True)
DECIDED = Decided(1.0, 1, True)


def test_the_very_first_event_has_with_it_what_is_to_be_read() -> None:
    """It asks a model already; what comes later may be told later."""
    started, *rest = first_events((ASKING,), (STEERED, LATER, STEERED, STOP))

    assert isinstance(started, Started)
    assert (STEERED.message, STEERED.message) == started.steering
    assert [LATER, STOP] == rest


def test_what_was_said_comes_before_the_answers_that_open_a_turn() -> None:
    """Else it would be read one turn late."""
    answers: tuple[Event, ...] = (DECIDED, DECIDED)

    assert [STEERED, STOP, DECIDED, DECIDED] == list(first_events(answers, (STEERED, STOP)))
    assert [STEERED] == list(first_events((), (STEERED,)))
    assert [DECIDED] == list(first_events((DECIDED,), ()))
    assert ASKING == next(first_events((ASKING,), ()))


def test_when_a_decision_was_made_is_kept() -> None:
    """It may have been in time, and been taken up too late."""
    told = [not_before(begun_at(5.0), evolve(DECIDED, given_at=at)) for at in (None, 0.5)]

    assert [evolve(DECIDED, at=5.0, given_at=at) for at in (1.0, 0.5)] == told


@pytest.mark.parametrize("approved", [True, False])
async def test_the_answers_of_a_leg_are_no_earlier_than_its_beginning(*, approved: bool) -> None:
    """They are read before a driver takes the run up."""
    ticks = count()
    store = MemoryStore()

    pay = Tool(name="pay", parameters={"type": "object"}, execute=fine, needs_approval=True)
    agent = Agent(
        ScriptedModel([reply(call("pay")), "done"]),
        tools=[pay],
        store=store,
        clock=lambda: float(next(ticks)),
    )
    await agent.generate("go", run_id="r")
    stream = agent.resume_stream("r", approvals={"c0.0": approved})
    stream.steer("hurry")
    await stream.result()
    events = list(await store.load("r"))
    kinds = [type(one) for one in events]
    assert [Resumed, Queued, Decided] == kinds[2:5]
    assert sorted(one.at for one in events) == [one.at for one in events]


async def fine(arguments: dict[str, object]) -> str:
    return f"fine{len(arguments)}"


def begun_at(at: float) -> Run[None]:
    """Return a run whose last event was at that time."""
    graph = loop()
    return replay(graph, [evolve(ASKING, at=at, graph=graph.name)])


def test_an_event_before_the_run_has_started_is_kept_nowhere() -> None:
    """A journal that begins with another event could not be replayed."""
    store = MemoryStore()

    with pytest.raises(IllegalEvent, match="starts with Started"):
        asyncio.run(kept(recorder(store), Resumed(1.0)))

    assert [] == list(asyncio.run(store.runs()))
