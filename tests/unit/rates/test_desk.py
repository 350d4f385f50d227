"""A desk lets calls pass at their rate, in order, and tells each wait; it loses no call."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import TypeVar

import pytest

from graphloop.errors import ConfigError, Overloaded, RateLimited, StoreError
from graphloop.limits import Rate, Rates
from graphloop.providers import Postponed, StreamItem, TextDelta, UsageSoFar, Waiting
from graphloop.rates import FleetPace, RateDesk, RateDesks
from graphloop.stores import Change, JsonlStore, MemoryStore
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    Reply,
    Settings,
    Usage,
    UserMessage,
)
from tests.still_loop import StillLoop, on_still_loop

T = TypeVar("T")

LIMITS: Rates = {"m*": Rate(requests=2, per_s=1, burst_s=0.5)}
REQUEST = ModelRequest((UserMessage("x" * 36),), settings=Settings(max_tokens=86))
"""It is estimated at 100 tokens: 10 for its text, 4 for its message, and those of the reply."""
REPLY = Reply(AssistantMessage(()), FinishReason.STOP, Usage(input_tokens=30, output_tokens=10))


class Asked:
    """A session of a model that notes the times of its requests, and says what a test tells."""

    def __init__(self, *said: StreamItem | Exception) -> None:
        self.at: list[float] = []
        self._said = said or (REPLY,)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Note the request."""
        self.at.append(asyncio.get_running_loop().time())
        for item in self._said:
            if isinstance(item, Exception):
                raise item
            yield item


def store_on(loop: StillLoop) -> MemoryStore:
    return MemoryStore(clock=lambda: loop.at)


async def said_by(
    session: Asked, desk: RateDesk, limits: Rates = LIMITS, label: str = "m1"
) -> Sequence[StreamItem]:
    """Ask a model once, and return what a listener sees."""
    stream = FleetPace(desk, limits).paced(label, session).stream(REQUEST)
    async with aclosing(stream):
        return [item async for item in stream]


async def meter_of(store: MemoryStore, name: str) -> float | None:
    return await store.metered([name], lambda known, _: ({}, known.get(name)))


def test_calls_pass_in_order_and_at_their_rate(caplog: pytest.LogCaptureFixture) -> None:
    """Each of two desks is a process; the meters are theirs together."""
    caplog.set_level(logging.INFO, "graphloop")
    sessions = [Asked() for _ in range(8)]

    async def main(loop: StillLoop) -> list[Sequence[StreamItem]]:
        desks = [RateDesk(store) for store in [store_on(loop)] for _ in range(2)]
        asking = [
            loop.create_task(said_by(session, desks[at % 2])) for at, session in enumerate(sessions)
        ]
        for _ in range(60):
            await loop.leap(0.1)
        return [task.result() for task in asking]

    said = on_still_loop(main)

    times = sorted(at for session in sessions for at in session.at)
    assert len(times) == 8
    assert all(later - first >= 0.5 - 1e-6 for first, later in pairwise(times))
    assert times[-1] - times[0] <= 3.5 + 4 * 0.25
    waited = [items for items in said if len(items) == 2]
    assert {items[-1] for items in said} == {REPLY}
    assert [type(items[0]) for items in waited] == [Waiting] * 7
    assert caplog.text.count("a call waits") == 7


@pytest.mark.parametrize("requests", [50, 500])
def test_a_fleet_uses_its_rate_and_no_more(requests: int) -> None:
    """Four desks with more calls than may pass leave no slot of a rate unused, and share evenly."""
    limits: Rates = {"m*": Rate(requests=requests, per_s=1, burst_s=0.2)}
    seconds, steps, asked = 6, 200, list[tuple[float, int]]()

    async def main(loop: StillLoop) -> None:
        store, start = store_on(loop), loop.at

        async def ask(desk: RateDesk, number: int) -> None:
            while True:
                async for _ in desk.admit(limits, "m1", 0.0):
                    pass
                asked.append((loop.at - start, number))

        desks = [RateDesk(store) for _ in range(4)]
        asking = [
            loop.create_task(ask(desk, number))
            for number, desk in enumerate(desks)
            for _ in "x" * 9
        ]
        for _ in range(seconds * steps):
            await loop.leap(1 / steps)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    on_still_loop(main)

    assert len(asked) >= 0.95 * requests * seconds
    times = [at for at, _ in asked]
    for first, at in enumerate(times):
        found = bisect_left(times, at + 1.0) - first
        assert found <= requests * (1 + 0.2 + 0.04)
    shares = [sum(one == number for _, one in asked) for number in range(4)]
    assert min(shares) >= 0.5 * max(shares)


