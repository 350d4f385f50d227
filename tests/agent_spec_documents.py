"""Documents of Open Agent Spec, made by its own library, and read here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from pyagentspec.agent import Agent
from pyagentspec.component import Component
from pyagentspec.flows.edges import ControlFlowEdge, DataFlowEdge
from pyagentspec.flows.flow import Flow
from pyagentspec.flows.node import Node
from pyagentspec.flows.nodes import AgentNode, EndNode, StartNode
from pyagentspec.llms import OpenAiConfig
from pyagentspec.property import ListProperty, StringProperty
from pyagentspec.serialization import AgentSpecDeserializer, AgentSpecSerializer
from pyagentspec.tools import ServerTool

from graphloop import tool
from graphloop.topology.agent_spec import Read, read_agent_spec
from graphloop.topology.registration import Names, Registry

__all__ = [
    "LLM",
    "NAMES",
    "TEXT",
    "agent",
    "agent_node",
    "chain",
    "edge",
    "flow",
    "loaded",
    "passed",
    "read",
    "refund",
    "search",
    "told",
    "written",
]

LLM: Final = OpenAiConfig(id="llm", name="gpt", model_id="gpt-5")
TEXT: Final = StringProperty(title="text")
TEXTS: Final = ListProperty(title="texts", item_type=StringProperty(title="one"))


@tool
def search_tool(query: str) -> str:
    """Search.

    Args:
        query: what for.
    """
    return query


@tool(needs_approval=True)
def delete_tool(path: str) -> str:
    """Delete."""
    return path


def _registered() -> Names:
    registry = Registry()
    registry.tool(search_tool, name="search")
    registry.tool(delete_tool, name="delete")
    registry.tool(search_tool, name="refund")
    registry.function(lambda: None, name="tidy")
    return Names(registry, installed=False)


NAMES: Final = _registered()


def search() -> ServerTool:
    """Return a tool that runs as it is called."""
    return ServerTool(id="search", name="search", inputs=[StringProperty(title="query")])


def refund() -> ServerTool:
    """Return a tool that a person confirms."""
    return ServerTool(id="refund", name="refund", requires_confirmation=True)


def agent(own: str = "desk", **said: Any) -> Agent:
    """Return an agent."""
    given: dict[str, Any] = {"llm_config": LLM, "system_prompt": "Help.", **said}
    return Agent(id=own, name=own, **given)


def agent_node(own: str = "answer", **said: Any) -> AgentNode:
    """Return a node that runs an agent."""
    return AgentNode(id=own, name=own, agent=agent(f"{own}_agent", **said))


def edge(source: Node, to: Node, branch: str | None = None) -> ControlFlowEdge:
    """Return a way from one node to another."""
    own = f"{source.id}.{branch or 'next'}"
    return ControlFlowEdge(id=own, name=own, from_node=source, from_branch=branch, to_node=to)


def passed(source: Node, output: str, to: Node, taken: str) -> DataFlowEdge:
    """Return a value's way from one node to another."""
    own = f"{source.id}.{output}->{to.id}.{taken}"
    return DataFlowEdge(
        id=own,
        name=own,
        source_node=source,
        source_output=output,
        destination_node=to,
        destination_input=taken,
    )


def flow(
    nodes: Sequence[Node],
    edges: Sequence[ControlFlowEdge],
    data: Sequence[DataFlowEdge] = (),
    *,
    own: str = "flow",
    **said: Any,
) -> Flow:
    """Return a flow; its first node is the start."""
    return Flow(
        id=own,
        name=own,
        start_node=nodes[0],
        nodes=list(nodes),
        control_flow_connections=list(edges),
        data_flow_connections=list(data),
        **said,
    )


def chain(*nodes: Node, own: str = "flow", data: Sequence[DataFlowEdge] = ()) -> Flow:
    """Return a flow from a start over the nodes to an end."""
    start = StartNode(id=f"{own}.start", name="start")
    end = EndNode(id=f"{own}.end", name="end")
    line = [start, *nodes, end]
    edges = [edge(source, to) for source, to in pairwise(line)]
    return flow(line, edges, data, own=own)


def written(component: Component) -> str:
    """Return a component as the library writes it."""
    text: str = AgentSpecSerializer().to_json(component)
    return text


def loaded(text: str) -> Component:
    """Return what the library makes of a text.

    Raises:
        Exception: it refuses it.
    """
    return AgentSpecDeserializer().from_json(text)


def read(component: Component | Mapping[str, Any], *, allow_refused: bool = False) -> Read:
    """Return what is read here of a component, or of a document."""
    text = written(component) if isinstance(component, Component) else json.dumps(component)
    return read_agent_spec(text, NAMES, allow_refused=allow_refused)


def told(found: Read) -> dict[str, str]:
    """Return the verdict on each component, by its id."""
    return {one.name: one.verdict for one in found.report}
