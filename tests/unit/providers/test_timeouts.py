"""Time limits, early ends and cancellations: real sockets, and a clock that leaps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import pytest

from graphloop.errors import ConfigError, Overloaded, ProviderTimeout
from graphloop.providers.base import StreamItem, TextDelta, UsageSoFar
from graphloop.providers.http import Timeouts
from graphloop.providers.timeouts import Watch
from graphloop.values import Reply
from tests.echo_wire import ASK, HI, PING, Talk
from tests.wire_server import Answer, WireServer, sse


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test may put forward."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s

    async def leap(self, seconds: float) -> None:
        """Let whoever is ready begin to wait; then put the clock forward and let timers run."""
        for _ in range(5):
            await asyncio.sleep(0)
        self.ahead_s += seconds
        for _ in range(5):
            await asyncio.sleep(0)


def run(main: Callable[[LeapingLoop], Awaitable[None]]) -> None:
    async def started() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LeapingLoop)
        await main(loop)

    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        runner.run(started())


async def failure(stream: AsyncGenerator[StreamItem, None]) -> ProviderTimeout:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(ProviderTimeout) as caught:
        [_ async for _ in stream if not isinstance(_, UsageSoFar)]
    assert task.cancelling() == 0
    return caught.value


ONLY_TOTAL = Timeouts(first_content_s=0, silence_s=0, total_s=60)
NO_SILENCE = Timeouts(first_content_s=60, silence_s=0, total_s=0)
NO_FIRST_CONTENT = Timeouts(first_content_s=0, silence_s=60, total_s=0)


@pytest.mark.parametrize(
    ("timeouts", "gate", "layer"),
    [
        (Timeouts(), 0, "first_content"),
        (NO_SILENCE, 1, "first_content"),
        (ONLY_TOTAL, 0, "total"),
        (ONLY_TOTAL, 1, "total"),
    ],
)
def test_a_server_that_says_nothing_is_left(timeouts: Timeouts, gate: int, layer: str) -> None:
    """The limit names itself, closes the line, and is not retried. Pings are no content."""

    async def main(loop: LeapingLoop) -> None:
        async with WireServer([Answer([*sse(PING), *HI], gates={gate: asyncio.Event()})]) as server:
            provider = Talk(server, timeouts=timeouts).provider()
            stream = provider.session().stream(ASK)
            async with asyncio.TaskGroup() as group:
                failing = group.create_task(failure(stream))
                await server.waiting.wait()
                await loop.leap(61)
            error = failing.result()
            assert error.layer == layer
            assert f"{layer!r} of 60 s" in str(error)
            await server.client_left.wait()
            assert len(server.requests) == 1
            await provider.aclose()

    run(main)


@pytest.mark.parametrize(
    ("timeouts", "layer"), [(NO_FIRST_CONTENT, "silence"), (Timeouts(30, 30, 0, 60), "total")]
)
def test_a_server_that_falls_silent_in_the_middle_is_left(timeouts: Timeouts, layer: str) -> None:
    """The first content has come in time; that limit no longer counts."""

    async def main(loop: LeapingLoop) -> None:
        async with WireServer([Answer(HI, gates={1: asyncio.Event()})]) as server:
            provider = Talk(server, timeouts=timeouts).provider()
            stream = provider.session().stream(ASK)
            assert await anext(stream) == TextDelta("Hi")
            async with asyncio.TaskGroup() as group:
                failing = group.create_task(failure(stream))
                await loop.leap(59)
                assert not failing.done()
                await loop.leap(2)
            assert failing.result().layer == layer
            await server.client_left.wait()
            await provider.aclose()

    run(main)


def test_silence_counts_from_the_beginning_of_a_read() -> None:
    """The timer is one for all reads; each must still have its full time."""

    async def main(loop: LeapingLoop) -> None:
        async with WireServer([Answer(HI, gates={1: asyncio.Event()})]) as server:
            provider = Talk(server, timeouts=NO_FIRST_CONTENT).provider()
            stream = provider.session().stream(ASK)
            assert await anext(stream) == TextDelta("Hi")
            await loop.leap(40)
            async with asyncio.TaskGroup() as group:
                failing = group.create_task(failure(stream))
                await loop.leap(40)
                assert not failing.done()
                await loop.leap(21)
            assert failing.result().layer == "silence"
            await provider.aclose()

    run(main)


def test_a_limit_that_ran_out_between_reads_is_told_at_the_next() -> None:
    """The listener's own work is never interrupted."""

    async def main(loop: LeapingLoop) -> None:
        async with WireServer([Answer(HI, gates={1: asyncio.Event()})]) as server:
            provider = Talk(server).provider()
            stream = provider.session().stream(ASK)
            assert await anext(stream) == TextDelta("Hi")
            await loop.leap(301)
            assert (await failure(stream)).layer == "total"
            await provider.aclose()

    run(main)


def test_closing_early_closes_the_connection() -> None:
    """A server keeps its slot, and its bill, as long as the line stands."""

    async def main(_: LeapingLoop) -> None:
        async with WireServer([Answer(HI, gates={1: asyncio.Event()})]) as server:
            provider = Talk(server).provider()
            async with aclosing(provider.session().stream(ASK)) as stream:
                assert await anext(stream) == TextDelta("Hi")
                assert not server.client_left.is_set()
            await server.client_left.wait()
            await provider.aclose()

    run(main)


