"""Family: a graph, and the graphs that its nodes run, as far as anybody knows them.

Some stand in the nodes' own contracts, and some graphs know the agents that their models call like
tools; those that a run is given are known to whoever made the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from ..contract import contract_of
from ..graph import Graph

__all__ = ["Family", "Kin", "kin", "known_family"]


@final
@dataclass(frozen=True)
class Family:
    """A graph with its agents.

    Attributes:
        graph: the graph.
        tools: the agents that its model may call like tools.
        agents: the agents that its nodes know by name.
    """

    graph: Graph[Any]
    tools: Mapping[str, Family] = field(default_factory=dict[str, "Family"])
    agents: Mapping[str, Family] = field(default_factory=dict[str, "Family"])


class Kin(NamedTuple):
    """What a node runs as a child, and by what name."""

    node: str
    name: str
    family: Family


def known_family(graph: Graph[Any]) -> Family:
    """Return a graph with the agents that it knows itself, theirs included."""
    known = {name: known_family(one) for name, one in graph.agents.items() if one is not None}
    tools = {name: one for name, one in known.items() if name in graph.called}
    return Family(graph, tools, known)


def kin(family: Family) -> Iterator[Kin]:
    """Yield what each node of a graph runs, in the order of its table."""
    for node, what in family.graph.nodes.items():
        contract = contract_of(what)
        known: dict[str, Family] = {}
        for child in () if contract is None else contract.children:
            if child.graph is not None:
                known[child.name] = family.agents.get(child.name) or known_family(child.graph)
        for name in () if contract is None else contract.agents:
            if name in family.agents:
                known.setdefault(name, family.agents[name])
        if what.kind == "execute":
            known |= family.tools
        yield from (Kin(node, name, one) for name, one in known.items())
