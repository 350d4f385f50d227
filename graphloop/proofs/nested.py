"""nested: the graphs that a graph runs, as agents of nodes and as tools, so each is proven once.

A graph that is used in many places is one graph: it is looked at once, and what is wrong with it is
told at each place. Uses of uses can be beyond counting; past the first of them, a graph that has
been told is not told again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, final

from ..contract import ChildContract, contract_of
from ..graph import Graph
from ..node_protocol import Node
from ..outcomes import Outcome
from ..spending import Budget
from .report import PROPERTIES, Finding, Unknown

__all__ = ["NEST_MAX", "Nested", "children_of", "nested", "nobody_knows"]

S = TypeVar("S")

NEST_MAX: Final = 64
"""How many graphs deep children are proven and bounded."""

USES_MAX: Final = 64
"""How many uses of graphs are told one by one."""

OF_A_GRAPH: Final = tuple(code for code in PROPERTIES if code != "GL12")
"""What is proven of every graph, whatever rules there are."""


@final
@dataclass(frozen=True, slots=True)
class Nested:
    """One use of a graph by another, or the outermost graph.

    Attributes:
        graph: the graph.
        budget: what a run of it may spend, as far as that is known.
        path: the names of the children that lead to it.
    """

    graph: Graph[Any]  # Each has a state of its own type.
    budget: Budget | None
    path: tuple[str, ...] = ()

    @property
    def key(self) -> Hashable:
        """What its proofs depend on; as long as the graph is there.

        Copies of a graph that differ in what is told of their runs alone are one graph.
        """
        graph = self.graph
        agents = frozenset((name, id(one)) for name, one in graph.agents.items())
        called, ignore = frozenset(graph.called), frozenset(graph.ignore.items())
        return id(graph.table), agents, called, ignore, self.budget

    @property
    def prefix(self) -> str:
        """What the names of its nodes begin with."""
        return "".join(f"{name}/" for name in self.path)

    def told(self, found: Finding | Unknown) -> Finding | Unknown:
        """Return what was found of this graph, as something about the outermost one."""
        if not self.path:
            return found
        if isinstance(found, Unknown):
            inner = "".join(f"in the child {name!r}: " for name in self.path)
            node = f"{self.prefix}{found.node}" if found.node else ""
            return Unknown(found.code, f"{inner}{found.reason}", node)
        inner = "".join(f" of the child {name!r}" for name in reversed(self.path))
        node = f"{self.prefix}{found.node}".removesuffix("/")
        return replace(found, node=node, place=f"{found.place}{inner}")


def nested(graph: Graph[S], budget: Budget | None) -> tuple[Nested, ...]:
    """Return `graph` and the graphs that it runs, the nearest first, every one at least once."""
    found = [Nested(graph, budget)]
    seen = {found[0].key}
    todo = deque(found)
    while todo:
        here = todo.popleft()
        if len(here.path) >= NEST_MAX:
            continue
        for child, inner in _graphs(here.graph):
            one = Nested(inner, child.budget or here.budget, (*here.path, child.name))
            if one.key not in seen or len(found) < USES_MAX:
                seen.add(one.key)
                found.append(one)
                todo.append(one)
    return tuple(found)


def nobody_knows(here: Nested) -> Iterator[Unknown]:
    """Yield what cannot be decided of a graph, because of what it runs and nobody has looked at."""
    for node, child in children_of(here.graph):
        if child.graph is None and child.name in here.graph.called:
            reason = (
                f"nobody knows the graph of the agent {child.name!r}, which models call as a tool: "
                "make it with `as_tool` of an agent or a graph."
            )
        elif child.graph is None:
            known = f"{{{child.name!r}: …}}"
            reason = (
                f"nobody knows the graph of the agent {child.name!r}, which {node!r} runs: give it "
                f"with `with_agents(graph, {known})`."
            )
        elif len(here.path) >= NEST_MAX:
            reason = (
                f"{child.name!r}, which {node!r} runs, is more than {NEST_MAX} graphs deep: check "
                "it by itself."
            )
        else:
            continue
        yield from (Unknown(code, reason, node) for code in OF_A_GRAPH)


def children_of(graph: Graph[Any]) -> Iterator[tuple[str, ChildContract]]:
    """Yield the children that nodes may run, or models call, and by which node.

    Those of a file know more than their tables: they are told as the graph knows them.
    """
    called = [ChildContract(name, graph.agents.get(name)) for name in sorted(graph.called)]
    for name, node in graph.nodes.items():
        for child in _of(node):
            known = graph.agents.get(child.name)
            yield name, child if known is None else replace(child, graph=known)
        if node.kind == "execute":
            yield from ((name, child) for child in called)


def _graphs(graph: Graph[Any]) -> Iterator[tuple[ChildContract, Graph[Any]]]:
    """Yield the children whose graphs are known; one that every `Execute` may run, once."""
    told: set[str] = set()
    for _, child in children_of(graph):
        if child.graph is None or child.name in told:
            continue
        if child.name in graph.called:
            told.add(child.name)
        yield child, child.graph


def _of(node: Node[Any, Outcome]) -> Iterator[ChildContract]:
    contract = contract_of(node)
    if contract is None:
        return
    yield from contract.children
    named = {child.name for child in contract.children}
    yield from (ChildContract(one) for one in dict.fromkeys(contract.agents) if one not in named)
