"""Proofs: how long `check` and `bound` take, and how that grows with the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import log
from time import process_time
from typing import Literal

from graphloop import END, rules
from graphloop import graph as kernel
from graphloop.agent import graph as front
from graphloop.graph import EndType, NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Node
from graphloop.nodes import (
    Append,
    Compact,
    Execute,
    Extend,
    Function,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Accepted, Answered, Final, Go, Outcome, Ready, Stop
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.proofs.bounds import bound
from graphloop.proofs.checking import check
from graphloop.providers.script import ScriptedModel

from .measure import Row, Spread, at_most
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "proofs"
SECONDS_MAX = 5.0
LEVELS = 40
RULE_MAX = 2.0
"""How much more than `check` alone a rule may take."""

GROWTH_MAX = 1.5
"""How much more than n log n the larger graph may take: clocks are not that exact."""


WORKS: Mapping[str, Callable[[NodeGraph[None]], object]] = {"check": check, "bound": bound}


def rows(sizes: Sizes) -> list[Row]:
    """Measure graphs of standard loops, one after the other, and graphs that are meant to be slow.

    Nobody builds those by hand; a program that writes graphs might.
    """
    found: list[Row] = []
    shapes = {"": chain, " of two-way steps": two_way, " of a ring of limits": ring}
    for shape, build in shapes.items():
        small, large = (build(nodes) for nodes in sizes.proof_nodes)
        found += _grown(shape, small, large, sizes.proof_rounds)
    found += _ruled(chain(sizes.proof_nodes[1]), sizes.proof_rounds)
    levels = min(LEVELS, sizes.proof_nodes[0])
    graph = shared(levels)
    for name, work in WORKS.items():
        least = Spread.of([_cost(work, graph) for _ in range(sizes.proof_rounds)])
        what = f"{name} of {levels} levels of graphs, each of which runs the one below twice"
        found.append(at_most(BENCH, what, least, SECONDS_MAX, "s"))
    return found


def _grown(shape: str, small: NodeGraph[None], large: NodeGraph[None], rounds: int) -> list[Row]:
    found: list[Row] = []
    for name, work in WORKS.items():
        costs = [[_cost(work, graph) for _ in range(rounds)] for graph in (small, large)]
        least = Spread.of(costs[0])
        size = f"{len(small.nodes):,} nodes, {len(small.edges):,} edges"
        found.append(at_most(BENCH, f"{name} of {size}{shape}", least, SECONDS_MAX, "s"))
        grown = len(large.nodes) / len(small.nodes)
        fair = grown * log(len(large.nodes)) / log(len(small.nodes))
        ratio = Spread.of([more / one / fair for one, more in zip(*costs, strict=True)])
        what = f"{name} of {len(large.nodes):,} nodes{shape}: time against n log n"
        found.append(at_most(BENCH, what, ratio, GROWTH_MAX, "x"))
    return found


def _ruled(graph: NodeGraph[None], rounds: int) -> list[Row]:
    """Measure `check` with one rule that can be broken, against `check` without it."""
    nodes = [name for name, node in graph.nodes.items() if node.kind == "model"]
    found: list[Row] = []
    for where, node in {"last": nodes[0], "middle": nodes[len(nodes) // 2]}.items():
        rule = rules.at_most(f"node:{node}", 3)
        pairs = [
            (_cost(check, graph), _cost(partial(check, rules=rule), graph)) for _ in range(rounds)
        ]
        ratio = Spread.of([ruled / alone for alone, ruled in pairs])
        what = f"check of {len(graph.nodes):,} nodes with `at_most` of the {where} model: time"
        found.append(at_most(BENCH, f"{what} against check without", ratio, RULE_MAX, "x"))
    return found


def chain(nodes: int) -> NodeGraph[None]:
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
    return NodeGraph("chain", start, whole)


def two_way(nodes: int) -> NodeGraph[None]:
    """Return steps each of which leads on and back, so that every two of them go in circles."""
    steps: list[Node[None, Outcome]] = [
        Function(f"step-{number}", frozenset({Go, Stop}), reads=frozenset(), writes=frozenset())
        for number in range(max(2, nodes))
    ]
    whole: dict[Node[None, Outcome], kernel.Row[None]] = {
        one: {Go: steps[(at + 1) % len(steps)], Stop: steps[max(0, at - 1)], ...: END}
        for at, one in enumerate(steps)
    }
    return NodeGraph("two-way", steps[0], whole)


def ring(nodes: int) -> NodeGraph[None]:
    """Return limits in a ring, each of which bounds it."""
    limits: list[Node[None, Outcome]] = [
        Limit(1, f"limit-{number}") for number in range(max(2, nodes))
    ]
    whole: dict[Node[None, Outcome], kernel.Row[None]] = {
        one: {Go: limits[(at + 1) % len(limits)], Stop: END} for at, one in enumerate(limits)
    }
    return NodeGraph("ring", limits[0], whole)


def shared(levels: int) -> front.Graph[None]:
    """Return graphs that each run the one below in two places: 2 to the levels in all."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    table: kernel.Edges[None] = {
        prepare: {Ready: model, ...: append},
        model: {...: append},
        append: {...: END},
    }
    inner = front.Graph("level-0", prepare, table)
    for level in range(1, levels + 1):
        first, second = (
            sub_graph(inner, name=f"{at}-{level}", model=ScriptedModel(())) for at in ("a", "b")
        )
        between, last = Append("between"), Append("last")
        both: kernel.Edges[None] = {
            first: {Answered: between, ...: END},
            between: {Final: second, ...: END},
            second: {Answered: last, ...: END},
            last: {...: END},
        }
        inner = front.Graph(f"level-{level}", first, both)
    return inner


def _renamed(node: Node[None, Outcome], number: int) -> Node[None, Outcome]:
    assert isinstance(
        node,
        PrepareStep | Compact | ModelCall | Extend | Gate | Execute | Append | Verify | StopCheck,
    ), "it is of the standard loop"
    return replace(node, name=f"{node.name}-{number}")


def _cost(work: Callable[[NodeGraph[None]], object], graph: NodeGraph[None]) -> float:
    begun = process_time()
    work(graph)
    return process_time() - begun
