"""ProofGraph: a graph with its contracts, as the proofs search it.

Owns breadth-first search, strongly connected components, and the making of findings. The witness
of each proof is therefore a path of the table that the engine executes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from inspect import getsourcefile, getsourcelines, unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast, final

import networkx as nx

from ..contract import Contract, contract_of, needs_turn
from ..graph import NodeGraph
from ..outcomes import Outcome, outcome_name
from .report import Finding, Severity, Unknown, short_path
from .run_search import NO_RUN, Exclusions, Mark, RunSearch

if TYPE_CHECKING:
    # networkx's own class is not subscriptable; only its stubs are generic.
    Digraph = nx.DiGraph[Hashable]
else:
    Digraph = nx.DiGraph

__all__ = [
    "END",
    "Arc",
    "ProofGraph",
    "TablePath",
    "breadth_first",
    "cyclic_components",
    "path_to",
    "quote_names",
    "shortest_path",
    "strong_components",
]

S = TypeVar("S")
F = TypeVar("F", Finding, Finding | Unknown)
Q = TypeVar("Q", bound=Hashable)

END: Final = "END"
PATH_MAX: Final = 30
"""The arcs of a path that a message lists; a longer path is told by its length."""

FAIL_CLOSED: Final = frozenset({"GL2", "GL3"})
"""The properties that fail a report even if no run takes the path that breaks them."""

NAMED_MAX: Final = 3
"""The nodes that a message names before it counts the others."""


@final
@dataclass(frozen=True, slots=True)
class Arc:
    """A transition of the table: the node `source` leaves by `outcome` to `target`."""

    source: str
    outcome: type[Outcome]
    target: str

    @property
    def word(self) -> str:
        """The outcome's name."""
        # The type checker takes the hash of a class for that of its values.
        return _word(cast("Hashable", self.outcome))


TablePath: TypeAlias = tuple[Arc, ...]


