"""Document: the content of a topology file as frozen values.

A run finds agents by name, but the checker also needs their graphs. A node that runs agents of the
file is therefore wrapped in `NodeWithGraphs`, which adds the agents' graphs to the node's contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast, final

from ..contract import Contract, contract_of
from ..effects import Effect, Place
from ..events import Event
from ..graph import END, Edges, EndType, NodeGraph
from ..node_protocol import Kind, Node, Reaction, unwrapped
from ..outcomes import Outcome
from ..rules import Rules
from ..run import Run
from ..states import known_state_type
from .servers import PinnedServer, served_tools

__all__ = [
    "AgentEntry",
    "AnyNode",
    "Document",
    "Ignore",
    "NodeWithGraphs",
    "agents_of",
    "document_of",
    "graphs_run",
    "nested_documents",
    "rows_with",
    "with_graphs",
]

S = TypeVar("S")

AnyNode: TypeAlias = Node[Any, Outcome]
Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""The reasons for ignoring checker findings, by node name and finding code."""


@final
@dataclass(frozen=True)
class AgentEntry:
    """An agent that a topology file declares.

    If `document` is None, the caller passes the agent to each run. Models that may call the agent
    as a tool read `description`. With `takes_over`, a called agent takes over the conversation.
    With `place` "anywhere", any worker may drive its child runs.
    """

    document: Document | None = None
    description: str = ""
    takes_over: bool = False
    place: Place = "here"


@final
@dataclass(frozen=True)
class Document:
    """The content of a topology file, or the equivalent for a graph made in Python.

    Args:
        graph: the nodes and the transition table.
        description: the purpose of the graph.
        instructions: the system message of the graph's models, unless a run sets another.
        prompt: the prompt of a run that is started without a prompt.
        tools: the names of the tools that the graph's models may call; some may be agents. Those
            of `servers` are among them.
        servers: by name, the MCP servers whose tools the models may call.
        agents: by name, the agents that nodes run or models call.
        rules: the temporal rules that every run keeps.
        ignore: the reasons for ignoring checker findings, by node name and finding code.
    """

    graph: NodeGraph[Any]
    description: str = ""
    instructions: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    servers: Mapping[str, PinnedServer] = field(default_factory=dict[str, PinnedServer])
    agents: Mapping[str, AgentEntry] = field(default_factory=dict[str, AgentEntry])
    rules: Rules = Rules()  # noqa: RUF009 - frozen
    ignore: Ignore = field(default_factory=dict[tuple[str, str], str])

    def with_servers(self, servers: Mapping[str, PinnedServer]) -> Document:
        """Return a copy in which models may call the tools of these servers, too."""
        return replace(self, tools=(*self.tools, *served_tools(servers)), servers=servers)

    @property
    def listed_tools(self) -> tuple[str, ...]:
        """The tools without those of `servers`: the names under the key `tools` of the file."""
        return self.tools[: len(self.tools) - len(served_tools(self.servers))]

    @property
    def state_type(self) -> type[Any] | None:
        """The type of the graph's state; None if no node or caller has told it."""
        # A graph with a `state_type` keeps a class there, or None.
        return cast("type[Any] | None", known_state_type(self.graph))

    @cached_property
    def size(self) -> int:
        """The number of nodes in the graph and, recursively, in its agents' graphs."""
        inner = [agent.document.size for agent in self.agents.values() if agent.document]
        return len(self.graph.nodes) + sum(inner)


def nested_documents(agents: Mapping[str, AgentEntry]) -> Iterator[Document]:
    """Yield the documents of these agents, and of the agents nested in these documents, once."""
    seen: set[int] = set()
    todo = list(agents.values())
    while todo:
        document = todo.pop(0).document
        if document is not None and id(document) not in seen:
            seen.add(id(document))
            yield document
            todo += document.agents.values()


def document_of(graph: NodeGraph[Any]) -> Document:
    """Return a loaded graph's document, or build a document for a graph made in Python."""
    document: object = getattr(graph, "document", None)
    return document if isinstance(document, Document) else _document_of(graph, {})


def _document_of(graph: NodeGraph[Any], made: dict[int, Document]) -> Document:
    """Build the document of a graph made in Python; `made` caches documents by graph id."""
    if id(graph) not in made:
        graphs: dict[str, NodeGraph[Any]] = {}
        names: set[str] = set()
        for node in graph.every_node:
            graphs |= dict(node.graphs) if isinstance(node, NodeWithGraphs) else {}
            names |= {*agents_of(node)}
        agents = {
            name: AgentEntry(_document_of(graphs[name], made) if name in graphs else None)
            for name in sorted(names)
        }
        made[id(graph)] = Document(graph, agents=agents, ignore=graph.ignore)
    return made[id(graph)]


def rows_with(graph: NodeGraph[Any], nodes: Mapping[str, AnyNode] | None = None) -> Edges[Any]:
    """Return a graph's edges, with a node of `nodes` in place of the graph's node of that name."""
    by_name = {**graph.nodes, **(nodes or {})}
    targets: dict[str, AnyNode | EndType] = {**by_name, "END": END}
    return {
        by_name[name]: {outcome: targets[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }


@final
@dataclass(frozen=True)
class NodeWithGraphs:
    """Wraps a node that runs agents, and adds the agents' known graphs to its contract."""

    node: AnyNode
    graphs: tuple[tuple[str, NodeGraph[Any]], ...]

    @property
    def kernel(self) -> AnyNode:
        """The wrapped node, which the kernel executes."""
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
        """The wrapped node's contract, with the graphs of the agents that it runs."""
        graphs, contract = dict(self.graphs), contract_of(self.node) or Contract()
        children = [replace(child, graph=graphs.get(child.name)) for child in contract.children]
        return replace(contract, children=tuple(children))

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the wrapped node."""
        return self.node.enter(run)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Pass the event to the wrapped node."""
        return self.node.on(run, event, answered)


def agents_of(node: object) -> tuple[str, ...]:
    """Return the names of the agents that a node runs and whose graphs it does not contain."""
    if isinstance(node, NodeWithGraphs):
        return agents_of(node.node)
    contract = getattr(node, "contract", None)
    children = contract.children if isinstance(contract, Contract) else ()
    return (*dict.fromkeys(child.name for child in children if child.graph is None),)


def graphs_run(nodes: Iterable[AnyNode]) -> dict[str, NodeGraph[Any] | None]:
    """Map the name of each child that these nodes run to its graph; None if it is unknown."""
    graphs: dict[str, NodeGraph[Any] | None] = {}
    for node in unwrapped(nodes):
        contract = contract_of(node) or Contract()
        for child in contract.children:
            # A wrapper may know the graph of an agent that its inner node knows only by name.
            graphs[child.name] = graphs.get(child.name) or child.graph
    return graphs


def with_graphs(node: AnyNode, graphs: Mapping[str, NodeGraph[Any]]) -> AnyNode:
    """Return the node wrapped with the graphs of the agents that it runs.

    A node that runs none of these agents is returned unchanged.
    """
    if isinstance(node, NodeWithGraphs):
        before = dict(node.graphs)
        new = {name: graphs[name] for name in agents_of(node) if name in graphs}
        is_same = all(before.get(name) is graph for name, graph in new.items())
        return node if is_same else with_graphs(node.node, before | new)
    known = tuple([(name, graphs[name]) for name in agents_of(node) if name in graphs])
    return NodeWithGraphs(node, known) if known else node
