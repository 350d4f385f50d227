"""Nested graphs: the graphs that a graph runs as its children, and theirs.

A graph that several nodes run is proven once, and its findings are reported at each place. A place
is the path of child names that leads there, so two nodes that run one agent are one place. Nested
graphs may have exponentially many places: after `USES_MAX` of them, a graph that was reported is
not reported again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar, cast, final

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
    "GraphUse",
    "GraphUses",
    "children_of",
    "gate_rules",
    "graph_uses",
    "known_child",
    "runs_unknown",
    "unknown_children",
]

S = TypeVar("S")

NEST_MAX: Final = 64
"""The depth to which children are proven and bounded."""

USES_MAX: Final = 64
"""The places of graphs that are reported one by one."""

BUDGET: Final = "budget"
"""The key of a graph's own budget in its `run_options`."""


@final
@dataclass(frozen=True, slots=True)
class GraphUse:
    """A graph at one place; the outermost graph has the empty path.

    Attributes:
        graph: the graph.
        budget: what one run of it may spend; None if that is unknown.
        path: the names of the children that lead to it.
        gates: the gate rules of its ancestors, which hold in its runs too.
        ignored: the nodes and codes whose findings are suppressed here.
    """

    graph: NodeGraph[Any]  # Each has a state of its own type.
    budget: Budget | None
    path: tuple[str, ...] = ()
    gates: frozenset[tuple[Rule, ...]] = frozenset()
    ignored: frozenset[tuple[str, str]] = frozenset()

    @property
    def graph_key(self) -> Hashable:
        """The key of all findings that do not depend on ancestors.

        Copies of a graph that differ in their run options alone have one key.
        """
        graph = self.graph
        agents = frozenset((name, id(agent)) for name, agent in graph.agents.items())
        return id(graph.table), agents, graph.called, graph.handoffs, self.ignored

    @property
    def child_key(self) -> Hashable:
        """The key of the findings about its children, which depend on gates and budgets."""
        return self.graph_key, self.budget, self.gates

    @property
    def rule_key(self) -> Hashable:
        """The key of the findings about its temporal rules."""
        return self.graph_key, self.rules.rules

    @property
    def key(self) -> Hashable:
        """The key of all its findings."""
        return self.child_key, self.rule_key

    @property
    def rules(self) -> Rules:
        """The temporal rules of its runs."""
        return rules_given(self.graph)

    @property
    def prefix(self) -> str:
        """The prefix of its nodes' names in the outermost graph: `child/`."""
        return "".join(f"{name}/" for name in self.path)

    def in_outermost(self, found: Finding | Unknown) -> Finding | Unknown:
        """Return a finding of this graph as a finding of the outermost graph."""
        if not self.path:
            return found
        if isinstance(found, Unknown):
            inner = "".join(f"in the child {name!r}: " for name in self.path)
            node = f"{self.prefix}{found.node}" if found.node else ""
            return Unknown(found.code, f"{inner}{found.reason}", node, found.fails)
        inner = "".join(f" of the child {name!r}" for name in reversed(self.path))
        return replace(found, node=f"{self.prefix}{found.node}", place=f"{found.place}{inner}")


class GraphUses(NamedTuple):
    """The places of a graph's children.

    Attributes:
        reported: the places that are reported, with each graph at least once.
        beyond: the first left-out place with other gates, budgets or rules than any reported one.
        complete: whether no place is left out.
    """

    reported: tuple[GraphUse, ...]
    beyond: GraphUse | None
    complete: bool


def graph_uses(
    graph: NodeGraph[S], budget: Budget | None, ignored: Iterable[tuple[str, str]] = ()
) -> GraphUses:
    """Return the places of a graph and of all graphs that it runs, in breadth-first order.

    Args:
        graph: the outermost graph.
        budget: what one run of it may spend.
        ignored: the nodes and codes that the caller suppresses, beside the graph's own.
    """
    own = frozenset((*graph.ignore, *ignored))
    uses = [GraphUse(graph, _own_budget(graph, budget), ignored=own)]
    graph_keys = {uses[0].graph_key}
    places: set[Hashable] = set()
    left_out: list[GraphUse] = []
    # The table of a graph is read once, however many places it has.
    tables: dict[int, tuple[list[tuple[Rule, ...]], tuple[ChildContract, ...]]] = {}
    queue = deque(uses)
    while queue:
        parent = queue.popleft()
        if len(parent.path) >= NEST_MAX:
            continue
        if id(parent.graph) not in tables:
            children = tuple(child for _, child in children_of(parent.graph))
            tables[id(parent.graph)] = gate_rules(parent.graph.nodes.values()), children
        rules, children = tables[id(parent.graph)]
        for child in children:
            if child.graph is None:
                continue
            use = _child_use(parent, child, child.graph, parent.gates.union(rules))
            if (use.path, use.key) in places:
                continue
            places.add((use.path, use.key))
            if use.graph_key not in graph_keys or len(uses) < USES_MAX:
                graph_keys.add(use.graph_key)
                uses.append(use)
                queue.append(use)
            else:
                left_out.append(use)
    keys = {use.key for use in uses}
    beyond = next((use for use in left_out if use.key not in keys), None)
    return GraphUses(tuple(uses), beyond, not left_out)


