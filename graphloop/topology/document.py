"""Document: all that a topology's file says, as values.

A run knows agents by name; the proofs need their graphs as well. So a node that runs agents of the
file stands in the graph as `Included`: that node, with the graphs of its agents in its contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, final

from ..contract import Contract, contract_of
from ..effects import Effect
from ..events import Event
from ..graph import END, Edges, EndType, NodeGraph
from ..node_protocol import Kind, Node, Reaction, unwrapped
from ..outcomes import Outcome
from ..rules import Rules
from ..run import Run

__all__ = [
    "AgentEntry",
    "AnyNode",
    "Document",
    "Ignore",
    "Included",
    "agents_of",
    "document_of",
    "documents_below",
    "graphs_run",
    "rows_with",
    "with_graphs",
]

S = TypeVar("S")

AnyNode: TypeAlias = Node[Any, Outcome]
Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""Why findings are set aside, by node and code."""


@final
@dataclass(frozen=True)
class AgentEntry:
    """An agent of a file; each run brings one without document.

    Models that may call the agent as a tool read the description.
    """

    document: Document | None = None
    description: str = ""
    takes_over: bool = False


@final
@dataclass(frozen=True)
class Document:
    """A topology.

    Args:
        graph: its nodes and its table.
        description: its purpose.
        instructions: the system message of its models, unless the run has its own.
        prompt: the question of a run without a prompt.
        tools: the names of the tools that its models may call; some may be agents.
        agents: the agents that its nodes, or its models, know by name.
        rules: its temporal rules.
        ignore: why findings are set aside, by node and code.
    """

    graph: NodeGraph[Any]
    description: str = ""
    instructions: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    agents: Mapping[str, AgentEntry] = field(default_factory=dict[str, AgentEntry])
    rules: Rules = Rules()  # noqa: RUF009 - frozen
    ignore: Ignore = field(default_factory=dict[tuple[str, str], str])

    @cached_property
    def size(self) -> int:
        """The number of its nodes, and of its agents' nodes."""
        inner = [agent.document.size for agent in self.agents.values() if agent.document]
        return len(self.graph.nodes) + sum(inner)


def documents_below(agents: Mapping[str, AgentEntry]) -> Iterator[Document]:
    """Yield the documents of agents at any depth, each once."""
    seen: set[int] = set()
    todo = list(agents.values())
    while todo:
        document = todo.pop(0).document
        if document is not None and id(document) not in seen:
            seen.add(id(document))
            yield document
            todo += document.agents.values()


def document_of(graph: NodeGraph[Any]) -> Document:
    """Return the document of a graph, from a file or from Python."""
    document: object = getattr(graph, "document", None)
    return document if isinstance(document, Document) else _document_of(graph, {})


def _document_of(graph: NodeGraph[Any], made: dict[int, Document]) -> Document:
    """Return the document of a graph from Python, made once."""
    if id(graph) not in made:
        graphs: dict[str, NodeGraph[Any]] = {}
        names: set[str] = set()
        for node in unwrapped(graph.nodes.values()):
            graphs |= dict(node.graphs) if isinstance(node, Included) else {}
            names |= {*agents_of(node)}
        agents = {
            name: AgentEntry(_document_of(graphs[name], made) if name in graphs else None)
            for name in sorted(names)
        }
        made[id(graph)] = Document(graph, agents=agents, ignore=graph.ignore)
    return made[id(graph)]


def rows_with(graph: NodeGraph[Any], nodes: Mapping[str, AnyNode] | None = None) -> Edges[Any]:
    """Return the rows of a graph, with other nodes by name."""
    by_name = {**graph.nodes, **(nodes or {})}
    targets: dict[str, AnyNode | EndType] = {**by_name, "END": END}
    return {
        by_name[name]: {outcome: targets[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }


@final
@dataclass(frozen=True)
class Included:
    """A node that runs agents, with the graphs of the known ones."""

    node: AnyNode
    graphs: tuple[tuple[str, NodeGraph[Any]], ...]

    @property
    def kernel(self) -> AnyNode:
        """The node as the kernel knows it."""
        return self.node

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def kind(self) -> Kind:
        """The node's kind."""
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The node's outcomes."""
        return self.node.outcomes

    @property
    def contract(self) -> Contract:
        """The node's contract, with the graphs that it runs."""
        graphs, contract = dict(self.graphs), contract_of(self.node) or Contract()
        children = [replace(child, graph=graphs.get(child.name)) for child in contract.children]
        return replace(contract, children=tuple(children))

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the node."""
        return self.node.enter(run)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Pass the event to the node."""
        return self.node.on(run, event, answered)


def agents_of(node: object) -> tuple[str, ...]:
    """Return the agents that a node runs by name, without their graphs."""
    if isinstance(node, Included):
        return agents_of(node.node)
    contract = getattr(node, "contract", None)
    children = contract.children if isinstance(contract, Contract) else ()
    return (*dict.fromkeys(child.name for child in children if child.graph is None),)


def graphs_run(nodes: Iterable[AnyNode]) -> dict[str, NodeGraph[Any] | None]:
    """Return the graphs that nodes run by name; None if unknown."""
    graphs: dict[str, NodeGraph[Any] | None] = {}
    for node in unwrapped(nodes):
        contract = contract_of(node) or Contract()
        for child in contract.children:
            # A wrapper may know the graph of an agent that the inner node knows by name.
            graphs[child.name] = graphs.get(child.name) or child.graph
    return graphs


def with_graphs(node: AnyNode, graphs: Mapping[str, NodeGraph[Any]]) -> AnyNode:
    """Return the node with new graphs of its agents.

    A node that runs none of the agents stays as it is.
    """
    if isinstance(node, Included):
        before = dict(node.graphs)
        new = {name: graphs[name] for name in agents_of(node) if name in graphs}
        is_same = all(before.get(name) is graph for name, graph in new.items())
        return node if is_same else with_graphs(node.node, before | new)
    known = tuple([(name, graphs[name]) for name in agents_of(node) if name in graphs])
    return Included(node, known) if known else node
