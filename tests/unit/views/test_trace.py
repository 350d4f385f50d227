"""Traces: the counted path of a run, and the node where it stands."""

from __future__ import annotations

import pytest

from graphloop.errors import StoreError
from graphloop.events import CallCheck, Event
from graphloop.graph import NodeGraph
from graphloop.policy.approvals import Approval
from graphloop.views.trace import RunTrace, run_trace, trace_marks
from tests.strategies import Adversary, call, loop, reply

MODELS = (reply("done"), reply(call("read"), call("write")), reply("done"), reply("done"))


def journal(graph: NodeGraph[None], *, approved: bool = True) -> list[Event]:
    """Return the journal of a run with two calls; it parks if they are not approved."""
    checks = (CallCheck(needs_approval=not approved),)
    decisions = (Approval(True) if approved else None,)
    return Adversary(MODELS, checks=checks, decisions=decisions).run(graph).events


def test_each_visit_but_the_first_follows_an_outcome() -> None:
    graph = loop()
    trace = run_trace(graph, journal(graph))

    assert trace.ended
    assert (trace.node, trace.visits["END"]) == ("END", 1)
    assert trace.visits.total() - 1 == trace.ways.total()
    for name in graph.nodes:
        out = sum(count for (source, _), count in trace.ways.items() if source == name)
        assert trace.visits[name] == out
    assert sum(tally.tokens for tally in trace.spent.values()) > 0


def test_the_node_of_a_parked_run_is_lit_with_its_waits() -> None:
    graph = loop()
    trace = run_trace(graph, journal(graph, approved=False))
    marks = trace_marks(graph, [trace])

    assert (trace.node, trace.ended) == ("gate", "")
    assert trace.waits == ("waits for approval of read", "waits for approval of write")
    assert marks.node_tones["gate"] == "lit"
    assert "waits for approval of read" in marks.nodes["gate"]
    assert marks.title == "not over"


def test_a_stored_answer_is_shown_as_an_answer() -> None:
    graph = loop()
    trace = run_trace(
        graph,
        journal(graph, approved=False),
        answered=lambda _, ask: "approved" if ask.call.name == "read" else "",
    )

    assert trace.waits == ("read: approved, not resumed yet", "waits for approval of write")


def test_the_counts_of_up_to_four_runs_are_listed() -> None:
    graph = loop()
    first = run_trace(graph, journal(graph))
    second = run_trace(graph, journal(graph, approved=False))
    marks = trace_marks(graph, [first, second])

    assert marks.outcome_words(("gate", "settled")) == "6x (6+0)"
    assert marks.title == f"2 runs: 1 {first.ended}, 1 not over"
    assert trace_marks(graph, [first] * 5).outcome_words(("gate", "settled")) == "30x"


def test_more_than_three_waits_are_counted() -> None:
    parked = RunTrace(node="gate", waits=("a", "b", "c", "d", "e"))

    assert trace_marks(loop(), [parked]).nodes["gate"] == "a\nb\nc\nand 2 more"


def test_a_journal_that_does_not_fit_is_refused() -> None:
    assert run_trace(loop(), []) == RunTrace()
    with pytest.raises(StoreError, match="expected Started"):
        run_trace(loop(), journal(loop())[1:])