class ProofGraph(Generic[S]):
    """A graph whose table and contracts have been read for the proofs.

    An outcome that a contract rules out has no arc.

    Attributes:
        node_graph: the graph.
        contracts: the contract of each node; None for a node without one.
        arcs: the arcs out of each node, in the order of the table.
        parents: each reachable node, with the last arc of a shortest path from the start.
    """

    def __init__(self, graph: NodeGraph[S]) -> None:
        self.node_graph = graph
        self.nodes, self.table, self.start = graph.nodes, graph.table, graph.start
        self.contracts: Mapping[str, Contract | None] = {
            name: contract_of(node) for name, node in graph.nodes.items()
        }
        self.arcs: Mapping[str, tuple[Arc, ...]] = {
            name: tuple(
                Arc(name, outcome, target)
                for outcome, target in row.items()
                if not self._is_never(name, outcome)
            )
            for name, row in graph.table.items()
        }
        self.parents = breadth_first([graph.start], self.arcs_from)

    def redirected(self, node: str, outcome: type[Outcome], target: str) -> ProofGraph[S]:
        """Return this graph with one transition led to another target."""
        graph = copy(self)
        graph.node_graph = copy(self.node_graph)
        graph.table = {**self.table, node: {**self.table[node], outcome: target}}
        graph.node_graph.table = graph.table
        row = [replace(arc, target=graph.table[node][arc.outcome]) for arc in self.arcs[node]]
        graph.arcs = {**self.arcs, node: tuple(row)}
        graph.parents = breadth_first([graph.start], graph.arcs_from)
        graph.__dict__.pop("order", None)
        return graph

    @cached_property
    def runs(self) -> RunSearch[S]:
        """The search for runs that take a path."""
        return RunSearch(self.node_graph)

    @cached_property
    def turnless(self) -> frozenset[str]:
        """The nodes that ask a model in a turn that another node opens."""
        return frozenset(name for name, node in self.nodes.items() if needs_turn(node))

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The position of each reachable node in breadth-first order."""
        return {name: number for number, name in enumerate(self.parents)}

    @cached_property
    def reached(self) -> tuple[str, ...]:
        """The reachable nodes, in the order of the table."""
        return tuple(name for name in self.nodes if name in self.parents)

    def _is_never(self, name: str, outcome: type[Outcome]) -> bool:
        contract = self.contracts.get(name)
        return contract is not None and contract.never(outcome)

    def arcs_from(self, name: str) -> Iterable[tuple[Arc, str]]:
        """Return the arcs out of a node, each with its target."""
        return ((arc, arc.target) for arc in self.arcs.get(name, ()))

    def path_to(self, node: str) -> TablePath:
        """Return a shortest path from the start to `node`."""
        return path_to(self.parents, node)

    def run_to(self, node: str) -> TablePath:
        """Return a short path to `node` that a run takes; empty if the search finds none."""
        path = self.runs.first_run(
            lambda excluded: shortest_path(
                [self.start], self.arcs_from, lambda name, _: name == node, excluded
            )
        )
        return path or ()

    def run_prefix(self, path: TablePath) -> TablePath:
        """Return the longest prefix of `path` that a run takes."""
        return path[: self.runs.walk(path)]

    def confirmed(
        self,
        path_without: Callable[[Exclusions], TablePath | None],
        finding_of: Callable[[TablePath], Finding],
    ) -> Finding | Unknown:
        """Return the finding of the first path that a run takes; an unknown if no run takes one.

        Args:
            path_without: returns a shortest path that shows the fault and is not excluded.
            finding_of: returns the finding whose witness is a path.
        """
        path = self.runs.first_run(path_without)
        if path is not None:
            return finding_of(path)
        fault = finding_of(path_without(Exclusions()) or ())
        long = len(fault.outcomes) > PATH_MAX
        words = f"{len(fault.outcomes):,} lines to {fault.witness[-1]}" if long else fault.path
        reason = f"{fault.place}: {fault.message} But {NO_RUN}: {words}. Fix: {fault.fix}"
        return Unknown(fault.code, reason, fault.node, fails=fault.code in FAIL_CLOSED)

    def unknown_without_contracts(self, code: str) -> tuple[Unknown, ...]:
        """Return a property as unknown if a reachable node has no contract."""
        silent = tuple(name for name in self.reached if self.contracts[name] is None)
        if not silent:
            return ()
        reason = (
            f"{quote_names(silent)} promises nothing, so it may do anything: give it a `contract`."
        )
        return (Unknown(code, reason),)

    def finding(  # noqa: PLR0913 - a finding's parts
        self,
        code: str,
        message: str,
        fix: str,
        *,
        node: str = "",
        path: TablePath = (),
        outcome: str = "",
        severity: Severity = "error",
        place: str = "",
    ) -> Finding:
        """Return a finding about `node` whose witness is `path`."""
        witness = (path[0].source, *(arc.target for arc in path)) if path else ()
        if not path and node:
            witness = (node,)
        return Finding(
            code,
            severity,
            place or f"node {node!r}",
            message,
            witness,
            fix,
            outcomes=tuple(arc.word for arc in path),
            node=node,
            outcome=outcome,
            location=self.definition_of(node),
            written=self.line_of(node, outcome),
        )

    def line_of(self, node: str = "", outcome: str = "") -> str | None:
        """Return the `file:line` of a cell, else of its row, else of the graph; None if unknown."""
        source = self.node_graph.source
        return source and f"{short_path(Path(source.file))}:{source.at(node, outcome)}"

    def with_line(self, finding: F) -> F:
        """Return a finding with the line of its node, unless it has a line already."""
        if not isinstance(finding, Finding) or finding.written is not None:
            return finding
        return replace(finding, written=self.line_of(finding.node))

    def definition_of(self, node: str) -> str | None:
        """Return the `file:line` of the node's class or function; None if unknown."""
        known = self.nodes.get(node)
        if known is None:
            return None
        # A node that wraps a function is defined where the function is.
        function: object = getattr(known, "function", None)
        return _definition(function if callable(function) else type(known))


_word = lru_cache(maxsize=1_024)(outcome_name)


def quote_names(names: tuple[str, ...]) -> str:
    """Return the first names in quotes, and the number of the others."""
    text = ", ".join(repr(name) for name in names[:NAMED_MAX])
    more = len(names) - NAMED_MAX
    return text if more <= 0 else f"{text} and {more} more"


