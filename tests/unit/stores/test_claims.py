"""Claims: who drives which run through one store object."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphloop.errors import RunBusy, StoreError
from graphloop.stores.memory import Claims, running_loop


async def take(claims: Claims) -> None:
    """Claim run "r" from an event loop."""
    assert running_loop() is asyncio.get_running_loop()
    claims.take("r")


def test_a_run_is_claimed_once_until_it_is_given_back() -> None:
    """By whoever comes first, with an event loop or without."""
    claims = Claims()
    assert running_loop() is None

    claims.take("r")
    claims.take("s")
    with pytest.raises(RunBusy, match="run 'r' is being driven in this process"):
        claims.take("r")
    with pytest.raises(RunBusy):
        asyncio.run(take(claims))
    claims.give_back("r")
    with pytest.raises(StoreError, match="run 'r': expected a claim"):
        claims.give_back("r")

    assert "r" not in claims.taken
    assert not claims.is_live("r")
    assert claims.is_live("s")


def test_the_claim_of_a_closed_event_loop_can_be_taken_over() -> None:
    """Its driver can never give it back."""
    claims = Claims()
    with asyncio.Runner() as runner:
        runner.run(take(claims))
        with pytest.raises(RunBusy):
            asyncio.run(take(claims))
        assert claims.is_live("r")

    assert "r" in claims.taken
    assert not claims.is_live("r")
    asyncio.run(take(claims))


def test_of_many_threads_one_is_the_driver() -> None:
    """Synchronous calls drive their runs in threads of their own."""
    claims = Claims()

    def taken(_: int) -> bool:
        try:
            claims.take("r")
        except RunBusy:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert 1 == sum(threads.map(taken, range(200)))
