"""lease: a run is claimed once, and released as it stands, whatever happened meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from graphloop.drivers.lease import Leased, status_of
from graphloop.errors import Fenced, RunBusy, StoreError
from graphloop.events import Event
from graphloop.run import Ending, EndReason, evolve
from graphloop.stores.base import Ask, ReleaseStatus
from tests.strategies import fresh

ASK = Ask("c0.0", "approval", "pay", "{}")


class Leasing:
    """A store that only tells what is asked of it."""

    def __init__(self, *, busy: bool = False, lost: bool = False) -> None:
        self.told: list[object] = []
        self._busy = busy
        self._lost = lost

    async def append(self, run_id: str, seq: int, event: Event) -> None:
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

    async def release(self, run_id: str, status: ReleaseStatus, asks: Sequence[Ask]) -> None:
        """Release it, unless it was lost."""
        if self._lost:
            raise Fenced("this run was taken over")
        self.told.append((run_id, status, asks))


class Plain:
    """A store that leases nothing."""

    async def append(self, run_id: str, seq: int, event: Event) -> None:
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
        async with Leased(store, "r", lambda: ("suspended", (ASK,))):
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

    assert ["r", ("r", "suspended", (ASK,))] == calm.told == cancelled.told


def test_a_run_that_another_drives_is_not_driven() -> None:
    """It was never ours, so there is nothing to release."""
    busy = Leasing(busy=True)

    with pytest.raises(RunBusy):
        driven(busy)

    assert [] == busy.told


def test_a_run_is_released_also_where_one_below_it_was_taken_over() -> None:
    """Only the store knows whose each run is: the lease of this one would keep all others out."""
    below = Leasing()

    with pytest.raises(Fenced, match="a child"):
        driven(below, Fenced("a child was taken over"))

    assert ["r", ("r", "suspended", (ASK,))] == below.told


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

        async def release(self, run_id: str, status: ReleaseStatus, asks: Sequence[Ask]) -> None:
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
    assert status == status_of(evolve(fresh(), node="END", ending=Ending(reason)))


def test_a_run_that_has_not_ended_is_suspended() -> None:
    """Or has not even begun."""
    assert "suspended" == status_of(None) == status_of(fresh())
    assert "suspended" == status_of(evolve(fresh(), ending=Ending(EndReason.ERROR)))


def test_an_event_loop_that_ends_does_not_release_what_is_still_driven() -> None:
    """It closes all generators side by side: the driver's own has yet to journal what it keeps."""

    async def scenario() -> list[object]:
        store = Leasing()
        async with Leased(store, "r", lambda: ("suspended", ())):
            await asyncio.get_running_loop().shutdown_asyncgens()
            return [*store.told]

    assert ["r"] == asyncio.run(scenario())
