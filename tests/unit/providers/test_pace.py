"""Limits of a provider: no request before its time, no request left behind, and waits are told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent
from graphloop.errors import ConfigError, RateLimited
from graphloop.parts.kinds import Part
from graphloop.providers import Limits, Retries, Waiting, connect
from graphloop.providers.endpoint import Endpoint
from graphloop.providers.http import HttpProvider
from graphloop.providers.pace import PaceGate
from tests.echo_wire import ASK, HI, EchoWire, Talk, spoken
from tests.still_loop import StillLoop, on_still_loop
from tests.wire_server import Answer, WireServer, json_answer, sse

REPLY = Answer(sse('{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}', "[DONE]"))


@dataclass
class Requests:
    """Requests that pass a gate, and the times at which they did."""

    gate: PaceGate
    begun: list[float] = field(default_factory=list[float])
    told: list[Waiting] = field(default_factory=list[Waiting])
    open: int = 0
    most: int = 0

    async def send(self, takes_s: float, tokens: int, wait_max_s: float = 30.0) -> None:
        """Pass the gate, be accepted, and end after a while."""
        loop = asyncio.get_running_loop()
        call = object()
        self.told += [waiting async for waiting in self.gate.enter(call, "m", wait_max_s)]
        self.begun.append(loop.time())
        self.open += 1
        self.most = max(self.most, self.open)
        self.gate.accepted(call)
        await asyncio.sleep(takes_s)
        self.open -= 1
        self.gate.leave(call, tokens)


asked = st.tuples(st.sampled_from([0.0, 1.0, 20.0]), st.sampled_from([0, 10, 90]))


@given(
    st.lists(asked, max_size=12),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(1, 100),
    st.none() | st.integers(1, 3),
)
@example([(0.0, 0)] * 12, 1, None, None)
@settings(deadline=None)
def test_each_limit_is_kept_and_every_request_is_sent(
    work: Sequence[tuple[float, int]],
    per_minute: int | None,
    tokens: int | None,
    at_once: int | None,
) -> None:
    """In any 60 seconds, at any time, with any work; the gate deadlocks with none."""
    requests = Requests(PaceGate(Limits(per_minute, tokens, at_once)))

    async def main(loop: StillLoop) -> None:
        tasks = [loop.create_task(requests.send(*one)) for one in work]
        for _ in range(40 * len(work)):
            await loop.leap(5.0)
        assert all(task.done() for task in tasks)

    on_still_loop(main)

    assert len(requests.begun) == len(work)
    assert at_once is None or requests.most <= at_once
    if per_minute is not None:
        for first, last in zip(requests.begun, requests.begun[per_minute:], strict=False):
            assert last - first >= 60.0
    told = [waiting.reason for waiting in requests.told]
    assert {*told} <= {"requests_per_minute", "tokens_per_minute", "concurrent"}
    assert not told or (per_minute, tokens, at_once) != (None, None, None)


def test_tokens_of_the_last_minute_hold_the_next_request() -> None:
    """They are known only at the end of a request."""
    requests = Requests(PaceGate(Limits(tokens_per_minute=100)))

    async def main(loop: StillLoop) -> None:
        await requests.send(0.0, 150)
        task = loop.create_task(requests.send(0.0, 1))
        await loop.leap(0.0)
        await loop.leap(59.0)
        assert len(requests.begun) == 1
        await loop.leap(1.0)
        await task

    on_still_loop(main)

    assert [Waiting("m", "tokens_per_minute", 60.0)] == requests.told


def test_after_a_refusal_one_request_goes_first() -> None:
    """A crowd at the second of the reopening would be refused again."""
    gate = PaceGate(Limits())
    requests = Requests(gate)

    async def main(loop: StillLoop) -> None:
        gate.refused("early", 2.0)
        entered: deque[int] = deque()

        async def enter(number: int) -> None:
            requests.told += [waiting async for waiting in gate.enter(number, "m", 30.0)]
            entered.append(number)

        tasks = [loop.create_task(enter(number)) for number in range(3)]
        await loop.leap(0.0)
        await loop.leap(1.0)
        assert not entered
        await loop.leap(1.0)
        assert len(entered) == 1
        gate.accepted(entered[0])
        await loop.leap(0.0)
        assert len(entered) == 3
        await asyncio.gather(*tasks)

    on_still_loop(main)

    assert {Waiting("m", "rate_limited", 2.0)} == {*requests.told}


@pytest.mark.parametrize("early", ["accepted", "left", "refused again"])
def test_a_request_from_before_the_refusal_lets_no_crowd_in(early: str) -> None:
    """A stream that began earlier shows nothing about requests after the refusal."""
    gate = PaceGate(Limits())
    entered: list[str] = []

    async def enter(call: str) -> None:
        async for _ in gate.enter(call, "m", 30.0):
            pass
        entered.append(call)

    async def main(loop: StillLoop) -> None:
        await enter("stream")
        await enter("refused")
        gate.refused("refused", 2.0)
        gate.leave("refused", 0)
        if early == "accepted":
            gate.accepted("stream")
        tasks = [loop.create_task(enter(f"late {number}")) for number in range(3)]
        await loop.leap(0.0)
        await loop.leap(2.0)
        if early == "refused again":
            gate.refused("stream", 0.0)
        gate.leave("stream", 0)
        await loop.leap(1.0)
        first = entered[2:]
        assert len(first) == 1
        gate.accepted(first[0])
        gate.leave(first[0], 0)
        await loop.leap(0.0)
        assert len(entered) == 5
        await asyncio.gather(*tasks)

    on_still_loop(main)


def test_a_long_wait_is_an_error_for_all() -> None:
    """A run that waits an hour had better be told."""
    gate = PaceGate(Limits())

    async def main(loop: StillLoop) -> None:
        gate.refused("early", 3_600.0)
        with pytest.raises(RateLimited, match="3600 s remain") as caught:
            _ = [waiting async for waiting in gate.enter("late", "m", 30.0)]
        assert caught.value.retry_after_s == 3_600.0

    on_still_loop(main)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "9"])
@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute", "concurrent"])
def test_a_limit_that_is_none_is_refused(name: str, value: Any) -> None:
    """Where it is written."""
    with pytest.raises(ConfigError, match=f"Limits.{name}: expected a whole number"):
        Limits(**{name: value})


async def settled(server: WireServer) -> None:
    """Wait until no further request comes at this time of the clock: sockets take some rounds."""
    known = -1
    while known != len(server.requests):
        known = len(server.requests)
        for _ in range(300):
            await asyncio.sleep(0)


@pytest.mark.parametrize("limits", [Limits(concurrent=1), Limits(concurrent=8), Limits()])
def test_fifty_runs_wait_for_a_server_that_refuses_for_a_while(limits: Limits) -> None:
    """No request before its time, and all finish: peers ask again run by run, all at once."""
    count, refusals = 50, 7
    times: list[float] = []

    async def main(loop: StillLoop) -> list[str]:
        refusal = json_answer(429, '{"error":{"message":"slow down"}}', retry_after="2")
        async with WireServer([*[refusal] * refusals, *[REPLY] * count]) as server:
            model = connect("openai:m", base_url=server.url, api_key="k", limits=limits)
            agents = [Agent(model) for _ in range(count)]
            tasks = [loop.create_task(agent.generate("Hello")) for agent in agents]
            while not all(task.done() for task in tasks):
                assert loop.at < 1_100.0
                await settled(server)
                times.extend([loop.at] * (len(server.requests) - len(times)))
                await loop.leap(0.25)
            await model.aclose()
            return [task.result().text for task in tasks]

    texts = on_still_loop(main)

    assert ["Hi"] * count == texts
    assert len(times) == count + refusals
    for refused in times[:refusals]:
        assert not [time for time in times if refused < time < refused + 2.0]


async def test_a_wait_is_a_part_of_the_stream() -> None:
    """A page says why nothing comes; the wait is no content."""
    gate = asyncio.Event()
    async with WireServer([Answer(REPLY.body, gates={0: gate}), REPLY]) as server:
        model = connect("openai:m", base_url=server.url, api_key="k", limits=Limits(concurrent=1))
        first = asyncio.create_task(Agent(model).generate("Hello"))
        await server.waiting.wait()
        parts: list[Part] = []
        async for part in Agent(model).stream("Hello").full_stream:
            parts.append(part)
            if isinstance(part, Waiting):
                gate.set()
        await first
        await model.aclose()

    assert [part for part in parts if isinstance(part, Waiting)] == [
        Waiting("openai:m", "concurrent")
    ]
    kinds = [part.type for part in parts]
    assert kinds.index("step-start") < kinds.index("waiting") < kinds.index("text-delta")
    assert "step-retry" not in kinds


async def test_a_server_that_refuses_is_told_of_without_limits_too() -> None:
    """Whoever listens knows why nothing comes, and other processes can wait as well."""
    refusal = json_answer(429, "slow down", retry_after="2")
    async with WireServer([refusal, Answer(HI)]) as server:
        talk = Talk(server)
        items = await talk.ask()

    assert items[0] == Waiting(talk.provider().label, "rate_limited", 2.0)
    assert talk.slept.seconds == [2.0]


async def test_a_refused_request_counts_from_one_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is no attempt of its own, so the next one has the same number."""
    refusal = json_answer(429, "slow down", retry_after="0")
    async with WireServer([refusal, refusal, REPLY]) as server:
        model = connect("openai:m", base_url=server.url, api_key="k", limits=Limits(concurrent=1))
        await Agent(model).generate("Hello")
        await model.aclose()

    told = [line for line in caplog.messages if "failed (RateLimited)" in line]
    assert [line.partition(": ")[2].partition(" failed")[0] for line in told] == ["attempt 1"] * 2


async def test_no_retry_means_none_with_limits_too() -> None:
    """`Retries(attempts_max=1)` is the caller's word."""
    async with WireServer([json_answer(429, "no")] * 3) as server:
        provider = HttpProvider(
            EchoWire(),
            Endpoint(server.url, "k"),
            retries=Retries(attempts_max=1),
            limits=Limits(concurrent=3),
        )
        with pytest.raises(RateLimited):
            await anext(provider.session().stream(ASK))
        assert len(server.requests) == 1
        await provider.aclose()


async def test_a_stream_that_is_left_leaves_the_gate() -> None:
    """Its place is free for the next request."""
    never = asyncio.Event()
    async with WireServer([Answer(HI, gates={1: never}), Answer(HI)]) as server:
        provider = HttpProvider(EchoWire(), Endpoint(server.url, "k"), limits=Limits(concurrent=1))
        left = provider.session().stream(ASK)
        await anext(left)
        await left.aclose()

        parts = [part async for part in provider.session().stream(ASK)]

        assert spoken(parts) == "Hi there"
        await provider.aclose()
