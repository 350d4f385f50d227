"""GL12 by example: what can be decided before a run, and what only the monitor can.

That nothing is ever proven wrongly is in tests/property/test_temporal_proofs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest

from graphloop.contract import Cap, Contract
from graphloop.graph import END, Edges, NodeGraph, names_of
from graphloop.nodes import Append, Approve, Gate, Limit
from graphloop.outcomes import Aborted, Accepted, Answered, Done, Final, Go, Outcome
from graphloop.proofs import temporal as module
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.report import Finding, Unknown
from graphloop.proofs.temporal import RuleDecision, decided, temporal
from graphloop.rules import (
    Rules,
    always_followed_by,
    at_most,
    never,
    only_after,
)
from graphloop.rules.names import resolve_words
from tests.graphs import agent
from tests.property.test_temporal_proofs import Spot
from tests.topology_data import graph_of, standard

BOTH: tuple[type[Outcome], ...] = (Done, Answered)
GATE = Gate()


def graph(lines: str, promises: Iterable[tuple[str, Contract]] = ()) -> NodeGraph[None]:
    """Return a graph from rows such as "a: b END", its first node first.

    Nodes called `gate` and `execute` are of that kind; all promise to run nothing, but those
    with a promise of their own.
    """
    rows = dict(row.strip().split(": ") for row in lines.split(";"))
    own = dict(promises)
    spots = {
        name: Spot(
            name,
            frozenset(BOTH[: len(targets.split())]),
            "gate" if name == "gate" else "execute" if name == "execute" else "pure",
            (own.get(name, Contract()),),
        )
        for name, targets in rows.items()
    }
    edges: Edges[None] = {
        spots[name]: {
            outcome: END if to == "END" else spots[to]
            for outcome, to in zip(BOTH, targets.split(), strict=False)
        }
        for name, targets in rows.items()
    }
    return NodeGraph("g", next(iter(spots.values())), edges)


def silenced(of: NodeGraph[None], name: str) -> NodeGraph[None]:
    """Return the graph with a node that promises nothing any more."""
    (spot,) = [one for one in of.nodes.values() if one.name == name]
    assert isinstance(spot, Spot)
    object.__setattr__(spot, "promise", ())
    return of


def decide(of: NodeGraph[None], rules: Rules) -> RuleDecision:
    """Return what is decided of one rule, whose words are looked up."""
    (one,) = decided(ProofGraph(of), resolve_words(rules, names_of(of)))
    return one


def outcome_of(of: NodeGraph[None], rules: Rules) -> tuple[str, Sequence[str]]:
    """Return the status and the way, as node names."""
    one = decide(of, rules)
    return one.status, [of.start, *(way.target for way in one.path)] if one.node else []


REVIEWED = graph("plan: review; review: gate plan; gate: execute; execute: plan END")
SKIPPED = graph("plan: review gate; review: gate plan; gate: execute; execute: plan END")


def test_a_node_that_every_way_leads_through_is_proven_to_come_first() -> None:
    """Dominated by the review since the start, as GL2 would say of a gate."""
    assert ("proven", []) == outcome_of(REVIEWED, only_after("execute", "review"))
    assert ("proven", []) == outcome_of(REVIEWED, never("execute", before="review.done"))


def test_a_way_around_is_shown_the_shortest_first() -> None:
    """A counterexample of two lines is read; one of ten is not."""
    expected = ("violated", ["plan", "gate", "execute"])

    assert expected == outcome_of(SKIPPED, only_after("execute", "review"))


def test_a_rule_about_a_tool_is_proven_where_nothing_can_run_too_early() -> None:
    """Tools run at gates and behind them: what dominates these comes before every tool."""
    assert ("proven", []) == outcome_of(REVIEWED, only_after("tool:deploy", "node:review"))
    assert ("proven", []) == outcome_of(REVIEWED, never("tool:*", before="plan"))


def test_a_person_who_is_asked_about_an_answer_lets_no_tool_through() -> None:
    """So a plan that is approved before the first gate proves that no tool runs before."""
    approve, plan = Approve(), Limit(1)
    rows: Edges[None] = {
        plan: {Go: approve, ...: END},
        approve: {Accepted: GATE, ...: END},
        GATE: {...: END},
    }
    of: NodeGraph[None] = NodeGraph("g", plan, rows)

    assert "proven" == decide(of, only_after("tool:*", "outcome:approve.accepted")).status


def test_a_rule_about_a_tool_that_may_run_is_left_to_the_monitor() -> None:
    """Whether the model asks for it is not in the graph."""
    one = decide(SKIPPED, only_after("tool:deploy", "node:review"))

    assert ("unknown", "gate") == (one.status, one.node)
    assert "Only the monitor can decide" in one.reason
    assert "unknown" == decide(REVIEWED, never("tool:deploy")).status
    assert "unknown" == decide(REVIEWED, at_most("tool:search", 5)).status


def test_a_rule_that_is_broken_unless_a_tool_runs_is_violated() -> None:
    """Nobody can make a model call it, and no gate can stop a node."""
    assert ("violated", ["plan", "gate", "execute", "END"]) == outcome_of(
        SKIPPED, never("node:END", before="tool:verify")
    )


def test_a_rule_that_only_a_tool_can_put_into_force_is_unknown() -> None:
    """It holds in every run in which the tool is not called."""
    one = decide(REVIEWED, always_followed_by("tool:deploy", "plan"))

    approved = decide(REVIEWED, always_followed_by("approval:deploy", "plan"))
    for told in (one, approved):
        assert ("unknown", "END") == (told.status, told.node)
        assert told.reason == (
            "which tools run is not in the graph: the run may end at 'END' while it is owed. "
            "Only the monitor can decide; it tells, for no gate can stop that."
        )


def test_what_is_denied_and_what_is_only_told_is_said_of_each_rule() -> None:
    """Who reads that a call is stopped relies on it."""
    approvals = decide(SKIPPED, at_most("approval:deploy", 1))
    counted = decide(SKIPPED, at_most("execute", 1, per="tool:verify"))
    unblocked = decide(
        graph("plan: gate; gate: execute; execute: END"),
        only_after("execute", "plan", since="tool:edit"),
    )

    assert approvals.reason == (
        "which tools run is not in the graph: at 'gate' one may be approved that breaks it. "
        "Only the monitor can decide; it denies such a call."
    )
    assert "violated" == counted.status
    assert unblocked.reason == (
        "which tools run is not in the graph, and the rule hangs on them at 'execute'. "
        "Only the monitor can decide; it tells, for no gate can stop that."
    )


def test_a_conversation_that_is_handed_in_may_owe_what_no_new_run_does() -> None:
    """It goes on where it stopped, at the first node: what follows a tool may not come again."""
    audited = graph("plan: gate END; gate: execute; execute: audit; audit: plan END")
    begins = graph("audit: gate; gate: execute; execute: audit END")

    one = decide(audited, always_followed_by("tool:deploy", "audit"))

    assert ("unknown", "END") == (one.status, one.node)
    assert ["END"] == [way.target for way in one.path]
    assert one.reason == (
        "a conversation that is handed in may owe it, and the run may end at 'END' without. "
        "Only the monitor can decide; it tells, for no gate can stop that."
    )
    assert "proven" == decide(graph("a: b END; b: a"), always_followed_by("b", "a")).status
    assert "unknown" == decide(begins, always_followed_by("tool:deploy", "audit")).status
    looked = graph("audit: gate END; gate: execute; execute: audit")
    assert "proven" == decide(looked, always_followed_by("tool:deploy", "audit")).status


def test_nothing_was_approved_before_the_run() -> None:
    """What a conversation says has run is past; who let it through it does not say."""
    quiet = graph("a: b END; b: END")

    assert "proven" == decide(quiet, always_followed_by("approval:deploy", "node:b")).status
    assert "unknown" == decide(quiet, always_followed_by("tool:*", "node:b")).status
    assert "proven" == decide(quiet, at_most("tool:deploy", 1)).status
    assert "proven" == decide(quiet, never("tool:deploy", before="approval")).status


def test_what_must_follow_is_looked_for_on_every_way_to_the_end() -> None:
    """Also on the ways that nobody thinks of."""
    pair = graph("a: b END; b: c; c: a")

    assert ("violated", ["a", "END"]) == outcome_of(pair, always_followed_by("a", "b"))
    assert ("proven", []) == outcome_of(pair, always_followed_by("b", "c"))


def test_what_is_allowed_since_something_is_proven_round_after_round() -> None:
    """A review of the plan before the last one is none."""
    rounds = only_after("gate", "review", since="plan")

    assert ("proven", []) == outcome_of(REVIEWED, rounds)
    assert "violated" == decide(SKIPPED, rounds).status


def test_a_node_that_promises_nothing_may_run_any_tool() -> None:
    """Unknown is never proven."""
    quiet = graph("a: b; b: END")
    silent = NodeGraph("g", one := Spot("a", frozenset({Done}), "pure"), {one: {Done: END}})

    assert "proven" == decide(quiet, never("tool:x")).status
    assert "unknown" == decide(silent, never("tool:x")).status


def test_the_bounds_that_nodes_promise_rule_ways_out() -> None:
    """A loop that goes round twice at most does not break a rule that allows three."""
    twice = [("b", Contract(caps={Done: Cap(2)}))]
    capped = graph("a: b; b: a END", twice)

    assert ("proven", []) == outcome_of(capped, at_most("a", 3))
    assert ("violated", ["a", "b", "a", "b", "a"]) == outcome_of(capped, at_most("a", 2))
    assert "violated" == decide(graph("a: b; b: a END"), at_most("a", 3)).status


def test_a_bound_that_counts_turns_holds_only_where_turns_are_opened() -> None:
    """A stop check that counts steps stops no cycle that makes none."""
    turns = Cap(1, counts=frozenset({"turn"}))
    opens = Contract(moves={Done: frozenset({"turn"})})
    bound, row = ("b", Contract(caps={Done: turns})), "a: b; b: a END"

    assert "proven" == decide(graph(row, [("a", opens), bound]), at_most("a", 3)).status
    assert "violated" == decide(graph(row, [bound]), at_most("a", 3)).status


def test_a_turn_that_is_opened_once_more_does_not_count_as_another() -> None:
    """A counter of turns stands still while the same one is tried again."""
    turns = Cap(1, counts=frozenset({"turn"}))
    opens = Contract(moves={Done: frozenset({"turn"})})
    retries = Contract(caps={Done: turns}, moves={Done: frozenset({"again"})})

    of = graph("a: b; b: a END", [("a", opens), ("b", retries)])
    assert "violated" == decide(of, at_most("a", 3)).status


def test_a_bound_that_is_set_back_is_no_bound_across_that() -> None:
    """As the calls that are held once in every turn."""
    turn = Contract(caps={Done: Cap(1, resets=frozenset({"turn"}))})
    opens = Contract(moves={Done: frozenset({"turn"})})
    row = "a: b; b: a END"

    assert "proven" == decide(graph(row, [("b", turn)]), at_most("a", 2)).status
    assert "violated" == decide(graph(row, [("b", turn), ("a", opens)]), at_most("a", 2)).status


def test_a_node_that_promises_nothing_may_set_bounds_back() -> None:
    """What nobody has promised is unknown; what nothing sets back, it cannot set back either."""
    row, rule = "a: b; b: a END", at_most("a", 2)
    turn = [("b", Contract(caps={Done: Cap(1, resets=frozenset({"turn"}))}))]
    ever = [("b", Contract(caps={Done: Cap(1)}))]

    assert "violated" == decide(silenced(graph(row, turn), "a"), rule).status
    assert "proven" == decide(silenced(graph(row, ever), "a"), rule).status


@pytest.mark.parametrize("times", [4, 9, 1000])
def test_how_often_a_node_is_visited_is_known_without_searching(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting up to a thousand by walking takes as many states: bounds and circles tell sooner."""
    monkeypatch.setattr(module, "ARCS_MAX", 0)
    monkeypatch.setattr(module, "ARCS_MIN", 0)
    thrice = Contract(caps={Done: Cap(3)})
    loop = graph("a: b END; b: c; c: a", [("a", thrice)])

    one = decide(loop, at_most("b", times))
    free = decide(graph("a: b END; b: c; c: a"), at_most("b", times))

    assert "proven" == one.status
    assert ("violated", 3 * times + 1) == (free.status, len(free.path))


