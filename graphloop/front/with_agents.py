"""with_agents: a graph, and the agents that its nodes know by name.

    reply = Graph("reply", prepare, …)
    chain = with_agents(Graph("chain", outline, …), {"writer": reply})

What a topology's file says under `agents`, said in Python: the proofs see the agents' graphs, the
bound counts them, and a run needs a model and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .. import graph as kernel
from ..errors import ConfigError
from ..graph import END, EndType
from ..node_protocol import Node
from ..nodes.fallback import Fallback
from ..nodes.retrying import Retrying
from ..outcomes import Outcome
from ..temporal import Rules, rules_of
from ..topology.document import AgentEntry, Document, document_of
from ..topology.included import with_graphs
from ..topology.registration import Names, Registry, registry
from .graph import Graph
from .topology import Topology

__all__ = ["with_agents"]


def with_agents(
    graph: Graph[None],
    agents: Mapping[str, kernel.Graph[None]],
    *,
    rules: Rules | Iterable[Rules] = (),
    registry: Registry = registry,
) -> Topology:
    """Return `graph` with the graphs of the agents that its nodes name.

    The agents ask the model that the run is given. An agent with a model of its own is handed to
    each run (`agents=`), or is a node by `sub_graph`.

    Args:
        graph: a graph with nodes that name agents: `Child`, `Parallel`, `MapOver`, generators.
        agents: each agent's graph, by the agent's name.
        rules: temporal rules that every run keeps.
        registry: the functions that the graphs name.

    Raises:
        ConfigError: no node names one of the agents.
    """
    given = document_of(graph).agents
    for name in agents:
        if name not in given:
            known = ", ".join(map(repr, given)) or "no agents"
            raise ConfigError(
                f"no node of graph {graph.name!r} runs an agent {name!r}; they run {known}"
            )
    nodes = {name: _manned(node, {**agents}) for name, node in graph.nodes.items()}
    to: dict[str, Node[Any, Outcome] | EndType] = {**nodes, "END": END}
    rows: kernel.Edges[Any] = {
        nodes[name]: {outcome: to[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }
    named = Graph(graph.name, nodes[graph.start], rows)
    entries = {name: AgentEntry(_document(one)) for name, one in agents.items()}
    document = Document(
        named, agents={**given, **entries}, rules=rules_of(rules), ignore=graph.ignore
    )
    return Topology(document, Names(registry))


def _manned(node: Node[Any, Outcome], agents: dict[str, kernel.Graph[None]]) -> Node[Any, Outcome]:
    """Return a node with the graphs of its agents, at any depth."""
    match node:
        case Retrying():
            return replace(node, node=_manned(node.node, agents))
        case Fallback():
            return replace(
                node, first=_manned(node.first, agents), second=_manned(node.second, agents)
            )
        case _:
            return with_graphs(node, agents)


def _document(graph: kernel.Graph[None]) -> Document:
    return graph.document if isinstance(graph, Topology) else document_of(graph)
