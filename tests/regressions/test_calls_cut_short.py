"""A child run that is stopped in the middle of a tool: the tool has run, or may have.

Its parent goes on with what is left of the budget, and must not have that call again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from graphloop import END, Agent, AgentTool, Graph, budget, tool
from graphloop.errors import RunFailed
from graphloop.graph import Edges
from graphloop.nodes import Append, Limit
from graphloop.outcomes import Answered, Final, Go
from graphloop.own_nodes.compose import parallel
from graphloop.replay import replay
from graphloop.run import Run
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel

ROUNDS = 6
CALLS_MAX = 4


class Race:
    """Two tools: one ends once the other is under way, and the other never ends."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self._under_way = asyncio.Event()

    async def look(self) -> str:
        """Look, until somebody else works."""
        self.begun["look"] += 1
        await self._under_way.wait()
        self._under_way.clear()
        return "seen"

    async def work(self) -> str:
        """Work for ever."""
        self.begun["work"] += 1
        self._under_way.set()
        await asyncio.Event().wait()
        return "never"

    def agents(self) -> dict[str, AgentTool]:
        """Return two agents, each of which calls one of them in each round."""
        look = ScriptedModel([{"calls": [{"name": "look"}]}, "done"] * ROUNDS)
        work = ScriptedModel([{"calls": [{"name": "work"}]}] * ROUNDS)
        return {
            "look": Agent(look, tools=[tool(self.look)]).as_tool(description="a", name="look"),
            "work": Agent(work, tools=[tool(self.work)]).as_tool(description="a", name="work"),
        }


def again_and_again() -> Graph[None]:
    """Return a graph that has both raced, over and over."""
    fan, append, limit = parallel("look", "work", join="first"), Append(), Limit(ROUNDS)
    edges: Edges[None] = {
        fan: {Answered: append, ...: END},
        append: {Final: limit, ...: END},
        limit: {Go: fan, ...: END},
    }
    return Graph("race", fan, edges)


async def raced(store: Store) -> tuple[Counter[str], Run[None]]:
    """Race until the budget has no call left; return what began, and the run."""
    race, graph = Race(), again_and_again()
    with suppress(RunFailed):
        await graph.run(
            None,
            prompt="go",
            agents=race.agents(),
            budget=budget(tool_calls=CALLS_MAX),
            store=store,
            run_id="r",
        )
    return race.begun, replay(graph, await store.load("r"))


def test_a_call_that_was_cut_short_is_one_of_the_budget_s() -> None:
    """Each round stops a tool in its middle, and none of them may be had for nothing."""

    async def scenario() -> tuple[Counter[str], Run[None]]:
        async with asyncio.timeout(10.0):
            return await raced(MemoryStore())

    begun, run = asyncio.run(scenario())

    assert {"look": 2, "work": 2} == begun
    assert CALLS_MAX == run.spent.tool_calls
