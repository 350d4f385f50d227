"""Fairness: whoever works for long lets others have a turn."""

from __future__ import annotations

import asyncio

from graphloop.drivers.fairness import Turns


def test_others_have_a_turn_before_long() -> None:
    """A task that never waits would keep them out for ever."""

    async def scenario() -> int:
        turns, done, rounds = Turns(), asyncio.Event(), 0
        other = asyncio.create_task(asyncio.sleep(0))
        other.add_done_callback(lambda _: done.set())
        while not done.is_set():
            rounds += 1
            await turns.share()
        return rounds

    assert asyncio.run(scenario()) > 1
