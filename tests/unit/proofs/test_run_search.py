"""What is told as a counterexample is a run; what no run takes is told as that."""

from __future__ import annotations

from cProfile import Profile
from itertools import pairwise
from typing import Any

import pytest

from graphloop.graph import END, Edges, NodeGraph
from graphloop.nodes import (
    Append,
    Approve,
    Execute,
    Extend,
    Function,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    Verify,
)
from graphloop.outcomes import (
    Aborted,
    Answered,
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Failed,
    Final,
    FollowUp,
    GiveUp,
    Go,
    Outcome,
    Ready,
    Resend,
    Retry,
    Settled,
    Stop,
    Truncated,
)
from graphloop.proofs.checking import check
from graphloop.proofs.proof_graph import Arc, ProofGraph
from graphloop.proofs.report import Finding
from graphloop.proofs.run_search import RunSearch
from tests.witness import is_run


class Onward(Outcome):
    """A function of one's own is done."""

    note: str


def way(graph: NodeGraph[Any], *lines: tuple[str, type[Outcome]]) -> tuple[Arc, ...]:
    return tuple(Arc(node, outcome, graph.table[node][outcome]) for node, outcome in lines)


def loop() -> NodeGraph[None]:
    """Return a loop that nothing bounds, with a gate."""
    prepare, model, gate, execute, append = (
        PrepareStep(),
        ModelCall(),
        Gate(),
        Execute(),
        Append(),
    )
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gate, ...: END},
        model: {Calls: gate, Failed: END, ...: append},
        gate: {Settled: execute, Aborted: append},
        execute: {...: append},
        append: {AnsweredCalls: prepare, ...: END},
    }
    return NodeGraph("loop", prepare, edges)


def test_a_function_leaves_by_each_of_its_outcomes() -> None:
    """Also by one with fields, of which a sample is made; the function is not called."""
    own = Function("own", frozenset({Onward}))
    edges: Edges[None] = {own: {Onward: own, ...: END}}
    graph = NodeGraph[None]("own", own, edges)

    assert 3 == RunSearch(graph).walk(way(graph, *[("own", Onward)] * 3))


def test_a_cycle_that_no_run_goes_round_is_unknown() -> None:
    """An Append that has added the answers of calls has none to add again."""
    approve, append = Approve(), Append()
    edges: Edges[None] = {
        approve: {...: append},
        append: {AnsweredCalls: append, ...: END},
    }
    report = check(NodeGraph[None]("again", approve, edges))

    assert "GL4" not in {one.code for one in report.findings}
    (unknown,) = (one.reason for one in report.unknown if one.code == "GL4")
    assert "no run" in unknown


def test_a_message_that_no_turn_takes_up_is_sent_on_for_ever() -> None:
    """A person steers the run, and no PrepareStep is on the cycle: a run goes round it."""
    approve, append = Approve(), Append()
    edges: Edges[None] = {
        approve: {...: append},
        append: {Resend: append, ...: END},
    }
    graph = NodeGraph[None]("again", approve, edges)

    (found,) = (one for one in check(graph).findings if one.code == "GL4")
    assert is_run(graph, found, repeated=9), found.path


def test_a_witness_that_no_run_takes_gives_way_to_one_that_does() -> None:
    """Calls that are handed in come first in the table, and only at the start of a run."""
    prepare, model, execute, append = PrepareStep(), ModelCall(), Execute(), Append()
    between = Approve("between")
    edges: Edges[None] = {
        model: {Answered: between, ...: END},
        between: {...: prepare},
        prepare: {Calls: execute, Ready: append, ...: END},
        execute: {...: append},
        append: {...: END},
    }
    graph = NodeGraph[None]("late", model, edges)

    report = check(graph)

    for one in report.findings:
        assert is_run(graph, one), one.path
    assert "GL2" not in report.proven


def test_the_tries_of_a_graph_come_to_an_end() -> None:
    """A graph with thousands of findings is told in bounded time."""
    graph = loop()
    walker = RunSearch(graph, events=3)

    assert walker.walk(way(graph, ("prepare_step", Ready), ("model_call", Answered))) <= 2
    assert walker.events <= 3


