"""The table of a topology's file: for each node, where each of its outcomes leads.

Says of a table what `graphloop.graph` says, with the lines and columns of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import EllipsisType
from typing import Any, Final, Literal, TypeAlias

from ..graph import END, EndType, Graph
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from .forms import Data, Reading, Text
from .problems import Misread
from .record import mapping_of
from .tree import Entry, Fields, Value

__all__ = ["ELSE", "Rows", "lines_of", "read_rows", "write_rows"]

ELSE: Final = "else"
"""Stands for every outcome that a row does not name."""

SHOWN_MAX: Final = 12
"""How many outcomes a message names."""

Target: TypeAlias = Node[Any, Outcome] | Literal[EndType.END]
Rows: TypeAlias = dict[Node[Any, Outcome], dict[type[Outcome] | EllipsisType, Target]]


def read_rows(value: Value, nodes: Mapping[str, Node[Any, Outcome] | None], to: Reading) -> Rows:
    """Return the rows; what is wrong with them is noted.

    Args:
        value: what stands at `edges`.
        nodes: the nodes by name; None for one that could not be read.
        to: takes the complaints.

    Raises:
        Misread: it is no mapping.
    """
    entries = mapping_of(value, "`edges`", to)
    rows: Rows = {}
    for entry in entries:
        if entry.key not in nodes:
            fix = "name one of the nodes, or add it to `nodes`."
            hint = to.complaints.nearest(entry.key, nodes)
            found = f"there is no node {entry.key!r}.{hint}"
            to.complaints.note(entry.mark, found, fix)
            continue
        node = nodes[entry.key]
        row = _row(entry, node, nodes, to)
        if node is not None:
            rows[node] = row
    written = {one.key for one in entries}
    for name in nodes:
        if name not in written:
            fix = f"add `{name}: {{…}}` to the edges, or remove the node."
            to.complaints.note(value.mark, f"node {name!r} has no row.", fix)
    return rows


def write_rows(graph: Graph[Any], *, shortened: bool) -> dict[str, Data]:
    """Return what stands at `edges` for a graph.

    Args:
        graph: the graph.
        shortened: whether the last outcomes of a row may be written as `else`.
    """
    return {name: {**_shortened(row, shortened=shortened)} for name, row in graph.table.items()}


def lines_of(value: Value, graph: Graph[Any]) -> Mapping[tuple[str, str], int]:
    """Return the lines of what stands at `edges`: of rows by node and `""`, of cells by outcome."""
    lines: dict[tuple[str, str], int] = {}
    for entry in value.entries if isinstance(value, Fields) else ():
        lines[entry.key, ""] = entry.mark.line
        cells = entry.value.entries if isinstance(entry.value, Fields) else ()
        written = {one.key: one.mark.line for one in cells}
        for outcome in map(outcome_name, graph.table.get(entry.key, ())):
            if (line := written.get(outcome, written.get(ELSE))) is not None:
                lines[entry.key, outcome] = line
    return lines


def _row(
    entry: Entry,
    node: Node[Any, Outcome] | None,
    nodes: Mapping[str, Node[Any, Outcome] | None],
    to: Reading,
) -> dict[type[Outcome] | EllipsisType, Target]:
    row: dict[type[Outcome] | EllipsisType, Target] = {}
    title = f"row of {entry.key!r}"
    try:
        cells = mapping_of(entry.value, title, to)
    except Misread:
        return row
    declared = None if node is None else {outcome_name(one): one for one in node.outcomes}
    for cell in cells:
        target = _target(cell.value, nodes, to)
        if cell.key == ELSE:
            row[...] = END if target is None else target
        elif declared is not None and cell.key in declared:
            row[declared[cell.key]] = END if target is None else target
        elif declared is not None:
            words = (*sorted(declared), ELSE)
            hint = to.complaints.nearest(cell.key, words)
            found = f"{entry.key!r} never leaves by {cell.key!r}.{hint}"
            fix = f"remove it; the outcomes are {', '.join(words[:-1])}."
            to.complaints.note(cell.mark, found, fix)
    if declared is not None:
        for found, fix in _gaps(declared, {one.key for one in cells}):
            mark = next((one.mark for one in cells if one.key == ELSE), entry.mark)
            to.complaints.note(mark, f"{title}: {found}", fix)
    return row


def _gaps(declared: Mapping[str, type[Outcome]], written: set[str]) -> Iterator[tuple[str, str]]:
    missing = sorted(declared.keys() - written)
    if ELSE in written and not missing:
        yield "`else` covers no outcome: all are named.", "remove it."
    if ELSE not in written and missing:
        verb = "leads" if len(missing) == 1 else "lead"
        more = f" and {len(missing) - SHOWN_MAX} more" if len(missing) > SHOWN_MAX else ""
        yield (
            f"{', '.join(missing[:SHOWN_MAX])}{more} {verb} nowhere.",
            f"add `{missing[0]}: …`, or `{ELSE}: END` for the rest.",
        )


def _target(
    value: Value, nodes: Mapping[str, Node[Any, Outcome] | None], to: Reading
) -> Target | None:
    """Return where an outcome leads; None where that is not known."""
    try:
        name = Text(filled=True).read(value, to)
    except Misread:
        return None
    if name == END.value:
        return END
    if name not in nodes:
        known = (*nodes, END.value)
        hint = to.complaints.nearest(name, known)
        found = f"leads to {name!r}, and there is no such node.{hint}"
        to.complaints.note(value.mark, found, "name one of the nodes, or END.")
        return None
    return nodes[name]


def _shortened(row: Mapping[type[Outcome], str], *, shortened: bool) -> dict[str, Data]:
    """Return a row by name; `else` stands for what it would be read as, in the same order."""
    cells = [(outcome_name(outcome), target) for outcome, target in row.items()]
    at = len(cells)
    while (
        at > 0
        and cells[at - 1][1] == cells[-1][1]
        and cells[at - 1 : at + 1] == sorted(cells[at - 1 : at + 1])
    ):
        at -= 1
    if not shortened or len(cells) - at < 2:
        return {**dict(cells)}
    return {**dict(cells[:at]), ELSE: cells[-1][1]}
