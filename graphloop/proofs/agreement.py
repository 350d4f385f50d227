"""GL5: outcomes and table agree exactly.

A graph has passed this once, at construction; a proof does not take that on trust.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..outcomes import outcome_name
from .ground import END, Ground
from .report import Finding

__all__ = ["disagreements"]

S = TypeVar("S")


def disagreements(ground: Ground[S]) -> Iterator[Finding]:
    """Yield every place where the table does not fit the nodes."""
    graph = ground.graph
    if graph.start not in graph.nodes:
        yield _wrong(f"start={graph.start!r}", "the start node has no row.", "add its row.")
    for name in sorted(graph.nodes.keys() ^ graph.table.keys()):
        yield _wrong(f"node {name!r}", "has no row, or its row no node.", "add what is missing.")
    for name, row in graph.table.items():
        place = f"row of {name!r}"
        declared = graph.nodes[name].outcomes if name in graph.nodes else frozenset(row)
        for word in sorted(outcome_name(outcome) for outcome in declared - row.keys()):
            yield _wrong(place, f"outcome {word!r} leads nowhere.", "give it a target or END.")
        for word in sorted(outcome_name(outcome) for outcome in row.keys() - declared):
            yield _wrong(place, f"{name!r} never leaves by {word!r}.", "remove it.")
        # Not as a difference of sets: that would go through all nodes for every row.
        lost = {one for one in row.values() if one not in graph.nodes and one != END}
        for target in sorted(lost):
            yield _wrong(place, f"leads to {target!r}, which has no row.", "add its row.")


def _wrong(place: str, message: str, fix: str) -> Finding:
    return Finding("GL5", "error", place, message, (), fix)
