"""The table of a file."""

from __future__ import annotations

from graphloop.graph import END, Graph
from graphloop.node_protocol import Node
from graphloop.nodes import Limit
from graphloop.outcomes import Go, Outcome, Stop
from graphloop.topology.compose import compose
from graphloop.topology.table import read_rows, write_rows
from tests.topology_forms import reading

LIMIT = Limit(3)


def test_else_stands_for_the_rest() -> None:
    """And is written only where it is read as the same, in the same order."""
    to = reading()
    nodes: dict[str, Node[None, Outcome] | None] = {"limit": LIMIT}

    rows = read_rows(compose("{limit: {go: limit, else: END}}", to.complaints), nodes, to)

    assert {LIMIT: {Go: LIMIT, ...: END}} == rows
    assert {"limit": {"else": "END"}} == write_rows(_graph(Go, Stop), shortened=True)
    assert {"limit": {"stop": "END", "go": "END"}} == write_rows(_graph(Stop, Go), shortened=True)
    assert {"limit": {"go": "END", "stop": "END"}} == write_rows(_graph(Go, Stop), shortened=False)


def test_all_mistakes_of_a_table_are_told() -> None:
    """A row too many, one too few, an outcome and a target that there are not."""
    to = reading()
    text = "{limt: {}, limit: {goo: nowhere}}"

    read_rows(compose(text, to.complaints), {"limit": LIMIT, "other": None}, to)

    said = [one.found for one in to.complaints.problems]
    assert 5 == len(said), said


def _graph(*order: type[Outcome]) -> Graph[None]:
    return Graph("a", LIMIT, {LIMIT: dict.fromkeys(order, END)})
