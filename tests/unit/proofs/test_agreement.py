"""GL5: what the constructor has refused once is not taken on trust."""

from __future__ import annotations

from graphloop.graph import NodeGraph
from graphloop.outcomes import Aborted, Calls, Outcome
from graphloop.proofs.agreement import disagreements
from graphloop.proofs.ground import Ground
from tests.graphs import agent, build


def tampered(table: dict[str, dict[type[Outcome], str]], start: str = "a") -> NodeGraph[None]:
    """Return a graph whose table was replaced behind the back of its constructor."""
    graph = build({"a": ["b"], "b": ["END"]})
    graph.table = table
    graph.start = start
    return graph


def test_a_table_that_fits_its_nodes_is_proven() -> None:
    """The constructor sees to it."""
    assert not list(disagreements(Ground(agent())))


def test_a_table_that_does_not_fit_its_nodes_is_not_proven() -> None:
    """A proof takes nothing on trust, not even that the constructor ran."""
    found = disagreements(Ground(tampered({"a": {Aborted: "b"}, "b": {Calls: "c"}})))

    assert [
        ("row of 'a'", "outcome 'calls' leads nowhere."),
        ("row of 'a'", "'a' never leaves by 'aborted'."),
        ("row of 'b'", "leads to 'c', which has no row."),
    ] == [(one.place, one.message) for one in found]


def test_a_row_without_a_node_and_a_node_without_a_row_are_found() -> None:
    """Either would stop a run where it stands."""
    found = disagreements(Ground(tampered({"a": {Calls: "END"}, "z": {Calls: "END"}}, start="q")))

    assert ["start='q'", "node 'b'", "node 'z'"] == [one.place for one in found]