def test_the_tokens_of_a_reply_are_settled() -> None:
    """The estimate was 100, and the reply tells 40: 60 are free for others at once."""

    async def main(loop: StillLoop) -> tuple[float | None, ...]:
        store = store_on(loop)
        limits = {"m*": Rate(tokens=100, per_s=100)}
        await said_by(Asked(), RateDesk(store), limits)
        replied = await meter_of(store, "m* tokens")
        with pytest.raises(Overloaded):
            await said_by(
                Asked(UsageSoFar(Usage(input_tokens=7)), Overloaded("no")), RateDesk(store)
            )
        with pytest.raises(Overloaded):
            await said_by(Asked(Overloaded("no")), RateDesk(store), {"n": Rate(tokens=1)}, "n")
        return replied, await meter_of(store, "n tokens")

    replied, failed = on_still_loop(main)

    assert replied == pytest.approx(1_040.0)
    assert failed == pytest.approx(1_000.0)


def test_a_call_that_is_broken_off_keeps_its_estimate() -> None:
    """The server may have read all of the request; nobody tells."""

    async def main(loop: StillLoop) -> float | None:
        store = store_on(loop)
        pace = FleetPace(RateDesk(store), {"m*": Rate(tokens=100, per_s=100)})
        stream = pace.paced("m1", Asked(TextDelta("Hi"), REPLY)).stream(REQUEST)
        async with aclosing(stream):
            assert await anext(stream) == TextDelta("Hi")
        return await meter_of(store, "m* tokens")

    assert on_still_loop(main) == pytest.approx(1_100.0)


@pytest.mark.parametrize(
    "said",
    [
        (RateLimited("slow down", retry_after_s=7.0),),
        (Waiting("m1", "rate_limited", 7.0), REPLY),
    ],
)
def test_a_refusal_closes_the_model_for_the_fleet(said: tuple[StreamItem | Exception, ...]) -> None:
    """Whether the provider asks again or gives up, all processes wait until the server's time."""
    other = Asked()

    async def main(loop: StillLoop) -> None:
        store = store_on(loop)
        await asyncio.gather(said_by(Asked(*said), RateDesk(store)), return_exceptions=True)
        asking = loop.create_task(said_by(other, RateDesk(store)))
        for _ in range(100):
            await loop.leap(0.1)
        await asking

    on_still_loop(main)

    assert 1_007.0 <= other.at[0] <= 1_008.5


def test_a_call_whose_slot_is_far_away_is_postponed() -> None:
    """Its run parks; those that are near wait."""
    near, far = Asked(), Asked()

    async def main(loop: StillLoop) -> float:
        desk = RateDesk(store_on(loop), patience_s=2.0)
        asking = [loop.create_task(said_by(near, desk)) for _ in range(5)]
        await loop.leap(0.0)
        with pytest.raises(Postponed) as caught:
            await said_by(far, desk)
        for _ in range(30):
            await loop.leap(0.1)
        await asyncio.gather(*asking)
        return caught.value.seconds

    seconds = on_still_loop(main)

    assert (len(near.at), far.at) == (5, [])
    assert 2.0 < seconds < 3.0


class Away:
    """Meters whose server goes away after some answers."""

    def __init__(self, store: MemoryStore, answers: int) -> None:
        self._store, self._answers = store, answers

    async def metered(self, names: Collection[str], change: Change[T]) -> T:
        """Answer, or not."""
        if not self._answers:
            raise StoreError("no answer")
        self._answers -= 1
        return await self._store.metered(names, change)


def test_a_store_that_does_not_answer_is_a_failure_that_may_pass() -> None:
    """The run is interrupted, not failed; a reply that was paid for is kept."""
    session = Asked()

    async def main(loop: StillLoop) -> Sequence[StreamItem]:
        with pytest.raises(Overloaded, match="no answer"):
            await said_by(session, RateDesk(Away(store_on(loop), 0)))
        return await said_by(session, RateDesk(Away(store_on(loop), 1)), {"m*": Rate(tokens=1)})

    assert on_still_loop(main) == [REPLY]
    assert len(session.at) == 1


def test_a_model_without_a_limit_keeps_its_session() -> None:
    """It pays nothing for those of others."""
    session = Asked()

    assert FleetPace(RateDesk(MemoryStore()), LIMITS).paced("other", session) is session


async def test_the_runs_of_an_agent_share_a_desk(tmp_path: object) -> None:
    """In one event loop, and for one store; a child run has the limits of its parent as well."""
    desks, store, given = RateDesks(LIMITS), MemoryStore(), RateDesk(MemoryStore())

    first, again = [desks.pace(store, given=True) for _ in range(2)]
    other, one_more = [desks.pace(MemoryStore(), given=False) for _ in range(2)]
    assert first.desk is again.desk
    assert first.desk is not other.desk
    assert other.desk is one_more.desk
    above = FleetPace(given, {"a": Rate(requests=1), "m*": Rate(requests=9)})
    assert above.for_child(first) == FleetPace(given, {"a": Rate(requests=1), **LIMITS})
    assert above.for_child(None) == above
    with pytest.raises(ConfigError, match=r"`limits`: .*runs\.db"):
        desks.pace(JsonlStore(str(tmp_path)), given=True)
