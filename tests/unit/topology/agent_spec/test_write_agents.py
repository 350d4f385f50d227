"""Agents of a topology as agents of Open Agent Spec."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyagentspec.agent import Agent
from pyagentspec.managerworkers import ManagerWorkers

from graphloop import tool
from graphloop.topology.agent_spec import AgentSpecReport, write_agent_spec
from graphloop.topology.agent_spec.loop_data import answer_data, loop_data
from graphloop.topology.agent_spec.write_agents import is_loop
from graphloop.topology.forms import Data
from graphloop.topology.reader import read_text
from graphloop.topology.registration import Names, Registry
from graphloop.topology.writer import yaml_of
from tests.agent_spec_documents import NAMES, loaded


def over(arguments: object, context: object) -> bool:
    """Say yes."""
    return True


def search(query: str) -> str:
    """Search."""
    return query


def names() -> Names:
    """Return what the files here name."""
    registry = Registry()
    for name in ("search", "refund", "delete"):
        registry.tool(NAMES.find("tool", name), name=name)
    registry.predicate(over)
    return Names(registry, installed=False)


def made(**said: Data) -> tuple[Any, AgentSpecReport]:
    """Return what the other library reads of an agent that is written, and the report."""
    base: dict[str, Data] = {"graphloop": 1, "name": "desk", **loop_data([], ["search"], "")}
    document = read_text(yaml_of({**base, "tools": ["search"], **said}), names())
    text, report = write_agent_spec(document, names(), carry=False)
    return loaded(text), report


def gated(*rules: Data, tools: tuple[str, ...] = ("search", "refund")) -> Any:
    """Return an agent whose gate has these rules."""
    data = loop_data([], [*tools], "")
    nodes = data["nodes"]
    assert isinstance(nodes, dict)
    nodes["gate"] = {"use": "gate", **({"rules": [*rules]} if rules else {})}
    return made(**data, tools=[*tools])


def test_an_agent_has_its_instructions_its_tools_and_its_model() -> None:
    """What is not told of its loop is its bound."""
    agent, report = made(**loop_data([], ["search"], "openai:gpt-5"), instructions="Be kind.")

    assert isinstance(agent, Agent)
    assert "Be kind." == agent.system_prompt
    assert "gpt-5" == agent.llm_config.model_id
    (held,) = agent.tools
    assert ("search", "Search.", ["query"]) == (
        held.name,
        held.description,
        [one.title for one in held.inputs or []],
    )
    assert not report.refused


@pytest.mark.parametrize("label", ["", "anthropic:claude", "openai:gpt-5", "own"])
def test_every_model_has_a_configuration(label: str) -> None:
    """A model that only graphloop names has one that is to be filled in."""
    agent, report = made(**answer_data(label), tools=[])

    known = ":" in label
    assert (label.partition(":")[2] if known else label or "run") == agent.llm_config.model_id
    assert known == (not [one for one in report if one.kind == "model"])


RULES: tuple[tuple[tuple[Data, ...], dict[str, bool], int], ...] = (
    ((), {"search": False, "refund": False}, 0),
    (({"ask": "refund"}, {"allow": "*"}), {"search": False, "refund": True}, 0),
    (({"ask": "refund", "when": "over"}, {"allow": "*"}), {"search": False, "refund": True}, 1),
    (({"deny": "refund", "when": "over"}, {"allow": "*"}), {"search": False, "refund": True}, 1),
    (({"allow": "*", "when": "over"},), {"search": True, "refund": True}, 2),
    (({"deny": "refund"}, {"allow": "*"}), {"search": False}, 1),
    (({"allow": "search"},), {"search": False}, 1),
)


@pytest.mark.parametrize(("rules", "confirmed", "refused"), RULES)
def test_rules_are_confirmations_or_more(
    rules: tuple[Data, ...], confirmed: dict[str, bool], refused: int
) -> None:
    """What depends on a call is asked about each time; what never runs is not there."""
    agent, report = gated(*rules)

    assert confirmed == {one.name: one.requires_confirmation for one in agent.tools}
    kinds = [one for one in report.refused if one.kind in {"condition", "tool"}]
    assert refused == len(kinds)


def test_a_registered_tool_that_asks_needs_a_confirmation() -> None:
    """A gate without rules asks about it, too."""
    agent, _ = gated(tools=("delete",))

    assert [True] == [one.requires_confirmation for one in agent.tools]


def test_what_else_a_loop_has_is_lost_and_told() -> None:
    """A bound, how long a question stays open, which tools are active."""
    data = loop_data([], ["search"], "")
    nodes = data["nodes"]
    assert isinstance(nodes, dict)
    nodes["stop_check"] = {"use": "stop_check", "max_steps": 3}
    nodes["gate"] = {"use": "gate", "rules": [{"ask": "search", "ttl_s": 5}]}
    nodes["prepare_step"] = {"use": "prepare_step", "active_tools": ["search"]}

    _, report = made(**data)

    said = "\n".join(map(str, report.refused))
    assert "3 turns at most is lost" in said
    assert "how long its questions stay open is lost" in said
    assert "its active_tools are lost" in said


def test_agents_as_tools_are_workers() -> None:
    """Where one takes the conversation over, the report says so."""
    inner: dict[str, Data] = {"name": "maths", "instructions": "Sums.", **answer_data("")}
    group, report = made(
        **loop_data([], ["search", "maths"], ""),
        tools=["search", "maths"],
        agents={"maths": {"graph": inner, "description": "Does sums.", "takes_over": True}},
    )

    assert isinstance(group, ManagerWorkers)
    assert isinstance(group.group_manager, Agent)
    assert ["search"] == [one.name for one in group.group_manager.tools]
    assert [("maths", "Does sums.")] == [(one.name, one.description) for one in group.workers]
    (lost,) = report.refused
    assert "that it takes the conversation over is lost: a worker only answers" == lost.said


def test_a_loop_has_one_model_call_and_one_gate() -> None:
    """Everything else is a flow."""
    data: dict[str, Data] = {"graphloop": 1, "name": "a", **answer_data("")}
    graph = read_text(yaml_of(data), NAMES).graph
    other = json.loads(json.dumps(data).replace("model_call", "second"))
    other["nodes"]["second"]["use"] = "critique"
    other["nodes"]["second"]["prompt"] = "Is it good?"
    other["edges"]["second"] = {"else": "append"}

    assert is_loop(graph)
    assert not is_loop(read_text(yaml_of(other), NAMES).graph)


def test_a_loop_of_the_usual_kind_is_told_by_its_bound_only() -> None:
    """However its rules are written."""
    written: tuple[tuple[Data, ...], ...] = (
        (),
        ({"ask": "search"}, {"allow": "refund"}),
        ({"ask": ["search"]}, {"allow": ["refund"]}, {"deny": "*"}),
    )
    for rules in written:
        _, report = gated(*rules)
        assert "an Agent; that it has 20 turns at most is not told" in str(report)
        assert not report.refused


def test_a_way_past_the_gate_is_refused() -> None:
    """The document would show a confirmation that nobody asks for."""
    data = loop_data(["search"], [], "")
    edges = data["edges"]
    assert isinstance(edges, dict)
    edges["model_call"] = {"calls": "execute", "failed": "END", "else": "append"}

    _, report = made(**data)

    assert ["loop"] == [one.kind for one in report.refused]


def test_a_tool_that_asks_now_and_then_is_confirmed_each_time() -> None:
    """What its function says is a condition like any other; rules do not set it aside."""
    registry = Registry()
    registry.tool(tool(needs_approval=over)(search), name="search")
    registry.tool(NAMES.find("tool", "delete"), name="delete")
    known = Names(registry, installed=False)
    everything: dict[str, Data] = {"rules": [{"allow": "*"}]}
    for rules in (dict[str, Data](), everything):
        data = loop_data([], ["search", "delete"], "")
        nodes = data["nodes"]
        assert isinstance(nodes, dict)
        nodes["gate"] = {"use": "gate", **rules}
        said: dict[str, Data] = {"graphloop": 1, "name": "desk", "tools": ["search", "delete"]}
        document = read_text(yaml_of({**said, **data}), known)

        text, report = write_agent_spec(document, known, carry=False)

        assert 2 == text.count('"requires_confirmation": true')
        assert ["desk/search"] == [one.name for one in report.refused if "condition" == one.kind]


UNLISTED: tuple[tuple[tuple[Data, ...], bool], ...] = (
    ((), True),
    (({"allow": "*"},), True),
    (({"allow": "read_*"}, {"allow": "*"}), True),
    (({"ask": "refund"}, {"allow": "search"}), True),
    (({"ask": "refund"}, {"allow": "search"}, {"deny": "*"}), True),
    (({"ask": "refund"}, {"allow": "*"}), False),
    (({"deny": "delete_*"}, {"allow": "*"}), False),
    (({"deny": "delete_*"}, {"ask": "refund"}, {"allow": "search"}), True),
    (({"ask": "refund"}, {"allow": "search"}, {"ask": "*"}), False),
    (({"ask": "refund"}, {"allow": ["search", "read_*"]}), False),
    (({"allow": ["search", "refund"]},), False),
    (({"deny": "x*", "when": "over"}, {"deny": "refund"}, {"allow": "*"}), False),
)


@pytest.mark.parametrize(("rules", "same"), UNLISTED)
def test_what_a_gate_says_of_unlisted_tools_is_the_same_or_lost(
    rules: tuple[Data, ...], same: bool
) -> None:
    """Runs bring such tools: without metadata, they would run, or not, as it happens."""
    _, report = gated(*rules)

    lost = [one for one in report.refused if one.kind == "gate"]
    assert same == (not lost)
    assert all("desk/gate" == one.name for one in lost)
    assert all(describe_first(rules) in one.said for one in lost)


def describe_first(rules: tuple[Data, ...]) -> str:
    """Return how the first rule begins, as a report tells it."""
    first = rules[0]
    assert isinstance(first, dict)
    return f"lost ({next(iter(first))} "


def test_a_loop_whose_tools_a_run_brings_is_not_shown() -> None:
    """The document has an agent without tools, which none is offered to."""
    data = loop_data([], [], "")

    _, report = made(**data, tools=[])

    assert ["gate"] == [one.kind for one in report.refused]
    assert "lost (allow *): there, they never run" in str(report)


def test_a_label_is_no_model_of_the_run() -> None:
    """Also if it is called so."""
    texts = [
        write_agent_spec(
            read_text(yaml_of({"graphloop": 1, "name": "a", **answer_data(label)}), names()),
            names(),
            carry=False,
        )[0]
        for label in ("", "run")
    ]

    assert texts[0] != texts[1]
