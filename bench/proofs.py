"""Proofs: how long `check` and `bound` take, and how that grows with the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log
from time import process_time
from typing import Literal

from graphloop import END
from graphloop import graph as kernel
from graphloop.graph import EndType, Graph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Node
from graphloop.nodes import (
    Append,
    Compact,
    Execute,
    Extend,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Accepted, Outcome
from graphloop.proofs.bound import bound
from graphloop.proofs.check import check

from .measure import Row, Spread, at_most
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "proofs"
SECONDS_MAX = 5.0
GROWTH_MAX = 1.5
"""How much more than n log n the larger graph may take: clocks are not that exact."""


def rows(sizes: Sizes) -> list[Row]:
    """Measure graphs of standard loops, one after the other."""
    small, large = (chain(nodes) for nodes in sizes.proof_nodes)
    found: list[Row] = []
    for name, work in (("check", check), ("bound", bound)):
        costs = [
            [_cost(work, graph) for _ in range(sizes.proof_rounds)] for graph in (small, large)
        ]
        least = Spread.of(costs[0])
        size = f"{len(small.nodes):,} nodes, {len(small.edges):,} edges"
        found.append(at_most(BENCH, f"{name} of {size}", least, SECONDS_MAX, "s"))
        grown = len(large.nodes) / len(small.nodes)
        fair = grown * log(len(large.nodes)) / log(len(small.nodes))
        ratio = Spread.of([more / one / fair for one, more in zip(*costs, strict=True)])
        what = f"{name} of {len(large.nodes):,} nodes: time against n log n"
        found.append(at_most(BENCH, what, ratio, GROWTH_MAX, "x"))
    return found


def chain(nodes: int) -> Graph[None]:
    """Return standard loops in a row, of about so many nodes together."""
    whole: dict[Node[None, Outcome], kernel.Row[None]] = {}
    after: Node[None, Outcome] | Literal[EndType.END] = END
    start: Node[None, Outcome] | None = None
    table = standard_edges(Standard())
    for number in range(max(1, nodes // len(table))):
        renamed = {node: _renamed(node, number) for node in table}
        for node, row in table.items():
            whole[renamed[node]] = {
                one: after if one is Accepted else to if to is END else renamed[to]
                for one, to in row.items()
            }
        after = start = next(iter(renamed.values()))
    assert start is not None, "there is at least one loop"
    return Graph("chain", start, whole)


def _renamed(node: Node[None, Outcome], number: int) -> Node[None, Outcome]:
    assert isinstance(
        node,
        PrepareStep | Compact | ModelCall | Extend | Gate | Execute | Append | Verify | StopCheck,
    ), "it is of the standard loop"
    return replace(node, name=f"{node.name}-{number}")


def _cost(work: Callable[[Graph[None]], object], graph: Graph[None]) -> float:
    begun = process_time()
    work(graph)
    return process_time() - begun
