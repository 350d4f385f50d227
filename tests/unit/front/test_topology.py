"""Topologies that are loaded: they bring what their files name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop.errors import ConfigError
from graphloop.events import Joined
from graphloop.front.agent import Agent
from graphloop.front.own_node import node
from graphloop.front.topology import (
    Topology,
    dump,
    dump_agent_spec,
    fingerprint,
    load,
    load_agent_spec,
)
from graphloop.outcomes import Outcome
from graphloop.providers.script import ScriptedModel
from graphloop.run import Run
from graphloop.temporal import never
from graphloop.topology import TopologyError
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
  execute: {held: gate, else: append}
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


def test_what_is_included_stands_in_what_is_dumped(desk: Topology) -> None:
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
    def count_votes(run: Run[None]) -> Joined:
        return Joined(f"{len(run.turn.branches)} votes")

    (tmp_path / "writer.yaml").write_text(WRITER)
    (tmp_path / "vote.yaml").write_text(VOTE)
    vote = load(tmp_path / "vote.yaml", registry=known)

    assert (
        "2 votes" == asyncio.run(vote.run(None, model=ScriptedModel(["a", "b"]), prompt="?")).text
    )


def test_the_rules_of_the_file_are_proven(desk: Topology) -> None:
    """With those that are given besides, and the graphs of agents."""
    assert desk.check().ok
    assert 1 == len(desk.rules)
    assert desk.needs_model
    assert not desk.check(rules=never("execute")).ok


def test_the_tools_of_the_file_are_known_to_its_rules(desk: Topology) -> None:
    """By the words that runs take; one that is misspelt guards nothing."""
    assert ("refund", "writer") == desk.tool_names
    assert desk.check(rules=never("refund", before="gate")).ok
    with pytest.raises(ConfigError, match=r"no tool 'refnd'\. Did you mean 'refund'"):
        desk.check(rules=never("tool:refnd"))


def test_the_standard_loop_can_be_written_down() -> None:
    """It is a table like any other."""
    graph = Agent(ScriptedModel(()), max_steps=3).graph

    assert graph == load(dump(graph))


def test_a_tool_that_is_given_twice_is_refused(desk: Topology) -> None:
    """One of them would never be called."""
    with pytest.raises(ConfigError, match="names 'refund', which the topology brings along"):
        desk.stream(None, model=ScriptedModel(()), prompt="x", tools=[refund])


def test_the_instructions_of_the_file_are_the_system_message(desk: Topology) -> None:
    """Each agent has its own; a run that is given some goes by those."""
    text = dump(desk, registry=REGISTRY).replace(
        "name: desk", "name: desk\ninstructions: Be brief."
    )
    brief, model = load(text, registry=REGISTRY), ScriptedModel(["Yes.", "No."])

    asyncio.run(brief.run(None, model=model, prompt="Hi"))
    asyncio.run(brief.run(None, model=model, prompt="Hi", instructions="Be long."))

    said = [one.messages[0] for one in model.requests]
    assert [SystemMessage("Be brief."), SystemMessage("Be long.")] == said
    assert brief == load(dump(brief, registry=REGISTRY), registry=REGISTRY) != desk


def test_a_topology_goes_through_agent_spec(tmp_path: Path) -> None:
    """As text and as a file it comes back equal, and the report says what others do not see."""
    path = tmp_path / "flow.json"
    (tmp_path / "writer.yaml").write_text(WRITER)
    (tmp_path / "desk.yaml").write_text(DESK)
    desk = load(tmp_path / "desk.yaml", registry=REGISTRY)

    text, report = dump_agent_spec(desk, registry=REGISTRY)
    path.write_text(text)

    assert report.refused
    for source in (text, path, str(path)):
        with pytest.raises(TopologyError, match="does not show"):
            load_agent_spec(source, registry=REGISTRY)
        found, told = load_agent_spec(source, registry=REGISTRY, allow_refused=True)
        assert desk == found
        assert len(report.refused) == len(told.refused)
