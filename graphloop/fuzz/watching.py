"""Watching: the same graph, whose nodes note how they are left and what they wish for.

Nodes decide what they would have decided; nothing of a run changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, final

from ..graph import Graph
from ..node_protocol import Leave, Node, Reaction, Wait
from ..outcomes import Outcome, outcome_name
from ..overheard import overheard

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

    def note(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
        row = graph.table[node.name]
        match reaction:
            case Leave(outcome=Outcome() as outcome) if type(outcome) in row:
                way, target = outcome_name(type(outcome)), row[type(outcome)]
                notes.passages.append(Passage(node.name, way, target))
            case Wait(effects=tuple() as effects):
                for effect in effects:
                    notes.wishers[getattr(effect, "id", 0)] = node.name
            case _:
                pass  # The kernel says what is wrong with it.

    return overheard(graph, note)
