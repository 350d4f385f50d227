"""The verdict: what was guaranteed and is not any more, with a way that shows it."""

from __future__ import annotations

from hypothesis import given

from graphloop.graph import Graph
from graphloop.loop import Standard
from graphloop.node_protocol import Kind
from graphloop.nodes import StopCheck
from graphloop.outcomes import AnsweredCalls
from graphloop.proofs.dominance import Dominance
from graphloop.proofs.ground import Ground
from graphloop.proofs.verdict import consequences
from tests.changed_loop import Table, by_name, bypassed, changed, gateless, unbounded
from tests.graphs import any_graphs, build


def told(before: Graph[None], after: Graph[None]) -> list[str]:
    return [str(one).splitlines()[0] for one in consequences(before, after)]


@given(any_graphs())
def test_nothing_follows_from_no_change(graph: Graph[None]) -> None:
    """A verdict on what stayed would be a verdict on the graph, which `check` gives."""
    assert () == consequences(graph, graph)


@given(any_graphs(), any_graphs())
def test_every_pair_that_is_lost_is_told_once_with_a_way_that_shows_it(
    before: Graph[None], after: Graph[None]
) -> None:
    """Whatever else is changed: a review relies on it."""
    old, new = Dominance(Ground(before)), Dominance(Ground(after))
    both = set(old.reached) & set(new.reached)
    lost = [(one, node) for node in both for one in old.before(node) - new.before(node)]
    orders = [
        one
        for one in consequences(before, after)
        if one.subject == "order" and one.effect != "stronger"
    ]

    assert sorted(lost) == sorted(pair for one in orders for pair in one.pairs)
    lines = {(one.source, one.outcome, one.target) for one in after.edges}
    for one in orders:
        steps = zip(one.witness, one.outcomes, one.witness[1:], strict=False)
        assert set(steps) <= lines
        if one.witness:
            assert after.start == one.witness[0]
            assert one.pairs[0][0] not in one.witness


def test_tools_that_can_be_reached_without_the_gate_are_weaker() -> None:
    """The one sentence that a reviewer has to read."""
    found = consequences(changed(), changed(bypassed))

    assert "weaker: `execute` becomes reachable without `gate`" == str(found[0]).splitlines()[0]
    assert "prepare_step -ready-> model_call -calls-> execute" == found[0].path
    assert (("gate", "execute"),) == found[0].pairs
    assert "GL2" in {one.subject for one in found}
    assert told(changed(), changed(gateless))[0] == str(found[0]).splitlines()[0]


def test_what_is_mended_is_stronger() -> None:
    """The same words, the other way round, and nothing is weaker."""
    found = consequences(changed(gateless), changed())

    assert {"stronger"} == {one.effect for one in found}
    assert "`execute` is reached only after `gate`" in {one.message for one in found}


def test_a_cycle_without_a_bound_is_told_and_so_is_the_worst_case() -> None:
    """By what it goes round, and whether it was there before."""
    lines = told(changed(), changed(unbounded))

    assert lines[0].startswith("weaker: the cycle gate -> execute -> append -> prepare_step ->")
    assert lines[0].endswith("is new, and nothing bounds it")
    assert "weaker: worst-case model calls 40 -> unbounded" in lines
    back = told(changed(unbounded), changed())
    assert "stronger: worst-case model calls unbounded -> 40" in back
    assert any(line.endswith("is bounded, or gone") for line in back)


def test_a_cycle_that_was_there_loses_its_bound() -> None:
    """Not the table but what a node promises was changed."""

    def again(nodes: Standard, table: Table) -> None:
        table[by_name(table, "append")][AnsweredCalls] = nodes.execute

    lines = told(changed(), changed(again))

    assert "weaker: the cycle gate -> execute -> gate loses its bound" in lines


def test_a_worst_case_that_grows_is_weaker_and_one_that_shrinks_stronger() -> None:
    """A change of one number may cost ten times as much."""
    few = changed(None, Standard(stop=StopCheck(max_steps=5)))
    many = changed(None, Standard(stop=StopCheck(max_steps=20)))

    assert [
        "weaker: worst-case model calls 10 -> 40",
        "weaker: max_steps of `stop_check`: 5 -> 20",
    ] == told(few, many)
    assert [
        "stronger: worst-case model calls 40 -> 10",
        "stronger: max_steps of `stop_check`: 20 -> 5",
    ] == told(many, few)


def test_a_node_of_another_class_is_weaker_where_either_guards() -> None:
    """The name is the same, and what stood there does not any more."""
    guard = build({"a": ["END"]}, {"a": "check"})
    plain, graph = build({"a": ["END"]}, {"a": "pure"}), build({"a": ["END"]}, {"a": "prepare"})

    assert "weaker: `a` is a Place of kind pure, and was a Place of kind check" in told(
        guard, plain
    )
    assert ["changed: `a` is a Place of kind prepare, and was a Place of kind pure"] == told(
        plain, graph
    )


def test_a_run_that_may_end_without_a_node_is_told() -> None:
    """An audit at the end is passed by every run, or by none."""
    before = build({"work": ["audit"], "audit": ["END"]}, {"audit": "check"})
    after = build({"work": ["audit", "END"], "audit": ["END"]}, {"audit": "check"})

    assert "weaker: a run can end without `audit`" in told(before, after)


def test_what_acts_and_can_be_come_back_to_is_told() -> None:
    """Once per run, or once per gate, is a promise too."""
    once = build({"a": ["do"], "do": ["END"]}, {"do": "execute"})
    twice = build({"a": ["do"], "do": ["END", "do"]}, {"do": "execute"})
    guarded = build({"ok": ["do"], "do": ["ok", "END"]}, {"do": "execute", "ok": "gate"})
    unguarded = build({"ok": ["do"], "do": ["ok", "END", "do"]}, {"do": "execute", "ok": "gate"})

    assert "weaker: `do` can be visited more than once in a run" in told(once, twice)
    assert "weaker: `do` can be visited again without `ok`" in told(guarded, unguarded)


def test_what_guards_nothing_is_a_change_and_no_more() -> None:
    """Another order of book-keeping weakens nobody."""
    kinds: dict[str, Kind] = {"a": "prepare", "b": "prepare", "c": "prepare"}
    before = build({"a": ["b"], "b": ["c"], "c": ["END"]}, kinds)
    after = build({"a": ["b", "c"], "b": ["c"], "c": ["END"]}, kinds)
    effects = {one.effect for one in consequences(before, after) if "b" in dict(one.pairs)}

    assert {"changed", "weaker"} >= effects
    assert any("without `b`" in one.message for one in consequences(before, after))
