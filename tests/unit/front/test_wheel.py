"""Wheel: one drives, and all who wait look again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from graphloop.front.wheel import Wheel


def test_who_waits_goes_on_once_the_wheel_is_given_up() -> None:
    """All of them, also where driving has failed; the next of them holds it then."""

    async def scenario() -> list[int]:
        wheel, went_on = Wheel(), list[int]()

        async def wait(number: int) -> None:
            await wheel.given_up()
            went_on.append(number)

        async with asyncio.TaskGroup() as group:
            with suppress(ValueError), wheel:
                group.create_task(wait(1))
                group.create_task(wait(2))
                await asyncio.sleep(0)
                assert wheel.is_held
                assert not went_on
                raise ValueError("the road ends")
        assert not wheel.is_held
        with wheel:
            assert wheel.is_held
        return went_on

    assert [1, 2] == asyncio.run(scenario())


def test_nobody_takes_a_wheel_that_is_held() -> None:
    """Two who drive one run break it for all."""
    wheel = Wheel()

    with wheel, pytest.raises(AssertionError), wheel:
        pass
