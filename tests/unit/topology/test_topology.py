"""Topologies that are loaded: they bring the names of their files, and the graphs of agents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphloop.agent import Graph
from graphloop.agent.agent import Agent
from graphloop.contract import contract_of
from graphloop.effects import Effect, Invoke
from graphloop.errors import ConfigError
from graphloop.events import BranchesJoined, Event
from graphloop.graph import END, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction, Wait
from graphloop.nodes import Append, Branch, Child, MapOver, Parallel
from graphloop.outcomes import Outcome
from graphloop.own_nodes.node_decorator import node
from graphloop.providers.script import ScriptedModel
from graphloop.rules import never
from graphloop.run import Run
from graphloop.topology import TopologyError, with_agents
from graphloop.topology.document import (
    agents_of,
    graphs_run,
    with_graphs,
)
from graphloop.topology.loaded import (
    Topology,
    dump,
    fingerprint,
    load,
)
from graphloop.topology.registration import Registry
from graphloop.values import SystemMessage


class Billing(Outcome):
    """To the desk."""


@node
def route(state: None) -> Billing:
    """Go to the desk."""
    return Billing()


def over(arguments: Mapping[str, int], context: object) -> bool:
    """Whether it is too much."""
    return arguments["amount"] > 10


def refund(amount: int) -> str:
    """Pay back."""
    return f"refunded {amount}"


REGISTRY = Registry()
REGISTRY.node(route)
REGISTRY.predicate(over)
REGISTRY.tool(refund)

DESK = """\
graphloop: 1
name: desk
start: route
prompt: Refund 5.
tools: [refund, writer]
agents:
  writer: {include: writer.yaml, description: writes}
  other: {include: writer.yaml}
nodes:
  route: {use: route}
  again: {use: route}
  ask_other: {use: child, agent: other}
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  gate:
    use: gate
    rules: [{deny: refund, when: over, reason: too much}, {allow: [refund, writer]}]
  execute: {use: execute}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 8}
edges:
  route: {billing: again, else: END}
  again: {billing: prepare_step, else: ask_other}
  ask_other: {answered: append, else: END}
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {approval_needed: gate, else: append}
  append: {answered_calls: stop_check, resend: stop_check, else: END}
  stop_check: {go: prepare_step, else: END}
rules: [{never: execute, before: gate}]
"""
WRITER = """\
graphloop: 1
name: writer
start: prepare_step
nodes: {prepare_step: {use: prepare_step}, model_call: {use: model_call}, append: {use: append}}
edges:
  prepare_step: {ready: model_call, calls: append, else: END}
  model_call: {else: append}
  append: {else: END}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Topology:
    (tmp_path / "desk.yaml").write_text(DESK)
    (tmp_path / "writer.yaml").write_text(WRITER)
    return load(tmp_path / "desk.yaml", registry=REGISTRY)


def test_a_run_needs_a_model_and_nothing_else(desk: Topology) -> None:
    """Nodes, tools, agents and the conditions of gates come with the file."""
    calls = [
        {"name": "refund", "arguments": {"amount": 5}},
        {"name": "refund", "arguments": {"amount": 50}},
        {"name": "writer", "arguments": {"prompt": "Write."}},
    ]
    model = ScriptedModel([{"calls": calls}, "Dear …", "Done."])

    result = asyncio.run(desk.run(None, model=model, prompt=desk.prompt))

    contents = [one.content for one in result.steps[0].tool_results]
    assert ["refunded 5", "Tool call denied. Reason: too much", "Dear …"] == contents
    assert "Done." == result.text


def test_a_dumped_topology_holds_its_includes(desk: Topology) -> None:
    """The text is whole: it reads back without its files."""
    back = load(dump(desk, registry=REGISTRY), registry=REGISTRY)

    assert desk == back
    assert hash(desk) == hash(back)
    assert fingerprint(desk, registry=REGISTRY) == fingerprint(back, registry=REGISTRY)
    assert desk != load(dump(desk, registry=REGISTRY).replace("writes", "w"), registry=REGISTRY)


