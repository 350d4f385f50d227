"""Safe graphs of every kind of node, of which one line leads elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any, NamedTuple

from graphloop.agent.graph import Graph
from graphloop.errors import GraphloopError
from graphloop.graph import END, EndType
from graphloop.node_protocol import Node
from graphloop.outcomes import Outcome, outcome_name
from tests.varied_graphs import seeded, varied

__all__ = ["Planted", "planted"]

FIRST = 10_000
"""The seed of the first graph."""


class Planted(NamedTuple):
    """A graph, and the line that was led elsewhere, as its node and outcome."""

    graph: Graph[None]
    line: tuple[str, str]


def planted(how_many: int) -> Iterator[Planted]:
    """Yield the same graphs every time."""
    yield from islice(_planted(), how_many)


def _planted() -> Iterator[Planted]:
    for seed in count(FIRST):
        rng = seeded(seed)
        graph = varied(rng).graph
        lines = [(name, one, to) for name, row in graph.table.items() for one, to in row.items()]
        name, outcome, target = rng.choice(lines)
        led = rng.choice([one for one in (*graph.nodes, "END") if one != target])
        to: dict[str, Node[Any, Outcome] | EndType] = {**graph.nodes, "END": END}
        edges: dict[Any, dict[Any, Any]] = {
            graph.nodes[node]: {one: to[after] for one, after in row.items()}
            for node, row in graph.table.items()
        }
        edges[graph.nodes[name]][outcome] = to[led]
        try:
            spoilt: Graph[None] = Graph("planted", graph.nodes[graph.start], edges)
        except GraphloopError:
            continue
        yield Planted(spoilt, (name, outcome_name(outcome)))
