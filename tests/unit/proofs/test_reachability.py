"""GL1 both ways: good graphs pass, and each way to be wrong is found with a real witness."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given

from graphloop.graph import NodeGraph
from graphloop.outcomes import Aborted, Calls, Outcome
from graphloop.proofs.proof_graph import ProofGraph, TablePath
from graphloop.proofs.reachability import find_table_mismatches, find_traps, find_unreachable_nodes
from graphloop.proofs.report import Finding
from tests.graphs import any_graphs, build, good_graphs


def reach(ways: Mapping[str, set[str]], start: str) -> set[str]:
    """Return what can be reached from `start`, found without any library."""
    seen = {start}
    for _ in ways:
        seen |= {after for one in seen for after in ways.get(one, ())}
    return seen


class Bare(ProofGraph[None]):
    """A graph whose nodes do nothing: what its runs take is not looked at."""

    def run_prefix(self, path: TablePath) -> TablePath:
        return path


def found(graph: NodeGraph[None]) -> tuple[Finding, ...]:
    """Return what is unreachable, and what is a trap."""
    ground = Bare(graph)
    return (*find_unreachable_nodes(ground), *find_traps(ground))


def forwards(graph: NodeGraph[None]) -> dict[str, set[str]]:
    return {name: set(row.values()) for name, row in graph.table.items()}


def backwards(graph: NodeGraph[None]) -> dict[str, set[str]]:
    ways: dict[str, set[str]] = {name: set() for name in (*graph.nodes, "END")}
    for edge in graph.edges:
        ways[edge.target].add(edge.source)
    return ways


def named(findings: tuple[Finding, ...], word: str) -> list[Finding]:
    return [one for one in findings if word in one.message]


def assert_real(graph: NodeGraph[None], witness: tuple[str, ...]) -> None:
    """Assert that each step of a witness is a line of the graph."""
    assert witness
    assert all(after in forwards(graph)[one] for one, after in pairwise(witness))


@given(good_graphs())
def test_a_graph_between_start_and_end_is_proven(
    graph: NodeGraph[None],
) -> None:
    """A proof that refuses good graphs is turned off within a week."""
    assert not found(graph)


@given(any_graphs())
def test_every_node_that_no_run_arrives_at_is_found(graph: NodeGraph[None]) -> None:
    """A gate that stands in the table and is never entered protects nothing."""
    findings = named(found(graph), "no run arrives here")

    expected = graph.nodes.keys() - reach(forwards(graph), graph.start)

    assert expected == {one.witness[-1] for one in findings}
    assert len(expected) == len(findings)
    for one in findings:
        assert_real(graph, one.witness)
        assert set(one.witness) <= expected
        assert f"node {one.witness[-1]!r}" == one.place


@given(any_graphs())
def test_every_part_without_a_way_out_is_found(graph: NodeGraph[None]) -> None:
    """A run that cannot end spends for ever."""
    findings = named(found(graph), "never ends")

    expected = graph.nodes.keys() - reach(backwards(graph), "END")

    assert bool(expected) == bool(findings)
    innermost = {one.witness[-1]: reach(forwards(graph), one.witness[-1]) for one in findings}
    for one in findings:
        assert_real(graph, one.witness)
        assert one.witness[-1] in one.witness[:-1]
        assert innermost[one.witness[-1]] <= expected
        assert one.witness[0] in {graph.start, one.witness[-1]}
    for name in expected:
        assert reach(forwards(graph), name) & innermost.keys()


def test_only_the_innermost_part_without_a_way_out_is_reported() -> None:
    """One missing line is one finding: what only leads into a trap is mended with it."""
    graph = build({"a": ["b", "END"], "b": ["c"], "c": ["c"]})

    assert [one.witness for one in found(graph)] == [("a", "b", "c", "c")]


def test_the_fix_of_an_unreachable_part_names_where_to_enter_it() -> None:
    """One line to the head of an island mends all of it."""
    graph = build({"a": ["END"], "x": ["y"], "y": ["z"], "z": ["y", "END"]})

    findings = found(graph)

    assert [one.witness for one in findings] == [("x",), ("y",), ("z",)]
    assert all("reachable node to 'x'" in one.fix for one in findings)


def tampered(table: dict[str, dict[type[Outcome], str]], start: str = "a") -> NodeGraph[None]:
    """Return a graph whose table was replaced behind the back of its constructor."""
    graph = build({"a": ["b"], "b": ["END"]})
    graph.table = table
    graph.start = start
    return graph


def test_a_table_that_does_not_fit_its_nodes_is_not_proven() -> None:
    """A proof takes nothing on trust, not even that the constructor ran."""
    found = find_table_mismatches(ProofGraph(tampered({"a": {Aborted: "b"}, "b": {Calls: "c"}})))

    assert [
        ("row of 'a'", "outcome 'calls' leads nowhere."),
        ("row of 'a'", "'a' never leaves by 'aborted'."),
        ("row of 'b'", "leads to 'c', which has no row."),
    ] == [(one.place, one.message) for one in found]


def test_a_row_without_a_node_and_a_node_without_a_row_are_found() -> None:
    """Either would stop a run where it stands."""
    found = find_table_mismatches(
        ProofGraph(tampered({"a": {Calls: "END"}, "z": {Calls: "END"}}, start="q"))
    )

    assert ["start='q'", "node 'b'", "node 'z'"] == [one.place for one in found]
