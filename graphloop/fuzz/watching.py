"""Watching: the same graph, whose nodes note how they are left and what they wish for.

Nodes decide what they would have decided; nothing of a run changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar, final

from ..effects import Effect
from ..events import Event
from ..graph import Graph
from ..node_protocol import Kind, Leave, Node, Reaction, Wait
from ..outcomes import Outcome, outcome_name
from ..run import Run

__all__ = ["Notes", "Passage", "watched_graph"]

S = TypeVar("S")


@final
@dataclass(frozen=True, slots=True)
class Passage:
    """A node was left by an outcome, and where that led; all by name."""

    node: str
    outcome: str
    target: str

    def __str__(self) -> str:
        return f"{self.node} -{self.outcome}-> {self.target}"


@final
@dataclass
class Notes:
    """What nodes did: the passages since they were taken last, and who wished for what."""

    passages: list[Passage] = field(default_factory=list[Passage])
    wishers: dict[int, str] = field(default_factory=dict[int, str])

    def taken(self) -> tuple[Passage, ...]:
        """Return the passages, and forget them."""
        passages = tuple(self.passages)
        self.passages.clear()
        return passages


def watched_graph(graph: Graph[S], notes: Notes) -> Graph[S]:
    """Return a graph that runs as `graph` does, and keeps these notes."""
    watched: Graph[S] = Graph.__new__(type(graph))
    nodes = {
        name: _Watched(node, notes, {one: graph.table[name][one] for one in graph.table[name]})
        for name, node in graph.nodes.items()
    }
    vars(watched).update(vars(graph), nodes=nodes)
    return watched


@dataclass(frozen=True)
class _Watched(Generic[S]):
    node: Node[S, Outcome]
    notes: Notes
    row: dict[type[Outcome], str]

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
        return self._noted(self.node.enter(run))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        return self._noted(self.node.on(run, event, answered))

    def _noted(self, reaction: Reaction[S, Outcome]) -> Reaction[S, Outcome]:
        match reaction:
            case Leave(outcome=Outcome() as outcome) if type(outcome) in self.row:
                way, target = outcome_name(type(outcome)), self.row[type(outcome)]
                self.notes.passages.append(Passage(self.name, way, target))
            case Wait(effects=tuple() as effects):
                for effect in effects:
                    self.notes.wishers[getattr(effect, "id", 0)] = self.name
            case _:
                pass  # The kernel says what is wrong with it.
        return reaction
