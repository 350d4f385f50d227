"""The time limit of a turn, on an event loop whose time is the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

from graphloop.drivers import step_timer
from graphloop.drivers.step_timer import StepTimer
from graphloop.effects import AskHuman, CallTool, Effect
from graphloop.run import Run, evolve
from tests.strategies import call, replied, reply


def waiting(effect: Effect, turn: int = 0) -> Run[None]:
    """Return a run that waits for this in a turn."""
    run = replied(reply(call()))
    return evolve(run, pending={1: effect}, turn=evolve(run.turn, number=turn))


WORK = CallTool(1, "c0.0", call())
PEOPLE = AskHuman(1, "c0.0", call())


@contextmanager
def at(*times: float) -> Generator[None]:
    """Have the timer see these times, one after the other."""
    with patch.object(step_timer, "monotonic", iter(times).__next__):
        yield


async def armed(timer: StepTimer) -> float | None:
    """Return in how many seconds the timer will call, or None."""
    handle = timer._handle  # pyright: ignore[reportPrivateUsage]
    return None if handle is None else handle.when() - asyncio.get_running_loop().time()


async def remaining(*legs: tuple[Run[None], float]) -> list[float | None]:
    """Return what is left at the beginning of each leg; a leg is what is awaited, and how long."""
    timer = StepTimer(10.0, lambda _: None)
    found: list[float | None] = []
    for run, lasts_s in legs:
        with at(100.0, 100.0 + lasts_s):
            timer.begin(run)
            left = await armed(timer)
            found.append(None if left is None else round(left))
            timer.end()
    return found


def test_a_turn_without_a_limit_takes_any_time() -> None:
    """Nothing is counted, so nothing calls."""

    async def scenario() -> float | None:
        timer = StepTimer(None, lambda _: None)
        timer.begin(waiting(WORK))
        left = await armed(timer)
        timer.end()
        return left

    assert asyncio.run(scenario()) is None


def test_only_what_is_awaited_takes_the_time_of_a_turn() -> None:
    """What lies between two legs is the looker's, and a question is answered by people."""
    legs = [(waiting(WORK), 3.0), (waiting(PEOPLE), 99.0), (waiting(WORK), 2.0), (waiting(WORK), 0)]

    assert [10, None, 7, 5] == asyncio.run(remaining(*legs))


def test_every_turn_has_its_own_time() -> None:
    """The last one's is spent."""
    legs = [(waiting(WORK), 9.0), (waiting(WORK, turn=1), 1.0)]

    assert [10, 10] == asyncio.run(remaining(*legs))


def test_a_turn_that_took_its_time_is_told_of() -> None:
    """Once, and in words."""

    async def wait() -> list[str]:
        told: list[str] = []
        over = asyncio.Event()

        def expire(reason: str) -> None:
            told.append(reason)
            over.set()

        timer = StepTimer(0.001, expire)
        timer.begin(waiting(WORK, turn=4))
        await asyncio.wait_for(over.wait(), 10)
        timer.end()
        return told

    assert ["turn 4 took more than 0.001 seconds"] == asyncio.run(wait())
