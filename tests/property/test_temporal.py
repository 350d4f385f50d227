"""Temporal rules at run time: automaton, monitor and journal mean what the reference says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.graph import NodeGraph
from graphloop.loop import Standard
from graphloop.nodes.execute import Execute
from graphloop.nodes.gate import Gate
from graphloop.replay import journal_happenings
from graphloop.rules import Rules, TemporalRule
from graphloop.rules.automata import (
    Happening,
    approved_call,
    automaton_of,
    earlier,
    entered,
    past_call,
    ran,
    returned,
    taken,
)
from graphloop.rules.monitor import Monitor, Wanted, foreseen, judged
from graphloop.run import evolve
from graphloop.testing.sim import Simulation, simulate
from tests.sizes import sized
from tests.strategies import QUESTION, SETUP, Adversary, adversaries, loop
from tests.temporal_reference import all_rules, breaches, happenings, owes, rule_lists, rules_over

WORDS = (
    "node:a",
    "node:b",
    "outcome:a.calls",
    "outcome:calls",
    "tool:x",
    "tool:y",
    "tool:*",
    "approval:x",
    "approval:*",
)

LOOP_WORDS = (
    "node:model_call",
    "node:gate",
    "node:execute",
    "node:verify",
    "node:END",
    "outcome:model_call.calls",
    "outcome:append.answered_calls",
    "outcome:aborted",
    "tool:read",
    "tool:write",
    "tool:*",
    "approval:read",
    "approval:*",
)

TOOL_WORDS = ("tool:read", "tool:write", "tool:*")


few = st.sampled_from(
    [made for name in "xyz" for made in (ran(name), returned(name, well=True))]
    + [returned("z", well=False)]
)
"""With so few, rules and traces meet often."""


@given(
    st.tuples(rules_over(WORDS), st.lists(happenings, max_size=12))
    | st.tuples(
        rules_over(("tool:x", "tool:y", "tool:z", "tool:*")),
        st.lists(few, min_size=3, max_size=12),
    )
)
@settings(max_examples=sized(120))
def test_the_automaton_says_what_the_reference_says(
    case: tuple[TemporalRule, list[Happening]],
) -> None:
    """Whatever reads the table, proof or monitor, rests on this."""
    rule, trace = case
    automaton = automaton_of(rule)
    state, first = automaton.start, -1
    for at, one in enumerate(trace):
        state = automaton.after(state, one)
        if first < 0 and state == automaton.broken:
            first = at

    expected = breaches(rule, trace)
    assert (expected[0] if expected else -1) == first
    assert owes(rule, trace) == (state in automaton.owing)


X, Y, Z = ((ran(name), returned(name, well=True)) for name in "xyz")
CASES = {
    "tools": (("tool:x", "tool:y", "tool:*"), [*X, *Y, returned("y", well=False)], sized(4, 5)),
    "one tool": (("tool:x", "tool:*"), [*X, *Y], 6),
    "three tools": (("tool:x", "tool:y", "tool:z"), [*X, *Y, *Z], 4),
    "approvals": (
        ("tool:x", "approval:x", "approval:*"),
        [ran("x"), approved_call("x"), approved_call("y"), returned("x", well=True)],
        5,
    ),
    "outcomes": (
        ("node:b", "outcome:a.calls", "outcome:calls"),
        [entered("b"), taken("a", "calls"), taken("b", "calls")],
        6,
    ),
    "counts": (("tool:x", "node:b"), [ran("x"), entered("b")], 9),
    "the past": (
        ("tool:x", "tool:*", "node:b"),
        [
            earlier("x"),
            *past_call("x", well=True),
            *past_call("y", well=False)[1:],
            *X,
            entered("b"),
        ],
        4,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_automaton_and_reference_agree_on_every_short_trace(case: str) -> None:
    """Chance seldom puts together what overlaps, counts to three and begins anew."""
    words, letters, longest = CASES[case]
    for rule in all_rules(words):
        automaton = automaton_of(rule)
        todo: list[tuple[int, list[Happening]]] = [(automaton.start, [])]
        while todo:
            state, trace = todo.pop()
            assert bool(breaches(rule, trace)) == (state == automaton.broken)
            assert owes(rule, trace) == (state in automaton.owing)
            if len(trace) < longest and state != automaton.broken:
                todo += [(automaton.after(state, one), [*trace, one]) for one in letters]


def after_all(monitor: Monitor, trace: Sequence[Happening]) -> Monitor:
    for one in trace:
        monitor = monitor.after(one)
    return monitor


CALL_WORDS = ("tool:x", "tool:y", "tool:*", "approval:x", "approval:*", "node:a")
calls = st.lists(st.builds(Wanted, st.sampled_from("xxyz"), st.booleans()), max_size=6)


@given(rule_lists(CALL_WORDS), st.lists(happenings, max_size=6), calls)
@settings(max_examples=sized(50))
def test_a_call_is_let_through_if_and_only_if_it_breaks_no_rule(
    rules: Rules, past: list[Happening], wanted: list[Wanted]
) -> None:
    """What breaks one never runs; what is stopped is stopped by a rule, not by caution."""
    monitor, trace = after_all(Monitor.of(rules), past), list(past)

    for one, verdict in zip(wanted, judged(monitor, wanted), strict=True):
        approved = [approved_call(one.tool)] if one.asked else []
        made = [*trace, *approved, ran(one.tool)]
        if verdict is None:
            new = [at for rule in rules for at in breaches(rule, made) if at >= len(trace)]
            assert [] == new
            trace = made
        else:
            assert breaches(verdict, made)


@given(rule_lists(CALL_WORDS), st.lists(happenings, max_size=6), calls, st.data())
@settings(max_examples=sized(50))
def test_a_call_foreseen_as_forbidden_is_forbidden_in_every_case(
    rules: Rules, past: list[Happening], wanted: list[Wanted], data: st.DataObject
) -> None:
    """A person who is not asked must not have been able to make a difference."""
    monitor = after_all(Monitor.of(rules), past)
    kept = [
        (place, one)
        for place, one in enumerate(wanted)
        if not one.asked or data.draw(st.booleans())
    ]

    denied = foreseen(monitor, wanted)
    verdicts = judged(monitor, [one for _, one in kept])

    for (place, _), verdict in zip(kept, verdicts, strict=True):
        assert denied[place] is None or verdict is not None


@given(
    rule_lists(WORDS), st.lists(happenings, max_size=6), st.builds(Wanted, st.sampled_from("xyz"))
)
@settings(max_examples=sized(80))
def test_of_a_single_call_everything_is_foreseen(
    rules: Rules, past: list[Happening], wanted: Wanted
) -> None:
    """With nothing before it in its batch, nothing can still change."""
    monitor = after_all(Monitor.of(rules), past)

    assert foreseen(monitor, [wanted]) == judged(monitor, [wanted])
    assert (monitor.forbids(wanted.tool),) == judged(monitor, [wanted])


# Journals.


def held_loop(*, hold: bool) -> NodeGraph[None]:
    return loop(Standard(gate=Gate(hold=hold), execute=Execute(hold=hold)))


def assert_told_truly(graph: NodeGraph[None], trace: Sequence[Happening], *, ended: bool) -> None:
    """Assert that the nodes and outcomes of a trace are one walk through the table."""
    told = [one.words[0] for one in trace if one.words[0].startswith(("node:", "outcome:"))]
    nodes, outcomes = told[::2], told[1::2]
    lines = {
        (f"node:{e.source}", f"outcome:{e.source}.{e.outcome}", f"node:{e.target}")
        for e in graph.edges
    }
    walked = {(a, by, b) for (a, b), by in zip(pairwise(nodes), outcomes, strict=True)}
    assert f"node:{graph.start}" == nodes[0]
    assert walked <= lines
    assert ended == (nodes[-1] == "node:END")


def assert_counted(simulation: Simulation[None], trace: Sequence[Happening]) -> None:
    """Assert that no tool ran that did not count."""
    counted = Counter(one.words[0] for one in trace if one.words[0].startswith("tool:"))
    ran_by = Counter[str]()
    for done in simulation.run.record.steps:
        for made, result in zip(done.tool_calls, done.tool_results, strict=True):
            # Nobody but its client knows how often a client's tool runs.
            once = made.name == "client"
            started = simulation.executions[result.key]
            ran_by[f"tool:{made.name}"] += min(started, 1) if once else started
    assert not ran_by - counted
    assert len(simulation.executions) <= counted.total()


def assert_done(simulation: Simulation[None], trace: Sequence[Happening]) -> None:
    """Assert that nothing has returned well but what has, nor before it was let through."""
    turn = simulation.run.turn
    results = [one for done in simulation.run.record.steps for one in done.tool_results]
    results += [one for one in turn.results if one is not None]
    well = Counter(f"tool:{one.name}" for one in results if one.status == "ok")
    let, told = Counter[str](), Counter[str]()
    for one in trace:
        if one.words[0].startswith("tool:"):
            let[one.words[0]] += 1
        if one.words[0].startswith("ended:"):
            tool = f"tool:{one.words[0].removeprefix('ended:')}"
            let[tool] -= 1
            told[tool] += len(one.words) > len(returned("x", well=False).words)
    assert not -let
    assert not told - well


@given(
    adversaries,
    rule_lists(LOOP_WORDS),
    st.integers(0, 99),
    st.lists(st.integers(1, 20), max_size=2),
    st.none() | st.integers(1, 20),
    st.booleans(),
)
@settings(max_examples=sized(60), deadline=None)
def test_the_monitor_judges_a_replayed_journal_as_the_reference_does(
    adversary: Adversary,
    rules: Rules,
    seed: int,
    crashes: list[int],
    abort: int | None,
    hold: bool,
) -> None:
    """Whatever crashes, aborts and waits: what happened is a fold of the journal."""
    graph = held_loop(hold=hold)
    simulation = adversary.run(graph, seed=seed, crash_after=crashes, abort_after=abort)

    told = list(journal_happenings(graph, simulation.events))
    trace = [one for happened in told for one in happened]
    monitor = reduce(Monitor.after, trace, Monitor.of(rules))

    assert len(simulation.events) == len(told)
    assert_told_truly(graph, trace, ended=simulation.run.ended)
    assert_counted(simulation, trace)
    assert_done(simulation, trace)
    assert [rule for rule in rules if breaches(rule, trace)] == list(monitor.broken)
    assert [rule for rule in rules if owes(rule, trace)] == list(monitor.owed)


def tool_rules(rules: Rules) -> list[TemporalRule]:
    return [rule for rule in rules if rule.what in TOOL_WORDS]


@given(
    adversaries,
    rule_lists((*TOOL_WORDS, *TOOL_WORDS, *LOOP_WORDS)).filter(tool_rules),
    st.integers(0, 99),
    st.lists(st.integers(1, 20), max_size=2),
    st.none() | st.integers(1, 20),
    st.booleans(),
)
@settings(max_examples=sized(60), deadline=None)
def test_no_tool_runs_that_a_rule_forbids(
    adversary: Adversary,
    rules: Rules,
    seed: int,
    crashes: list[int],
    abort: int | None,
    hold: bool,
) -> None:
    """The promise of the monitor, whatever the model asks for, people say, and processes do."""
    graph = held_loop(hold=hold)

    simulation = simulate(
        graph,
        QUESTION,
        adversary.world,
        None,
        setup=evolve(SETUP, watch=rules.rules),
        seed=seed,
        crash_after=crashes,
        abort_after=abort,
    )

    told = journal_happenings(graph, simulation.events)
    trace = [one for happened in told for one in happened]
    monitor = simulation.run.watch.monitor
    assert not any(breaches(rule, trace) for rule in tool_rules(rules))
    assert [rule for rule in rules if breaches(rule, trace)] == list(monitor.broken)
    assert [rule for rule in rules if owes(rule, trace)] == list(monitor.owed)
    assert not simulation.repeated
