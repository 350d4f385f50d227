"""Below: the children of a run, seen through the door that its driver has to them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from graphloop.drivers.aio import AsyncDriver
from graphloop.drivers.below import Below, Driving
from graphloop.drivers.children import Nested, Resumption
from graphloop.drivers.hearing import Item, Parked
from graphloop.drivers.perform import Performer
from graphloop.drivers.ports import ChildRun, Ports
from graphloop.effects import StartRun
from graphloop.events import Cancelled, EffectFailed, Started
from graphloop.run import Run
from graphloop.spending import Spent
from graphloop.stores.memory import MemoryStore
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.strategies import QUESTION

PARKING: Plans = {"go": [batch("kid")], "kid": [batch("client")]}
STOPPED = Cancelled(9.0, "enough")


def driver_of(child: ChildRun[Any], state: object) -> Driving:
    """Return a driver as the driver of a run makes those of its children."""
    return AsyncDriver(child.graph, child.ports, state)


async def parked() -> tuple[Ports[None], Run[None], StartRun, Run[Any]]:
    """Return a run that waits for a child, in its world: the wish, and the child as it stands."""
    runner = tree(Ledger(), PARKING)._runner  # pyright: ignore[reportPrivateUsage]
    ports = runner.ports(MemoryStore())
    driver: AsyncDriver[None] = AsyncDriver(runner.graph, ports, None)
    async for _ in driver.start(Started(0.0, "r", "agent", QUESTION, runner.setup)):
        pass
    assert driver.run is not None
    (effect,) = driver.run.pending.values()
    assert isinstance(effect, StartRun)
    return ports, driver.run, effect, driver.descendants["r/c0.0"]


def test_a_child_is_seen_until_it_parks_and_then_known() -> None:
    """It is begun where nobody has begun it, and taken up by the driver that has."""

    async def scenario() -> tuple[list[Item], list[Item], list[str]]:
        ports, run, effect, _ = await parked()
        below = Below(Performer(replace(ports, store=MemoryStore())), driver_of)
        assert {} == below.descendants
        begun: list[Item] = [one async for one in below.drive(effect, run)]
        again: list[Item] = [one async for one in below.drive(effect, run)]
        return begun, again, [*below.descendants]

    begun, again, known = asyncio.run(scenario())

    assert {Nested} == {type(one) for one in begun[:-1]}
    assert isinstance(begun[-1], Parked)
    assert begun[-1] == again[-1]
    assert len(again) < len(begun)
    assert ["r/c0.0"] == known


def test_a_child_that_cannot_be_opened_has_failed() -> None:
    """It is the run's to handle, not the driver's."""

    async def scenario() -> list[object]:
        ports, run, effect, _ = await parked()
        below = Below(Performer(replace(ports, children={})), driver_of)
        return [one async for one in below.drive(effect, run)]

    (failed,) = asyncio.run(scenario())

    assert isinstance(failed, EffectFailed)
    assert "kid" in failed.failure.message


def test_a_child_of_another_process_is_ended_and_paid_for() -> None:
    """And one that nobody knows has not begun: there is nothing to end, and nothing to pay."""

    async def scenario() -> tuple[Spent, Spent, Spent, bool]:
        ports, run, effect, child = await parked()
        below = Below(Performer(ports), driver_of)
        nothing = await below.end(effect, run, STOPPED, unless_busy=True)
        below.known = {effect.key: Resumption(child)}
        spent = await below.end(effect, run, STOPPED, unless_busy=True)
        return nothing, spent, child.spent, below.descendants["r/c0.0"].ended

    nothing, spent, had, ended = asyncio.run(scenario())

    assert Spent() == nothing
    assert had.model_calls == spent.model_calls == 1
    assert ended
