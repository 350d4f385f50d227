"""A graph that writes down by which lines a run goes through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from graphloop.contract import Contract, contract_of
from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.outcomes import Outcome, outcome_name
from graphloop.run import Run

__all__ = ["Recorded", "recorded"]

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Recorded(Generic[S]):
    """A node that notes that it is entered, and by which outcome it is left."""

    inner: Node[S, Outcome]
    left: list[tuple[str, str]] = field(repr=False)
    entered: list[str] = field(repr=False)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def kind(self) -> Kind:
        return self.inner.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.inner.outcomes

    @property
    def contract(self) -> Contract | None:
        return contract_of(self.inner)

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        self.entered.append(self.name)
        return self._noted(self.inner.enter(run))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        return self._noted(self.inner.on(run, event, answered))

    def _noted(self, reaction: Reaction[S, Outcome]) -> Reaction[S, Outcome]:
        if isinstance(reaction, Leave):
            self.left.append((self.name, outcome_name(type(reaction.outcome))))
        return reaction


def recorded(graph: NodeGraph[S]) -> tuple[NodeGraph[S], list[tuple[str, str]], list[str]]:
    """Return the graph with its nodes recorded, what they will be left by, and entered."""
    left: list[tuple[str, str]] = []
    entered: list[str] = []
    nodes = {name: Recorded(node, left, entered) for name, node in graph.nodes.items()}
    edges: Edges[S] = {
        nodes[name]: {
            outcome: END if target == "END" else nodes[target] for outcome, target in row.items()
        }
        for name, row in graph.table.items()
    }
    return NodeGraph(graph.name, nodes[graph.start], edges), left, entered
