"""A process of a fleet: it asks a model as fast as the rates let it, and tells when it may.

Run as `python -m tests.unit.rates.fleet_process STORE CALLS REQUESTS BURST_S` by the tests; it
begins when it hears a line. The times that it tells are those of the store's clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import TypeVar

from graphloop.limits import Rate
from graphloop.providers import StreamItem
from graphloop.rates import FleetPace, RateDesk
from graphloop.stores import Change, Closes, Meters, Store, open_store
from graphloop.values import AssistantMessage, FinishReason, ModelRequest, Reply

T = TypeVar("T")


class Noted:
    """The meters of a store, and the times of the slots that they gave."""

    def __init__(self, store: Meters) -> None:
        self._store = store
        self.slots: list[float] = []

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Change meters, and note the time at which the store did."""
        at: list[float] = []

        def noted(known: Mapping[str, float], now: float) -> tuple[Mapping[str, float], T]:
            at.append(now)
            return change(known, now)

        result = await self._store.metered(names, noted)
        self.slots += [at[-1] + wait_s for wait_s in getattr(result, "waits_s", ())]
        return result


class Silent:
    """A model that says nothing, at once."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Reply."""
        yield Reply(AssistantMessage(()), FinishReason.STOP)


async def main(store: Store, calls: int, rate: Rate) -> list[float]:
    """Ask the model many times at once."""
    assert isinstance(store, Meters)
    assert isinstance(store, Closes)
    meters = Noted(store)
    session = FleetPace(RateDesk(meters), {"*": rate}).paced("m", Silent())

    async def ask() -> None:
        async for _ in session.stream(ModelRequest(())):
            pass

    await store.metered(["warm"], lambda known, _: ({}, known))
    print("ready", flush=True)  # noqa: T201 - this is how processes talk
    await asyncio.to_thread(sys.stdin.readline)
    async with asyncio.TaskGroup() as group:
        for _ in range(calls):
            group.create_task(ask())
    await store.aclose()
    return meters.slots


if __name__ == "__main__":
    where, number, requests, burst_s = sys.argv[1:]
    allowed = Rate(requests=float(requests), per_s=1.0, burst_s=float(burst_s))
    print(json.dumps(asyncio.run(main(open_store(where), int(number), allowed))))  # noqa: T201
