"""Included: a node that runs agents, together with the graphs of those that a file declares.

Runs know agents by name; the proofs want to see their graphs as well. This node is the one that it
wraps, and promises more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, final

from ..contract import ChildContract, Contract, contract_of
from ..effects import Effect
from ..events import Event
from ..graph import NodeGraph
from ..node_protocol import Kind, Node, Reaction, unwrapped
from ..outcomes import Outcome
from ..run import Run

__all__ = ["Included", "agents_of", "graphs_run", "with_graphs"]

S = TypeVar("S")


@final
@dataclass(frozen=True)
class Included:
    """A node that runs agents.

    Args:
        node: the node.
        graphs: the graphs of its agents, by name, as far as they are known.
    """

    node: Node[Any, Outcome]
    graphs: tuple[tuple[str, NodeGraph[Any]], ...]

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
        """What the node promises, with the graphs that it runs."""
        graphs, promised = dict(self.graphs), contract_of(self.node) or Contract()
        children = promised.children or tuple([ChildContract(one) for one in promised.agents])
        return replace(
            promised,
            children=tuple([replace(one, graph=graphs.get(one.name)) for one in children]),
        )

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Enter the node."""
        return self.node.enter(run)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Tell the node."""
        return self.node.on(run, event, answered)


def agents_of(node: object) -> tuple[str, ...]:
    """Return the names of the agents that a node runs, but for those whose graphs it brings."""
    if isinstance(node, Included):
        return agents_of(node.node)
    promised = getattr(node, "contract", None)
    if not isinstance(promised, Contract):
        return ()
    brought = {one.name for one in promised.children if one.graph is not None}
    return tuple([one for one in dict.fromkeys(promised.agents) if one not in brought])


def graphs_run(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, NodeGraph[Any] | None]:
    """Return the graphs that nodes run, by the names they have there; None for an unknown one."""
    graphs: dict[str, NodeGraph[Any] | None] = {}
    for node in unwrapped(nodes):
        promised = contract_of(node) or Contract()
        for child in (*[ChildContract(one) for one in promised.agents], *promised.children):
            # What wraps a node may know the graph of which that knows the name.
            graphs[child.name] = graphs.get(child.name) or child.graph
    return graphs


def with_graphs(node: Node[Any, Outcome], graphs: dict[str, NodeGraph[Any]]) -> Node[Any, Outcome]:
    """Return the node with the graphs of its agents; as it is if none is known.

    Of an agent that has a graph, this one counts.
    """
    if isinstance(node, Included):
        had = dict(node.graphs)
        named = {name: graphs[name] for name in agents_of(node) if name in graphs}
        changed = any(had.get(name) is not one for name, one in named.items())
        return with_graphs(node.node, had | named) if changed else node
    known = tuple((name, graphs[name]) for name in agents_of(node) if name in graphs)
    return Included(node, known) if known else node
