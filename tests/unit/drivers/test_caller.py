"""Callers: their cancellations are told from those that drivers make in their task."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.drivers.caller import Caller, cancelled_inside
from graphloop.errors import StoreError, ToolError


async def awaiting(one: Caller, began: asyncio.Event, found: list[bool]) -> None:
    """Wait as a driver does, until that is cancelled; note whether the driver heeds it."""
    one.waits()
    began.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        found += [one.heeds(), one.has_left]
    finally:
        one.goes_on()


async def cancelled(
    *, interrupted: bool, cancels: int, below: bool = False
) -> tuple[list[bool], int]:
    """Return what a driver finds that is interrupted, or cancelled, and what is left of that."""
    found: list[bool] = []
    left: list[int] = []
    began, top = asyncio.Event(), Caller()
    one = Caller(top) if below else top

    async def driving() -> None:
        top.enters()
        await awaiting(one, began, found)
        task = asyncio.current_task()
        left.append(0 if task is None else task.cancelling())

    task = asyncio.create_task(driving())
    await began.wait()
    if interrupted:
        one.interrupt()
    for _ in range(cancels):
        task.cancel()
    await asyncio.wait([task])
    return found, left[0]


def test_a_stop_of_the_driver_is_not_the_caller_s() -> None:
    """Nothing is left of it afterwards: the caller's own time limits count on that."""
    assert ([True, False], 0) == asyncio.run(cancelled(interrupted=True, cancels=0))


def test_a_second_wish_to_stop_does_not_cancel_again() -> None:
    """It would look like somebody else's, and cancel the caller's own task."""

    async def scenario() -> tuple[list[bool], int]:
        one, began = Caller(), asyncio.Event()
        found: list[bool] = []
        task = asyncio.create_task(awaiting(one, began, found))
        await began.wait()
        one.interrupt()
        one.interrupt()
        await asyncio.wait([task])
        return found, task.cancelling()

    assert ([True, False], 0) == asyncio.run(scenario())


def test_nor_is_one_of_a_driver_further_down_in_the_same_task() -> None:
    """A child that is alone is awaited in the caller's own task."""
    found = asyncio.run(cancelled(interrupted=True, cancels=0, below=True))
    assert ([True, False], 0) == found


def test_a_caller_who_cancels_has_left() -> None:
    """And that passes through."""
    assert ([False, True], 1) == asyncio.run(cancelled(interrupted=False, cancels=1))
    found = asyncio.run(cancelled(interrupted=False, cancels=1, below=True))
    assert ([False, True], 1) == found


def test_one_who_cancels_together_with_a_stop_has_left() -> None:
    """Two cancellations are heard as one; their number tells."""
    assert ([False, True], 1) == asyncio.run(cancelled(interrupted=True, cancels=1))


def test_nobody_interrupts_who_does_not_wait_or_is_at_work_inside_the_wait() -> None:
    """A tool that aborts its own run is let finish."""

    async def scenario() -> int:
        one, task = Caller(), asyncio.current_task()
        one.enters()
        one.interrupt()
        one.waits()
        one.interrupt()
        assert not one.heeds()
        one.goes_on()
        assert task is not None
        return task.cancelling()

    assert 0 == asyncio.run(scenario())


def test_what_was_cancelled_before_the_caller_entered_is_over() -> None:
    """Somebody who cleans up after a cancellation is a caller like any other."""

    async def scenario() -> tuple[bool, bool]:
        one, task = Caller(), asyncio.current_task()
        assert task is not None
        one.enters()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()
        one.leaves()
        before = one.has_left
        one.enters()
        return before, one.has_left

    assert (True, False) == asyncio.run(scenario())


def test_a_task_that_closes_a_run_that_another_has_driven_is_its_caller_now() -> None:
    """The other one may have been cancelled for reasons of its own."""

    async def scenario() -> tuple[bool, bool]:
        one, began = Caller(), asyncio.Event()

        async def driving() -> None:
            one.enters()
            began.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(driving())
        await began.wait()
        task.cancel()
        await asyncio.wait([task])
        before = one.has_left
        one.leaves()
        return before, one.has_left

    assert (True, False) == asyncio.run(scenario())


def test_a_cancellation_of_this_task_passes_through() -> None:
    """Only a cancellation that nobody asked for is a failure."""

    async def scenario() -> None:
        task = asyncio.current_task()
        assert task is not None
        for kind in (ToolError, StoreError):
            failure = cancelled_inside(asyncio.CancelledError(), kind)
            assert (kind, "cancelled from inside") == (type(failure), str(failure)[:21])
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                cancelled_inside(asyncio.CancelledError(), StoreError)
        finally:
            task.uncancel()

    asyncio.run(scenario())


@pytest.mark.parametrize(("interrupts", "cancels"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_cancellation_that_is_kept_from_whoever_waits_is_known(
    interrupts: int, cancels: int
) -> None:
    """The driver's own interruption is none; nor is what was cancelled before it waited."""

    async def waiting(one: Caller, began: asyncio.Event) -> bool:
        one.enters()
        one.waits()
        began.set()
        while True:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                continue
            if go_on.is_set():
                return one.is_unheeded

    async def scenario() -> bool:
        one, began = Caller(), asyncio.Event()
        assert not one.is_unheeded
        task = asyncio.create_task(waiting(one, began))
        await began.wait()
        for _ in range(interrupts):
            one.interrupt()
        for _ in range(cancels):
            task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        return await task

    go_on = asyncio.Event()

    assert bool(cancels) is asyncio.run(scenario())
