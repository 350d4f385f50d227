"""Executions: the judge of what ran, held against runs in which one thing is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphloop import END, Edges, Graph, allow, ask, budget, deny
from graphloop.effects import CallTool, StartRun
from graphloop.events import CallCheck
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep
from graphloop.outcomes import Aborted, ApprovalNeeded, Calls, Done, Outcome, Ready, Settled
from graphloop.policy.approvals import Approval
from graphloop.policy.policy import Policy
from graphloop.spending import Spent
from graphloop.testing.executions import crowded, repeated_calls, ungated_calls
from graphloop.testing.fuzzing import fuzz
from graphloop.testing.subject import Subject
from graphloop.testing.trace import Trace, traced
from graphloop.values import evolve
from tests.strategies import SETUP, Adversary, call, reply
from tests.unit.testing.kernel_faults import FAULTS
from tests.unit.testing.planted import Reckless, reckless, table

TWO = Adversary((reply("done"), reply(call("read"), call("read"), call("write"))))


def judged(adversary: Adversary, graph: Graph[None]) -> list[str]:
    """Return what is wrong with a run of a graph."""
    subject = Subject(graph, None, SETUP)
    trace = traced(subject, adversary.run(graph).events)
    return [one.what for one in ungated_calls(subject, trace)]


def gated(policy: Policy | None) -> Graph[None]:
    """Return a sound loop with this policy."""
    gate = Gate() if policy is None else Gate(rules=policy.rules)
    return table(lambda node: gate if node.kind == "gate" else node)


POLICIES = (None, allow("*"), ask("*"), deny("write") | ask("read"), deny("*"))
CHECKS = (CallCheck(), CallCheck("bad"), CallCheck(needs_approval=True))
DECISIONS = (
    Approval(approved=True),
    Approval(approved=False),
    Approval(approved=True, arguments="{}"),
)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("decision", DECISIONS)
def test_what_a_real_gate_lets_through_is_never_complained_of(
    policy: Policy | None, check: CallCheck, decision: Approval
) -> None:
    """A judge that cries wolf is switched off."""
    adversary = replace(TWO, checks=(check, CallCheck()), decisions=(decision,))

    assert [] == judged(adversary, gated(policy))


@pytest.mark.parametrize(
    ("policy", "check", "decision", "found"),
    [
        (deny("*"), CallCheck(), DECISIONS[0], "its gate's rules deny it"),
        (allow("read"), CallCheck(), DECISIONS[0], "its gate's rules deny it"),
        (allow("*"), CallCheck("bad"), DECISIONS[0], "its check found it invalid"),
        (ask("*"), CallCheck(), DECISIONS[1], "no person has approved it"),
        (None, CallCheck(needs_approval=True), DECISIONS[1], "no person has approved it"),
        (ask("*"), CallCheck(), Approval(approved=True, arguments='{"a": 1}'), "approved"),
    ],
)
def test_what_a_gate_did_not_let_through_is_found(
    policy: Policy | None, check: CallCheck, decision: Approval, found: str
) -> None:
    """Whatever the executing node thinks of it."""
    gate = Gate() if policy is None else Gate(rules=policy.rules)
    adversary = replace(TWO, checks=(check,), decisions=(decision,))

    assert found in "\n".join(judged(adversary, reckless(gate)))


def in_a_row(execute: Node[None, Outcome], *gates: Gate) -> Graph[None]:
    """Return a loop whose calls pass these gates, one after the other."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gates[0], ...: END},
        model: {Calls: gates[0], ...: append},
        execute: {...: append},
        append: {...: END},
    }
    rest: Edges[None] = {
        gate: {Settled: after, Aborted: append}
        for gate, after in zip(gates, (*gates[1:], execute), strict=True)
    }
    return Graph("in_a_row", prepare, {**edges, **rest})


LENIENT = Gate("lenient", rules=allow("*").rules)
STRICT = Gate("strict", rules=(deny("write") | allow("*")).rules)


@pytest.mark.parametrize("gates", [(LENIENT, STRICT), (STRICT, LENIENT)])
def test_each_gate_that_a_call_passes_must_let_it_through(
    gates: tuple[Gate, Gate],
) -> None:
    """A second gate that nobody heeds is a gate that nobody has."""
    assert [] == judged(TWO, in_a_row(Execute(), *gates))
    assert "its gate's rules deny it" in "\n".join(judged(TWO, in_a_row(Reckless(), *gates)))


def test_a_call_runs_twice_only_if_a_person_wants_it() -> None:
    """The unknown outcome of an approved call is the one reason to run it again."""
    graph = gated(ask("*"))
    trace = traced(Subject(graph, None, SETUP), TWO.run(graph).events)
    taken = next(one for one in trace.steps if any(isinstance(e, CallTool) for e in one.effects))
    twice = evolve(taken.effects[0], id=99)

    again: Trace[None] = replace(trace, steps=(*trace.steps, replace(taken, effects=(twice,))))

    assert [] == list(repeated_calls(trace))
    assert ["once"] == [one.code for one in repeated_calls(again)]


def led_on() -> Graph[None]:
    """Return a loop that leads a run which was stopped to another gate and another Execute."""
    prepare, model, gate, second_gate = PrepareStep(), ModelCall(), Gate(), Gate("second_gate")
    execute, second, append = Execute(), Execute("second"), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gate, ...: END},
        model: {Calls: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {Done: append, ApprovalNeeded: gate, Aborted: second_gate},
        second_gate: {Settled: second, ...: append},
        second: {...: append},
        append: {...: END},
    }
    return Graph("led_on", prepare, edges)


def test_a_stopped_run_starts_nothing_wherever_its_table_leads() -> None:
    """The kernel sees to it, whatever the table says."""
    report = fuzz(led_on(), seeds=200)

    assert report.ok, str(report)


def test_an_effect_after_a_stop_is_found_wherever_it_comes_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel that would let it runs a call twice that has started already."""
    FAULTS["a run that was stopped goes on"][0](monkeypatch)

    report = fuzz(led_on(), seeds=200)

    codes = {one.code for each in report.failing for one in each.violations}
    assert {"stopped", "once"} <= codes


def test_a_child_run_gets_no_more_than_is_left_beside_the_others() -> None:
    """Two halves are the whole; a third of anything is too much."""
    graph = table()
    trace = traced(Subject(graph, None, SETUP), TWO.run(graph).events)
    last = trace.steps[-1]
    setup = evolve(SETUP, budget=budget(usd=3.0, tool_calls=3))

    def shared(*shares: float) -> list[str]:
        effects = [
            StartRun(at, f"helper.{at}", "helper", "", (), budget(usd=share, tool_calls=1))
            for at, share in enumerate(shares, 1)
        ]
        pending = {one.id: one for one in effects}
        run = evolve(last.run, node="execute", setup=setup, pending=pending, spent=Spent())
        taken = replace(last, run=run, effects=tuple(effects))
        trace = Trace((taken,))
        return [one.what for one in crowded(Subject(graph, None, setup), trace)]

    assert [] == shared(1.0, 1.0, 1.0)
    assert ["agent 'helper' may spend more than the budget has left"] == shared(2.0, 1.0, 0.1)
