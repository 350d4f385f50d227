"""Checks that come with a reply, and checks that a gate asks for, give every call one verdict."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from graphloop import END, Edges, Graph, Node, allow, ask, deny
from graphloop.effects import CheckCalls
from graphloop.events import CallCheck, CallsChecked, Event, ModelReplied, Setup, Started
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep
from graphloop.outcomes import ApprovalNeeded, Calls, Outcome, Ready, Settled
from graphloop.policy import Rule
from graphloop.run import Run
from graphloop.step import begin, step
from graphloop.values import ToolCall, ToolSpec, UserMessage
from tests.strategies import reply

NAMES = ("read", "pay", "nowhere")
TOOLS = tuple([ToolSpec(name, "", "{}") for name in NAMES[:2]])
CHECKS = st.sampled_from([CallCheck(), CallCheck(needs_approval=True), CallCheck("It is wrong.")])
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), CHECKS), min_size=1, max_size=4)
POLICIES = (allow("*"), ask("pay") | allow("*"), deny("pay") | allow("*"))
RULES = st.sampled_from([(), *[policy.rules for policy in POLICIES]])


def gated(rules: Sequence[tuple[Rule, ...]]) -> Graph[None]:
    """Return a graph whose calls pass a gate with each of these sets of rules."""
    prepare, model, append, execute = PrepareStep(), ModelCall(), Append(), Execute()
    gates = [Gate(f"gate_{at}", rules=one) for at, one in enumerate(rules)]
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gates[0], ...: END},
        model: {Calls: gates[0], ...: append},
        execute: {ApprovalNeeded: gates[0], ...: append},
        append: {...: END},
    }
    targets: list[Node[None, Outcome]] = [*gates[1:], execute]
    for gate, after in zip(gates, targets, strict=True):
        edges = {**edges, gate: {Settled: after, ...: append}}
    return Graph("gates", prepare, edges)


def judged(graph: Graph[None], event: Event, checks: Sequence[CallCheck]) -> Run[None]:
    """Return the run after a reply; each request of a gate is answered by the check of the call."""
    setup = Setup("m", TOOLS)
    run = begin(graph, Started(0.0, "r", "gates", (UserMessage("go"),), setup), None).run
    run = step(graph, run, event).run
    while asked := [one for one in run.pending.values() if isinstance(one, CheckCalls)]:
        answers = tuple([checks[place] for place in asked[0].places])
        run = step(graph, run, CallsChecked(0.0, asked[0].id, answers)).run
    return run


@given(st.lists(RULES, min_size=1, max_size=3), CALLS)
def test_both_ways_of_a_check_give_the_same_verdicts(
    rules: Sequence[tuple[Rule, ...]], made: Sequence[tuple[str, CallCheck]]
) -> None:
    """The gate judges by the same rules, however it came to know the checks."""
    graph = gated(rules)
    calls = [ToolCall(f"id{at}", name, "{}") for at, (name, _) in enumerate(made)]
    checks = tuple([check for _, check in made])

    with_reply = judged(graph, ModelReplied(0.0, 1, reply(*calls), checks=checks), checks)
    asked_for = judged(graph, ModelReplied(0.0, 1, reply(*calls)), checks)

    assert asked_for.node == with_reply.node
    assert asked_for.turn.verdicts == with_reply.turn.verdicts
    assert asked_for.turn.results == with_reply.turn.results
    kinds = [[type(one) for one in run.pending.values()] for run in (asked_for, with_reply)]
    assert kinds[0] == kinds[1]
    assert asked_for.record == with_reply.record
    assert with_reply.seq <= asked_for.seq
