"""ProofGraph: a graph with its nodes' contracts, in the form that the proofs search.

Owns breadth-first search and the construction of findings. All proofs search the table that the
engine executes, so each witness is a path of that table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from inspect import getsourcefile, getsourcelines, unwrap
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar, cast, final

from msgspec import Struct

from ..contract import Contract, contract_of, needs_turn
from ..graph import NodeGraph
from ..outcomes import Outcome, outcome_name
from ..values import evolve
from .report import Finding, Severity, Unknown, short_path
from .run_search import NO_RUN, Exclusions, Mark, RunSearch

__all__ = [
    "END",
    "Arc",
    "ProofGraph",
    "TablePath",
    "breadth_first",
    "nodes_on",
    "path_to",
    "quote_names",
    "shortest_path",
]

S = TypeVar("S")
F = TypeVar("F", Finding, Finding | Unknown)
Q = TypeVar("Q", bound=Hashable)

END: Final = "END"
PATH_MAX: Final = 30
"""The most transitions of a path that a message lists; for a longer path it gives the length."""

FAIL_CLOSED: Final = frozenset({"GL2", "GL3"})
"""The properties that fail a report even if no simulated run takes the faulty path."""

NAMED_MAX: Final = 3
"""The most nodes that a message names; it only counts the others."""


@final
class Arc(Struct, frozen=True, gc=False):
    """A transition of the table: from node `source`, by `outcome`, to node `target`."""

    source: str
    outcome: type[Outcome]
    target: str

    @property
    def word(self) -> str:
        """The outcome's name."""
        # The cast tells the type checker that a class is hashable.
        return _word(cast("Hashable", self.outcome))


TablePath: TypeAlias = tuple[Arc, ...]
"""A path of the table: transitions, each from the target of the transition before."""


class ProofGraph(Generic[S]):
    """A graph with the contracts and transitions that the proofs search.

    A transition whose outcome is impossible by the node's contract is left out.

    Attributes:
        node_graph: the graph.
        contracts: the contract of each node; None for a node without a contract.
        arcs: the transitions out of each node, in the order of the table.
        parents: each reachable node, with the last transition of a shortest path from the start.
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
        """Return a copy of this graph in which `node` leads to `target` by `outcome`."""
        graph = copy(self)
        graph.node_graph = copy(self.node_graph)
        graph.table = {**self.table, node: {**self.table[node], outcome: target}}
        graph.node_graph.table = graph.table
        row = [evolve(arc, target=graph.table[node][arc.outcome]) for arc in self.arcs[node]]
        graph.arcs = {**self.arcs, node: tuple(row)}
        graph.parents = breadth_first([graph.start], graph.arcs_from)
        graph.__dict__.pop("order", None)
        return graph

    @cached_property
    def runs(self) -> RunSearch[S]:
        """The search for simulated runs that follow a path; one search per graph."""
        return RunSearch(self.node_graph)

    @cached_property
    def turnless(self) -> frozenset[str]:
        """The nodes that call a model but open no turn, so that another node must open it."""
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
        """Return whether the contract of node `name` rules out `outcome`."""
        contract = self.contracts.get(name)
        return contract is not None and contract.never(outcome)

    def arcs_from(self, name: str) -> Iterable[tuple[Arc, str]]:
        """Return the transitions out of a node, each with its target."""
        return ((arc, arc.target) for arc in self.arcs.get(name, ()))

    def path_to(self, node: str) -> TablePath:
        """Return a shortest path from the start to `node`."""
        return path_to(self.parents, node)

    def run_to(self, node: str) -> TablePath:
        """Return a short path to `node` that a simulated run takes; empty if none is found."""
        path = self.runs.first_run(
            lambda excluded: shortest_path(
                [self.start], self.arcs_from, lambda name, _: name == node, excluded
            )
        )
        return path or ()

    def run_prefix(self, path: TablePath) -> TablePath:
        """Return the longest prefix of `path` that a simulated run takes."""
        return path[: self.runs.walk(path)]

    def confirmed(
        self,
        path_without: Callable[[Exclusions], TablePath | None],
        finding_of: Callable[[TablePath], Finding],
    ) -> Finding | Unknown:
        """Return a finding if a simulated run takes a faulty path, else an unknown.

        Args:
            path_without: returns a shortest path to the fault, except excluded paths; None if
                there is no other path.
            finding_of: returns the finding whose witness is a given path.
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
        """Return an unknown for property `code` if a reachable node lacks a contract, else ()."""
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
        """Return a finding about `node` with `path` as its witness, and with source lines."""
        return Finding(
            code,
            severity,
            place or f"node {node!r}",
            message,
            nodes_on(path) or ((node,) if node else ()),
            fix,
            outcomes=tuple(arc.word for arc in path),
            node=node,
            outcome=outcome,
            location=self.definition_of(node),
            written=self.line_of(node, outcome),
        )

    def line_of(self, node: str = "", outcome: str = "") -> str | None:
        """Return the `file:line` where the transition of `node` by `outcome` is written.

        If that line is unknown, return the line of the node's row, else of the graph, else None.
        """
        source = self.node_graph.source
        return source and f"{short_path(Path(source.file))}:{source.at(node, outcome)}"

    def with_line(self, finding: F) -> F:
        """Return a finding with the source line of its node added, unless it has a line."""
        if not isinstance(finding, Finding) or finding.written is not None:
            return finding
        return replace(finding, written=self.line_of(finding.node))

    def definition_of(self, node: str) -> str | None:
        """Return the `file:line` of the node's class or function; None if unknown."""
        known = self.nodes.get(node)
        if known is None:
            return None
        # For a node that wraps a function, the function is more useful than the node's class.
        function: object = getattr(known, "function", None)
        return _defined_at(function if callable(function) else type(known))


