"""Family: a graph with the graphs that its nodes run, as far as they are known.

Some child graphs stand in the contracts of nodes, some graphs know the agents that their models
call as tools, and a caller knows those that it gives to a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from ..contract import contract_of
from ..graph import NodeGraph

__all__ = ["Family", "Member", "known_family", "members"]


@final
@dataclass(frozen=True)
class Family:
    """A graph with its agents.

    Attributes:
        graph: the graph.
        tools: the agents that its model may call as tools.
        agents: the agents that its nodes name.
    """

    graph: NodeGraph[Any]
    tools: Mapping[str, Family] = field(default_factory=dict[str, "Family"])
    agents: Mapping[str, Family] = field(default_factory=dict[str, "Family"])


class Member(NamedTuple):
    """The family that a node runs as a child, and its name there."""

    node: str
    name: str
    family: Family


def known_family(graph: NodeGraph[Any]) -> Family:
    """Return a graph with the agents that it knows itself, and theirs."""
    known = {name: known_family(agent) for name, agent in graph.agents.items() if agent is not None}
    tools = {name: agent for name, agent in known.items() if name in graph.called}
    return Family(graph, tools, known)


def members(family: Family) -> Iterator[Member]:
    """Yield the children of each node of a graph, in the order of its table."""
    for node, what in family.graph.nodes.items():
        contract = contract_of(what)
        known: dict[str, Family] = {}
        for child in () if contract is None else contract.children:
            if child.name in family.agents:
                known[child.name] = family.agents[child.name]
            elif child.graph is not None:
                known[child.name] = known_family(child.graph)
        if what.kind == "execute":
            known |= family.tools
        yield from (Member(node, name, child) for name, child in known.items())