VOTE = """\
graphloop: 1
name: vote
start: vote
agents: {judge: {include: writer.yaml}}
nodes:
  vote: {use: parallel, branches: [judge, judge], callback: count_votes}
  append: {use: append}
edges:
  vote: {answered: append, else: END}
  append: {else: END}
"""


def test_a_registered_function_may_be_a_plain_one(tmp_path: Path) -> None:
    """As registered predicates and tools may."""
    known = Registry()

    @known.function
    def count_votes(run: Run[None]) -> BranchesJoined:
        return BranchesJoined(f"{len(run.turn.branches)} votes")

    (tmp_path / "writer.yaml").write_text(WRITER)
    (tmp_path / "vote.yaml").write_text(VOTE)
    vote = load(tmp_path / "vote.yaml", registry=known)

    assert (
        "2 votes" == asyncio.run(vote.run(None, model=ScriptedModel(["a", "b"]), prompt="?")).text
    )


def test_the_rules_of_the_file_are_proven(desk: Topology) -> None:
    """With the rules of the caller, the tools of the file, and the graphs of agents."""
    assert desk.check().ok
    assert 1 == len(desk.rules)
    assert desk.needs_model
    assert not desk.check(rules=never("execute")).ok
    assert ("refund", "writer") == desk.surroundings.tool_names
    assert desk.check(rules=never("refund", before="gate")).ok
    with pytest.raises(ConfigError, match=r"no tool 'refnd'\. Did you mean 'refund'"):
        desk.check(rules=never("tool:refnd"))


def test_the_standard_loop_can_be_written_down() -> None:
    """It is a table like any other."""
    graph = Agent(ScriptedModel(()), max_steps=3).graph

    assert graph == load(dump(graph))


def test_a_tool_that_is_given_twice_is_refused(desk: Topology) -> None:
    """One of them would never be called."""
    with pytest.raises(ConfigError, match="found 'refund', which the topology brings along"):
        desk.stream(None, model=ScriptedModel(()), prompt="x", tools=[refund])


def test_the_instructions_of_the_file_are_the_system_message(desk: Topology) -> None:
    """Each agent has its own; a run that is given some goes by those."""
    text = dump(desk, registry=REGISTRY).replace(
        "name: desk", "name: desk\ninstructions: Be brief."
    )
    brief, model = load(text, registry=REGISTRY), ScriptedModel(["Yes.", "No."])

    asyncio.run(brief.run(None, model=model, prompt="Hi"))
    asyncio.run(brief.run(None, model=model, prompt="Hi", instructions="Be long."))

    said = [request.messages[0] for request in model.requests]
    assert [SystemMessage("Be brief."), SystemMessage("Be long.")] == said
    assert brief == load(dump(brief, registry=REGISTRY), registry=REGISTRY) != desk


ENDLESS = """\
graphloop: 1
name: t
start: a
nodes: {a: {use: function, leaves_by: [go, stop], callback: over}}
edges: {a: {go: a, else: END}}
"""
INNER = ENDLESS.replace("graphloop: 1\n", "").replace("\n", "\n      ")
NESTED = f"""\
graphloop: 1
name: outer
start: b
agents:
  twin: {{include: twin.yaml}}
  worker:
    graph:
      {INNER}
nodes: {{b: {{use: child, agent: worker}}, c: {{use: child, agent: twin}}}}
edges: {{b: {{else: c}}, c: {{else: END}}}}
"""


def functions() -> Registry:
    """Return what the endless files name."""
    registry = Registry()
    registry.function(len, name="over")
    return registry


def test_a_reason_to_run_for_ever_is_part_of_what_a_graph_says() -> None:
    """It behaves otherwise: it is another graph, and is written down with the reason."""
    known = functions()
    plain = load(ENDLESS, registry=known)

    made = plain.unbounded("a person looks on")

    assert made != plain
    assert fingerprint(made, registry=known) != fingerprint(plain, registry=known)
    assert made == load(dump(made, registry=known), registry=known)
    assert not load(dump(made, registry=known), registry=known).is_endless
    said = "ignore: [{node: a, code: GL4, reason: a person looks on}]\n"
    assert made == load(ENDLESS + said, registry=known)
    assert plain.is_endless


