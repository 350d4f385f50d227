"""with_agents: agents by name, as a topology's file has them, in Python."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from graphloop.agent.agent import Agent
from graphloop.agent.graph import Graph
from graphloop.contract import contract_of
from graphloop.errors import ConfigError
from graphloop.graph import END, Edges
from graphloop.nodes import Append, Branch, Child, ModelCall, Parallel, PrepareStep
from graphloop.outcomes import Answered, Calls, Failed, Final, Ready
from graphloop.own_nodes.compose import fallback, retry
from graphloop.own_nodes.node_decorator import node
from graphloop.own_nodes.requests import Asking, ask_agent, tell
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.proofs.bounds import bound
from graphloop.providers.script import ScriptedModel
from graphloop.rules import Rules, never
from graphloop.topology.agents import with_agents
from graphloop.topology.document import document_of
from graphloop.topology.loaded import Topology, dump, load
from graphloop.topology.registration import Registry, registry
from graphloop.values import SystemMessage

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

    assert ["a draft", "yes"] == [step.text for step in result.steps]
    assert chain().needs_model


def test_the_agents_are_proven_and_bounded_as_well() -> None:
    """By name alone, nobody knows what they do."""
    assert bound(CHAIN).model_calls is None
    assert (2, 0) == (bound(chain()).model_calls, bound(chain()).tool_calls)
    assert "GL4" in chain().check().proven


def test_it_is_the_graph_that_a_file_describes() -> None:
    """Written and read back, it is equal; the graph that was given is as it was."""
    assert chain() == load(dump(chain()))
    assert CHILD is CHAIN.nodes["draft"]


def test_agents_of_nodes_within_nodes_are_known() -> None:
    """A retried node and both nodes of a fallback name agents."""
    tried = fallback(retry(Child("writer"), 2), Child("judge", "writer"))
    graph: Graph[None] = Graph(
        "g", tried, {tried: {Answered: APPEND, ...: END}, APPEND: {...: END}}
    )

    made = with_agents(graph, {"writer": REPLY, "judge": REPLY})

    assert 4 == bound(made).model_calls
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

    assert bound(graph).model_calls is None
    assert 3 == bound(made).model_calls
    assert "GL4" in made.check().proven
    assert made == load(dump(made))
    model = ScriptedModel([{"to": "Draft it.", "text": "a draft"}])
    result = asyncio.run(made.run(None, model=model, prompt="A poem."))
    assert "a draft" == getattr(result.messages[-1], "content", "")


def test_an_agent_that_no_node_runs_is_refused() -> None:
    """A slip in a name would leave the node without its agent."""
    with pytest.raises(ConfigError, match=r"'wirter'.* they run 'judge', 'writer'"):
        with_agents(CHAIN, {"wirter": REPLY})


def test_an_agent_with_the_name_of_a_node_s_agent_is_refused() -> None:
    """No run could tell which of the two is meant: every one would be refused."""
    own = sub_graph(REPLY, name="writer", model=ScriptedModel([]))
    both: Graph[None] = Graph("both", own, {own: {...: CHILD}, CHILD: {...: END}})

    with pytest.raises(ConfigError, match=r"'writer': .* brings another agent of that name"):
        with_agents(both, {"writer": REPLY})


def test_agents_may_have_agents() -> None:
    """A topology in a topology."""
    child = Child("chain")
    outer: Graph[None] = Graph(
        "outer", child, {child: {Answered: APPEND, ...: END}, APPEND: {...: END}}
    )

    made = with_agents(outer, {"chain": chain()})

    assert 2 == bound(made).model_calls
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
    assert graph.surroundings.agents["left"] is graph.surroundings.agents["right"]
    assert 2**30 < document_of(graph).size


FILE = """\
graphloop: 1
name: desk
description: helps
instructions: Be kind.
prompt: Say hello.
start: p
tools: [look_up]
agents:
  writer: {given: true, description: writes, takes_over: true, place: anywhere}
  judge:
    graph:
      {name: j, start: a, nodes: {a: {use: append}}, edges: {a: {else: END}}}
