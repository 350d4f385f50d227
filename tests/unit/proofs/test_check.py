"""check: all proofs at once, over the whole of a graph."""

from __future__ import annotations

from hypothesis import given

from graphloop.graph import Graph
from graphloop.proofs.check import check
from graphloop.proofs.report import PROPERTIES
from graphloop.temporal import never
from tests.graphs import agent, any_graphs
from tests.topology_data import MUTANTS, graph_of, standard


def test_the_standard_loop_is_proven() -> None:
    """It is what most users run."""
    report = check(agent())

    assert () == report.findings
    assert ["GL12"] == [one.code for one in report.unknown]
    assert {*PROPERTIES} == {*report.proven, "GL12"}


@given(any_graphs())
def test_every_property_is_somewhere_in_the_report_of_any_graph(graph: Graph[None]) -> None:
    """A property that is nowhere would be a silent pass."""
    report = check(graph)

    told = {one.code for one in report.findings} | {one.code for one in report.unknown}
    assert {*PROPERTIES} == {*report.proven} | told
    assert not {*report.proven} & told


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Who mends one thing wants to know the next."""
    topology = standard()
    for mutant in MUTANTS:
        if mutant.name in {"gate bypassed by a conversation", "append skipped after running"}:
            mutant.spoil(topology)

    assert {"GL2", "GL3"} == {one.code for one in check(graph_of(topology)).findings}


def test_what_is_wrong_with_a_child_is_told_under_its_path() -> None:
    """A parent is as safe as what it runs."""
    (mutant,) = (one for one in MUTANTS if one.name == "child without a gate")

    (finding,) = check(graph_of(mutant.of(standard()))).findings

    assert ("GL2", "child/execute") == (finding.code, finding.node)
    assert "of the child 'child'" in finding.place


def test_a_finding_that_is_set_aside_is_shown_with_its_reason() -> None:
    """A reviewer sees what was waved through, and why."""
    (mutant,) = (one for one in MUTANTS if one.name == "aborted calls not answered")
    graph = graph_of(mutant.of(standard()))

    report = check(graph, ignore={("gate", "GL3"): "an aborted run is thrown away"})

    assert report.ok
    assert ["an aborted run is thrown away"] == [one.reason for one in report.suppressed]
    assert "GL3" not in report.proven


def test_rules_of_ones_own_are_decided_as_well() -> None:
    """GL12 is proven like the rest, once there is something to prove."""
    kept = check(agent(), never("node:execute", before="node:gate"))
    broken = check(agent(), [never("node:gate", before="node:append")])

    assert "GL12" in kept.proven
    assert ["GL12"] == [one.code for one in broken.findings]


def test_a_graph_whose_start_is_lost_is_reported_and_not_walked() -> None:
    """What nobody arrives at has no paths."""
    graph = agent()
    graph.start = "nowhere"

    assert not check(graph).ok
