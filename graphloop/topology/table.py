"""The table of a topology's file: for each node, where each of its outcomes leads.

It refuses the rows that `graphloop.graph` refuses, with the lines and columns of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter

from ..errors import GraphError
from ..graph import END, EndType, Graph, TableSource
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from .diagnostics import Diagnostics, ParseError
from .models import ELSE, Nodes, Reading, Said, entries_of, parse
from .tree import Entry, Fields, Mark, Scalar, Value

__all__ = ["ROW_FORM", "Rows", "made_graph", "read_rows"]

SHOWN_MAX: Final = 12
"""How many outcomes a message names."""

Target: TypeAlias = Node[Any, Outcome] | Literal[EndType.END]
Row: TypeAlias = dict[type[Outcome] | EllipsisType, Target]
Rows: TypeAlias = dict[Node[Any, Outcome], Row]

ROW_FORM: TypeAlias = dict[str, Said]
ROW: Final = TypeAdapter(ROW_FORM)


def read_rows(value: Value, nodes: Nodes, to: Reading) -> Rows:
    """Return the rows of the file's nodes; problems are noted."""
    entries = entries_of(value, to, "edges")
    rows: Rows = {}
    for entry in entries:
        if entry.key not in nodes:
            hint = to.diagnostics.nearest(entry.key, nodes)
            found = f"`edges`: there is no node {entry.key!r}.{hint}"
            to.diagnostics.note(entry.mark, found, "name one of the nodes, or add it to `nodes`.")
            continue
        try:
            row = _row(entry, nodes, to)
        except ParseError:
            continue
        if (node := nodes[entry.key]) is not None:
            rows[node] = row
    written = {entry.key for entry in entries}
    for name in [name for name in nodes if name not in written]:
        fix = f"add `{name}: {{…}}` to the edges, or remove the node."
        to.diagnostics.note(value.mark, f"node {name!r} has no row.", fix)
    return rows


def made_graph(
    name: str,
    start: Node[Any, Outcome],
    rows: Rows,
    written: tuple[Mark, Value, Mapping[str, int]],
    diagnostics: Diagnostics,
) -> Graph[Any]:
    """Return the graph of rows that have been read.

    `written` is the place of the topology, its `edges`, and the lines of its rules.

    Raises:
        ParseError: the graph refuses its parts; the diagnostics have the reasons.
    """
    mark, edges, rules = written
    try:
        graph: Graph[Any] = Graph(name, start, rows)
    except GraphError as error:
        for problem in error.problems:
            diagnostics.note(mark, f"{problem.place}: {problem.found}", problem.fix)
        raise ParseError("the table") from error
    graph.source = TableSource(diagnostics.file, mark.line, _lines(edges, graph), rules)
    return graph


def _lines(value: Value, graph: Graph[Any]) -> Mapping[tuple[str, str], int]:
    """Return the lines of cells by node and outcome, of rows by `""`."""
    lines: dict[tuple[str, str], int] = {}
    for entry in value.entries if isinstance(value, Fields) else ():
        lines[entry.key, ""] = entry.mark.line
        written = {cell.key: cell.mark.line for cell in _cells(entry)}
        for outcome in map(outcome_name, graph.table.get(entry.key, ())):
            if (line := written.get(outcome, written.get(ELSE))) is not None:
                lines[entry.key, outcome] = line
    return lines


def _cells(entry: Entry) -> tuple[Entry, ...]:
    return entry.value.entries if isinstance(entry.value, Fields) else ()


def _row(entry: Entry, nodes: Nodes, to: Reading) -> Row:
    parse(ROW, entry.value, to, entry.key)
    node, cells = nodes[entry.key], _cells(entry)
    declared = {} if node is None else {outcome_name(each): each for each in node.outcomes}
    row: Row = {}
    for cell in cells:
        target = _target(cell, nodes, to)
        if cell.key == ELSE:
            row[...] = target
        elif cell.key in declared:
            row[declared[cell.key]] = target
        elif node is not None:
            words = sorted(declared)
            hint = to.diagnostics.nearest(cell.key, (*words, ELSE))
            found = f"{entry.key!r} never leaves by {cell.key!r}.{hint}"
            fix = f"remove it; the outcomes are {', '.join(words)}."
            to.diagnostics.note(cell.mark, found, fix)
    if node is not None:
        _note_gaps(entry, cells, sorted(declared.keys() - {cell.key for cell in cells}), to)
    return row


def _note_gaps(entry: Entry, cells: tuple[Entry, ...], missing: list[str], to: Reading) -> None:
    """Note the outcomes that lead nowhere, and an `else` that stands for none."""
    rest = next((cell for cell in cells if cell.key == ELSE), None)
    if rest is not None and not missing:
        found = f"row of {entry.key!r}: `else` covers no outcome: all are named."
        to.diagnostics.note(rest.mark, found, "remove it.")
    if rest is None and missing:
        verb = "leads" if len(missing) == 1 else "lead"
        more = f" and {len(missing) - SHOWN_MAX} more" if len(missing) > SHOWN_MAX else ""
        to.diagnostics.note(
            entry.mark,
            f"row of {entry.key!r}: {', '.join(missing[:SHOWN_MAX])}{more} {verb} nowhere.",
            f"add `{missing[0]}: …`, or `{ELSE}: END` for the rest.",
        )


def _target(cell: Entry, nodes: Nodes, to: Reading) -> Target:
    """Return the target of an outcome; END for one that is noted."""
    name = cell.value.value if isinstance(cell.value, Scalar) else None
    if name not in nodes and name != END.value:
        hint = to.diagnostics.nearest(str(name), (*nodes, END.value))
        found = f"{cell.key!r} leads to {name!r}, and there is no such node.{hint}"
        to.diagnostics.note(cell.value.mark, found, "name one of the nodes, or END.")
    return nodes.get(str(name)) or END
