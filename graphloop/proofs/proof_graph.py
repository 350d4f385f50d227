"""Ground: a graph with its contracts, as the proofs walk it.

Owns the search for shortest paths and the making of findings, so that every proof's witness is a
path of the table that the engine executes. A line whose node promises never to leave by it is
left out.
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
    Lines = nx.DiGraph[Hashable]
else:
    Lines = nx.DiGraph

__all__ = [
    "END",
    "ProofGraph",
    "TablePath",
    "Transition",
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
"""How many lines of a way a reason names."""

FAIL_CLOSED: Final = frozenset({"GL2", "GL3"})
"""The properties of which a way that lacks them fails a report, though no run of it was found."""

NAMED_MAX: Final = 3
"""How many nodes a reason names before it says how many more there are."""


@final
@dataclass(frozen=True, slots=True)
class Transition:
    """A line of the table: the node `source` leaves by `outcome` to `target`."""

    source: str
    outcome: type[Outcome]
    target: str

    @property
    def word(self) -> str:
        """The outcome's name."""
        # The type checker takes the hash of a class for that of its values.
        return _word(cast("Hashable", self.outcome))


TablePath: TypeAlias = tuple[Transition, ...]


class ProofGraph(Generic[S]):
    """A graph, ready to be proven.

    Attributes:
        graph: the graph.
        contracts: what each of its nodes promises; None for nothing.
        ways: the lines out of each node that may be taken, in the order of the table.
        parents: for each node that runs arrive at, the last line of a shortest way from the start.
    """

    def __init__(self, graph: NodeGraph[S]) -> None:
        self.graph = graph
        self.contracts: Mapping[str, Contract | None] = {
            name: contract_of(node) for name, node in graph.nodes.items()
        }
        self.ways: Mapping[str, tuple[Transition, ...]] = {
            name: tuple(
                Transition(name, outcome, target)
                for outcome, target in row.items()
                if not self._is_never(name, outcome)
            )
            for name, row in graph.table.items()
        }
        self.parents = breadth_first([graph.start], self._steps)

    def led(self, node: str, outcome: type[Outcome], target: str) -> ProofGraph[S]:
        """Return the ground of the graph with one line led elsewhere."""
        graph = copy(self.graph)
        graph.table = {**graph.table, node: {**graph.table[node], outcome: target}}
        ground = copy(self)
        ground.graph = graph
        row = [replace(way, target=graph.table[node][way.outcome]) for way in self.ways[node]]
        ground.ways = {**self.ways, node: tuple(row)}
        ground.parents = breadth_first([graph.start], ground._steps)
        ground.__dict__.pop("order", None)
        return ground

    @cached_property
    def walker(self) -> RunSearch[S]:
        """The search for runs that take a way."""
        return RunSearch(self.graph)

    @cached_property
    def turnless(self) -> frozenset[str]:
        """The nodes that ask a model in a turn that another node opens."""
        return frozenset(name for name, node in self.graph.nodes.items() if needs_turn(node))

    @cached_property
    def order(self) -> Mapping[str, int]:
        """How soon runs arrive at each node, compared with others."""
        return {name: number for number, name in enumerate(self.parents)}

    def _is_never(self, name: str, outcome: type[Outcome]) -> bool:
        contract = self.contracts.get(name)
        return contract is not None and contract.never(outcome)

    def _steps(self, name: str) -> Iterable[tuple[Transition, str]]:
        return ((way, way.target) for way in self.ways.get(name, ()))

    @property
    def reached(self) -> tuple[str, ...]:
        """The nodes that runs arrive at, in the order of the table."""
        return tuple(name for name in self.graph.nodes if name in self.parents)

    def path_to(self, node: str) -> TablePath:
        """Return a shortest way from the start to `node`."""
        return path_to(self.parents, node)

    def run_to(self, node: str) -> TablePath:
        """Return a short way to `node` that a run takes; empty if none is found."""
        start = self.graph.start
        found = self.walker.first(
            lambda barred: shortest_path([start], self._steps, lambda name, _: name == node, barred)
        )
        return found or ()

    def run(self, walked: TablePath) -> TablePath:
        """Return a way as far as a run takes it."""
        return walked[: self.walker.walk(walked)]

    def told(
        self, found: Callable[[Exclusions], TablePath | None], tell: Callable[[TablePath], Finding]
    ) -> Finding | Unknown:
        """Return what is told of the first way that a run takes, or that there is none.

        Args:
            found: returns a shortest way that shows what is wrong, without what is barred.
            tell: returns the finding that a way shows.
        """
        walked = self.walker.first(found)
        if walked is not None:
            return tell(walked)
        wrong = tell(found(Exclusions()) or ())
        long = len(wrong.outcomes) > PATH_MAX
        path = f"{len(wrong.outcomes):,} lines to {wrong.witness[-1]}" if long else wrong.path
        reason = f"{wrong.place}: {wrong.message} But {NO_RUN}: {path}. Fix: {wrong.fix}"
        return Unknown(wrong.code, reason, wrong.node, fails=wrong.code in FAIL_CLOSED)

    @property
    def never_taken(self) -> tuple[tuple[str, str], ...]:
        """The lines of the table that its nodes never take, as nodes and outcomes."""
        return tuple(
            (name, outcome_name(outcome))
            for name, row in self.graph.table.items()
            for outcome in row
            if self._is_never(name, outcome)
        )

    def silent(self) -> tuple[str, ...]:
        """Return the nodes that runs arrive at and that promise nothing."""
        return tuple(name for name in self.reached if self.contracts[name] is None)

    def unpromised(self, code: str) -> tuple[Unknown, ...]:
        """Return that a property cannot be decided because of nodes that promise nothing."""
        silent = self.silent()
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
        walked: TablePath = (),
        outcome: str = "",
        severity: Severity = "error",
        place: str = "",
    ) -> Finding:
        """Return a finding about `node`, with the walked lines as its witness."""
        witness = (walked[0].source, *(way.target for way in walked)) if walked else ()
        if not walked and node:
            witness = (node,)
        return Finding(
            code,
            severity,
            place or f"node {node!r}",
            message,
            witness,
            fix,
            outcomes=tuple(way.word for way in walked),
            node=node,
            outcome=outcome,
            location=self.location(node),
            written=self.written(node, outcome),
        )

    def written(self, node: str = "", outcome: str = "") -> str | None:
        """Return the `file:line` of a cell, else of its row, else of the graph; None if unknown."""
        source = self.graph.source
        return source and f"{short_path(Path(source.file))}:{source.at(node, outcome)}"

    def located(self, found: F) -> F:
        """Return a finding with the line that it is about: at least that of its graph."""
        if not isinstance(found, Finding) or found.written is not None:
            return found
        return replace(found, written=self.written(found.node))

    def location(self, node: str) -> str | None:
        """Return where the node's class or function is defined, as `file:line`, if known."""
        found = self.graph.nodes.get(node)
        if found is None:
            return None
        # A node that is made of a function may say which; its own class says nothing of it.
        function: object = getattr(found, "function", None)
        return _defined(function if callable(function) else type(found))


