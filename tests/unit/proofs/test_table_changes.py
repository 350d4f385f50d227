"""TableChanges: what differs, named as the table names it."""

from __future__ import annotations

from hypothesis import given

from graphloop.graph import Graph
from graphloop.loop import Standard
from graphloop.nodes import Gate, StopCheck
from graphloop.policy import allow, ask, deny
from graphloop.proofs.table_changes import Rewired, table_changes
from tests.changed_loop import bypassed, changed, gateless
from tests.graphs import any_graphs, build


@given(any_graphs())
def test_a_graph_does_not_differ_from_itself(graph: Graph[None]) -> None:
    """A difference that is none would hide those that are."""
    assert table_changes(graph, graph).none
    assert [] == list(table_changes(graph, graph).lines())


@given(any_graphs(), any_graphs())
def test_the_changes_lead_from_one_table_to_the_other(
    before: Graph[None], after: Graph[None]
) -> None:
    """Nothing is left out, and nothing is made up."""
    found = table_changes(before, after)
    lines = {(one.source, one.outcome): one.target for one in before.edges}
    for one in found.edges_removed:
        assert one.target == lines.pop((one.source, one.outcome))
    for moved in found.rewired:
        assert moved.before == lines[moved.source, moved.outcome] != moved.after
        lines[moved.source, moved.outcome] = moved.after
    for one in found.edges_added:
        assert (one.source, one.outcome) not in lines
        lines[one.source, one.outcome] = one.target

    assert {(one.source, one.outcome): one.target for one in after.edges} == lines
    nodes = (set(before.nodes) - set(found.nodes_removed)) | set(found.nodes_added)
    assert set(after.nodes) == nodes


def test_what_leads_elsewhere_is_told_with_where_it_led() -> None:
    """One line, where a removed and an added one would leave the reader to join them."""
    found = table_changes(changed(), changed(bypassed))

    assert (Rewired("model_call", "calls", "gate", "execute"),) == found.rewired
    assert ["~ model_call -calls-> execute (was gate)"] == list(found.lines())
    lines = list(table_changes(changed(), changed(gateless)).lines())
    assert lines[:3] == [
        "- node gate",
        "- gate -settled-> execute",
        "- gate -aborted-> append",
    ]
    back = list(table_changes(changed(gateless), changed()).lines())
    assert back[:2] == ["+ node gate", "+ gate -settled-> execute"]


def test_rules_and_bounds_and_kinds_of_a_node_are_told_apart() -> None:
    """A table may be the same, and mean something else."""
    ruled = Standard(gate=Gate(rules=ask("pay").rules), stop=StopCheck(max_steps=4))
    looser = Standard(gate=Gate(rules=allow("pay").rules), stop=StopCheck(max_steps=9))

    assert [
        "~ node gate: rules: - ask pay, + allow pay",
        "~ node stop_check: max_steps: - 4, + 9",
    ] == list(table_changes(changed(None, ruled), changed(None, looser)).lines())
    silent, told = (
        Standard(gate=Gate(rules=deny("pay", reason=why).rules)) for why in ("", "Never.")
    )
    assert ["~ node gate: rules: - deny pay, + deny pay ('Never.')"] == list(
        table_changes(changed(None, silent), changed(None, told)).lines()
    )
    first = table_changes(changed(), changed(None, ruled)).nodes_changed[0]
    assert ("no rules",) == first.before
    kind = table_changes(build({"a": ["END"]}, {"a": "gate"}), build({"a": ["END"]}, {"a": "stop"}))
    assert ["~ node a: kind: - gate, + stop"] == list(kind.lines())
    start = table_changes(
        build({"a": ["b"], "b": ["a", "END"]}), build({"b": ["a", "END"], "a": ["b"]})
    )
    assert ["~ start b (was a)"] == list(start.lines())