def test_the_reason_reaches_the_agents_wherever_they_stand(tmp_path: Path) -> None:
    """And what is read back is as bounded; the graph that was given is as it was."""
    known = functions()
    (tmp_path / "twin.yaml").write_text(ENDLESS)
    (tmp_path / "outer.yaml").write_text(NESTED)
    plain = load(tmp_path / "outer.yaml", registry=known)

    made = plain.unbounded("seen")

    assert (True, False) == (plain.is_endless, made.is_endless)
    assert {("worker/a", "GL4"): "seen", ("twin/a", "GL4"): "seen"} == dict(made.ignore)
    again = load(dump(made, registry=known), registry=known)
    assert again == made
    assert not again.is_endless
    with pytest.raises(ConfigError, match="needs no reason"):
        made.unbounded("again")
    with pytest.raises(ConfigError, match="a reason in words"):
        plain.unbounded(" ")


def test_a_text_is_told_from_a_path_by_any_line_break() -> None:
    """Those of old systems are YAML's, too; what is neither is refused in words."""
    assert load(WRITER) == load(WRITER.replace("\n", "\r")) == load(WRITER.replace("\n", "\r\n"))


def test_an_agent_that_nodes_run_may_have_any_name() -> None:
    """No model has to call it by that."""
    text = WRITER.replace("append: {use: append}", "append: {use: append}, k: {use: child, KEY}")
    text = text.replace("KEY", "agent: my writer").replace("start: prepare_step", "start: k")
    text += f"  k: {{else: prepare_step}}\nagents:\n  my writer:\n    graph:\n{inner(WRITER)}"

    result = asyncio.run(load(text).run(None, model=ScriptedModel(["a", "b"]), prompt="?"))

    assert "b" == result.text


def inner(text: str) -> str:
    """Return a topology as it stands within another."""
    return text.replace("graphloop: 1\n", "").replace("\n", "\n      ").join(("      ", "\n"))


def test_a_reason_for_an_agent_that_nothing_calls_is_no_finding() -> None:
    """A graph that runs no tools calls no agent; its runs are refused without the reason."""
    known = functions()
    listed = f"tools: [w]\nagents:\n  w:\n    description: d\n    graph:\n{inner(ENDLESS)}"
    plain = load(WRITER + listed, registry=known)

    made = plain.unbounded("seen")

    assert (True, False) == (plain.is_endless, made.is_endless)
    assert {finding.code for finding in plain.check().findings} == {
        finding.code for finding in made.check().findings
    }


HEARD: list[Event] = []


@dataclass(frozen=True)
class Quiet:
    """A node of one's own that promises nothing, and has a function called."""

    name: str = "quiet"
    callback: str = ""
    kind: Kind = "pure"

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """One."""
        return frozenset({Billing})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Call it."""
        return Wait(run, (Invoke(run.next_effect, self.callback),))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Note what it heard."""
        HEARD.append(event)
        return Leave(run, Billing())


def sum_up(run: Run[None]) -> BranchesJoined:
    """Say something."""
    return BranchesJoined("all of it")


def test_a_node_without_a_contract_gets_its_registered_callback() -> None:
    """As the library's nodes are: the name stands in the file, and the function is registered."""
    own = Registry()
    own.node(Quiet)
    own.function(sum_up)
    text = """\
graphloop: 1
name: quiet
start: one
nodes: {one: {use: Quiet, callback: sum_up}}
edges: {one: {else: END}}
"""
    HEARD.clear()
    asyncio.run(load(text, registry=own).run(None, prompt="go"))

    assert [BranchesJoined("all of it")] == [getattr(event, "answer", event) for event in HEARD]


AGENT: NodeGraph[None] = NodeGraph("inner", Append(), {Append(): {...: END}})


