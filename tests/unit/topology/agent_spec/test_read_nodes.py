"""Nodes of a flow of Open Agent Spec as nodes of a topology."""

from __future__ import annotations

from typing import Any

import pytest
from pyagentspec.flows.node import Node
from pyagentspec.flows.nodes import (
    AgentNode,
    ApiNode,
    BranchingNode,
    CatchExceptionNode,
    EndNode,
    FlowNode,
    InputMessageNode,
    LlmNode,
    MapNode,
    OutputMessageNode,
    ParallelFlowNode,
    ParallelMapNode,
    StartNode,
    ToolNode,
)
from pyagentspec.property import StringProperty
from pyagentspec.tools import RemoteTool, ServerTool

from graphloop.nodes import Child, Function, MapOver, Parallel, Router
from graphloop.outcomes import outcome_name
from graphloop.topology import TopologyError
from graphloop.topology.agent_spec import Read
from graphloop.topology.included import Included
from tests.agent_spec_documents import (
    LLM,
    TEXT,
    TEXTS,
    agent,
    agent_node,
    chain,
    edge,
    flow,
    passed,
    read,
    told,
)


def node_of(found: Read, name: str) -> object:
    """Return a node of what was read."""
    node = found.document.graph.nodes[name]
    return node.node if isinstance(node, Included) else node


def test_an_llm_node_is_a_child_that_answers_once() -> None:
    """It reads the conversation as well, which the report says."""
    node = LlmNode(id="n", name="n", llm_config=LLM, prompt_template="Say it.")

    found = read(chain(agent_node(), node))

    child = node_of(found, "n")
    assert isinstance(child, Child)
    assert "Say it." == child.prompt
    assert "approximated" == told(found)["n"]


def test_an_agent_that_comes_after_another_is_told_to_go_on() -> None:
    """Most models reply to a person, not to a model."""
    found = read(chain(agent_node("one"), agent_node("two")))

    one, two = node_of(found, "one"), node_of(found, "two")
    assert isinstance(one, Child)
    assert isinstance(two, Child)
    assert not one.prompt
    assert two.prompt


def test_a_flow_within_a_flow_is_a_child() -> None:
    """Its ends have one branch, or it is refused."""
    inner = chain(agent_node("inner"), own="sub")

    found = read(chain(FlowNode(id="n", name="n", subflow=inner)))

    assert "exact" == told(found)["n"]
    entry = found.document.agents["sub"].document
    assert entry is not None
    assert {"inner", "inner_append"} == {*entry.graph.nodes}


def test_an_agent_node_may_run_a_flow() -> None:
    """A flow is an agentic component as well."""
    node = AgentNode(id="n", name="n", agent=chain(agent_node("inner"), own="sub"))

    assert "sub" in read(chain(node)).document.agents


def test_a_flow_that_is_left_by_several_branches_is_refused() -> None:
    """A child has one way on: to merge them would pass for an approval what was none."""
    start, node = StartNode(id="s", name="start"), agent_node("n")
    chosen = node.model_copy(update={"branches": ["yes", "no"]})
    ends = [EndNode(id=name, name=name, branch_name=name) for name in ("yes", "no")]
    ways = [edge(start, chosen), *[edge(chosen, end, end.name) for end in ends]]
    inner = flow([start, chosen, *ends], ways, own="sub")
    outer = FlowNode(id="outer", name="outer", subflow=inner)
    first, pay, end = StartNode(id="f", name="f"), agent_node("pay"), EndNode(id="e", name="e")
    edges = [edge(first, outer), edge(outer, pay, "yes"), edge(outer, end, "no"), edge(pay, end)]

    with pytest.raises(TopologyError, match="a child has one way on"):
        read(flow([first, outer, pay, end], edges))


def test_flows_side_by_side_are_parallel() -> None:
    """As soon as one fails the others are stopped, as nothing would wait for them."""
    parts = [chain(agent_node(f"n{one}"), own=f"part{one}") for one in range(2)]

    found = read(chain(ParallelFlowNode(id="n", name="n", subflows=parts)))

    node = node_of(found, "n")
    assert isinstance(node, Parallel)
    assert "fail_fast" == node.join
    assert ["part0", "part1"] == [one.agent for one in node.branches]
    assert "approximated" == told(found)["n"]