@pytest.mark.parametrize("gate", [0, 1, 2])
def test_a_cancellation_from_outside_passes_through(gate: int) -> None:
    """Before content and after it: no retry, no other error, the line closed."""

    async def main(loop: LeapingLoop) -> None:
        async with WireServer([Answer([*sse(PING), *HI], gates={gate: asyncio.Event()})]) as server:
            talk = Talk(server)
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(talk.ask())
                await server.waiting.wait()
                await loop.leap(0)
                asking.cancel()
            assert asking.cancelled()
            await server.client_left.wait()
            assert len(server.requests) == 1

    run(main)


@pytest.mark.parametrize("before_s", [0.001, -0.001])
def test_an_outside_cancellation_wins_over_a_limit(before_s: float) -> None:
    """Swallowing it would leave a task running that everybody thinks is gone."""

    async def main(loop: LeapingLoop) -> None:
        watch = Watch(loop, ONLY_TOTAL)
        runs_out_at = loop.time() + 60
        verdicts: list[ProviderTimeout | None] = []

        async def read() -> None:
            watch.attempt()
            watch.begin()
            try:
                await loop.create_future()
            except asyncio.CancelledError:
                verdicts.append(watch.verdict())
                raise
            finally:
                watch.end()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(read())
            loop.call_at(runs_out_at - before_s, task.cancel)
            await loop.leap(61)
        assert task.cancelled()
        assert verdicts == [None]
        assert task.cancelling() == 1

    run(main)


def test_a_swallowed_cancellation_hides_no_limit() -> None:
    """A task may have been cancelled, have declined, and go on under the same limits."""

    async def main(loop: LeapingLoop) -> None:
        async def stubborn(server: WireServer) -> str:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await loop.create_future()
            with pytest.raises(ProviderTimeout) as caught:
                await Talk(server).ask()
            assert task.cancelling() == 1
            return caught.value.layer

        async with (
            WireServer([Answer(gates={0: asyncio.Event()})]) as server,
            asyncio.TaskGroup() as group,
        ):
            asking = group.create_task(stubborn(server))
            await server.waiting.wait()
            await loop.leap(61)
            assert await asking == "first_content"

    run(main)


def test_an_error_whose_body_never_ends_is_told_in_time() -> None:
    """What the server said is worth more than that the time is up."""

    async def main(loop: LeapingLoop) -> None:
        hanging = Answer([b"slow", b"!"], 529, gates={1: asyncio.Event()})
        async with WireServer([hanging, Answer(HI)]) as server:
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(overloaded(Talk(server, Timeouts(total_s=1))))
                await server.waiting.wait()
                await loop.leap(1.1)
            assert asking.result() == "slow"
            assert len(server.requests) == 1

    run(main)


async def overloaded(talk: Talk) -> str:
    with pytest.raises(Overloaded) as caught:
        await talk.ask()
    return str(caught.value)


def test_the_reply_waits_a_twentieth_of_a_second_for_the_end() -> None:
    """Some servers never end their answers; each turn would pay for it."""

    async def main(loop: LeapingLoop) -> None:
        answer = Answer([b"".join(HI)], gates={1: asyncio.Event()})
        async with WireServer([answer]) as server:
            provider = Talk(server).provider()
            stream = provider.session().stream(ASK)
            assert await anext(stream) == TextDelta("Hi")
            assert await anext(stream) == TextDelta(" there")
            async with asyncio.TaskGroup() as group:
                last = group.create_task(aiter_next(stream))
                await loop.leap(0.06)
                assert last.done()
            assert isinstance(last.result(), Reply)
            await stream.aclose()
            await provider.aclose()

    run(main)


async def aiter_next(stream: AsyncGenerator[StreamItem, None]) -> StreamItem:
    return await anext(stream)


def test_a_limit_of_one_attempt_is_not_the_next_ones() -> None:
    """Only the total limit is common to all attempts."""

    async def main(loop: LeapingLoop) -> None:
        watch = Watch(loop, Timeouts(0, 60, 0, 100))
        watch.attempt()
        await loop.leap(61)
        with pytest.raises(ProviderTimeout):
            watch.begin()
        watch.attempt()
        watch.begin()
        watch.end()
        await loop.leap(40)
        watch.attempt()
        with pytest.raises(ProviderTimeout, match="'total'"):
            watch.begin()

    run(main)


def test_disabled_layers_never_run_out() -> None:
    """Zero means no limit, not a limit at once."""

    async def main(loop: LeapingLoop) -> None:
        watch = Watch(loop, Timeouts(0, 0, 0, 0))
        watch.attempt()
        watch.content_started()
        watch.begin()
        await loop.leap(1e9)
        watch.end()
        watch.begin()
        assert watch.allows(1e9)

    run(main)


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(seconds: float) -> None:
    """Infinity is spelled 0, and a negative limit is a mistake."""
    with pytest.raises(ConfigError, match=r"Timeouts\.total_s: expected seconds, or 0"):
        Timeouts(total_s=seconds)
