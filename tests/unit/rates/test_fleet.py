"""The rates of a fleet, through agents, workers and several processes."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
from bisect import bisect_right
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from graphloop import Agent, EndReason
from graphloop.driver import Fleet
from graphloop.events import ChildEnded, EffectFailed, ModelReplied
from graphloop.limits import Rate, demands, reserved
from graphloop.providers import Waiting
from graphloop.rates import FleetPace, RateDesk
from graphloop.rates.desk import AHEAD_S
from graphloop.stores import (
    Closes,
    MemoryStore,
    Meters,
    PostgresStore,
    SqliteStore,
    open_store,
)
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker
from tests.postgres_server import database, set_clock
from tests.warm_python import warm_python

Shared = MemoryStore | SqliteStore | PostgresStore

HOUR_S = 3600.0
SELDOM = {"script": Rate(requests=1, per_s=HOUR_S)}
PROCESSES, CALLS, REQUESTS, BURST_S = 4, 40, 100, 0.1


class Clock:
    """A clock that only a test puts forward."""

    def __init__(self, dsn: str | None = None) -> None:
        self._now, self._dsn = 1_000.0, dsn

    def __call__(self) -> float:
        return self._now

    def forward(self, seconds: float) -> None:
        """Put the clock forward; a database has one of its own."""
        self._now += seconds
        if self._dsn is not None:
            set_clock(self._dsn, self._now)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Shared, Clock]:
    """Return a store whose clock is the test's."""
    if request.param == "postgres":
        clock = Clock(dsn := database(request.getfixturevalue("postgres")))
        clock.forward(0.0)
        return PostgresStore(dsn, clock=clock), clock
    clock = Clock()
    if request.param == "memory":
        return MemoryStore(clock=clock), clock
    return SqliteStore(tmp_path / "runs.db", durability="process", clock=clock), clock


async def test_a_run_that_would_wait_long_gives_its_slot_back(
    shared: tuple[Shared, Clock],
) -> None:
    """It parks, waits for nobody, and is taken again at its time; nothing is asked twice."""
    store, clock = shared
    model = ScriptedModel(["One.", "Two."])
    agent = Agent(model, limits=SELDOM)
    worker = Worker([agent], store)
    for run_id in ("r1", "r2"):
        await agent.runs(store).submit("Go.", run_id=run_id)

    assert await worker.drive("r1") == "over"
    assert await worker.drive("r2") == "parked"

    (record,) = await store.overview("r2")
    assert (record.status, record.asks, len(model.requests)) == ("parked", (), 1)
    assert await store.ready({"agent"}, 9) == []
    clock.forward(HOUR_S)
    assert await store.ready({"agent"}, 9) == ["r2"]
    assert await Worker([agent], store).drive("r2") == "over"
    kinds = [type(event) for event in await store.load("r2")]
    assert (kinds.count(ModelReplied), kinds.count(EffectFailed)) == (1, 0)


async def test_a_run_is_postponed_for_its_child_run(
    shared: tuple[Shared, Clock],
) -> None:
    """The child has the limits of its own agent, and those of its parent's."""
    store, clock = shared
    below = Agent(ScriptedModel(["Found."], label="seldom"), name="search", limits={
        "seldom": Rate(requests=1, per_s=HOUR_S)
    })  # fmt: skip
    calls = {"calls": [{"name": "search", "arguments": {"prompt": "x"}}]}
    agent = Agent(ScriptedModel([calls, "Done."]), tools=[below.as_tool()])
    await store.metered(["seldom requests"], lambda _, now: ({"seldom requests": now + HOUR_S}, 0))
    await agent.runs(store).submit("Go.", run_id="r")

    assert await Worker([agent], store).drive("r") == "parked"
    assert await store.ready({"agent"}, 9) == []
    clock.forward(HOUR_S)
    assert await store.ready({"agent"}, 9) == ["r"]
    assert await Worker([agent], store).drive("r") == "over"

    ended = [event for event in await store.load("r") if isinstance(event, ChildEnded)]
    assert [(event.content, event.status) for event in ended] == [("Found.", "ok")]


