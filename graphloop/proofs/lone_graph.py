"""All proofs of one graph by itself, and the lines to blame for what they find.

A witness ends where something goes wrong, which is seldom the line that is wrong. So lines are led
elsewhere, one at a time, and what speaks against the graph is decided again: to blame is the line
by whose change most of that is gone. Runs are not looked for again: what is asked is the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar, final

from ..outcomes import Aborted, Failed, Outcome, outcome_name
from .calls import CallProduct, call_faults, find_call_faults
from .cycles import circled
from .data import find_field_faults, find_state_faults
from .endless_cycles import find_abort_cycles, find_long_stretches, find_unbounded_cycles
from .gates import (
    find_parks_after_effects,
    find_unapproved_acts,
    find_unasked_holds,
    find_ungated_tools,
    open_nodes,
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

__all__ = ["Blame", "proven"]

S = TypeVar("S")

LINES_MAX: Final = 10_000
"""How many lines of changed tables are looked at for one finding."""

LINES_ALL: Final = 40_000
"""How many are looked at for all findings of one graph."""

TRIES_MIN: Final = 4
"""With fewer changed tables, a line is blamed by luck: no finding of such a graph names one."""

ROWS_MAX: Final = 3
"""How many lines are told of one finding."""

DECIDED: Final = frozenset({"GL1", "GL2", "GL3", "GL4"})
"""The properties that hang on where the lines lead."""

_Cell: TypeAlias = tuple[str, type[Outcome]]
_Wrong: TypeAlias = frozenset[tuple[str, Hashable]]


def proven(most: VisitBounds[S], aside: frozenset[str]) -> Iterator[Finding | Unknown]:
    """Yield what is found of a graph, with the lines to blame, and where they stand.

    Args:
        most: the graph, and how often its nodes are visited at most.
        aside: the nodes whose cycles (GL4) are set aside.
    """
    ground, found = most.ground, [*_proofs(most, aside)]
    if any(isinstance(one, Finding) for one in found):
        blame = Blame(ground)
        found = [blame.told(one) if isinstance(one, Finding) else one for one in found]
    yield from map(ground.with_line, found)


def _proofs(most: VisitBounds[S], aside: frozenset[str]) -> Iterator[Finding | Unknown]:
    ground = most.ground
    yield from find_table_mismatches(ground)
    yield from find_unreachable_nodes(ground)
    yield from find_traps(ground)
    if not ground.reached:
        return
    walk = CallProduct(ground)
    yield from find_ungated_tools(walk)
    yield from find_unapproved_acts(walk)
    yield from find_unasked_holds(walk)
    yield from find_call_faults(walk)
    for code in ("GL2", "GL3"):
        yield from ground.unknown_without_contracts(code)
    yield from find_unbounded_cycles(most.ranking, walk, aside)
    yield from find_long_stretches(most.ranking)
    yield from find_field_faults(ground)
    yield from find_parks_after_effects(ground)
    yield from find_state_faults(ground)
    yield from find_abort_cycles(ground)


@final
class Blame(Generic[S]):
    """Tells the lines to blame for the findings of one graph.

    Args:
        ground: the graph.
    """

    def __init__(self, ground: ProofGraph[S]) -> None:
        self._ground = ground
        self._graph = ground.node_graph
        size = sum(map(len, self._graph.table.values()))
        tries = LINES_MAX // max(1, size)
        self._tries = tries if tries >= TRIES_MIN else 0
        self._all = LINES_ALL // max(1, size)
        self._walk = CallProduct(ground)
        self._before = _wrong(self._walk) if self._tries else frozenset[tuple[str, Hashable]]()
        self._known: dict[tuple[_Cell, str], _Wrong] = {}
        self._order = {name: at for at, name in enumerate(self._graph.table)}
        self._heads = [names[0] for names in islands(ground)]

    def told(self, finding: Finding) -> Finding:
        """Return a finding with the lines to blame for it, and where the first of them stands."""
        if finding.code not in DECIDED or finding.severity != "error":
            return finding
        before = self._before
        scored: dict[_Cell, int] = {}
        for cell, target in islice(self._changes(finding), min(self._tries, self._all)):
            left = self._left(cell, target)
            mended = len(_of(before, finding.code)) > len(_of(left, finding.code))
            if mended and len(left) < scored.get(cell, len(before)):
                scored[cell] = len(left)
        if not scored:
            return finding
        least = min(scored.values())
        cells = [cell for cell, score in scored.items() if score == least][:ROWS_MAX]
        rows = tuple([(node, outcome_name(outcome)) for node, outcome in cells])
        return replace(finding, rows=rows, written=self._ground.line_of(*rows[0]))

    def _changes(self, finding: Finding) -> Iterator[tuple[_Cell, str]]:
        """Yield lines, and where they might lead instead, the likeliest first."""
        names = finding.witness[:-1] if finding.outcomes else ()
        onway = [
            (node, outcome)
            for node, word in zip(names, finding.outcomes, strict=False)
            for outcome in self._graph.table[node]
            if outcome_name(outcome) == word
        ]
        elsewhere = [*self._heads, END, *self._graph.nodes]
        cells = list(dict.fromkeys(reversed(onway)))
        yield from ((cell, to) for cell in cells for to in self._heads)
        yield from ((cell, to) for to in elsewhere for cell in cells)
        if not onway:
            for head in self._heads:
                yield from ((cell, head) for cell in self._above(head))

    def _above(self, head: str) -> Iterable[_Cell]:
        """Return the lines that might have led to a node, those of the rows above it first."""
        cells = [
            (node, outcome)
            for node in self._ground.reached
            for outcome in self._graph.table[node]
            if outcome not in {Failed, Aborted}
        ]
        place = self._order.get(head, 0)
        return sorted(cells, key=lambda cell: abs(place - 1 - self._order[cell[0]]))

    def _left(self, cell: _Cell, target: str) -> _Wrong:
        """Return what is wrong once a line leads elsewhere."""
        if (cell, target) not in self._known:
            self._all -= 1
            node, outcome = cell
            self._known[cell, target] = _wrong(
                CallProduct(self._ground.redirected(node, outcome, target), self._walk)
            )
        return self._known[cell, target]


def _of(wrong: _Wrong, code: str) -> list[Hashable]:
    return [what for one, what in wrong if one == code]


def _wrong(walk: CallProduct[S]) -> _Wrong:
    """Return what speaks against a graph, by code, whether or not a run shows it."""
    ground = walk.ground
    found: list[tuple[str, Hashable]] = [
        *(
            ("GL1", name)
            for names in (*islands(ground), *closed_components(ground))
            for name in names
        ),
        *(("GL2", node) for node in open_nodes(walk)),
        *(("GL3", what) for what in call_faults(walk)),
        *(("GL4", place) for place in circled(Ranking(ground))),
    ]
    return frozenset(found)
