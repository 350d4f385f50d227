"""Nested graphs: the graphs that a graph runs as children, and the children of these.

A graph that several nodes run is proven once, and its findings are reported at each place. A place
is the path of child names to a graph, so two nodes that run the same agent are one place. A graph
can be reached by exponentially many paths. After `USES_MAX` of them, each further graph is reported
at its first path only.
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
"""The depth of nesting to which children are proven and bounded."""

USES_MAX: Final = 64
"""The number of places after which a graph is not reported at a second place."""

BUDGET: Final = "budget"
"""The key in `surroundings.options` of a graph under which its own budget is stored."""


@final
@dataclass(frozen=True, slots=True)
class GraphUse:
    """A graph at one place, which is the path of child names from the outermost graph.

    Attributes:
        graph: the graph.
        budget: the budget of one run of the graph; None if unknown.
        path: the names of the children that lead to this graph; empty for the outermost graph.
        gates: the gate rules of its ancestors, which also apply to its runs.
        ignored: the nodes and codes whose findings are suppressed at this place.
    """

    graph: NodeGraph[Any]  # Each graph has its own state type.
    budget: Budget | None
    path: tuple[str, ...] = ()
    gates: frozenset[tuple[Rule, ...]] = frozenset()
    ignored: frozenset[tuple[str, str]] = frozenset()

    @property
    def graph_key(self) -> Hashable:
        """A key under which to cache the findings that do not depend on ancestors.

        Copies of a graph that differ only in their run options have the same key.
        """
        around = self.graph.surroundings
        agents = frozenset((name, id(agent)) for name, agent in around.agents.items())
        return id(self.graph.table), agents, around.called, around.handoffs, self.ignored

    @property
    def child_key(self) -> Hashable:
        """A cache key for findings about children, which also depend on gates and budgets."""
        return self.graph_key, self.budget, self.gates

    @property
    def rule_key(self) -> Hashable:
        """A cache key for findings about the graph's temporal rules."""
        return self.graph_key, self.rules.rules

    @property
    def key(self) -> Hashable:
        """A cache key for all findings about the graph at this place."""
        return self.child_key, self.rule_key

    @property
    def rules(self) -> Rules:
        """The temporal rules of the graph's runs."""
        return rules_given(self.graph)

    @property
    def prefix(self) -> str:
        """The prefix of the graph's node names in a report: `child/`, empty for the outermost."""
        return "".join(f"{name}/" for name in self.path)

    def in_outermost(self, found: Finding | Unknown) -> Finding | Unknown:
        """Return a result of this graph with its node and place named from the outermost graph."""
        if not self.path:
            return found
        if isinstance(found, Unknown):
            inner = "".join(f"in the child {name!r}: " for name in self.path)
            node = f"{self.prefix}{found.node}" if found.node else ""
            return Unknown(found.code, f"{inner}{found.reason}", node, found.fails)
        inner = "".join(f" of the child {name!r}" for name in reversed(self.path))
        return replace(found, node=f"{self.prefix}{found.node}", place=f"{found.place}{inner}")


class GraphUses(NamedTuple):
    """The places of a graph and of all its nested graphs.

    Attributes:
        reported: the places to report; each graph has at least one place here.
        beyond: the first left-out place whose findings may differ from those of all reported
            places, since its gates, budgets or rules differ.
        complete: whether no place is left out.
    """

    reported: tuple[GraphUse, ...]
    beyond: GraphUse | None
    complete: bool


def graph_uses(
    graph: NodeGraph[S], budget: Budget | None, ignored: Iterable[tuple[str, str]] = ()
) -> GraphUses:
    """Return the places of a graph and of all its nested graphs, in breadth-first order.

    Args:
        graph: the outermost graph.
        budget: the budget of one run of the outermost graph.
        ignored: the nodes and codes that the caller suppresses, in addition to the graph's own.
    """
    own = frozenset((*graph.ignore, *ignored))
    uses = [GraphUse(graph, _own_budget(graph, budget), ignored=own)]
    graph_keys = {uses[0].graph_key}
    places: set[Hashable] = set()
    left_out: list[GraphUse] = []
    # The gates and children of each graph are cached, since a graph may have many places.
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
    """Return how the parent uses a child's graph: its budget, gates and suppressed findings.

    Args:
        parent: the use of the graph that holds the child's node.
        child: the child, as its node declares it.
        graph: the child's graph.
        gates: the gate rules of its ancestors.
    """
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
    """Return the stricter limits of `given` and the graph's own budget; None without either."""
    own = graph.surroundings.options.get(BUDGET)
    if not isinstance(own, Budget):
        return given
    return own if given is None else given.tightened(own)


def gate_rules(nodes: Iterable[Node[Any, Outcome]]) -> list[tuple[Rule, ...]]:
    """Return the rules of each gate among `nodes`, without gates that have no rules."""
    gates = [getattr(node, "rules", ()) for node in nodes if node.kind == "gate"]
    # A gate class of the user may have an attribute `rules` of any type.
    known = [cast("tuple[object, ...]", rules) for rules in gates if isinstance(rules, tuple)]
    return [tuple(rule for rule in rules if isinstance(rule, Rule)) for rules in known if rules]


def unknown_children(use: GraphUse) -> Iterator[Unknown]:
    """Yield an unknown per property for each child whose graph is unknown or nested too deep."""
    for node, child in children_of(use.graph):
        if child.graph is None and child.name in use.graph.surroundings.called:
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
    """Return whether one of these graphs has a child whose graph is unknown."""
    distinct = {(id(use.graph), len(use.path) >= NEST_MAX): use for use in uses}
    return any(True for use in distinct.values() for _ in unknown_children(use))


def children_of(graph: NodeGraph[Any]) -> Iterator[tuple[str, ChildContract]]:
    """Yield each child of a node, with the node's name.

    Agents that models call as tools are children of the nodes of kind `execute`.
    """
    around = graph.surroundings
    called = [ChildContract(name, around.agents.get(name)) for name in sorted(around.called)]
    for name, node in graph.nodes.items():
        contract = contract_of(node)
        for child in () if contract is None else contract.children:
            yield name, known_child(graph, child)
        if node.kind == "execute":
            yield from ((name, child) for child in called)


def known_child(graph: NodeGraph[Any], child: ChildContract) -> ChildContract:
    """Return a child contract with the graph that the parent `graph` lists under its name."""
    known = graph.surroundings.agents.get(child.name)
    # A child with another graph under the name of a listed agent keeps its own graph.
    same = known is not None and (child.graph is None or child.graph == known)
    return replace(child, graph=known) if same else child
