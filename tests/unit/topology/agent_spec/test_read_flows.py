"""Flows of Open Agent Spec as topologies."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from pyagentspec.flows.nodes import BranchingNode, EndNode, LlmNode, StartNode, ToolNode
from pyagentspec.property import StringProperty

from graphloop.outcomes import outcome_name
from graphloop.proofs.check import check
from graphloop.topology import TopologyError
from tests.agent_spec_documents import (
    LLM,
    TEXT,
    agent_node,
    chain,
    edge,
    flow,
    passed,
    read,
    refund,
    told,
    written,
)


def test_a_chain_of_agents_is_exact_and_safe() -> None:
    """Nodes, ways and the end mean the same; the checker has nothing against it."""
    found = read(
        chain(
            agent_node("one", human_in_the_loop=False), agent_node("two", human_in_the_loop=False)
        )
    )

    table = {name: sorted({*row.values()}) for name, row in found.document.graph.table.items()}
    assert {
        "one": ["END", "one_append"],
        "one_append": ["END", "two"],
        "two": ["END", "two_append"],
        "two_append": ["END"],
    } == table
    assert {"exact"} == {*told(found).values()}
    assert check(found.document.graph).ok


def test_inputs_and_outputs_are_the_conversation() -> None:
    """A default of the only input is what is asked when nobody asks anything else."""
    start = StartNode(id="s", name="start", inputs=[StringProperty(title="text", default="Hello.")])
    node = LlmNode(id="n", name="n", llm_config=LLM, prompt_template="Say {{text}}")
    end = EndNode(id="e", name="end", outputs=[StringProperty(title="generated_text")])
    data = [
        passed(start, "text", node, "text"),
        passed(node, "generated_text", end, "generated_text"),
    ]

    found = read(flow([start, node, end], [edge(start, node), edge(node, end)], data))

    assert "Hello." == found.document.prompt
    verdicts = told(found)
    assert "approximated" == verdicts["s"] == verdicts["n"] == verdicts["e"]
    assert {"approximated"} == {verdicts[one.id] for one in data}


def test_which_end_was_reached_is_told_to_nobody() -> None:
    """The report says so, and so it does of what nothing leads to."""
    start = StartNode(id="s", name="start")
    node = agent_node("n", human_in_the_loop=False)
    chosen = node.model_copy(update={"branches": ["a", "b"]})
    ends = [EndNode(id=f"e{name}", name=name, branch_name=name) for name in "ab"]
    lost = agent_node("lost")
    edges = [edge(start, chosen), edge(chosen, ends[0], "a"), edge(chosen, ends[1], "b")]

    found = read(flow([start, chosen, lost, *ends], [*edges, edge(lost, ends[0])]))

    assert "approximated" == told(found)["ea"] == told(found)["lost"]
    assert {"n", "n_append", "n_route"} == {*found.document.graph.nodes}


def test_a_flow_of_nothing_is_refused() -> None:
    """A topology has at least one node."""
    with pytest.raises(TopologyError, match="nothing of it can be run"):
        read(chain(), allow_refused=True)


Edit = Callable[[dict[str, Any]], object]

WRONG: tuple[tuple[Edit, str], ...] = (
    (lambda one: one.update(nodez=[]), r"has no key 'nodez'. Did you mean 'nodes'\?"),
    (lambda one: one.update(agentspec_version="1.0"), "versions 25.4.1"),
    (lambda one: one.pop("agentspec_version"), "lacks `agentspec_version`"),
    (lambda one: one.pop("id"), "a component lacks `id`"),
    (lambda one: one.pop("start_node"), "Flow 'flow' lacks `start_node`"),
    (lambda one: one.update(start_node=one["nodes"][1]), "`start_node` is a StartNode"),
    (lambda one: one["nodes"].append(one["nodes"][0]), "stands here twice"),
    (lambda one: one.update(nodes="x"), "`nodes` is a list"),
    (
        lambda one: one["control_flow_connections"][1].update(
            to_node={"$component_ref": "flow.start"}
        ),
        "leads back to the start",
    ),
    (
        lambda one: one["control_flow_connections"][0].update(
            to_node={**_component(one, "answer"), "name": "other"}
        ),
        "two components have the id 'answer', and differ",
    ),
    (lambda one: one["nodes"].pop(1), "no node of this flow"),
    (lambda one: one["nodes"].append({"$component_ref": "nobody"}), "no component 'nobody'"),
    (lambda one: one["control_flow_connections"].pop(), "leads nowhere by 'next'"),
    (
        lambda one: one["control_flow_connections"].append(one["control_flow_connections"][0]),
        "two edges leave",
    ),
    (
        lambda one: one["control_flow_connections"][0].update(from_branch="x"),
        "has no branch 'x'",
    ),
    (
        lambda one: (
            _component(one, "answer").update(branches=[])
            or _component(one, "flow.start").update(branches=["x"])
        ),
        "the branches of StartNode 'flow.start' are next; found x",
    ),
    (
        lambda one: one["data_flow_connections"].append(
            {
                "component_type": "DataFlowEdge",
                "id": "d",
                "name": "d",
                "source_node": {"$component_ref": "answer"},
                "source_output": "nope",
                "destination_node": {"$component_ref": "flow.end"},
                "destination_input": "nope",
            }
        ),
        "has no output 'nope'",
    ),
)


@pytest.mark.parametrize(("edit", "message"), WRONG)
def test_a_wrong_document_is_refused_with_its_place(edit: Edit, message: str) -> None:
    """Every key counts, and every mistake is told with its line."""
    data = json.loads(written(chain(agent_node(outputs=[TEXT]))))
    edit(data)

    with pytest.raises(TopologyError, match=message) as caught:
        read(data, allow_refused=True)

    assert all(one.place.startswith("agent-spec:1:") for one in caught.value.problems)


def _component(data: dict[str, Any], own: str) -> dict[str, Any]:
    found: dict[str, Any] = data["$referenced_components"][own]
    return found


def test_a_branch_that_is_named_like_a_way_within_is_a_branch() -> None:
    """No node between is jumped over."""
    start, asked = StartNode(id="s", name="start"), agent_node("ask", outputs=[TEXT])
    branching = BranchingNode(
        id="b", name="b", mapping={"yes": "=deploy", "no": "END"}, inputs=[TEXT]
    )
    confirm, deploy, end = agent_node("confirm"), agent_node("deploy"), EndNode(id="e", name="end")
    edges = [
        edge(start, asked),
        edge(asked, branching),
        edge(branching, confirm, "=deploy"),
        edge(branching, confirm, "END"),
        edge(branching, end, "default"),
        edge(confirm, deploy),
        edge(deploy, end),
    ]
    data = [passed(asked, "text", branching, "text")]

    table = read(flow([start, asked, branching, confirm, deploy, end], edges, data)).document.graph

    ways = {outcome_name(one): to for one, to in table.table["b"].items()}
    assert {"confirm"} == {ways["to_deploy"], ways["to_end"]}
    assert "deploy" in table.nodes


def test_what_stands_after_a_refused_node_is_told() -> None:
    """It is not there: nothing of it is exact."""
    start, end = StartNode(id="s", name="start"), EndNode(id="e", name="end")
    one, two = agent_node("one"), agent_node("two")
    tool = ToolNode(id="t", name="t", tool=refund())

    found = read(
        flow(
            [start, one, tool, two, end],
            [edge(*ends) for ends in pairwise([start, one, tool, two, end])],
        ),
        allow_refused=True,
    )

    assert "refused" == told(found)["t"]
    (said,) = [one for one in found.report if "two" == one.name]
    assert ("approximated", "it is left out") == (said.verdict, said.said.rpartition("; ")[2])
    assert "two_agent" not in told(found)
    assert "two" not in found.document.graph.nodes


def test_the_default_of_an_input_is_told() -> None:
    """Whether it is taken, or lost."""
    given = {"a": "x", "b": "y"}
    inputs = [StringProperty(title=one, default=said) for one, said in given.items()]
    start = StartNode(id="s", name="start", inputs=[*inputs])
    unit = StringProperty(title="unit", default="Celsius")
    node = LlmNode(id="n", name="n", llm_config=LLM, prompt_template="In {{unit}}?", inputs=[unit])
    end = EndNode(id="e", name="end")

    found = read(flow([start, node, end], [edge(start, node), edge(node, end)]))

    said = {one.name: one.said for one in found.report}
    assert "the defaults of a, b are left out" in said["s"]
    assert "the defaults of unit are left out" in said["n"]


def test_an_agent_that_is_led_back_to_is_told_so_at_its_first_visit_too() -> None:
    """What a node is told is one text."""
    start, end = StartNode(id="s", name="start"), EndNode(id="e", name="end")
    node = agent_node("n", human_in_the_loop=False).model_copy(update={"branches": ["a", "b"]})

    found = read(
        flow([start, node, end], [edge(start, node), edge(node, node, "a"), edge(node, end, "b")])
    )

    assert "as it is first come to" in str(found.report)
