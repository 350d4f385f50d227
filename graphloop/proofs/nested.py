"""Nested: the graphs that a graph runs, each proven once.

A graph that several nodes run is proven once, and its findings are reported at each place. A place
is the path of child names that leads there, so two nodes that run one agent are one place. Graphs
within graphs can have more places than can be listed. After `USES_MAX` places, a graph that has
been reported is not reported again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast, final

from ..contract import ChildContract, contract_of
from ..graph import NodeGraph
from ..node_protocol import Node
from ..outcomes import Outcome
from ..policy import Rule
from ..rules import Rules
from ..spending import Budget
from .report import PROPERTIES, Finding, Unknown
from .temporal import rules_given

__all__ = [
    "NEST_MAX",
    "Nested",
    "Uses",
    "children_of",
    "gate_rules",
    "known_child",
    "nested",
    "runs_unknown",
    "unknown_children",
]

S = TypeVar("S")

NEST_MAX: Final = 64
"""How many graphs deep children are proven and bounded."""

USES_MAX: Final = 64
"""How many uses of graphs are told one by one."""

BUDGET: Final = "budget"
"""The option of a graph's runs that is the budget of each."""


@final
@dataclass(frozen=True, slots=True)
class Nested:
    """A use of a graph by another, or the outermost graph.

    Attributes:
        graph: the graph.
        budget: what a run of it may spend, as far as that is known.
        path: the names of the children that lead to it.
        gates: the rules of those above it, which hold in its runs as well.
        excused: what is set aside of it there, by node and code.
    """

    graph: NodeGraph[Any]  # Each has a state of its own type.
    budget: Budget | None
    path: tuple[str, ...] = ()
    gates: frozenset[tuple[Rule, ...]] = frozenset()
    excused: frozenset[tuple[str, str]] = frozenset()

    @property
    def graph_key(self) -> Hashable:
        """The key of all that is told of it, but for its gates and budget.

        Copies of a graph that differ in what is told of their runs alone are one graph.
        """
        graph = self.graph
        agents = frozenset((name, id(one)) for name, one in graph.agents.items())
        return id(graph.table), agents, graph.called, graph.handoffs, self.excused

    @property
    def bounds(self) -> Hashable:
        """The key of all that is told of its children: with what its parents' runs give it."""
        return self.graph_key, self.budget, self.gates

    @property
    def ruled(self) -> Hashable:
        """The key of all that is told of its rules."""
        return self.graph_key, self.rules.rules

    @property
    def key(self) -> Hashable:
        """The key of all its proofs."""
        return self.bounds, self.ruled

    @property
    def rules(self) -> Rules:
        """The temporal rules that its runs keep."""
        return rules_given(self.graph)

    @property
    def prefix(self) -> str:
        """The start of the names of its nodes."""
        return "".join(f"{name}/" for name in self.path)

    def told(self, found: Finding | Unknown) -> Finding | Unknown:
        """Return what was found of this graph, as something about the outermost one."""
        if not self.path:
            return found
        if isinstance(found, Unknown):
            inner = "".join(f"in the child {name!r}: " for name in self.path)
            node = f"{self.prefix}{found.node}" if found.node else ""
            return Unknown(found.code, f"{inner}{found.reason}", node, found.fails)
        inner = "".join(f" of the child {name!r}" for name in reversed(self.path))
        return replace(found, node=f"{self.prefix}{found.node}", place=f"{found.place}{inner}")


_Known: TypeAlias = tuple[ChildContract, NodeGraph[Any]]
"""A child and its graph."""


class Uses(NamedTuple):
    """The uses of graphs that are told, every graph at least once, and what is beyond them.

    Attributes:
        told: they are told one by one.
        beyond: under other gates, with another budget or other rules, than each that is told.
        left_out: how many are not told, as far as anybody has looked.
    """

    told: tuple[Nested, ...]
    beyond: tuple[Nested, ...]
    left_out: int


def nested(
    graph: NodeGraph[S], budget: Budget | None, excused: Iterable[tuple[str, str]] = ()
) -> Uses:
    """Return `graph` and the graphs that it runs, the nearest first.

    Args:
        graph: the outermost graph.
        budget: what its runs may spend, if that is known; beside what the graph says itself.
        excused: what is set aside besides what the graphs say, by node and code.
    """
    excuses = frozenset((*graph.ignore, *excused))
    found = [Nested(graph, _spendable(graph, budget), excused=excuses)]
    seen, keys = {found[0].graph_key}, {found[0].key}
    places: set[Hashable] = set()
    beyond: dict[Hashable, Nested] = {}
    left_out = 0
    # A graph is used many times, and its table is read once.
    tables: dict[int, tuple[list[tuple[Rule, ...]], tuple[_Known, ...]]] = {}
    todo = deque(found)
    while todo:
        here = todo.popleft()
        if len(here.path) >= NEST_MAX:
            continue
        table = tables.get(id(here.graph))
        if table is None:
            rules = gate_rules(here.graph.nodes.values())
            table = tables[id(here.graph)] = rules, tuple(_graphs(here.graph))
        gates = here.gates.union(table[0])
        for child, inner in table[1]:
            one = _use(here, child, inner, gates)
            if (one.path, one.key) in places:
                # Several nodes run one agent: that is one place, by whose name it is set aside.
                continue
            places.add((one.path, one.key))
            if one.graph_key not in seen or len(found) < USES_MAX:
                seen.add(one.graph_key)
                keys.add(one.key)
                found.append(one)
                todo.append(one)
            else:
                beyond[one.key] = one
                left_out += 1
    more = [one for key, one in beyond.items() if key not in keys]
    return Uses(tuple(found), tuple(more), left_out)