def test_a_search_that_is_given_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so."""
    monkeypatch.setattr(module, "ARCS_MAX", 2)
    monkeypatch.setattr(module, "ARCS_MIN", 2)

    one = decide(REVIEWED, only_after("execute", "review"))
    assert ("unknown", "") == (one.status, one.node)
    assert "too many places" in one.reason


def test_a_rule_that_the_start_breaks_has_the_start_as_its_witness() -> None:
    """There is no line to show."""
    assert ("violated", ["plan"]) == outcome_of(REVIEWED, never("plan"))


def test_findings_name_the_rule_and_what_to_do() -> None:
    """One a rule; what the monitor has to decide is told as unknown."""
    rules = resolve_words(
        only_after("execute", "review", reason="two pairs of eyes")
        & never("tool:deploy")
        & never("END", before="execute"),
        names_of(SKIPPED),
    )

    results = list(temporal(ProofGraph(SKIPPED), rules))
    (finding,) = (one for one in results if isinstance(one, Finding))
    (unknown,) = (one for one in results if isinstance(one, Unknown))

    assert ("GL12", "error", "execute") == (finding.code, finding.severity, finding.node)
    assert ("plan", "gate", "execute") == finding.witness
    assert "'node:execute only after node:review (two pairs of eyes)'" in finding.message
    assert "'execute'" in finding.fix
    assert "GL12" == unknown.code
    assert unknown.reason.startswith(
        "rule 'never tool:deploy': which tools run is not in the graph"
    )


def test_a_rule_about_the_end_is_found_there() -> None:
    """END is no node, and still a place."""
    rules = never("node:END", before="node:review")

    (finding,) = temporal(ProofGraph(SKIPPED), rules)
    assert isinstance(finding, Finding)
    assert ("", "node 'END'", "END") == (finding.node, finding.place, finding.witness[-1])


def test_what_can_be_said_of_the_standard_loop_before_it_runs() -> None:
    """The loop that most people run, and the rules that they ask for first."""
    loop = agent()
    statuses = {
        str(rules): decide(loop, rules).status
        for rules in (
            only_after("execute", "gate", since="model_call"),
            always_followed_by("model_call.calls", "append"),
            never("tool:deploy", before="gate"),
            never("tool:deploy"),
            at_most("model_call", 3),
        )
    }

    assert ["proven", "proven", "proven", "unknown", "violated"] == list(statuses.values())


def test_a_node_that_only_the_table_leads_to_is_visited_no_time() -> None:
    """A run that was stopped leaves its Append by `aborted` alone: the limit is never entered."""
    gate, append, limit = Gate(), Append(), Limit(1)
    edges: Edges[None] = {
        gate: {Aborted: append, ...: END},
        append: {Final: limit, ...: END},
        limit: {...: END},
    }
    of = NodeGraph[None]("stopped", gate, edges)

    assert "proven" == decide(of, at_most("outcome:limit.go", 1)).status
    assert "proven" == decide(of, at_most("node:limit", 1)).status


def test_a_rule_that_is_broken_far_down_a_large_graph_is_shown_by_a_run() -> None:
    """The nearest way there is none that a run takes, and others are as far."""
    loops = [standard(prefix=f"l{at}-", max_steps=5_000) for at in range(600)]
    whole = loops[0]
    for before, after in pairwise(loops):
        verify = next(name for name in before["nodes"] if name.endswith("verify"))
        before["edges"][verify]["accepted"] = after["start"]
    for one in loops[1:]:
        whole["nodes"] |= one["nodes"]
        whole["edges"] |= one["edges"]

    findings = list(temporal(ProofGraph(graph_of(whole)), at_most("node:l599-stop", 1)))

    assert all(isinstance(one, Finding) for one in findings)
    assert ["l599-stop"] == [one.node for one in findings]
