"""Document: all that a topology's file says, as values; the graph is one of them.

A run knows agents by name; the proofs want their graphs as well. So a node that runs agents of the
file stands in the graph as `Included`, which is that node and promises its agents' graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, final

from ..contract import ChildContract, Contract, contract_of
from ..effects import Effect
from ..events import Event
from ..graph import END, Edges, EndType, Graph
from ..node_protocol import Kind, Node, Reaction, unwrapped
from ..outcomes import Outcome
from ..rules import Rules
from ..run import Run

__all__ = [
    "AgentEntry",
    "Document",
    "Ignore",
    "Included",
    "agents_of",
    "callbacks_of",
    "document_of",
    "documents_below",
    "graphs_run",
    "rows_with",
    "with_graphs",
]

S = TypeVar("S")

Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""Why findings are set aside, by node and code."""


@final
@dataclass(frozen=True)
class AgentEntry:
    """An agent that a file declares; each run is given one without document.

    Models that may call it as a tool read the description.
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
        instructions: the system message of its models, where a run is given none.
        prompt: the question of a run that is given none.
        tools: the names of the tools that its models may call; some may be agents.
        agents: the agents that its nodes, or its models, know by name.
        rules: its temporal rules.
        ignore: why findings are set aside, by node and code.
    """

    graph: Graph[Any]
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
    """Yield the documents of agents, and of theirs at any depth, each once."""
    seen: set[int] = set()
    todo = list(agents.values())
    while todo:
        document = todo.pop(0).document
        if document is not None and id(document) not in seen:
            seen.add(id(document))
            yield document
            todo += document.agents.values()


def document_of(graph: Graph[Any]) -> Document:
    """Return the document of a graph, from a file or from Python."""
    own: object = getattr(graph, "document", None)
    return own if isinstance(own, Document) else _document_of(graph, {})


def _document_of(graph: Graph[Any], made: dict[int, Document]) -> Document:
    """Return it, made once of each graph however many agents have it."""
    if id(graph) in made:
        return made[id(graph)]
    known: dict[str, Graph[Any]] = {}
    names: set[str] = set()
    for node in unwrapped(graph.nodes.values()):
        if isinstance(node, Included):
            known |= dict(node.graphs)
        names |= {*agents_of(node)}
    agents = {
        name: AgentEntry(_document_of(known[name], made) if name in known else None)
        for name in sorted(names)
    }
    document = made[id(graph)] = Document(graph, agents=agents, ignore=graph.ignore)
    return document


def rows_with(
    graph: Graph[Any], nodes: Mapping[str, Node[Any, Outcome]] | None = None
) -> Edges[Any]:
    """Return the rows of a graph, with other nodes by name."""
    made = {**graph.nodes, **(nodes or {})}
    to: dict[str, Node[Any, Outcome] | EndType] = {**made, "END": END}
    return {
        made[name]: {outcome: to[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }


def callbacks_of(nodes: Iterable[Node[Any, Outcome]]) -> list[str]:
    """Return the callbacks of nodes that promise nothing, and may invoke them."""
    silent = [node for node in unwrapped(nodes) if contract_of(node) is None]
    named = [name for node in silent if isinstance(name := getattr(node, "callback", ""), str)]
    return [*filter(None, named)]


@final
@dataclass(frozen=True)
class Included:
    """A node that runs agents, with the graphs of those that are known."""

    node: Node[Any, Outcome]
    graphs: tuple[tuple[str, Graph[Any]], ...]

    @property
    def kernel(self) -> Node[Any, Outcome]:
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
        graphs, promised = dict(self.graphs), contract_of(self.node) or Contract()
        children = promised.children or tuple(map(ChildContract, promised.agents))
        return replace(
            promised,
            children=tuple([replace(child, graph=graphs.get(child.name)) for child in children]),
        )

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the node."""
        return self.node.enter(run)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Tell the node."""
        return self.node.on(run, event, answered)


def agents_of(node: object) -> tuple[str, ...]:
    """Return the agents that a node runs by name, without their graphs."""
    if isinstance(node, Included):
        return agents_of(node.node)
    promised = getattr(node, "contract", None)
    if not isinstance(promised, Contract):
        return ()
    brought = {child.name for child in promised.children if child.graph is not None}
    return tuple([name for name in dict.fromkeys(promised.agents) if name not in brought])


def graphs_run(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, Graph[Any] | None]:
    """Return the graphs that nodes run by name; None for an unknown graph."""
    graphs: dict[str, Graph[Any] | None] = {}
    for node in unwrapped(nodes):
        promised = contract_of(node) or Contract()
        for child in (*map(ChildContract, promised.agents), *promised.children):
            # A node that wraps another may know the graph of which that knows the name.
            graphs[child.name] = graphs.get(child.name) or child.graph
    return graphs


def with_graphs(node: Node[Any, Outcome], graphs: Mapping[str, Graph[Any]]) -> Node[Any, Outcome]:
    """Return the node with these graphs of its agents.

    They take the place of earlier ones.

    A node that runs none of the agents stays as it is.
    """
    if isinstance(node, Included):
        had = dict(node.graphs)
        named = {name: graphs[name] for name in agents_of(node) if name in graphs}
        changed = any(had.get(name) is not graph for name, graph in named.items())
        return with_graphs(node.node, had | named) if changed else node
    known = tuple([(name, graphs[name]) for name in agents_of(node) if name in graphs])
    return Included(node, known) if known else node
