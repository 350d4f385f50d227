"""How deep runs are within runs, as the tables say, is known before the first begins."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import END, Agent, Graph
from graphloop.agent.bindings import nesting_of
from graphloop.errors import ConfigError
from graphloop.graph import Edges
from graphloop.nodes import Append, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Ready
from graphloop.testing import ScriptedModel
from tests.nested_graphs import nest
from tests.strategies import call, reply

DEEP = "graph 'g2': 'k0' would be more than 2 agents deep. Fix: max_agent_depth=3"


def once() -> Graph[None]:
    """Return a graph that asks once."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {Answered: append, ...: END},
        append: {...: END},
    }
    return Graph("once", prepare, edges)


def ran(graph: Graph[None], **options: int) -> str:
    """Return what a run came to, of agents that all say nothing."""
    try:
        result = asyncio.run(graph.run(None, prompt="go", **options))  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - what it raises is what is looked at
        return str(error)
    return result.end_reason.value


def test_a_graph_knows_how_deep_its_nodes_begin_runs() -> None:
    """By its agents, of which each knows the same of itself."""
    runner = nest(once(), 1).as_tool(None, description="x", name="low").opener.terms
    alone = once().as_tool(None, model=ScriptedModel([]), description="x", name="one").opener.terms

    assert ((), "") == (alone.nesting.path, alone.nesting.problem)
    assert ("k0",) == runner.nesting.path
    assert "" == runner.nesting.problem
    assert nesting_of(once(), {}, 0) == alone.nesting


def test_a_run_that_would_go_too_deep_is_refused_before_it_begins() -> None:
    """What ran before would have been paid for in vain; the fix says how deep it is."""
    assert "ScriptExhausted" in ran(nest(once(), 2))
    assert DEEP == ran(nest(once(), 3))
    assert "ScriptExhausted" in ran(nest(once(), 3), max_agent_depth=3)
    assert "'k0' would be more than 1 agents deep. Fix: max_agent_depth=2" in ran(
        nest(once(), 2), max_agent_depth=1
    )


def test_the_limit_of_a_graph_within_is_named_too() -> None:
    """Its own options say how deep it may go."""
    assert "Fix: max_agent_depth=4" in ran(nest(once(), 4))
    assert DEEP == ran(nest(once(), 4), max_agent_depth=4)


def test_an_agent_that_calls_such_a_graph_is_told() -> None:
    """Nothing of the graph's run begins."""
    tool = nest(once(), 3).as_tool(None, description="Dig.", name="dig")
    model = ScriptedModel([reply(call("dig", "d", '{"prompt": "x"}')), "done"])

    result = asyncio.run(Agent(model, tools=[tool], max_agent_depth=9).generate("go"))

    (answer,) = result.steps[0].tool_results
    assert ("error", True) == (answer.status, DEEP in answer.text)
    assert [] == [one for one in asyncio.run(result.store.runs()) if "/" in one]


def test_agents_that_the_default_depth_never_reaches_are_told_when_made() -> None:
    """The model alone read the refusal; the program read that all was well."""

    def above(agent: Agent, name: str) -> Agent:
        tool = agent.as_tool(description="Ask.", name=agent.name)
        return Agent(ScriptedModel(["done"]), name=name, tools=[tool])

    def limited(agent: Agent, depth: int) -> Agent:
        tool = agent.as_tool(description="Ask.", name=agent.name)
        return Agent(ScriptedModel(["done"]), tools=[tool], max_agent_depth=depth)

    leaf = Agent(ScriptedModel(["done"]), name="leaf")
    top = above(above(leaf, "mid"), "top")

    with pytest.raises(ConfigError) as told:
        above(top, "boss")
    assert "agents 'top' > 'mid' > 'leaf' are 3 deep" in str(told.value)
    assert "Fix: max_agent_depth=3, or max_agent_depth=2 if" in str(told.value)
    limited(top, 2)
    above(limited(top, 1), "boss")
