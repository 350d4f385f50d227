"""Graphs of a topology as flows of Open Agent Spec."""

from __future__ import annotations

from typing import Any

import pytest
from pyagentspec.flows.nodes import BranchingNode, FlowNode, ParallelFlowNode, ToolNode

from graphloop.errors import GraphError
from graphloop.topology.agent_spec import AgentSpecReport, write_agent_spec
from graphloop.topology.agent_spec.loop_data import GO_ON, answer_data
from graphloop.topology.forms import Data
from graphloop.topology.reader import read_text
from graphloop.topology.writer import yaml_of
from tests.agent_spec_documents import NAMES, loaded

WRITER: Data = {"graph": {"name": "writer", "instructions": "Write.", **answer_data("")}}
ENDS: Data = {"else": "END"}


def made(
    nodes: dict[str, Data], edges: dict[str, Data], **said: Data
) -> tuple[Any, AgentSpecReport]:
    """Return what the other library reads of a graph that is written, and the report."""
    data: dict[str, Data] = {"graphloop": 1, "name": "flow", "start": next(iter(nodes))}
    data |= {"nodes": {**nodes}, "edges": {**edges}, "agents": {"writer": WRITER}, **said}
    text, report = write_agent_spec(read_text(yaml_of(data), NAMES), NAMES, carry=False)
    return loaded(text), report


def ways(flow: Any) -> set[tuple[str, str, str]]:
    """Return the ways of a flow."""
    return {
        (one.from_node.name, one.from_branch or "next", one.to_node.name)
        for one in flow.control_flow_connections
    }


def test_a_child_is_an_agent_node_and_its_append_is_none() -> None:
    """The prompt ends the system prompt, but for the word that says nothing."""
    flow, report = made(
        {
            "a": {"use": "child", "agent": "writer", "prompt": "Be short."},
            "b": {"use": "append"},
            "c": {"use": "child", "agent": "writer", "prompt": GO_ON},
        },
        {"a": {"answered": "b", "else": "END"}, "b": {"final": "c", "else": "END"}, "c": ENDS},
    )

    nodes: dict[str, Any] = {one.name: one for one in flow.nodes}
    assert "AgentNode" == type(nodes["c"]).__name__
    assert "Write.\n\nBe short." == nodes["a"].agent.system_prompt
    assert "Write." == nodes["c"].agent.system_prompt
    assert {("start", "next", "a"), ("a", "next", "c"), ("c", "next", "end")} == ways(flow)
    assert not report.refused


def test_a_graph_within_a_graph_is_a_flow_node() -> None:
    """Its own nodes stand in a flow of its own."""
    inner: Data = {
        "graph": {
            "name": "inner",
            "agents": {"writer": WRITER},
            "start": "a",
            "nodes": {"a": {"use": "child", "agent": "writer"}},
            "edges": {"a": ENDS},
        }
    }
    flow, report = made({"a": {"use": "child", "agent": "x"}}, {"a": ENDS}, agents={"x": inner})

    (node,) = [one for one in flow.nodes if isinstance(one, FlowNode)]
    assert {("start", "next", "a"), ("a", "next", "end")} == ways(node.subflow)
    assert not report.refused


def test_a_choice_is_an_agent_with_branches() -> None:
    """Where no choice leads is lost, and the report says so."""
    flow, report = made(
        {
            "r": {
                "use": "router",
                "routes": {"yes": "it is", "no": "it is not"},
                "prompt": "Is it?",
            },
            "a": {"use": "child", "agent": "writer"},
        },
        {"r": {"yes": "a", "unrouted": "a", "else": "END"}, "a": ENDS},
    )

    assert {("r", "yes", "a"), ("r", "no", "end")} <= ways(flow)
    (lost,) = report.refused
    assert "`unrouted` to 'a' is lost" in lost.said


def test_a_node_of_ones_own_is_a_tool_and_its_outcomes_are_branches() -> None:
    """Whoever runs the flow supplies the tool; where its outcomes lead stands there."""
    flow, report = made(
        {"l": {"use": "limit", "times": 2}, "a": {"use": "child", "agent": "writer"}},
        {"l": {"go": "a", "else": "END"}, "a": {"answered": "l", "else": "END"}},
    )

    nodes = {one.name: one for one in flow.nodes}
    assert isinstance(nodes["l"], ToolNode)
    assert isinstance(nodes["l.leaves"], BranchingNode)
    assert "graphloop_limit" == nodes["l"].tool.name
    assert {"go": "go"} == nodes["l.leaves"].mapping
    assert {("l.leaves", "go", "a"), ("l.leaves", "default", "end"), ("a", "next", "l")} <= ways(
        flow
    )
    assert {"flow/l", "flow/a"} == {one.name for one in report.refused}


