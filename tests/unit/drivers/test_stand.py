"""Stand: how a run stands with its driver, whichever way it was brought there."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.drivers.aio import AsyncDriver
from graphloop.drivers.stand import Stand
from graphloop.events import Started
from graphloop.stores.memory import MemoryStore
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.strategies import QUESTION

DONE: Plans = {"go": ["done"]}
PARKS: Plans = {"go": [batch("client")]}
WORKS: Plans = {"go": [batch("note"), "done"]}


async def stands(plans: Plans, steps: int | None, *, leaves: bool = False) -> list[Stand]:
    """Return how a run stands before it is driven, while it is, and afterwards.

    Args:
        plans: what its agents say.
        steps: how much of it is looked at before its generator is closed; None for all.
        leaves: whether the driver is told to leave after the first thing that is seen.
    """
    runner = tree(Ledger(), plans)._runner  # pyright: ignore[reportPrivateUsage]
    one: AsyncDriver[None] = AsyncDriver(runner.graph, runner.ports(MemoryStore()), None)
    found = [one.stand]
    seen = one.start(Started(0.0, "r", "agent", QUESTION, runner.setup))
    at = 0
    async for _ in seen:
        at += 1
        if at == 1:
            found.append(one.stand)
            if leaves:
                one.leave()
        if at == steps:
            break
    await seen.aclose()
    return [*found, one.stand]


@pytest.mark.parametrize(
    ("plans", "steps", "leaves", "last"),
    [
        (DONE, None, False, Stand.ENDED),
        (PARKS, None, False, Stand.PARKED),
        (WORKS, None, True, Stand.LEFT),
        (WORKS, 1, False, Stand.LEFT),
        (PARKS, 2, False, Stand.LEFT),
    ],
    ids=["ended", "parked", "told to leave", "closed", "closed before it parks"],
)
def test_a_run_stands_as_its_driver_has_brought_it(
    plans: Plans, steps: int | None, leaves: bool, last: Stand
) -> None:
    """A generator that is exhausted says nothing of why it is."""
    under_way = Stand.UNDER_WAY

    assert [under_way, under_way, last] == asyncio.run(stands(plans, steps, leaves=leaves))


def test_a_run_that_is_taken_up_again_is_under_way() -> None:
    """By the same driver, as whoever iterates it does: it parks once more."""

    async def scenario() -> list[Stand]:
        runner = tree(Ledger(), PARKS)._runner  # pyright: ignore[reportPrivateUsage]
        one: AsyncDriver[None] = AsyncDriver(runner.graph, runner.ports(MemoryStore()), None)
        async for _ in one.start(Started(0.0, "r", "agent", QUESTION, runner.setup)):
            pass
        assert one.run is not None
        found = [one.stand]
        seen = one.resume(one.run, at_once=True)
        found.append(one.stand)
        async for _ in seen:
            pass
        return [*found, one.stand]

    assert [Stand.PARKED, Stand.UNDER_WAY, Stand.PARKED] == asyncio.run(scenario())