_word = lru_cache(maxsize=1_024)(outcome_name)


def nodes_on(path: TablePath) -> tuple[str, ...]:
    """Return the nodes of a path, first to last; none for a path without transitions."""
    return (path[0].source, *(arc.target for arc in path)) if path else ()


def quote_names(names: tuple[str, ...]) -> str:
    """Return the first names in quotes, and the number of further names, as text."""
    text = ", ".join(repr(name) for name in names[:NAMED_MAX])
    more = len(names) - NAMED_MAX
    return text if more <= 0 else f"{text} and {more} more"


@lru_cache(maxsize=1_024)
def _defined_at(of: type[object] | Callable[..., object]) -> str | None:
    """Return the `file:line` of a class or function; None if its source is unknown."""
    try:
        of = unwrap(of)
        file, (_, line) = getsourcefile(of), getsourcelines(of)
    except (OSError, TypeError, ValueError):
        return None
    return None if file is None else f"{short_path(Path(file))}:{line}"


def breadth_first(
    starts: Iterable[Q], arcs_from: Callable[[Q], Iterable[tuple[Arc, Q]]]
) -> dict[Q, tuple[Arc, Q] | None]:
    """Return each reachable state with the transition and state from which it was first reached.

    Args:
        starts: the states at which the search begins; they map to None.
        arcs_from: returns the transitions out of a state, each with the next state.
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
    """Return the shortest path to `state`, from the result of `breadth_first`."""
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
    """Return a shortest path to a goal state; None if no allowed path leads to a goal.

    Args:
        starts: the states at which the search begins.
        arcs_from: returns the transitions out of a state, each with the next state.
        is_goal: whether a state is a goal, given the transition into it (None for a start).
        excluded: the paths that the search leaves out. It searches pairs of a state and a mark,
            which is the state of `excluded` after the path so far.
        suffix: transitions after the path that must be allowed too, but are not returned.
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
    """Return a shortest path to a goal state; None if no path leads to a goal."""
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
