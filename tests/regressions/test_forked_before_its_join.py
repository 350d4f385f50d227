"""A fork from before a join was decided: who was stopped by the decision goes on in the copy."""

from __future__ import annotations

import asyncio

from graphloop import END, Agent, AgentTool, Graph, Tool
from graphloop.agent.runs import Runs
from graphloop.nodes import Append
from graphloop.outcomes import Answered
from graphloop.own_nodes.compose import parallel
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from tests.planned_model import PlannedModel, call

LEAF = {"type": "object"}


def agents(*, quick: bool) -> dict[str, AgentTool]:
    """Return an agent that waits for its tool, one that fails, and one that is quick, or fails."""

    async def look(arguments: dict[str, object]) -> str:
        if quick:
            await asyncio.Event().wait()
        return "seen"

    tool = Tool(name="look", parameters=LEAF, execute=look, effect="pure")
    slow = Agent(PlannedModel(lambda _: [[call("look")], "the slow one"]), tools=[tool])
    given = {
        "slow": slow,
        "broken": Agent(ScriptedModel([])),
        "quick": Agent(ScriptedModel(["the quick one"] if quick else [])),
    }
    return {name: one.as_tool(description="a", name=name) for name, one in given.items()}


async def test_a_child_that_was_stopped_later_goes_on_in_the_fork() -> None:
    """It was held as aborted, and its answer, which the copy needs, was missing."""

    store, model = MemoryStore(), ScriptedModel([])
    fan, told = parallel("slow", "broken", "quick", join="first", concurrency=2), Append()
    graph: Graph[None] = Graph("hurried", fan, {fan: {Answered: told, ...: END}, told: {...: END}})
    first = await graph.run(
        None, prompt="go", model=model, agents=agents(quick=True), store=store, run_id="r"
    )
    await Runs(store, graph).fork("r", at=1, new_id="f")
    copy = await graph.resume("f", model=model, agents=agents(quick=False), store=store)

    assert ("the quick one", "the slow one") == (first.text, copy.text)
