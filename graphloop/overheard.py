"""Overheard: the same graph, somebody of which hears what each node decides.

Nodes decide what they would have decided, and nothing of a run changes: this is how a journal is
told again, and how a fuzzed run is watched, without a second loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from .effects import Effect
from .events import Event
from .graph import Graph
from .node_protocol import Kind, Node, Reaction
from .outcomes import Outcome
from .run import Run

__all__ = ["Hear", "Within", "overheard"]

S = TypeVar("S")

Hear: TypeAlias = Callable[[Node[S, Outcome], Reaction[S, Outcome]], None]
"""What is told of every reaction: the node, and what it decided."""

Within: TypeAlias = Callable[[Node[S, Outcome]], AbstractContextManager[None]]
"""What a node decides within."""


def _alone(_: Node[S, Outcome]) -> AbstractContextManager[None]:
    return nullcontext()


def overheard(graph: Graph[S], hear: Hear[S], within: Within[S] = _alone) -> Graph[S]:
    """Return a graph that runs as `graph` does, and tells `hear` of each reaction of a node.

    A node decides `within` a context, which notices that it raises, or does not return.
    """
    # Built past the constructor: what is right about the table stays right, and is the same.
    heard: Graph[S] = Graph.__new__(type(graph))
    nodes = {name: _Overheard(node, hear, within) for name, node in graph.nodes.items()}
    vars(heard).update(vars(graph), nodes=nodes)
    return heard


@dataclass(frozen=True)
class _Overheard(Generic[S]):
    node: Node[S, Outcome]
    hear: Hear[S]
    within: Within[S]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> Kind:
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        with self.within(self.node):
            reaction = self.node.enter(run)
        return self._told(reaction)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        with self.within(self.node):
            reaction = self.node.on(run, event, answered)
        return self._told(reaction)

    def _told(self, reaction: Reaction[S, Outcome]) -> Reaction[S, Outcome]:
        self.hear(self.node, reaction)
        return reaction
