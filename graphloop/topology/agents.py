"""with_agents: a graph, and the agents that its nodes know by name.

    reply = Graph("reply", prepare, …)
    chain = with_agents(Graph("chain", outline, …), {"writer": reply})

What a topology's file says under `agents`, said in Python: the proofs see the agents' graphs, the
bound counts them, and a run needs a model and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from .. import graph as kernel
from ..agent import Agent, Graph, carried_by
from ..errors import ConfigError
from ..graph import END, EndType, names_of
from ..node_protocol import Node
from ..nodes import Fallback, Retrying
from ..outcomes import Outcome
from ..rules import Rules, resolve_words, rules_of
from .document import Document, document_of
from .ignored import Findable, lost
from .included import with_graphs
from .loaded import Topology
from .registration import RegisteredNames, Registry

__all__ = ["with_agents"]

S = TypeVar("S")


def with_agents(
    graph: Graph[S],
    agents: Mapping[str, kernel.NodeGraph[None] | Agent],
    *,
    rules: Rules | Iterable[Rules] = (),
    registry: Registry | None = None,
) -> Topology:
    """Return `graph` with the agents, or the graphs of agents, that its nodes name.

    All that a loaded topology says stays: its rules, tools, instructions, prompt, and what its
    file says of the agents. An agent that had a graph has the new one.

    A graph asks the model that the run is given; an agent keeps its own. Both are proven.

    Args:
        graph: a graph with nodes that name agents: `Child`, `Parallel`, `MapOver`, generators.
        agents: each agent, or its graph, by the agent's name.
        rules: temporal rules that every run keeps, beside those of the graph.
        registry: what the graphs name; if not given, what a loaded topology was loaded with, or
            the registry of the library.

    Raises:
        ConfigError: no node names one of the agents, or one brings another agent of that name
            along; the graph sets aside what an agent does not have any more; or a rule speaks of
            what there is not.
    """
    own, brought = _document(graph), carried_by(graph.nodes.values()).agents
    graphs = {name: one.graph if isinstance(one, Agent) else one for name, one in agents.items()}
    given = {name: one for name, one in agents.items() if isinstance(one, Agent | Topology)}
    for name in agents:
        if name not in own.agents:
            known = ", ".join(map(repr, own.agents)) or "no agents"
            raise ConfigError(
                f"no node of graph {graph.name!r} runs an agent {name!r}; they run {known}"
            )
        if name in brought:
            raise ConfigError(
                f"a node of graph {graph.name!r} brings another agent {name!r} along, and no run "
                "could tell the two: give that node another `name=`, or name another agent here"
            )
    nodes = {name: _manned(node, {**graphs}) for name, node in graph.nodes.items()}
    to: dict[str, Node[Any, Outcome] | EndType] = {**nodes, "END": END}
    rows: kernel.Edges[Any] = {
        nodes[name]: {outcome: to[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }
    named = Graph(graph.name, nodes[graph.start], rows)
    named.source = graph.source
    entries = {
        name: replace(own.agents[name], document=_document(one)) for name, one in graphs.items()
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
    _refuse_empty(rules_of(rules), made)
    return made


def _refuse_empty(rules: Rules, made: Topology) -> None:
    """Refuse rules about what there is not."""
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
    known = Findable(document.graph.nodes, document.agents, document.tools)
    for node, code in document.ignore:
        wrong = lost(node, known) if node.partition("/")[0] in {*agents} else None
        if wrong is not None:
            raise ConfigError(
                f"graph {document.graph.name!r} sets {code} of {node!r} aside: {wrong[0]} "
                f"Fix: {wrong[1]}"
            )


def _manned(
    node: Node[Any, Outcome], agents: dict[str, kernel.NodeGraph[None]]
) -> Node[Any, Outcome]:
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


def _document(graph: kernel.NodeGraph[Any]) -> Document:
    return graph.document if isinstance(graph, Topology) else document_of(graph)