def _child_use(
    parent: GraphUse,
    child: ChildContract,
    graph: NodeGraph[Any],
    gates: frozenset[tuple[Rule, ...]],
) -> GraphUse:
    """Return the place of a child; `gates` are the rules of its ancestors."""
    above = parent.budget or Budget()
    given = above if child.budget is None else above.tightened(child.budget)
    own_gates = [child.gate_rules] if child.gate_rules else []
    prefix = f"{child.name}/"
    ignored = frozenset(
        (node.removeprefix(prefix), code)
        for node, code in parent.ignored
        if node.startswith(prefix)
    )
    return GraphUse(
        graph,
        _own_budget(graph, given),
        (*parent.path, child.name),
        gates.union(own_gates),
        ignored.union(graph.ignore),
    )


def _own_budget(graph: NodeGraph[Any], given: Budget | None) -> Budget | None:
    """Return the given budget, tightened by the graph's own."""
    own = graph.run_options.get(BUDGET)
    if not isinstance(own, Budget):
        return given
    return own if given is None else given.tightened(own)


def gate_rules(nodes: Iterable[Node[Any, Outcome]]) -> list[tuple[Rule, ...]]:
    """Return the rules of each gate that has rules."""
    gates = [getattr(node, "rules", ()) for node in nodes if node.kind == "gate"]
    # A gate of the user's may have an attribute of this name and another type.
    known = [cast("tuple[object, ...]", rules) for rules in gates if isinstance(rules, tuple)]
    return [tuple(rule for rule in rules if isinstance(rule, Rule)) for rules in known if rules]


def unknown_children(use: GraphUse) -> Iterator[Unknown]:
    """Yield every property as unknown for each child whose graph is unknown."""
    for node, child in children_of(use.graph):
        if child.graph is None and child.name in use.graph.called:
            reason = (
                f"the graph of the agent {child.name!r}, which models call as a tool, is not "
                "known: make it with `as_tool` of an agent or a graph."
            )
        elif child.graph is None:
            reason = (
                f"the graph of the agent {child.name!r}, which {node!r} runs, is not known: give "
                f"it with `with_agents(graph, {{{child.name!r}: …}})`."
            )
        elif len(use.path) >= NEST_MAX:
            reason = (
                f"{child.name!r}, which {node!r} runs, is more than {NEST_MAX} graphs deep: check "
                "it by itself."
            )
        else:
            continue
        yield from (Unknown(code, reason, node) for code in PROPERTIES)


def runs_unknown(uses: Iterable[GraphUse]) -> bool:
    """Return whether one of these graphs runs a graph that is unknown."""
    distinct = {(id(use.graph), len(use.path) >= NEST_MAX): use for use in uses}
    return any(True for use in distinct.values() for _ in unknown_children(use))


def children_of(graph: NodeGraph[Any]) -> Iterator[tuple[str, ChildContract]]:
    """Yield each child that a node runs, or that models call, with the name of the node."""
    called = [ChildContract(name, graph.agents.get(name)) for name in sorted(graph.called)]
    for name, node in graph.nodes.items():
        contract = contract_of(node)
        for child in () if contract is None else contract.children:
            yield name, known_child(graph, child)
        if node.kind == "execute":
            yield from ((name, child) for child in called)


def known_child(graph: NodeGraph[Any], child: ChildContract) -> ChildContract:
    """Return a child with the graph that its parent knows by the child's name."""
    known = graph.agents.get(child.name)
    # A node may bring another graph that happens to have the name of an agent.
    same = known is not None and (child.graph is None or child.graph == known)
    return replace(child, graph=known) if same else child
