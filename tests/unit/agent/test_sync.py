"""run_sync: a wrapper for those without an event loop, and a clear no for the others."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.agent.terms import run_sync
from graphloop.errors import ConfigError


async def answer() -> int:
    """Return something."""
    return 42


def test_the_result_of_the_coroutine_is_returned() -> None:
    """Nothing else happens."""
    assert 42 == run_sync(answer(), "answer")


def test_inside_an_event_loop_the_awaitable_door_is_named() -> None:
    """A nested loop would dead-lock; the coroutine is closed, so that nothing warns later."""

    async def scenario() -> None:
        with pytest.raises(ConfigError, match="await answer instead"):
            run_sync(answer(), "answer")

    asyncio.run(scenario())
