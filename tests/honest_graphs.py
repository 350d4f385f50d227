"""Graphs for tests whose nodes promise to do what their kinds say, and do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from graphloop.contract import Contract
from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction
from graphloop.outcomes import Answered, Calls, Done, Outcome
from graphloop.run import Run

__all__ = ["Table", "graph_of"]

Table: TypeAlias = Mapping[str, Sequence[str]]

OUTCOMES: Final[tuple[type[Outcome], ...]] = (Calls, Answered, Done)


@dataclass(frozen=True)
class Spot:
    """A node of any kind that promises to do what its kind says."""

    name: str
    outcomes: frozenset[type[Outcome]]
    kind: Kind

    @property
    def contract(self) -> Contract:
        return Contract(tools=self.kind == "execute")

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        return Leave(run, Calls())

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        return self.enter(run)


def graph_of(table: Table, kinds: Mapping[str, Kind]) -> NodeGraph[None]:
    """Return the graph whose n-th outcome of each node leads to the n-th name in its row."""
    spots = {
        one: Spot(one, frozenset(OUTCOMES[: len(row)]), kinds[one]) for one, row in table.items()
    }
    edges: Edges[None] = {
        spots[one]: {
            outcome: END if target == "END" else spots[target]
            for outcome, target in zip(OUTCOMES, row, strict=False)
        }
        for one, row in table.items()
    }
    return NodeGraph("g", next(iter(spots.values())), edges)
