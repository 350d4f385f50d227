"""Traces: what runs did, counted; where they stand, lit."""

from __future__ import annotations

import pytest

from graphloop.errors import StoreError
from graphloop.events import CallCheck, Event
from graphloop.graph import NodeGraph
from graphloop.policy.approvals import Approval
from graphloop.views.dot import dot_of
from graphloop.views.pictures import picture
from graphloop.views.theme import LIGHT
from graphloop.views.trace import RunTrace, trace, trace_marks
from tests.strategies import Adversary, call, loop, reply

MODELS = (reply("done"), reply(call("read"), call("write")), reply("done"), reply("done"))


def journal(graph: NodeGraph[None], *, approved: bool = True) -> list[Event]:
    """Return the journal of a run of one turn with calls, which may wait for a person."""
    checks = (CallCheck(needs_approval=not approved),)
    decisions = (Approval(True) if approved else None,)
    return Adversary(MODELS, checks=checks, decisions=decisions).run(graph).events


def test_a_run_is_counted_from_its_start_to_its_end() -> None:
    """Every entry into a node but the first is by an outcome."""
    graph = loop()
    found = trace(graph, journal(graph))

    assert found.ended
    assert "END" == found.node
    assert 1 == found.visits["END"]
    entered = found.visits.total() - 1
    assert entered == found.ways.total()
    for name in graph.nodes:
        out = sum(count for (source, _), count in found.ways.items() if source == name)
        assert found.visits[name] == out
    assert sum(tally.tokens for tally in found.spent.values()) > 0


def test_a_run_that_waits_is_lit_where_it_waits_and_says_for_what() -> None:
    """The run may wait for the reader of the picture."""
    graph = loop()
    found = trace(graph, journal(graph, approved=False))
    marks = trace_marks(graph, [found])

    assert "gate" == found.node
    assert "" == found.ended
    assert ("waits for approval of read", "waits for approval of write") == found.waits
    assert "lit" == marks.node_tones["gate"]
    assert "waits for approval of read" in marks.nodes["gate"]
    assert "not over" == marks.title
    assert LIGHT.tones["lit"] in dot_of(picture(graph, marks))


def test_a_stored_answer_is_shown_as_an_answer() -> None:
    """The journal does not hold it before the run is resumed."""
    found = trace(
        graph := loop(),
        journal(graph, approved=False),
        lambda _, ask: "approved" if ask.call.name == "read" else "",
    )

    assert ("read: approved, not resumed yet", "waits for approval of write") == found.waits


def test_several_runs_are_summed_and_told_apart() -> None:
    """Up to four; after that only the sum can be read."""
    graph = loop()
    one, two = trace(graph, journal(graph)), trace(graph, journal(graph, approved=False))
    marks = trace_marks(graph, [one, two])

    assert "6x (6+0)" == marks.outcome_words(("gate", "settled"))
    assert f"2 runs: 1 {one.ended}, 1 not over" == marks.title
    assert "30x" == trace_marks(graph, [one] * 5).outcome_words(("gate", "settled"))


def test_a_journal_without_events_has_done_nothing_and_one_of_another_graph_is_refused() -> None:
    """Counts on the wrong lines would be believed."""
    assert RunTrace() == trace(loop(), [])
    with pytest.raises(StoreError, match="begins with Started"):
        trace(loop(), journal(loop())[1:])