def test_the_proofs_see_the_graphs_of_agents() -> None:
    """A child that is known by name only would be unknown to them."""
    for plain in (Child("a", "x"), MapOver("a", 3), Parallel((Branch("a"), Branch("b")))):
        wrapped = with_graphs(plain, {"a": AGENT})

        promised = contract_of(wrapped)
        assert promised is not None
        assert {"a": AGENT} == {each.name: each.graph for each in promised.children if each.graph}
        told = (wrapped.name, wrapped.kind, wrapped.outcomes)
        assert (plain.name, plain.kind, plain.outcomes) == told
        assert agents_of(plain) == agents_of(wrapped)
    assert Child("b") == with_graphs(Child("b"), {"a": AGENT})
    assert Append() == with_graphs(Append(), {"a": AGENT})


def test_graphs_are_added_one_after_another_and_replaced() -> None:
    """Two agents of one node may come from two places; the later of two graphs counts."""
    other: NodeGraph[None] = NodeGraph("other", Append(), {Append(): {...: END}})
    both = Parallel((Branch("a"), Branch("b")))
    first = with_graphs(both, {"a": AGENT})

    assert first is with_graphs(first, {"a": AGENT})
    assert with_graphs(both, {"a": AGENT, "b": other}) == with_graphs(first, {"b": other})
    assert {"a": other, "b": None} == graphs_run([with_graphs(first, {"a": other})])


@dataclass(frozen=True)
class Article:
    """A state that a file's nodes name fields of."""

    questions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""


MAPPED = """
graphloop: 1
name: news
start: work
agents: {reader: {given: true}}
nodes:
  work: {use: map_over, agent: reader, max_items: 3, items: questions, into: INTO}
edges:
  work: {else: END}
"""


def mapped(into: str) -> str:
    """Return the text of a topology whose map writes into a field."""
    return MAPPED.replace("INTO", into)


def test_a_loaded_graph_has_the_state_type_that_its_caller_names() -> None:
    graph = load(mapped("notes"), state_type=Article)
    reader = Agent(ScriptedModel(["wax", "nectar"]), name="reader")

    result = graph.run_sync(Article(("a?", "b?")), agents={"reader": reader})

    assert Article is graph.state_type
    assert ("wax", "nectar") == result.state.notes
    assert load(dump(graph)) == graph


def test_a_topology_keeps_its_state_type_with_other_agents() -> None:
    reader = Agent(ScriptedModel([]), name="reader")
    made = Graph(
        "made",
        work := MapOver("reader", 3, items="questions", into="notes"),
        {work: {...: END}},
        state_type=Article,
    )

    for graph in (load(mapped("notes"), state_type=Article), made):
        assert Article is with_agents(graph, {"reader": reader}).state_type


@pytest.mark.parametrize(
    ("into", "problem"),
    [
        (
            "note",
            "`into`: expected a field of the state (notes, questions, title), found 'note'."
            " Did you mean 'notes'?",
        ),
        (
            "title",
            "`into`: expected a field that holds a list or a tuple, found 'title' of type str.",
        ),
    ],
)
def test_a_state_type_that_the_fields_of_a_file_do_not_fit_is_refused(
    into: str, problem: str
) -> None:
    """The message names the node's line in the file: a program has no better place to look."""
    load(mapped(into))  # Without a type, only a run can tell.

    with pytest.raises(TopologyError) as caught:
        load(mapped(into), state_type=Article)

    (found,) = caught.value.problems
    assert ("topology:7:9", f"node 'work': {problem}") == (found.place, found.found)


def test_nodes_of_a_file_that_take_another_state_are_refused(tmp_path: Path) -> None:
    """Also the type that the file's own nodes declare: the line is in the message."""

    @node
    def publish(state: Article) -> Billing:
        """Publish."""
        return Billing()

    names = Registry()
    names.node(publish)
    text = mapped("note").replace("else: END", "else: publish}\n  publish: {else: END")
    text = text.replace("edges:", "  publish: {use: publish}\nedges:")
    path = tmp_path / "news.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(TopologyError, match=r"news.yaml:7:9: node 'work': `into`.*Did you mean"):
        load(path, registry=names)
    with pytest.raises(TopologyError, match=r"node 'publish': takes a state of type Article"):
        load(path, registry=names, state_type=dict)