nodes:
  p: {use: prepare_step}
  m: {use: model_call}
  g: {use: gate, rules: [{allow: "*"}]}
  e: {use: execute}
  a: {use: append}
  s: {use: stop_check, max_steps: 5}
  both: {use: parallel, branches: [writer, judge]}
edges:
  p: {ready: m, calls: g, else: END}
  m: {calls: g, else: a}
  g: {settled: e, else: a}
  e: {approval_needed: g, else: a}
  a: {answered_calls: s, resend: s, else: both}
  s: {go: p, else: END}
  both: {else: END}
rules: [{never: "tool:look_up"}]
ignore: [{node: m, code: GL3, reason: seen}]
"""


def test_a_loaded_topology_keeps_the_rest_of_its_file() -> None:
    """Its rules, too: to fill in its agent must not take off what it is held to."""
    ran: list[str] = []

    def look_up(word: str) -> str:
        """Look up."""
        ran.append(word)
        return word

    own = Registry()
    own.tool(look_up)
    loaded = load(FILE, registry=own)
    more = never("e", before="g")

    made = with_agents(loaded, {"writer": REPLY}, rules=more)

    told = made.document
    assert loaded.rules & more == made.rules
    before = replace(loaded.document, agents={}, rules=Rules())
    assert before == replace(told, graph=before.graph, agents={}, rules=Rules())
    entry = told.agents["writer"]
    assert ("writes", True, "anywhere") == (entry.description, entry.takes_over, entry.place)
    assert loaded.document.agents["judge"] == told.agents["judge"]
    assert made == load(dump(made, registry=own), registry=own)
    promised = contract_of(made.nodes["both"])
    assert promised is not None
    assert [REPLY, loaded.surroundings.agents["judge"]] == [one.graph for one in promised.children]

    call = {"calls": [{"name": "look_up", "arguments": {"word": "x"}}]}
    model = ScriptedModel([call, "done", "a", "b"])
    result = asyncio.run(made.run(None, model=model, prompt=made.prompt))
    assert [] == ran
    assert "completed" == result.end_reason
    assert ["Be kind."] == [
        message.content
        for message in model.requests[0].messages
        if isinstance(message, SystemMessage)
    ]
    assert ["look_up"] == [tool.name for tool in model.requests[0].tools]


def test_another_graph_takes_the_place_of_the_first() -> None:
    """In the nodes as in what is written down."""
    other: Graph[None] = Graph("other", APPEND, {APPEND: {...: END}})

    made = with_agents(chain(), {"judge": other})

    assert with_agents(CHAIN, {"writer": REPLY, "judge": other}) == made
    assert made == load(dump(made))


def test_a_rule_about_nothing_is_refused() -> None:
    """It would hold for ever and guard nothing."""
    with pytest.raises(ConfigError, match="no node, outcome or tool 'nope'"):
        with_agents(CHAIN, {"writer": REPLY}, rules=never("nope", before="draft"))


def test_a_rule_may_name_tools_of_the_file_and_of_runs() -> None:
    """A given agent may bring any tool, so the rule spells it `tool:name`."""
    known = Registry()
    known.tool(len, name="count")
    loaded = load(dump(CHAIN) + "tools: [count]\n", registry=known)

    for word in ("count", "tool:count", "tool:other"):
        assert 1 == len(
            with_agents(loaded, {"writer": REPLY}, rules=never(word, before="draft")).rules
        )
    with pytest.raises(ConfigError, match="'other'"):
        with_agents(loaded, {"writer": REPLY}, rules=never("other", before="draft"))


def test_an_agent_keeps_its_own_model_and_is_proven() -> None:
    """A graph asks the model of the run; either is proven and bounded."""
    own = ScriptedModel(["a draft"], label="own")
    writer = Agent(own, name="anything", max_steps=3, instructions="Write.")

    manned = with_agents(with_agents(CHAIN, {"judge": REPLY}), {"writer": writer})
    result = asyncio.run(manned.run(None, model=ScriptedModel(["yes"]), prompt="A poem."))

    assert ["a draft", "yes"] == [step.text for step in result.steps]
    assert SystemMessage("Write.") in own.requests[0].messages
    assert "GL4" in manned.check().proven
    assert bound(manned).model_calls is not None
    assert not with_agents(CHAIN, {"writer": writer, "judge": writer}).needs_model
