"""GL12 by example: what can be decided before a run, and what only the monitor can.

That nothing is ever proven wrongly is in tests/property/test_temporal_proofs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest

from graphloop.contract import Cap, Contract, Moves
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


BACK = "a: b; b: a END"
TURN = frozenset[Moves]({"turn"})
OPENS = Contract(moves={Done: TURN})
COUNTS = Contract(caps={Done: Cap(1, counts=TURN)})
RESET = Contract(caps={Done: Cap(1, resets=TURN)})
QUIET = graph("a: b END; b: END")

VERDICTS: list[tuple[NodeGraph[None], Rules, str]] = [
    # Every path passes the review.
    (REVIEWED, only_after("execute", "review"), "proven"),
    (REVIEWED, never("execute", before="review.done"), "proven"),
    (REVIEWED, only_after("gate", "review", since="plan"), "proven"),
    (SKIPPED, only_after("gate", "review", since="plan"), "violated plan gate"),
    (SKIPPED, only_after("execute", "review"), "violated plan gate execute"),
    (REVIEWED, never("plan"), "violated plan"),
    (SKIPPED, never("node:END", before="tool:verify"), "violated plan gate execute END"),
    # Tools run at gates and behind them.
    (REVIEWED, only_after("tool:deploy", "node:review"), "proven"),
    (REVIEWED, never("tool:*", before="plan"), "proven"),
    (SKIPPED, only_after("tool:deploy", "node:review"), "unknown plan gate"),
    (REVIEWED, never("tool:deploy"), "unknown plan review gate"),
    (REVIEWED, at_most("tool:search", 5), "unknown plan review gate"),
    # A node without a contract may run any tool.
    (QUIET, never("tool:x"), "proven"),
    (silenced(graph("a: END"), "a"), never("tool:x"), "unknown a"),
    # A rule that is owed at END.
    (graph("a: b END; b: c; c: a"), always_followed_by("a", "b"), "violated a END"),
    (graph("a: b END; b: c; c: a"), always_followed_by("b", "c"), "proven"),
    # A conversation shows tools that ran before the run, and no approvals.
    (QUIET, always_followed_by("approval:deploy", "node:b"), "proven"),
    (QUIET, always_followed_by("tool:*", "node:b"), "unknown a END"),
    (QUIET, at_most("tool:deploy", 1), "proven"),
    (QUIET, never("tool:deploy", before="approval"), "proven"),
    # The bounds of contracts rule paths out.
    (graph(BACK, [("b", Contract(caps={Done: Cap(2)}))]), at_most("a", 3), "proven"),
    (graph(BACK, [("b", Contract(caps={Done: Cap(2)}))]), at_most("a", 2), "violated a b a b a"),
    (graph(BACK), at_most("a", 3), "violated a b a b a b a"),
    (graph(BACK, [("a", OPENS), ("b", COUNTS)]), at_most("a", 3), "proven"),
    (graph(BACK, [("b", COUNTS)]), at_most("a", 3), "violated a b a b a b a"),
    (graph(BACK, [("b", RESET)]), at_most("a", 2), "proven"),
    (graph(BACK, [("b", RESET), ("a", OPENS)]), at_most("a", 2), "violated a b a b a"),
    (silenced(graph(BACK, [("b", RESET)]), "a"), at_most("a", 2), "violated a b a b a"),
    (
        silenced(graph(BACK, [("b", Contract(caps={Done: Cap(1)}))]), "a"),
        at_most("a", 2),
        "proven",
    ),
    # A turn that is opened anew is the same turn.
    (
        graph(
            BACK,
            [
                ("a", OPENS),
                ("b", Contract(caps=COUNTS.caps, moves={Done: frozenset({"again"})})),
            ],
        ),
        at_most("a", 3),
        "violated a b a b a b a",
    ),
]


@pytest.mark.parametrize(("of", "rules", "expected"), VERDICTS)
def test_a_rule_is_decided_with_a_shortest_path(
    of: NodeGraph[None], rules: Rules, expected: str
) -> None:
    """The expected text is the status and the nodes of the path."""
    status, nodes = outcome_of(of, rules)

    assert expected == " ".join([status, *nodes])


def test_an_approved_answer_lets_no_tool_through() -> None:
    """So a plan that is approved before the first gate proves that no tool runs before."""
    approve, plan = Approve(), Limit(1)
    rows: Edges[None] = {
        plan: {Go: approve, ...: END},
        approve: {Accepted: GATE, ...: END},
        GATE: {...: END},
    }
    of: NodeGraph[None] = NodeGraph("g", plan, rows)

    assert "proven" == decide(of, only_after("tool:*", "outcome:approve.accepted")).status


def test_a_reason_says_what_the_monitor_does() -> None:
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


def test_a_handed_in_conversation_may_owe_a_rule() -> None:
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


def test_a_late_violation_in_a_large_graph_has_a_run() -> None:
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