_word = lru_cache(maxsize=1_024)(outcome_name)


def quote_names(names: tuple[str, ...]) -> str:
    """Return the first of some names, and how many more there are."""
    text = ", ".join(repr(name) for name in names[:NAMED_MAX])
    more = len(names) - NAMED_MAX
    return text if more <= 0 else f"{text} and {more} more"


@lru_cache(maxsize=1_024)
def _defined(of: type[object] | Callable[..., object]) -> str | None:
    try:
        of = unwrap(of)
        file, (_, line) = getsourcefile(of), getsourcelines(of)
    except (OSError, TypeError, ValueError):
        return None
    return None if file is None else f"{short_path(Path(file))}:{line}"


def breadth_first(
    starts: Iterable[Q], steps: Callable[[Q], Iterable[tuple[Transition, Q]]]
) -> dict[Q, tuple[Transition, Q] | None]:
    """Return every place that can be come to, with the line and the place it is come to from.

    The nearest come first, so the way back along the lines is a shortest one.
    """
    found: dict[Q, tuple[Transition, Q] | None] = dict.fromkeys(starts)
    queue = deque(found)
    while queue:
        here = queue.popleft()
        for way, there in steps(here):
            if there not in found:
                found[there] = (way, here)
                queue.append(there)
    return found


def path_to(found: Mapping[Q, tuple[Transition, Q] | None], place: Q) -> TablePath:
    """Return the lines that lead to `place` in what `search` has found."""
    walked: list[Transition] = []
    at = found[place]
    while at is not None:
        walked.append(at[0])
        at = found[at[1]]
    return tuple(reversed(walked))


def _first(
    starts: Iterable[Q],
    steps: Callable[[Q], Iterable[tuple[Transition, Q]]],
    is_goal: Callable[[Q, Transition | None], bool],
) -> TablePath | None:
    """Return a shortest way to a goal."""
    found: dict[Q, tuple[Transition, Q] | None] = dict.fromkeys(starts)
    if any(is_goal(place, None) for place in found):
        return ()
    queue = deque(found)
    while queue:
        here = queue.popleft()
        for way, there in steps(here):
            if there not in found:
                found[there] = way, here
                if is_goal(there, way):
                    return path_to(found, there)
                queue.append(there)
    return None


def shortest_path(
    starts: Iterable[Q],
    steps: Callable[[Q], Iterable[tuple[Transition, Q]]],
    is_goal: Callable[[Q, Transition | None], bool],
    barred: Exclusions,
    then: TablePath = (),
) -> TablePath | None:
    """Return a shortest way to a goal, without what is barred.

    Args:
        starts: where a way may begin.
        steps: the lines out of a place, and where they lead.
        is_goal: whether a place that is come to by a line is what is looked for.
        barred: what is left out.
        then: the lines that follow the way, and are no part of it.
    """
    if not barred:
        return _first(starts, steps, is_goal)
    begun = [(place, barred.start) for place in starts]
    found: dict[tuple[Q, Mark], tuple[Transition, tuple[Q, Mark]] | None] = dict.fromkeys(begun)
    for at in begun:
        if is_goal(at[0], None) and barred.allows(at[1], then):
            return ()
    queue = deque(found)
    while queue:
        here = queue.popleft()
        for way, there in steps(here[0]):
            mark = barred.then(here[1], way)
            if mark is None or (there, mark) in found:
                continue
            found[there, mark] = way, here
            if is_goal(there, way) and barred.allows(mark, then):
                return path_to(found, (there, mark))
            queue.append((there, mark))
    return None


def strong_components(places: Iterable[Q], lines: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield the sets of places that all reach each other, in the order of `places`."""
    drawn = Lines()
    drawn.add_nodes_from(places)
    drawn.add_edges_from(lines)
    order = {place: number for number, place in enumerate(drawn)}
    found = [
        tuple(sorted(group, key=order.__getitem__))
        for group in nx.strongly_connected_components(drawn)
    ]
    # networkx gives back the very places that it was given.
    yield from cast("list[tuple[Q, ...]]", sorted(found, key=lambda group: order[group[0]]))


def cyclic_components(places: Iterable[Q], lines: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield those of the sets in which there is a way around."""
    every = list(lines)
    if not every:
        return
    alone = {one for one, other in every if one == other}
    for group in strong_components(places, every):
        if len(group) > 1 or alone.intersection(group):
            yield group
