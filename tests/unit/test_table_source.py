"""Where a table was written: the first line outside of the package."""

from __future__ import annotations

from graphloop.graph import END, Graph
from graphloop.outcomes import Go
from graphloop.table_source import TableSource, called_from
from tests.graphs import Place, build


def test_a_graph_knows_the_line_it_was_made_at() -> None:
    """A finding about it can say so."""
    place = Place("a", frozenset({Go}))
    graph: Graph[None] = Graph("g", place, {place: {Go: END}})
    here = called_from()

    assert here == TableSource(__file__, here.line if here else 0)
    assert graph.source == TableSource(__file__, (here.line if here else 0) - 1)


def test_where_a_table_was_written_is_no_part_of_what_it_says() -> None:
    """Equal tables are equal graphs."""
    one, other = build({"a": ["END"]}), build({"a": ["END"]})
    other.source = None

    assert one == other
    assert hash(one) == hash(other)