def mapped(kind: type[MapNode | ParallelMapNode], **said: Any) -> Any:
    """Return a flow that maps over what its first agent answers."""
    start = StartNode(id="is", name="start", inputs=[TEXT])
    worker = agent_node("worker", system_prompt="Do {{text}}", outputs=[TEXT])
    end = EndNode(id="ie", name="end", outputs=[TEXT])
    data = [passed(start, "text", worker, "text"), passed(worker, "text", end, "text")]
    inner = flow([start, worker, end], [edge(start, worker), edge(worker, end)], data, own="sub")
    plan = agent_node("plan", outputs=[TEXTS])
    node = kind(id="n", name="n", subflow=inner, **said)
    return chain(plan, node, data=[passed(plan, "texts", node, "iterated_text")])


@pytest.mark.parametrize(("kind", "at_once"), [(MapNode, 1), (ParallelMapNode, 5)])
def test_a_map_goes_over_the_answer_before_it(
    kind: type[MapNode | ParallelMapNode], at_once: int
) -> None:
    """One after the other, or several at once."""
    found = read(mapped(kind))

    node = node_of(found, "n")
    assert isinstance(node, MapOver)
    assert at_once == node.concurrency
    assert "approximated" == told(found)["n"]


def test_a_map_over_something_else_is_refused() -> None:
    """Only the latest answer can be read as a list."""
    inner = mapped(MapNode).nodes[2].subflow

    with pytest.raises(TopologyError, match="a map has one list"):
        read(chain(agent_node(), MapNode(id="n", name="n", subflow=inner)))


def branching(before: Node, output: str) -> Any:
    """Return a flow that goes on by what a node gives."""
    start, pay = StartNode(id="s", name="s"), agent_node("pay")
    branch = BranchingNode(id="b", name="b", mapping={"yes": "go", "1": "go", "no": "stop"})
    end = EndNode(id="e", name="e")
    ways = [
        edge(start, before),
        edge(before, branch),
        edge(branch, pay, "go"),
        edge(branch, end, "stop"),
        edge(branch, pay, "default"),
        edge(pay, end),
    ]
    data = [passed(before, output, branch, "branching_mapping_key")]
    return flow([start, before, branch, pay, end], ways, data)


def test_a_branching_on_an_answer_is_a_router() -> None:
    """No value of the mapping is the default branch, as the document says."""
    found = read(branching(agent_node("ask", outputs=[TEXT]), "text"))

    node = node_of(found, "b")
    assert isinstance(node, Router)
    routes = {outcome_name(one): said for one, said in node.routes.items()}
    assert {"to_go": "the text is 'yes' or '1'", "to_stop": "the text is 'no'"} == routes
    row = {outcome_name(one): to for one, to in found.document.graph.table["b"].items()}
    assert "pay" == row["to_go"] == row["unrouted"]
    assert "END" == row["to_stop"] == row["failed"]
    assert "approximated" == told(found)["b"]


def test_a_branching_on_what_no_model_said_is_refused() -> None:
    """A model that guesses what a tool returned would open doors that are shut."""
    tool = ServerTool(id="tidy", name="tidy", outputs=[TEXT])
    component = branching(ToolNode(id="t", name="t", tool=tool), "text")

    with pytest.raises(TopologyError, match="its value comes from a ToolNode"):
        read(component)

    found = read(component, allow_refused=True)
    assert {"t"} == {*found.document.graph.nodes}
    assert {"END"} == {*found.document.graph.table["t"].values()}


def test_a_tool_node_is_a_registered_function() -> None:
    """A function takes no values, so the tool has no inputs."""
    found = read(chain(ToolNode(id="t", name="t", tool=ServerTool(id="tidy", name="tidy"))))

    node = node_of(found, "t")
    assert isinstance(node, Function)
    assert "tidy" == node.callback
    assert "approximated" == told(found)["t"]


def test_branches_of_an_agent_are_chosen_by_a_router() -> None:
    """Which fails closed: without a choice the run ends."""
    start, end = StartNode(id="s", name="s"), EndNode(id="e", name="e")
    node = AgentNode(id="n", name="n", agent=agent(), branches=["Über!", "next", "2nd try"])
    ways = [edge(start, node), *[edge(node, end, one) for one in node.branches]]

    found = read(flow([start, node, end], ways))

    router = node_of(found, "n_route")
    assert isinstance(router, Router)
    assert {"to_ber", "to_next", "to_n2nd_try"} == {outcome_name(one) for one in router.routes}


