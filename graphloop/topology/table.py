"""The table of a topology file: read the `edges`, which give each outcome of a node its target.

This module refuses the same rows as `graphloop.graph`, but names the file's lines and words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter

from ..agent import Graph
from ..errors import GraphError
from ..graph import END, EndType, TableSource
from ..outcomes import Outcome, outcome_name
from .diagnostics import ParseError
from .document import AnyNode
from .models import ELSE, Nodes, Reading, Said, entries_of, parse
from .tree import Entry, Fields, Scalar, Value, value_at

__all__ = ["ROW_FORM", "Rows", "made_graph", "read_rows"]

SHOWN_MAX: Final = 12
"""The largest number of outcomes that one message lists."""

Target: TypeAlias = AnyNode | Literal[EndType.END]
Row: TypeAlias = dict[type[Outcome] | EllipsisType, Target]
Rows: TypeAlias = dict[AnyNode, Row]

ROW_FORM: TypeAlias = dict[str, Said]
ROW: Final = TypeAdapter(ROW_FORM)


def read_rows(value: Value, nodes: Nodes, reading: Reading) -> Rows:
    """Return the row of each node from the `edges` of a file; add problems to the diagnostics."""
    note, nearest = reading.diagnostics.note, reading.diagnostics.nearest
    entries = entries_of(value, reading, "edges")
    rows: Rows = {}
    for entry in entries:
        if entry.key not in nodes:
            problem = f"`edges`: there is no node {entry.key!r}.{nearest(entry.key, nodes)}"
            note(entry.mark, problem, "name one of the nodes, or add it to `nodes`.")
            continue
        try:
            row = _read_row(entry, nodes, reading)
        except ParseError:
            continue
        if (node := nodes[entry.key]) is not None:
            rows[node] = row
    for name in nodes.keys() - {entry.key for entry in entries}:
        fix = f"add `{name}: {{…}}` to the edges, or remove the node."
        note(value.mark, f"node {name!r} has no row.", fix)
    return rows


def made_graph(
    name: str,
    start: AnyNode,
    rows: Rows,
    place: tuple[Value, Mapping[str, int]],
    reading: Reading,
) -> Graph[Any]:
    """Build the graph from the parsed rows of a topology file.

    `place` holds the topology's tree, and the line of each rule.

    Raises:
        ParseError: a registered node is invalid, or a node does not fit the state's type; the
            problems are added to the diagnostics.
    """
    (tree, rules), diagnostics = place, reading.diagnostics
    nodes, edges = value_at(tree, ("nodes",)), value_at(tree, ("edges",))
    try:
        graph = Graph[Any](name, start, rows, state_type=reading.state_type)
    except GraphError as error:
        marks = {f"node {entry.key!r}": entry.value.mark for entry in _entries_of(nodes)}
        for problem in error.problems:
            mark = marks.get(problem.place, tree.mark)
            diagnostics.note(mark, f"{problem.place}: {problem.found}", problem.fix)
        raise ParseError("the table") from error
    graph.source = TableSource(diagnostics.file, tree.mark.line, _line_numbers(edges, graph), rules)
    return graph


def _line_numbers(edges: Value, graph: Graph[Any]) -> Mapping[tuple[str, str], int]:
    """Return the line of each cell by (node, outcome), and of each row by (node, `""`)."""
    lines: dict[tuple[str, str], int] = {}
    for entry in _entries_of(edges):
        lines[entry.key, ""] = entry.mark.line
        written = {cell.key: cell.mark.line for cell in _entries_of(entry.value)}
        for outcome in map(outcome_name, graph.table[entry.key]):
            lines[entry.key, outcome] = written.get(outcome) or written[ELSE]
    return lines


def _entries_of(value: Value) -> tuple[Entry, ...]:
    return value.entries if isinstance(value, Fields) else ()


def _read_row(entry: Entry, nodes: Nodes, reading: Reading) -> Row:
    parse(ROW, entry.value, reading, entry.key)
    node, cells = nodes[entry.key], _entries_of(entry.value)
    targets = {cell.key: _read_target(cell, nodes, reading) for cell in cells}
    if node is None:
        return {}
    outcomes = {outcome_name(outcome): outcome for outcome in node.outcomes}
    words = sorted(outcomes)
    for cell in cells:
        if cell.key not in outcomes and cell.key != ELSE:
            hint = reading.diagnostics.nearest(cell.key, (*words, ELSE))
            problem = f"{entry.key!r} never leaves by {cell.key!r}.{hint}"
            fix = f"remove it; the outcomes are {', '.join(words)}."
            reading.diagnostics.note(cell.mark, problem, fix)
    _note_gaps(entry, cells, [word for word in words if word not in targets], reading)
    return {
        outcomes.get(word, ...): target
        for word, target in targets.items()
        if word in outcomes or word == ELSE
    }


def _note_gaps(
    entry: Entry, cells: tuple[Entry, ...], missing: list[str], reading: Reading
) -> None:
    """Report outcomes without a target, and an `else` that covers no outcome."""
    rest = next((cell for cell in cells if cell.key == ELSE), None)
    if rest is not None and not missing:
        problem = f"row of {entry.key!r}: `else` covers no outcome: all are named."
        reading.diagnostics.note(rest.mark, problem, "remove it.")
    if rest is None and missing:
        verb = "leads" if len(missing) == 1 else "lead"
        more = f" and {len(missing) - SHOWN_MAX} more" if len(missing) > SHOWN_MAX else ""
        reading.diagnostics.note(
            entry.mark,
            f"row of {entry.key!r}: {', '.join(missing[:SHOWN_MAX])}{more} {verb} nowhere.",
            f"add `{missing[0]}: …`, or `{ELSE}: END` for the rest.",
        )


def _read_target(cell: Entry, nodes: Nodes, reading: Reading) -> Target:
    """Return the target of an outcome; report an unknown target, and return END for it."""
    name = cell.value.value if isinstance(cell.value, Scalar) else None
    if name not in nodes and name != END.value:
        hint = reading.diagnostics.nearest(str(name), (*nodes, END.value))
        problem = f"{cell.key!r} leads to {name!r}, and there is no such node.{hint}"
        reading.diagnostics.note(cell.value.mark, problem, "name one of the nodes, or END.")
    return nodes.get(str(name)) or END
