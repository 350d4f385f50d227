"""Document: all that a topology's file says, as values; the graph is one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

from ..graph import NodeGraph
from ..node_protocol import unwrapped
from ..rules import Rules
from .included import Included, agents_of

__all__ = ["AgentEntry", "Document", "document_of", "documents_below"]


@final
@dataclass(frozen=True)
class AgentEntry:
    """An agent that a file declares.

    Args:
        document: what it is; None if it is handed to each run.
        description: what it is for, where a model may call it as a tool.
        takes_over: whether it takes the conversation over when it is called.
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
        description: what it is for.
        instructions: the system message of its models, where a run is given none.
        prompt: what is asked when nobody asks anything else.
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
    ignore: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    @cached_property
    def size(self) -> int:
        """How many nodes it has, with those of its agents, once for each agent."""
        inner = [one.document.size for one in self.agents.values() if one.document is not None]
        return len(self.graph.nodes) + sum(inner)


def documents_below(agents: Mapping[str, AgentEntry]) -> Iterator[Document]:
    """Yield what agents are, and their agents at any depth, each document once."""
    seen: set[int] = set()
    todo = list(agents.values())
    while todo:
        document = todo.pop(0).document
        if document is not None and id(document) not in seen:
            seen.add(id(document))
            yield document
            todo += document.agents.values()


def document_of(graph: NodeGraph[Any]) -> Document:
    """Return what a graph says that was made in Python."""
    return _document_of(graph, {})


def _document_of(graph: NodeGraph[Any], made: dict[int, Document]) -> Document:
    """Return it, made once of each graph however many agents have it."""
    if id(graph) in made:
        return made[id(graph)]
    known: dict[str, NodeGraph[Any]] = {}
    names: dict[str, None] = {}
    for node in unwrapped(graph.nodes.values()):
        if isinstance(node, Included):
            known |= dict(node.graphs)
        names |= dict.fromkeys(agents_of(node))
    names = dict.fromkeys(sorted(names))
    agents = {
        name: AgentEntry(_document_of(known[name], made) if name in known else None)
        for name in names
    }
    document = made[id(graph)] = Document(graph, agents=agents, ignore=graph.ignore)
    return document
