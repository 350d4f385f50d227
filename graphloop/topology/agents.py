"""with_agents: a graph, and the agents that its nodes know by name.

    reply = Graph("reply", prepare, …)
    chain = with_agents(Graph("chain", outline, …), {"writer": reply})

It does for a graph from Python what `agents` does in a topology's file: the proofs see the agents'
graphs, the bound counts them, and a run is given only a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from .. import graph as kernel
from ..agent import Agent, Graph, carried_by
from ..errors import ConfigError
from ..graph import names_of
from ..node_protocol import Node
from ..nodes import Fallback, Retrying
from ..outcomes import Outcome
from ..rules import Rules, resolve_words, rules_of
from .document import Document, document_of, rows_with, with_graphs
from .loaded import Topology
from .references import Declared, lost
from .registration import RegisteredNames, Registry

__all__ = ["with_agents"]

S = TypeVar("S")


def with_agents(
    graph: Graph[S],
    agents: Mapping[str, kernel.Graph[None] | Agent],
    *,
    rules: Rules | Iterable[Rules] = (),
    registry: Registry | None = None,
) -> Topology:
    """Return `graph` with the agents, or their graphs, that its nodes name.

    A loaded topology keeps its rules, tools, instructions and prompt, and the rest of its file. An
    agent that had a graph has the new one. A graph asks the model that the run is given; an agent
    keeps its own. Both are proven.

    Args:
        graph: a graph with nodes that name agents: `Child`, `Parallel`, `MapOver`, generators.
        agents: each agent, or its graph, by the agent's name.
        rules: temporal rules that every run keeps, beside those of the graph.
        registry: the meaning of the names in the graphs; by default, that of a loaded topology, or
            the registry of the library.

    Raises:
        ConfigError: no node names one of the agents, or one brings another agent of that name
            along; the graph sets aside a node that its agent does not have any more; or a word of
            a rule means nothing.
    """
    own, brought = document_of(graph), carried_by(graph.nodes.values()).agents
    graphs = {name: one.graph if isinstance(one, Agent) else one for name, one in agents.items()}
    given = {name: one for name, one in agents.items() if isinstance(one, Agent | Topology)}
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
    nodes = {name: _manned(node, graphs) for name, node in graph.nodes.items()}
    named = Graph(graph.name, nodes[graph.start], rows_with(graph, nodes))
    named.source = graph.source
    entries = {
        name: replace(own.agents[name], document=document_of(one)) for name, one in graphs.items()
    }
    document = replace(
        own, graph=named, agents={**own.agents, **entries}, rules=own.rules & rules_of(rules)
    )
    _refuse_lost(document, agents)
    if registry is None and isinstance(graph, Topology):
        made = graph.with_document(document, given)
    else:
        names = RegisteredNames() if registry is None else RegisteredNames(registry)
        made = Topology(document, names, given=given)
    _refuse_unknown(rules_of(rules), made)
    return made


def _refuse_unknown(rules: Rules, made: Topology) -> None:
    """Refuse rules with a word that means nothing."""
    known = names_of(made)
    try:
        resolve_words(rules, known)
    except ConfigError:
        if known.tools is not None:
            raise
        # Runs may bring other tools; those of the file are known all the same.
        resolve_words(rules, replace(known, tools=made.document.tools))


def _refuse_lost(document: Document, agents: Iterable[str]) -> None:
    """Refuse reasons for nodes that the agents' new graphs do not have."""
    known = Declared.by(document)
    for node, code in document.ignore:
        wrong = lost(node, known) if node.partition("/")[0] in {*agents} else None
        if wrong is not None:
            raise ConfigError(
                f"`ignore` of graph {document.graph.name!r}, {code} of {node!r}: {wrong[0]} "
                f"Fix: {wrong[1]}"
            )


def _manned(
    node: Node[Any, Outcome], agents: Mapping[str, kernel.Graph[Any]]
) -> Node[Any, Outcome]:
    """Return a node with the graphs of its agents, at any depth."""
    match node:
        case Retrying():
            return replace(node, node=_manned(node.node, agents))
        case Fallback():
            first, second = _manned(node.first, agents), _manned(node.second, agents)
            return replace(node, first=first, second=second)
        case _:
            return with_graphs(node, agents)
