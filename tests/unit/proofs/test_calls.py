"""What becomes of calls: every place of the standard loop is one that a run can be in."""

from __future__ import annotations

import pytest

from graphloop.conversation.compaction import Compaction
from graphloop.graph import END, Edges, NodeGraph
from graphloop.nodes import (
    Append,
    Child,
    Compact,
    Execute,
    Extend,
    Function,
    Gate,
    Limit,
    MapOver,
    ModelCall,
    PrepareStep,
)
from graphloop.outcomes import (
    Answered,
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Compacted,
    Done,
    Final,
    Go,
    Ready,
    Resend,
    Retry,
    Settled,
    Stop,
    Truncated,
    Unplanned,
)
from graphloop.proofs.checking import check
from tests.topology_data import MUTANTS, graph_of, standard

ROOM = Compaction(1_000)

NAMES = (
    "append skipped after running",
    "calls skipped",
    "calls dropped for another reply",
    "executed twice",
    "turn not opened",
    "cut calls let through",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_without_its_one_answer_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven


@pytest.mark.parametrize("opened", [True, False])
def test_a_model_is_asked_only_where_a_turn_is_open(opened: bool) -> None:
    """Calls of two replies of one turn would have one key, and the second would not run."""
    prepare, model, append, limit = PrepareStep(), ModelCall(), Append(), Limit(3)
    gate, execute = Gate(), Execute()
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gate, ...: append},
        model: {Calls: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {ApprovalNeeded: gate, ...: append},
        append: {AnsweredCalls: limit, Resend: limit, ...: END},
        limit: {Go: prepare if opened else model, Stop: END},
    }
    report = check(NodeGraph("again", prepare, edges))

    found = [one for one in report.findings if one.code == "GL3"]
    assert opened == (not found)
    assert all("no turn is open" in one.message and one.node == "model_call" for one in found)
    assert all(one.witness[-2:] == ("limit", "model_call") for one in found)


def test_a_plan_that_cannot_be_read_opens_no_turn() -> None:
    """Nor does an agent that fails: only those that answer have opened one."""
    plan, tasks, model, append = Child("planner"), MapOver("kid", 3), ModelCall(), Append()
    noted = Append(name="noted")
    edges: Edges[None] = {
        plan: {Answered: noted, ...: END},
        noted: {Final: tasks, ...: END},
        tasks: {Answered: append, Unplanned: model, ...: END},
        model: {...: append},
        append: {...: END},
    }
    report = check(NodeGraph("plan", plan, edges))

    found = [one for one in report.findings if one.code == "GL3"]
    assert [("planner", "noted", "map_over", "model_call")] == [one.witness for one in found]
    assert "no turn is open" in found[0].message


@pytest.mark.parametrize("where", ["before the gate", "after the tools", "by an Extend"])
def test_calls_that_are_thrown_away_on_the_way_are_found_there(where: str) -> None:
    """An Extend and a Compact begin anew without them, and a PrepareStep finds none to take up."""
    prepare, model, append, limit = PrepareStep(), ModelCall(), Append(), Limit(3)
    gate, execute, compact, extend = Gate(), Execute(), Compact(compaction=ROOM), Extend()
    early, late = where == "before the gate", where == "after the tools"
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gate, ...: append},
        model: {Calls: compact if early else gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {
            ApprovalNeeded: gate,
            Done: append if early else compact if late else extend,
            ...: append,
        },
        append: {AnsweredCalls: limit, Resend: limit, ...: END},
        limit: {Go: prepare, Stop: END},
    }
    if early or late:
        edges = {**edges, compact: {Compacted: limit, ...: append}}
    else:
        edges = {**edges, extend: {Retry: limit, ...: append}}
    report = check(NodeGraph("lost", prepare, edges))

    (found,) = (one for one in report.findings if one.code == "GL3")
    assert ("extend" if where == "by an Extend" else "compact") == found.node
    assert ("never answered" if early else "never reach the history") in found.message
    assert "Append first" in found.fix


def test_a_function_that_leaves_by_retry_throws_nothing_away() -> None:
    """Calls of a reply that was cut are still there behind it, and must not run."""
    prepare, model, append, gate, execute = PrepareStep(), ModelCall(), Append(), Gate(), Execute()
    again = Function("again", frozenset({Retry}), kind="prepare")
    edges: Edges[None] = {
        prepare: {Ready: model, ...: append},
        model: {Calls: gate, Truncated: again, ...: append},
        again: {Retry: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {...: append},
        append: {...: END},
    }
    report = check(NodeGraph("cut", prepare, edges))

    assert ["execute"] == [one.node for one in report.findings if "cut or refused" in one.message]
