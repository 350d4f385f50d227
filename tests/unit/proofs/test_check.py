"""check: all proofs at once, over the whole of a graph."""

from __future__ import annotations

import pytest
from hypothesis import given

from graphloop.front.compose import parallel, retry
from graphloop.front.graph import Graph as Front
from graphloop.front.with_agents import with_agents
from graphloop.graph import END, Edges, Graph
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Child
from graphloop.outcomes import Answered, Outcome
from graphloop.proofs.check import check
from graphloop.proofs.nested import NEST_MAX, USES_MAX
from graphloop.proofs.report import PROPERTIES
from graphloop.temporal import never
from tests.graphs import agent, any_graphs
from tests.nested_graphs import nest, shared, ungated
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


@pytest.mark.parametrize("deep", [1, 17, NEST_MAX, NEST_MAX + 1])
def test_what_is_deeper_than_anybody_looks_is_unknown(deep: int) -> None:
    """It was passed over in silence, and everything above it was proven."""
    report = check(nest(ungated(), deep))

    assert "GL2" not in report.proven
    if deep <= NEST_MAX:
        assert ["GL2"] == [one.code for one in report.findings]
    else:
        assert {*PROPERTIES} == {one.code for one in report.unknown}
        assert "graphs deep" in report.unknown[0].reason


def test_a_graph_that_is_used_everywhere_is_proven_once() -> None:
    """Sixty levels would be 2 to the 60 uses, and nobody would see the end of it."""
    report = check(shared(ungated(), 60))

    assert {"GL2"} == {one.code for one in report.findings}
    assert len(report.findings) <= USES_MAX


def test_a_graph_that_is_used_twice_is_told_at_both_places() -> None:
    """Who sets one of them aside has not looked at the other."""
    graph = shared(ungated(), 1)
    report = check(graph, ignore={("c0-0/execute", "GL2"): "reads only"})

    assert ["c0-1/execute"] == [one.node for one in report.findings]
    assert ["c0-0/execute"] == [one.finding.node for one in report.suppressed]


@pytest.mark.parametrize("node", [Child("desk"), retry(Child("desk"), 2), parallel("a", "desk")])
def test_an_agent_that_is_only_named_is_not_proven(node: Node[None, Outcome]) -> None:
    """Its tools may have no gate, and its loop no bound."""
    append = Append()
    edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}
    graph = Front("named", node, edges)
    report = check(graph)

    assert () == report.proven
    assert any("'desk'" in one.reason and "with_agents" in one.reason for one in report.unknown)
    given = {name: agent() for name in ("a", "desk") if f"'{name}'" in str(report)}
    assert {*PROPERTIES} - {"GL12"} == {*check(with_agents(graph, given)).proven}


def test_an_agent_that_somebody_answers_for_is_set_aside() -> None:
    """Its maker may have proven it elsewhere."""
    desk, append = Child("desk"), Append()
    edges: Edges[None] = {desk: {Answered: append, ...: END}, append: {...: END}}
    report = check(Front("named", desk, edges), ignore={("desk", "GL2"): "proven where it is made"})

    assert ["GL2"] == [one.finding.code for one in report.suppressed]
    assert "GL2" not in {one.code for one in report.unknown} | {*report.proven}