def test_what_cannot_be_reached_by_a_run_has_no_way_there() -> None:
    """A finding about a node stands; the way to it is told where a run takes it."""
    gate, append, limit = Gate(), Append(), Limit(1)
    edges: Edges[None] = {
        gate: {Aborted: append, ...: END},
        append: {AnsweredCalls: limit, ...: END},
        limit: {Go: END, Stop: END},
    }
    ground = ProofGraph(NodeGraph[None]("stopped", gate, edges))

    assert ground.run_to("limit") == ()
    assert isinstance(ground.finding("GL1", "", "", node="limit"), Finding)


def test_a_fault_behind_a_follow_up_is_an_error_with_a_run() -> None:
    """A person may say more before the run has its answer."""
    prepare, model, append, verify = PrepareStep(), ModelCall(), Append(), Verify()
    publish = Function("publish", frozenset({Onward}), kind="act")
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: append, ...: END},
        model: {Failed: END, ...: append},
        append: {Final: verify, ...: END},
        verify: {FollowUp: publish, ...: END},
        publish: {...: END},
    }
    graph = NodeGraph[None]("more", prepare, edges)

    (found,) = (one for one in check(graph).findings if one.code == "GL2")
    assert is_run(graph, found), found.path


def test_a_long_path_is_simulated_in_linear_time() -> None:
    """What a function may answer is looked up, not looked for among all nodes."""

    def calls(count: int) -> int:
        nodes = [Function(f"w{at}", frozenset({Onward})) for at in range(count)]
        edges: Edges[None] = {node: {Onward: after, ...: END} for node, after in pairwise(nodes)}
        edges = {**edges, nodes[-1]: {...: END}}
        graph = NodeGraph[None]("many", nodes[0], edges)
        walker = RunSearch(graph)
        lines = way(graph, *[(node.name, Onward) for node in nodes])
        profile = Profile()
        assert count == profile.runcall(walker.walk, lines)
        return sum(one.callcount for one in profile.getstats())

    assert calls(400) <= 5 * calls(100)


@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_fault_behind_a_bound_is_shown_by_a_run(times: int) -> None:
    """A line that is not taken at first is taken once its node has gone on so often."""
    poll, limit = Function("poll", frozenset({Onward})), Limit(times)
    publish = Function("publish", frozenset({Onward}), kind="act")
    edges: Edges[None] = {
        poll: {Onward: limit, ...: END},
        limit: {Go: poll, Stop: publish},
        publish: {...: END},
    }
    graph = NodeGraph[None]("polled", poll, edges)

    (found,) = (one for one in check(graph).findings if one.code == "GL2")
    assert is_run(graph, found), found.path
    assert times == found.outcomes.count("go")


@pytest.mark.parametrize(("code", "to"), [("GL4", "model_call"), ("GL2", "execute")])
def test_a_fault_behind_a_second_cut_reply_is_shown_by_a_run(code: str, to: str) -> None:
    """An Extend asks once more before it gives up."""
    prepare, model, extend, gate = PrepareStep(), ModelCall(), Extend(), Gate()
    execute, append = Execute(), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gate, ...: END},
        model: {Truncated: extend, Calls: gate, Failed: END, ...: append},
        extend: {Retry: model, GiveUp: {one.name: one for one in (model, execute)}[to]},
        gate: {Settled: execute, Aborted: append},
        execute: {...: append},
        append: {...: END},
    }
    graph = NodeGraph[None]("cut", prepare, edges)

    found = next(one for one in check(graph).findings if one.code == code)
    assert is_run(graph, found), found.path


def test_a_lost_call_without_a_run_fails_the_report() -> None:
    """What is not shown to be safe does not read like a pass; no witness is told."""
    prepare, model, gate, execute, append = loop().nodes.values()
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gate, ...: END},
        model: {Calls: gate, Failed: END, ...: append},
        gate: {Settled: execute, Aborted: append},
        execute: {ApprovalNeeded: END, ...: append},
        append: {...: END},
    }
    report = check(NodeGraph[None]("held", prepare, edges))

    (unknown,) = (one for one in report.unknown if one.code == "GL3")
    assert "no run of this way was found" in unknown.reason
    assert () == report.findings
    assert not report.ok
    assert "no problem found" not in str(report)
