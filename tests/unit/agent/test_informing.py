"""Informing: listeners are told, waited for, and cannot fail a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from graphloop.agent.hooks import inform


def test_a_listener_is_told_and_leaves_no_warning() -> None:
    """What it returns is its own affair."""
    told: list[int] = []

    def listen(number: int) -> str:
        told.append(number)
        return "thanks"

    assert () == asyncio.run(inform("on_part", listen, 3))
    assert [3] == told


async def test_a_listener_that_is_asynchronous_is_waited_for() -> None:
    """What it has written down is there when the next thing happens."""
    told: list[int] = []

    async def listen(number: int) -> None:
        await asyncio.sleep(0)
        told.append(number)

    warning = await inform("on_part", listen, 3)
    assert [3] == told
    assert () == warning


def failing(error: BaseException) -> list[Callable[[int], object]]:
    """Return listeners that fail so: at once, and later."""

    def now(number: int) -> None:
        raise error

    async def later(number: int) -> None:
        await asyncio.sleep(0)
        raise error

    return [now, later]


@pytest.mark.parametrize("listener", failing(OSError("full")))
def test_a_listener_that_fails_is_a_warning_that_names_it(
    listener: Callable[[int], object],
) -> None:
    """The answer is paid for: a log that is full must not lose it."""
    assert ("on_part raised OSError: full",) == asyncio.run(inform("on_part", listener, 3))


@pytest.mark.parametrize("listener", failing(asyncio.CancelledError("lost")))
def test_a_listener_that_was_cancelled_inside_does_not_cancel_the_run(
    listener: Callable[[int], object],
) -> None:
    """Some libraries cancel what they wait for themselves; nobody has cancelled the run."""
    (warning,) = asyncio.run(inform("on_part", listener, 3))

    assert warning.startswith("on_part was ")
    assert "cancelled" in warning


async def test_a_run_that_is_cancelled_while_a_listener_works_is_cancelled() -> None:
    """That is the caller's wish, and no failure of the listener's."""

    begun = asyncio.Event()

    async def listen(_: int) -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(inform("on_part", listen, 3))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_what_ends_the_process_is_no_failure_of_a_listener(error: BaseException) -> None:
    """Whoever presses Ctrl-C while a part is printed wants to stop."""
    coroutine = inform("on_part", failing(error)[0], 3)

    with pytest.raises(type(error)):
        coroutine.send(None)