def _use(
    here: Nested, child: ChildContract, graph: NodeGraph[Any], gates: frozenset[tuple[Rule, ...]]
) -> Nested:
    """Return a use of a graph by another, under these gates and that of the child."""
    above = here.budget or Budget()
    given = above if child.budget is None else above.tightened(child.budget)
    own_gates = [child.gate_rules] if child.gate_rules else []
    within = f"{child.name}/"
    excused = frozenset(
        (node.removeprefix(within), code) for node, code in here.excused if node.startswith(within)
    )
    path = (*here.path, child.name)
    return Nested(
        graph, _spendable(graph, given), path, gates.union(own_gates), excused.union(graph.ignore)
    )


def _spendable(graph: NodeGraph[Any], given: Budget | None) -> Budget | None:
    """Return what a run of a graph may spend that is given so much: its own budget holds too."""
    own = graph.run_options.get(BUDGET)
    if not isinstance(own, Budget):
        return given
    return own if given is None else given.tightened(own)


def gate_rules(nodes: Iterable[Node[Any, Outcome]]) -> list[tuple[Rule, ...]]:
    """Return the rules of every gate that has any."""
    found: list[tuple[Rule, ...]] = []
    for node in nodes:
        rules: object = getattr(node, "rules", ())
        if node.kind == "gate" and isinstance(rules, tuple) and rules:
            # isinstance cannot tell what is in it.
            every = cast("tuple[object, ...]", rules)
            found.append(tuple([one for one in every if isinstance(one, Rule)]))
    return found


def unknown_children(here: Nested) -> Iterator[Unknown]:
    """Yield what cannot be decided of a graph, because it runs graphs that are not known."""
    for node, child in children_of(here.graph):
        if child.graph is None and child.name in here.graph.called:
            reason = (
                f"the graph of the agent {child.name!r}, which models call as a tool, is not "
                "known: make it with `as_tool` of an agent or a graph."
            )
        elif child.graph is None:
            known = f"{{{child.name!r}: …}}"
            reason = (
                f"the graph of the agent {child.name!r}, which {node!r} runs, is not known: give "
                f"it with `with_agents(graph, {known})`."
            )
        elif len(here.path) >= NEST_MAX:
            reason = (
                f"{child.name!r}, which {node!r} runs, is more than {NEST_MAX} graphs deep: check "
                "it by itself."
            )
        else:
            continue
        yield from (Unknown(code, reason, node) for code in PROPERTIES)


def runs_unknown(uses: Iterable[Nested]) -> bool:
    """Whether one of these graphs runs a graph that is not known."""
    each = {(id(use.graph), len(use.path) >= NEST_MAX): use for use in uses}
    return any(True for use in each.values() for _ in unknown_children(use))


def children_of(graph: NodeGraph[Any]) -> Iterator[tuple[str, ChildContract]]:
    """Yield the children that nodes may run, or models call, and by which node.

    Those of a file know more than their tables: they are told as the graph knows them.
    """
    called = [ChildContract(name, graph.agents.get(name)) for name in sorted(graph.called)]
    for name, node in graph.nodes.items():
        yield from ((name, known_child(graph, child)) for child in _of(node))
        if node.kind == "execute":
            yield from ((name, child) for child in called)


def known_child(graph: NodeGraph[Any], child: ChildContract) -> ChildContract:
    """Return a child with the graph that its parent knows by the child's name."""
    known = graph.agents.get(child.name)
    # A node may bring another graph that happens to have the name of an agent.
    same = known is not None and (child.graph is None or child.graph == known)
    return replace(child, graph=known) if same else child


def _graphs(graph: NodeGraph[Any]) -> Iterator[_Known]:
    """Yield the children whose graphs are known."""
    yield from ((child, child.graph) for _, child in children_of(graph) if child.graph is not None)


def _of(node: Node[Any, Outcome]) -> Iterator[ChildContract]:
    contract = contract_of(node)
    yield from () if contract is None else contract.children