@lru_cache(maxsize=1_024)
def _definition(of: type[object] | Callable[..., object]) -> str | None:
    try:
        of = unwrap(of)
        file, (_, line) = getsourcefile(of), getsourcelines(of)
    except (OSError, TypeError, ValueError):
        return None
    return None if file is None else f"{short_path(Path(file))}:{line}"


def breadth_first(
    starts: Iterable[Q], arcs_from: Callable[[Q], Iterable[tuple[Arc, Q]]]
) -> dict[Q, tuple[Arc, Q] | None]:
    """Return every reachable state with its parent in the breadth-first tree.

    Args:
        starts: the states to begin with; their parent is None.
        arcs_from: returns the arcs out of a state, each with the state that it leads to.
    """
    parents: dict[Q, tuple[Arc, Q] | None] = dict.fromkeys(starts)
    queue = deque(parents)
    while queue:
        state = queue.popleft()
        for arc, target in arcs_from(state):
            if target not in parents:
                parents[target] = (arc, state)
                queue.append(target)
    return parents


def path_to(parents: Mapping[Q, tuple[Arc, Q] | None], state: Q) -> TablePath:
    """Return the path to `state` in the tree that `breadth_first` returned."""
    arcs: list[Arc] = []
    parent = parents[state]
    while parent is not None:
        arcs.append(parent[0])
        parent = parents[parent[1]]
    return tuple(reversed(arcs))


def shortest_path(
    starts: Iterable[Q],
    arcs_from: Callable[[Q], Iterable[tuple[Arc, Q]]],
    is_goal: Callable[[Q, Arc | None], bool],
    excluded: Exclusions,
    suffix: TablePath = (),
) -> TablePath | None:
    """Return a shortest path to a goal; None if there is none.

    Args:
        starts: the states to begin with.
        arcs_from: returns the arcs out of a state, each with the state that it leads to.
        is_goal: whether a state, entered by an arc, is a goal.
        excluded: the paths that are left out; their marks make a product with the states.
        suffix: arcs that follow the path, and are no part of it.
    """
    if not excluded:
        return _first_path(starts, arcs_from, is_goal)

    def product_arcs(state: tuple[Q, Mark]) -> Iterator[tuple[Arc, tuple[Q, Mark]]]:
        for arc, target in arcs_from(state[0]):
            mark = excluded.extended(state[1], arc)
            if mark is not None:
                yield arc, (target, mark)

    return _first_path(
        [(state, excluded.start) for state in starts],
        product_arcs,
        lambda state, arc: is_goal(state[0], arc) and excluded.allows(state[1], suffix),
    )


def _first_path(
    starts: Iterable[Q],
    arcs_from: Callable[[Q], Iterable[tuple[Arc, Q]]],
    is_goal: Callable[[Q, Arc | None], bool],
) -> TablePath | None:
    parents: dict[Q, tuple[Arc, Q] | None] = dict.fromkeys(starts)
    if any(is_goal(state, None) for state in parents):
        return ()
    queue = deque(parents)
    while queue:
        state = queue.popleft()
        for arc, target in arcs_from(state):
            if target not in parents:
                parents[target] = arc, state
                if is_goal(target, arc):
                    return path_to(parents, target)
                queue.append(target)
    return None


def strong_components(states: Iterable[Q], arcs: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield the strongly connected components, in the order of `states`."""
    digraph = Digraph()
    digraph.add_nodes_from(states)
    digraph.add_edges_from(arcs)
    order = {state: number for number, state in enumerate(digraph)}
    components = [
        tuple(sorted(component, key=order.__getitem__))
        for component in nx.strongly_connected_components(digraph)
    ]
    # networkx returns the states that it was given.
    ordered = sorted(components, key=lambda component: order[component[0]])
    yield from cast("list[tuple[Q, ...]]", ordered)


def cyclic_components(states: Iterable[Q], arcs: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield the strongly connected components that contain a cycle."""
    pairs = list(arcs)
    if not pairs:
        return
    loops = {source for source, target in pairs if source == target}
    for component in strong_components(states, pairs):
        if len(component) > 1 or loops.intersection(component):
            yield component
