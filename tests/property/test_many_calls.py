"""Many calls in one reply: what each costs does not grow with how many there are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

import pytest

from graphloop import Agent, Tool
from graphloop.events import CallCheck, Setup
from graphloop.spending import Budget
from graphloop.testing import ScriptedModel
from graphloop.values import ToolSpec
from tests.strategies import Adversary, call, loop, reply, spec

FEW: Final = 50
MANY: Final = 500

WORLD: Final = "/testing/sim.py"
"""The simulated world looks through its own lists; it is no part of a run."""

TOOLS: Final[dict[str, ToolSpec]] = {
    "a tool": spec("read"),
    "a tool with a lock": spec("read", lock="disk"),
    "an agent": spec("read", "agent"),
    "an agent with a lock": spec("read", "agent", lock="disk"),
}


def functions_called(work: Callable[[], object]) -> int:
    """Return how many Python functions some work calls."""
    called = 0

    def counts(frame: FrameType, event: str, argument: object) -> None:
        nonlocal called
        called += event == "call" and not frame.f_code.co_filename.endswith(WORLD)

    sys.setprofile(counts)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


def simulated(tool: ToolSpec, count: int, *, asks: bool = False) -> Callable[[], object]:
    """Return a run of the kernel with so many calls of a tool in one reply."""
    budget = Budget(tool_calls=9_999, agent_calls=9_999, tokens=10**9)
    models = (reply("done"), reply(*[call()] * count))
    world = Adversary(models, checks=(CallCheck(needs_approval=asks),))
    return lambda: world.run(loop(max_steps=1), setup=Setup("model", (tool,), budget=budget))


async def fine(arguments: dict[str, object]) -> str:
    """Return at once."""
    return "fine"


def driven(count: int) -> Callable[[], object]:
    """Return a run of an agent with so many calls in one reply."""
    tool = Tool(name="read", parameters={"type": "object"}, execute=fine)
    agent = Agent(ScriptedModel([reply(*[call()] * count), "done"]), tools=[tool])
    return lambda: asyncio.run(agent.generate("go"))


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("kind", TOOLS)
def test_the_kernel_does_as_much_for_each_call_of_many_as_of_few(kind: str, asks: bool) -> None:
    """Whoever answers or starts a call does not look at the others."""
    few = functions_called(simulated(TOOLS[kind], FEW, asks=asks)) / FEW
    many = functions_called(simulated(TOOLS[kind], MANY, asks=asks)) / MANY

    assert many < 1.2 * few


def test_a_driver_does_as_much_for_each_call_of_many_as_of_few() -> None:
    """A reply with thousands of calls must not hold up the event loop."""
    few, many = functions_called(driven(FEW)) / FEW, functions_called(driven(MANY)) / MANY

    assert many < 1.2 * few
