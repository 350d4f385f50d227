"""Safe graphs of every kind of node, and the examples, of which one line leads elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from random import Random
from typing import Any, NamedTuple

from graphloop.agent.agent import Agent
from graphloop.agent.graph import Graph
from graphloop.cli.target import load_target
from graphloop.errors import GraphloopError
from graphloop.graph import END, EndType
from graphloop.node_protocol import Node
from graphloop.outcomes import Outcome, outcome_name
from graphloop.testing import ScriptedModel
from tests.examples.gallery import registered_for_now
from tests.unit.cli.command_line import ROOT
from tests.varied_graphs import seeded, varied

__all__ = ["Planted", "planted", "planted_in_examples"]

FIRST = 10_000
"""The seed of the first graph."""


class Planted(NamedTuple):
    """A graph, and the line that was led elsewhere, as its node and outcome."""

    graph: Graph[None]
    line: tuple[str, str]


def planted(how_many: int) -> Iterator[Planted]:
    """Yield the same graphs every time."""
    graphs = (_planted(rng, varied(rng).graph) for rng in map(seeded, count(FIRST)))
    yield from islice((graph for graph in graphs if graph is not None), how_many)


def planted_in_examples(each: int) -> Iterator[Planted]:
    """Yield so many graphs of each example, the same ones every time."""
    files = (ROOT / "examples").rglob("*.py")
    places = sorted({path.parent for path in files if path.stem in ("agent", "topology")})
    with registered_for_now():
        loops = [load_target(str(place)).loop(ScriptedModel(["Done."])) for place in places]
    for seed, made in enumerate(loops):
        graph = made.graph if isinstance(made, Agent) else made
        rng = seeded(seed)
        graphs = (_planted(rng, graph) for _ in range(each))
        yield from (graph for graph in graphs if graph is not None)


def _planted(rng: Random, graph: Graph[Any]) -> Planted | None:
    """Lead one line elsewhere; None if that is no graph."""
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
        return None
    return Planted(spoilt, (name, outcome_name(outcome)))
