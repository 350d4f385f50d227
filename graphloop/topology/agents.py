"""with_agents: supply the agents that a graph's nodes refer to by name.

    reply = Graph("reply", prepare, …)
    chain = with_agents(Graph("chain", outline, …), {"writer": reply})

The result equals a topology file with an `agents` section: the checker sees the agents' graphs,
the upper bound includes their calls, and a run needs only a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ..agent import Agent, Graph, carried_by
from ..errors import ConfigError
from ..graph import NodeGraph
from ..nodes import Fallback, Retrying
from ..rules import Rules, rules_of
from .document import AnyNode, document_of, rows_with, with_graphs
from .loaded import Topology
from .references import refuse_unknown_words
from .registration import Registry
from .registration import registry as default_registry

__all__ = ["with_agents"]

S = TypeVar("S")


def with_agents(
    graph: Graph[S],
    agents: Mapping[str, NodeGraph[Any] | Agent[Any, Any]],
    *,
    rules: Rules | Iterable[Rules] = (),
    registry: Registry | None = None,
) -> Topology[S]:
    """Return `graph` as a topology that contains the agents named by its nodes.

    A loaded topology keeps its rules, tools, instructions, prompt and other file content. An agent
    given here replaces the graph that the topology had under that name. An `Agent` uses its own
    model; a bare graph uses the run's model. The checker proves both.

    Args:
        graph: a graph whose nodes name agents: `Child`, `Parallel`, `MapOver` or generators.
        agents: for each agent's name, an `Agent` or a graph.
        rules: temporal rules that every run keeps, in addition to the graph's own rules.
        registry: maps names in the graphs to Python objects; by default, the registry of a loaded
            topology, else the library's registry.

    Raises:
        ConfigError: no node names one of the agents, a node already contains another agent of that
            name, or a rule contains an unknown word.
    """
    own, brought = document_of(graph), carried_by(graph.every_node).agents
    for name in agents:
        if name not in own.agents:
            known = ", ".join(map(repr, own.agents)) or "no agents"
            raise ConfigError(
                f"agent {name!r}: expected an agent that a node of graph {graph.name!r} runs, "
                f"found that they run {known}"
            )
        if name in brought:
            raise ConfigError(
                f"agent {name!r}: a node of graph {graph.name!r} brings another agent of that name "
                "along, and no run could tell the two. Fix: give that node another `name=`, or "
                "name another agent here"
            )
    graphs = {
        name: agent.graph if isinstance(agent, Agent) else agent for name, agent in agents.items()
    }
    nodes = {name: _with_agents(node, graphs) for name, node in graph.nodes.items()}
    named = Graph(
        graph.name, nodes[graph.start], rows_with(graph, nodes), state_type=own.state_type
    )
    named.source = graph.source
    entries = {
        name: replace(own.agents[name], document=document_of(inner))
        for name, inner in graphs.items()
    }
    document = replace(
        own, graph=named, agents={**own.agents, **entries}, rules=own.rules & rules_of(rules)
    )
    own_agents = {
        name: agent for name, agent in agents.items() if isinstance(agent, Agent | Topology)
    }
    if registry is None and isinstance(graph, Topology):
        topology = graph.with_document(document, own_agents)
    else:
        own_registry = default_registry if registry is None else registry
        topology = Topology(document, own_registry, own_agents=own_agents)
    refuse_unknown_words(rules_of(rules), topology, document, topology.registry)
    return topology


def _with_agents(node: AnyNode, graphs: Mapping[str, NodeGraph[Any]]) -> AnyNode:
    """Return the node with its agents' graphs attached, also inside `Retrying` and `Fallback`."""
    match node:
        case Retrying():
            return replace(node, node=_with_agents(node.node, graphs))
        case Fallback():
            first, second = _with_agents(node.first, graphs), _with_agents(node.second, graphs)
            return replace(node, first=first, second=second)
        case _:
            return with_graphs(node, graphs)