def test_a_person_who_approves_is_a_tool_that_is_confirmed() -> None:
    """Others ask somebody, too."""
    flow, report = made(
        {"a": {"use": "child", "agent": "writer"}, "b": {"use": "append"}, "p": {"use": "approve"}},
        {
            "a": {"answered": "b", "else": "END"},
            "b": {"final": "p", "else": "END"},
            "p": {"rejected": "b", "else": "END"},
        },
    )

    (tool,) = [one.tool for one in flow.nodes if isinstance(one, ToolNode)]
    assert tool.requires_confirmation
    assert ("a", "next", "p") in ways(flow)
    assert report.refused


@pytest.mark.parametrize(("join", "refused"), [("fail_fast", 0), ("collect", 1), ("majority", 1)])
def test_branches_are_flows_side_by_side(join: str, refused: int) -> None:
    """How their answers become one is lost."""
    branches: Data = [{"agent": "writer", "name": "x"}, {"agent": "writer", "name": "y"}]
    flow, report = made({"p": {"use": "parallel", "branches": branches, "join": join}}, {"p": ENDS})

    (node,) = [one for one in flow.nodes if isinstance(one, ParallelFlowNode)]
    assert ["x", "y"] == [one.name for one in node.subflows]
    assert refused == len(report.refused)


def test_an_agent_that_is_handed_to_each_run_is_a_tool() -> None:
    """Nothing is known of it."""
    flow, report = made(
        {"a": {"use": "child", "agent": "x"}}, {"a": ENDS}, agents={"x": {"given": True}}
    )

    assert any(isinstance(one, ToolNode) for one in flow.nodes)
    assert "handed to each run" in str(report)


def test_a_flow_that_only_ends_by_failing_is_refused() -> None:
    """An end that nothing leads to is none there."""
    nodes: dict[str, Data] = {"a": {"use": "child", "agent": "writer"}}

    with pytest.raises(GraphError, match="no way leads to its end"):
        made(nodes, {"a": {"answered": "a", "else": "END"}})


def test_what_stands_beside_the_graph_is_lost_and_told() -> None:
    """Instructions and tools of models that no node of a flow has."""
    _, report = made(
        {"a": {"use": "child", "agent": "writer"}},
        {"a": ENDS},
        instructions="Be kind.",
        tools=["search"],
        rules=[{"never": "tool:search", "before": "a"}],
    )

    assert ["instructions", "tools", "rule"] == [one.kind for one in report.refused]


def test_an_answer_that_is_not_appended_is_lost_to_the_next() -> None:
    """Here it judges without it; there it reads it."""
    critique: Data = {"use": "critique", "prompt": "Is it good?"}
    _, report = made(
        {"a": {"use": "child", "agent": "writer"}, "c": critique},
        {"a": {"answered": "c", "else": "END"}, "c": ENDS},
    )

    assert ["flow/a"] == [one.name for one in report.refused]


def test_the_ways_of_an_append_that_several_nodes_have_are_told() -> None:
    """Whatever is not where one of them goes on is lost."""
    child: Data = {"use": "child", "agent": "writer"}
    edges: dict[str, Data] = {
        "a": {"answered": "b", "else": "END"},
        "b": {"final": "a2", "resend": "a2", "refused": "x", "else": "END"},
        "a2": {"answered": "b2", "else": "END"},
        "b2": {"final": "p", "else": "END"},
        "p": {"rejected": "b", "accepted": "x", "else": "END"},
        "x": ENDS,
    }
    nodes: dict[str, Data] = {
        "a": child,
        "b": {"use": "append"},
        "a2": child,
        "b2": {"use": "append"},
    }
    _, report = made({**nodes, "p": {"use": "approve"}, "x": child}, edges)

    assert "it is left by `refused` to 'x' is lost" in str(report)


def test_what_nobody_sees_beside_the_graph_is_refused() -> None:
    """A text that is asked, and a finding that is set aside."""
    _, report = made(
        {"a": {"use": "child", "agent": "writer"}},
        {"a": ENDS},
        prompt="Delete all.",
        ignore=[{"code": "GL6", "reason": "none"}],
    )

    assert ["prompt", "ignore"] == [one.kind for one in report.refused]
