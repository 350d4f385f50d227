"""graphloop.testing: what users test their agents with."""

from __future__ import annotations

import asyncio

from graphloop import Agent, EndReason, testing
from graphloop.effects import CallModel, CallTool
from graphloop.events import Setup
from graphloop.testing import ScriptedModel, World, simulate
from graphloop.tools import ToolOutcome
from graphloop.values import Reply, UserMessage
from tests.strategies import call, loop, reply, spec


def test_the_offered_names_are_there() -> None:
    """A name that is documented for tests must not be missing when they run."""
    assert {"ScriptedModel", "Simulation", "World", "simulate"} == set(testing.__all__)
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_an_agent_is_tested_without_a_server() -> None:
    """The script is the model; what it was asked is written down."""
    model = ScriptedModel(["hi"])

    result = asyncio.run(Agent(model).generate("go"))

    assert ("hi", UserMessage("go")) == (result.text, model.requests[0].messages[0])


def test_a_graph_is_tested_under_a_seed() -> None:
    """The same seed gives the same events; a crash loses and repeats nothing."""

    def answer(effect: CallModel) -> Reply:
        return reply("done") if len(effect.request.messages) > 1 else reply(call(), call())

    def execute(effect: CallTool) -> ToolOutcome:
        return ToolOutcome(effect.key, "ok")

    def run(*crashes: int) -> testing.Simulation[None]:
        return simulate(
            loop(),
            [UserMessage("go")],
            World(model=answer, tool=execute),
            None,
            setup=Setup("model", (spec("read"),)),
            seed=7,
            crash_after=crashes,
        )

    calm, again, crashed = run(), run(), run(1, 3, 5)

    assert calm.events == again.events
    assert crashed.run.ending is not None
    assert EndReason.COMPLETED is crashed.run.ending.reason
    assert ["c0.0", "c0.1"] == [one.text for one in crashed.run.steps[0].tool_results]
    assert set() == crashed.repeated
