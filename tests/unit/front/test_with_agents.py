"""with_agents: agents by name, as a topology's file has them, in Python."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.errors import ConfigError
from graphloop.front.asking import Asking, ask_agent, tell
from graphloop.front.compose import fallback, retry
from graphloop.front.graph import Graph
from graphloop.front.own_node import node
from graphloop.front.topology import Topology, dump, load
from graphloop.front.with_agents import with_agents
from graphloop.graph import END, Edges
from graphloop.nodes import Append, Branch, Child, ModelCall, Parallel, PrepareStep
from graphloop.outcomes import Answered, Calls, Failed, Final, Ready
from graphloop.providers.script import ScriptedModel
from graphloop.temporal import only_after
from graphloop.topology.document import document_of
from graphloop.topology.registration import registry

PREPARE, MODEL, APPEND = PrepareStep(), ModelCall(), Append()
REPLY: Graph[None] = Graph(
    "reply",
    PREPARE,
    {
        PREPARE: {Ready: MODEL, Calls: APPEND, ...: END},
        MODEL: {Failed: END, ...: APPEND},
        APPEND: {...: END},
    },
)
CHILD, SAID = Child("writer", "draft", "Draft it."), Append("said")
VOTE = Parallel((Branch("judge", "Good?"),), join="first", name="vote")
CHAIN: Graph[None] = Graph(
    "chain",
    CHILD,
    {
        CHILD: {Answered: SAID, ...: END},
        SAID: {Final: VOTE, ...: END},
        VOTE: {Answered: APPEND, ...: END},
        APPEND: {...: END},
    },
)


def chain() -> Topology:
    return with_agents(CHAIN, {"writer": REPLY, "judge": REPLY})


def test_a_run_needs_a_model_and_nothing_else() -> None:
    """The agents ask the model of the run, each in its part."""
    model = ScriptedModel([{"to": "Draft it.", "text": "a draft"}, {"to": "Good?", "text": "yes"}])

    result = asyncio.run(chain().run(None, model=model, prompt="A poem."))

    assert ["a draft", "yes"] == [one.text for one in result.steps]
    assert chain().needs_model


def test_the_agents_are_proven_and_bounded_as_well() -> None:
    """By name alone, nobody knows what they do."""
    assert CHAIN.bound().model_calls is None
    assert (2, 0) == (chain().bound().model_calls, chain().bound().tool_calls)
    assert "GL4" in chain().check().proven


def test_it_is_the_graph_that_a_file_describes() -> None:
    """Written and read back, it is equal; the graph that was given is as it was."""
    assert chain() == load(dump(chain()))
    assert CHILD is CHAIN.nodes["draft"]


def test_agents_of_nodes_within_nodes_are_known() -> None:
    """What is tried again, and what stands in for it."""
    tried = fallback(retry(Child("writer"), 2), Child("judge", "writer"))
    graph: Graph[None] = Graph(
        "g", tried, {tried: {Answered: APPEND, ...: END}, APPEND: {...: END}}
    )

    made = with_agents(graph, {"writer": REPLY, "judge": REPLY})

    assert 4 == made.bound().model_calls
    assert made == load(dump(made))


@registry.node
@node(model_calls=1, agents={"writer": 2})
def asks_a_writer(_: None) -> Asking[Answered]:
    """Ask an agent by its name."""
    yield from tell((yield from ask_agent("writer", "Draft it.")))
    return Answered()


def test_the_agents_that_a_generator_asks_are_proven_and_bounded() -> None:
    """They are named as those of any other node."""
    graph: Graph[None] = Graph("g", asks_a_writer, {asks_a_writer: {...: END}})

    made = with_agents(graph, {"writer": REPLY})

    assert graph.bound().model_calls is None
    assert 3 == made.bound().model_calls
    assert "GL4" in made.check().proven
    assert made == load(dump(made))
    model = ScriptedModel([{"to": "Draft it.", "text": "a draft"}])
    result = asyncio.run(made.run(None, model=model, prompt="A poem."))
    assert "a draft" == getattr(result.messages[-1], "content", "")


def test_an_agent_that_no_node_runs_is_refused() -> None:
    """A slip in a name would leave the node without its agent."""
    with pytest.raises(ConfigError, match="runs an agent 'wirter'; they run 'judge', 'writer'"):
        with_agents(CHAIN, {"wirter": REPLY})


def test_it_brings_its_rules() -> None:
    """As a file does."""
    ruled = with_agents(CHAIN, {"writer": REPLY}, rules=only_after("node:vote", "node:draft"))

    assert "GL12" in ruled.check().proven
    assert 1 == len(ruled.rules)


def test_agents_may_have_agents() -> None:
    """A topology in a topology."""
    child = Child("chain")
    outer: Graph[None] = Graph(
        "outer", child, {child: {Answered: APPEND, ...: END}, APPEND: {...: END}}
    )

    made = with_agents(outer, {"chain": chain()})

    assert 2 == made.bound().model_calls
    assert made == load(dump(made))


def test_agents_that_are_used_at_many_levels_are_one_each() -> None:
    """Thirty levels of two would be a billion."""
    first, second, last = Child("left"), Child("right"), Append()
    rows: Edges[None] = {
        first: {Answered: second, ...: END},
        second: {Answered: last, ...: END},
        last: {...: END},
    }
    graph: Graph[None] = REPLY
    for level in range(30):
        graph = with_agents(Graph(f"g{level}", first, rows), {"left": graph, "right": graph})

    assert isinstance(graph, Topology)
    assert graph.agents["left"] is graph.agents["right"]
    assert 2**30 < document_of(graph).size