async def test_a_postponed_call_waits_in_place_while_others_are_at_work() -> None:
    """Its run keeps its slot anyway; the other child ends only once the first has been asked."""
    store, asked = MemoryStore(), asyncio.Event()

    def note(_: object) -> str:
        asked.set()
        return "Asked."

    async def wait() -> str:
        """Wait for the other child."""
        await asked.wait()
        return "waited"

    limits = {"near": Rate(requests=20, per_s=1, burst_s=0.01)}
    near = Agent(ScriptedModel([note], label="near"), name="near", limits=limits)
    busy = Agent(
        ScriptedModel([{"calls": [{"name": "wait", "arguments": {}}]}, "Busy."]),
        name="busy",
        tools=[wait],
    )
    calls = [{"name": name, "arguments": {"prompt": "x"}} for name in ("near", "busy")]
    agent = Agent(
        ScriptedModel([{"calls": calls}, "Done."]), tools=[near.as_tool(), busy.as_tool()]
    )
    await store.metered(["near requests"], lambda _, now: ({"near requests": now + 0.5}, 0))
    run_id = await agent.runs(store).submit("Go.")

    fleet = Fleet(pace=FleetPace(RateDesk(store, patience_s=0.0), {}))
    result = await agent.runs(store, fleet=fleet).resume(run_id)

    assert (result.end_reason, result.text) == (EndReason.COMPLETED, "Done.")


async def test_a_run_parks_once_only_postponed_calls_are_left(
    shared: tuple[Shared, Clock],
) -> None:
    """Of two children one is done, and its result is kept."""
    store, _ = shared
    limits = {"far": Rate(requests=1, per_s=HOUR_S)}
    far = Agent(ScriptedModel([], label="far"), name="far", limits=limits)
    near = Agent(ScriptedModel(["Near."]), name="near")
    calls = [{"name": name, "arguments": {"prompt": "x"}} for name in ("far", "near")]
    agent = Agent(ScriptedModel([{"calls": calls}]), tools=[far.as_tool(), near.as_tool()])
    await store.metered(["far requests"], lambda _, now: ({"far requests": now + HOUR_S}, 0))
    run_id = await agent.runs(store).submit("Go.")

    assert await Worker([agent], store).drive(run_id) == "parked"

    ended = [event for event in await store.load(run_id) if isinstance(event, ChildEnded)]
    assert [event.content for event in ended] == ["Near."]


async def test_the_runs_of_an_agent_without_a_store_share_its_rates() -> None:
    """In one process, as long as the agent lives; the wait is a part of the stream."""
    limits = {"script": Rate(requests=10, per_s=1, burst_s=0.01)}
    agent = Agent(ScriptedModel(["One.", "Two."]), limits=limits)

    first = [part async for part in agent.stream("Go.").full_stream]
    second = [part async for part in agent.stream("Go.").full_stream]

    assert not [part for part in first if isinstance(part, Waiting)]
    (waited,) = [part for part in second if isinstance(part, Waiting)]
    assert (waited.model, waited.reason) == ("script", "fleet")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Return a way to name a store that processes share."""
    if request.param == "sqlite":
        return lambda: str(tmp_path / "runs.db")
    return lambda: database(request.getfixturevalue("postgres"))


def test_four_processes_keep_one_rate(place: Callable[[], str]) -> None:
    """In no window of time do they get more than the rate and a burst, by the store's clock."""
    module = "tests.unit.rates.fleet_process"
    command = [*warm_python(), "-m", module, place(), str(CALLS), str(REQUESTS), str(BURST_S)]
    with ExitStack() as stack:
        fleet = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(PROCESSES)
        ]
        for process in fleet:
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        told = [process.communicate("go\n", timeout=60)[0] for process in begun(fleet)]

    shares = [json.loads(text) for text in told]
    slots = sorted(at for share in shares for at in share)
    assert [len(share) for share in shares] == [CALLS] * PROCESSES
    for first, at in enumerate(slots):
        for window_s in (0.01, 0.1, 0.5, 1.0):
            found = bisect_right(slots, at + window_s) - first
            assert found <= (window_s + BURST_S) * REQUESTS + 1e-3


async def test_a_killed_process_loses_a_quarter_of_a_second(place: Callable[[], str]) -> None:
    """It had reserved for a long line: others wait for those slots, and for no more."""
    where, rate = place(), Rate(requests=REQUESTS, per_s=1.0, burst_s=BURST_S)
    module = "tests.unit.rates.fleet_process"
    command = [*warm_python(), "-m", module, where, "1000", str(REQUESTS), str(BURST_S)]
    store = open_store(where)
    assert isinstance(store, Meters)
    assert isinstance(store, Closes)
    (wanted,) = demands({"*": rate}, [0])
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:  # noqa: ASYNC220
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        begun([process])
        for _ in range(10_000):
            if await store.metered([wanted.meter], lambda known, _: ({}, dict(known))):
                break
        process.kill()
        await asyncio.to_thread(process.wait)
    change = partial(reserved, wanted=[wanted], ahead_s=math.inf)
    slots = await store.metered([wanted.meter], change)
    await store.aclose()

    (wait_s,) = slots.waits_s
    assert wait_s <= AHEAD_S + 2 / REQUESTS


def begun(fleet: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Let all processes go on at once."""
    for process in fleet:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return fleet
