"""All proofs of one graph without its children, and the transitions to blame for its faults.

The witness path of a fault ends where the fault shows, but the wrong transition is often an earlier
one. So the search gives each transition on the path other targets, and checks each changed table.
The transition whose change leaves the fewest faults is to blame. This search simulates no runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Final, Generic, TypeAlias, TypeVar, final

from ..outcomes import Aborted, Failed, Outcome, outcome_name
from .calls import CallProduct, call_faults, find_call_faults
from .cycles import unbounded_nodes
from .data import find_field_faults, find_state_faults
from .endless_cycles import find_abort_cycles, find_long_stretches, find_unbounded_cycles
from .gates import (
    find_parks_after_effects,
    find_unapproved_acts,
    find_unasked_holds,
    find_ungated_tools,
    find_unscreened_models,
    ungated_nodes,
)
from .proof_graph import END, ProofGraph
from .ranking import Ranking
from .reachability import (
    closed_components,
    find_table_mismatches,
    find_traps,
    find_unreachable_nodes,
    islands,
)
from .report import Finding, Unknown
from .visits import VisitBounds

__all__ = ["Blame", "prove"]

S = TypeVar("S")

FINDING_MAX: Final = 10_000
"""The most transitions, summed over all changed tables, that are checked for one finding."""

GRAPH_MAX: Final = 40_000
"""The most transitions, summed over all changed tables, that are checked for one graph."""

TRIES_MIN: Final = 4
"""The fewest changed tables to try; if the limits allow fewer, no transition is blamed."""

ROWS_MAX: Final = 3
"""The most transitions that one finding blames."""

DECIDED: Final = frozenset({"GL1", "GL2", "GL3", "GL4"})
"""The properties that depend on where transitions lead."""

_Cell: TypeAlias = tuple[str, type[Outcome]]
"""A cell of the transition table: a node and an outcome."""


def prove(visits: VisitBounds[S], aside: frozenset[str]) -> Iterator[Finding | Unknown]:
    """Yield the findings and unknowns of a graph; each finding has the transitions to blame.

    Args:
        visits: the graph, with the upper bounds of visits of its nodes.
        aside: the nodes whose unbounded cycles (GL4) are suppressed.
    """
    graph, results = visits.graph, [*_results_alone(visits, aside)]
    if any(isinstance(result, Finding) for result in results):
        blame = Blame(graph)
        results = [
            blame.blamed(result) if isinstance(result, Finding) else result for result in results
        ]
    yield from map(graph.with_line, results)


def _results_alone(visits: VisitBounds[S], aside: frozenset[str]) -> Iterator[Finding | Unknown]:
    """Yield the results of every proof that needs only this graph, without the children."""
    graph = visits.graph
    yield from find_table_mismatches(graph)
    yield from find_unreachable_nodes(graph)
    yield from find_traps(graph)
    if not graph.reached:
        return
    calls = CallProduct(graph)
    yield from find_ungated_tools(calls)
    yield from find_unapproved_acts(calls)
    yield from find_unasked_holds(calls)
    yield from find_unscreened_models(graph)
    yield from find_call_faults(calls)
    for code in ("GL2", "GL3"):
        yield from graph.unknown_without_contracts(code)
    yield from find_unbounded_cycles(visits.ranking, calls, aside)
    yield from find_long_stretches(visits.ranking)
    yield from find_field_faults(graph)
    yield from find_parks_after_effects(graph)
    yield from find_state_faults(graph)
    yield from find_abort_cycles(graph)


@final
class Blame(Generic[S]):
    """Finds, for an error, the cells of the table whose change would remove it."""

    def __init__(self, graph: ProofGraph[S]) -> None:
        self._graph = graph
        size = max(1, sum(map(len, graph.table.values())))
        self._tries = FINDING_MAX // size if FINDING_MAX // size >= TRIES_MIN else 0
        self._remaining = GRAPH_MAX // size
        self._calls = CallProduct(graph)
        self._unchanged = _Faults(self._calls)
        self._known: dict[tuple[_Cell, str], _Faults[S]] = {}
        self._order = {name: number for number, name in enumerate(graph.table)}
        self._heads = [names[0] for names in islands(graph)]

    def blamed(self, finding: Finding) -> Finding:
        """Return the finding with the transitions to blame, and the source line of the first."""
        if finding.code not in DECIDED or finding.severity != "error":
            return finding
        scores: dict[_Cell, int] = {}
        for cell, target in islice(
            self._single_changes(finding), min(self._tries, self._remaining)
        ):
            faults = self._faults_after(cell, target)
            mended = faults.of(finding.code) < self._unchanged.of(finding.code)
            if mended and faults.total() < scores.get(cell, self._unchanged.total()):
                scores[cell] = faults.total()
        if not scores:
            return finding
        least = min(scores.values())
        cells = [cell for cell, score in scores.items() if score == least][:ROWS_MAX]
        rows = tuple((node, outcome_name(outcome)) for node, outcome in cells)
        return replace(finding, rows=rows, written=self._graph.line_of(*rows[0]))

    def _single_changes(self, finding: Finding) -> Iterator[tuple[_Cell, str]]:
        """Yield single changes of the table, as a cell and its new target, likeliest first."""
        names = finding.witness[:-1] if finding.outcomes else ()
        on_witness = [
            (node, outcome)
            for node, word in zip(names, finding.outcomes, strict=False)
            for outcome in self._graph.table[node]
            if outcome_name(outcome) == word
        ]
        cells = list(dict.fromkeys(reversed(on_witness)))
        yield from ((cell, head) for cell in cells for head in self._heads)
        targets = (*self._heads, END, *self._graph.nodes)
        yield from ((cell, target) for target in targets for cell in cells)
        if not on_witness:
            for head in self._heads:
                yield from ((cell, head) for cell in self._cells_near(head))

    def _cells_near(self, head: str) -> Iterable[_Cell]:
        """Return all reachable cells, ordered by their distance from the row above node `head`."""
        cells = [
            (node, outcome)
            for node in self._graph.reached
            for outcome in self._graph.table[node]
            if outcome not in {Failed, Aborted}
        ]
        row = self._order.get(head, 0)
        return sorted(cells, key=lambda cell: abs(row - 1 - self._order[cell[0]]))

    def _faults_after(self, cell: _Cell, target: str) -> _Faults[S]:
        """Return the faults of the table after `cell` is changed to lead to `target`."""
        if (cell, target) not in self._known:
            self._remaining -= 1
            changed = self._graph.redirected(*cell, target)
            self._known[cell, target] = _Faults(CallProduct(changed, self._calls))
        return self._known[cell, target]


@final
class _Faults(Generic[S]):
    """The number of faults of a table by graph search alone, without a simulated run.

    Each property is searched when it is first asked for: most changes mend nothing, and of such a
    change the other properties do not matter.
    """

    def __init__(self, calls: CallProduct[S]) -> None:
        self._calls = calls
        self._known: dict[str, int] = {}

    def of(self, code: str) -> int:
        """Return the number of faults of one property."""
        if code not in self._known:
            self._known[code] = len(frozenset(self._search(code)))
        return self._known[code]

    def total(self) -> int:
        """Return the number of faults of all decided properties."""
        return sum(map(self.of, DECIDED))

    def _search(self, code: str) -> Iterable[Hashable]:
        graph = self._calls.graph
        match code:
            case "GL1":
                return chain(*islands(graph), *closed_components(graph))
            case "GL2":
                return ungated_nodes(self._calls)
            case "GL3":
                return call_faults(self._calls)
            case _:
                return unbounded_nodes(Ranking(graph))