REFUSED: tuple[Node, ...] = (
    ApiNode(id="x", name="x", url="https://t", http_method="GET"),
    InputMessageNode(id="x", name="x"),
    OutputMessageNode(id="x", name="x", message="Hello."),
    ToolNode(id="x", name="x", tool=ServerTool(id="t", name="tidy", requires_confirmation=True)),
    ToolNode(
        id="x", name="x", tool=ServerTool(id="t", name="tidy", inputs=[StringProperty(title="a")])
    ),
    ToolNode(
        id="x", name="x", tool=RemoteTool(id="t", name="tidy", url="https://t", http_method="GET")
    ),
    FlowNode(id="x", name="x", subflow=chain(own="empty")),
    ParallelFlowNode(id="x", name="x"),
)


@pytest.mark.parametrize("node", REFUSED)
def test_what_has_no_counterpart_ends_a_run_if_it_is_allowed(node: Node) -> None:
    """A run that went past it would do what the document has something in front of."""
    component = chain(agent_node("before"), node, agent_node("after"))

    with pytest.raises(TopologyError, match="'x' is refused"):
        read(component)

    found = read(component, allow_refused=True)
    assert {"before", "before_append"} == {*found.document.graph.nodes}
    assert "refused" == told(found)["x"]


def test_a_caught_exception_is_refused() -> None:
    """What goes on after a failure is no counterpart of what ends with it."""
    node = CatchExceptionNode(id="x", name="x", subflow=chain(agent_node("inner"), own="sub"))
    start, end = StartNode(id="s", name="s"), EndNode(id="e", name="e")
    ways = [edge(start, node), *[edge(node, end, one) for one in node.branches]]

    with pytest.raises(TopologyError, match="CatchExceptionNode 'x' is refused"):
        read(flow([start, node, end], ways))


BRANCHES: tuple[tuple[list[str], list[str]], ...] = (
    (["deploy way3", "deploy", "deploy!"], ["to_deploy_way3", "to_deploy", "way3"]),
    (["deploy", "stop", "deploy!"], ["to_deploy", "to_stop", "to_deploy_way3"]),
    (["e-mail", "don't know", "plan b"], ["to_email", "to_dont_know", "to_plan_b"]),
    (["plan b", "plan b!", "Plan B"], ["to_plan_b", "to_planb", "to_planb_way3"]),
    (["1 2 3", "!", "?", " "], ["to_n1_n2_n3", "way2", "way3", "way4"]),
    (["way1", "é", "unrouted", "else"], ["to_way1", "way2", "to_unrouted", "to_else"]),
)


@pytest.mark.parametrize("kind", ["agent", "branching"])
@pytest.mark.parametrize(("branches", "names"), BRANCHES)
def test_each_branch_keeps_its_way_whatever_it_is_called(
    branches: list[str], names: list[str], kind: str
) -> None:
    """One that took another's name would take its way, too: past a confirmation, perhaps."""
    start, end = StartNode(id="s", name="s"), EndNode(id="e", name="e")
    after = [agent_node(f"after{number}") for number, _ in enumerate(branches)]
    node: Node
    if kind == "agent":
        node = AgentNode(id="n", name="n", agent=agent(), branches=branches)
        nodes, ways, data = [start, node], [edge(start, node)], []
    else:
        asked = agent_node("asked", outputs=[TEXT])
        node = BranchingNode(id="n_route", name="n_route", mapping={one: one for one in branches})
        nodes, ways = [start, asked, node], [edge(start, asked), edge(asked, node)]
        ways.append(edge(node, end, "default"))
        data = [passed(asked, "text", node, "branching_mapping_key")]
    ways += [edge(node, to, branch) for to, branch in zip(after, branches, strict=True)]
    ways += [edge(to, end) for to in after]

    found = read(flow([*nodes, *after, end], ways, data))

    row = {outcome_name(one): to for one, to in found.document.graph.table["n_route"].items()}
    assert [to.name for to in after] == [row[one] for one in names]
    router = node_of(found, "n_route")
    assert isinstance(router, Router)
    said = {outcome_name(one): words for one, words in router.routes.items()}
    assert all(repr(branch) in said[one] for branch, one in zip(branches, names, strict=True))
