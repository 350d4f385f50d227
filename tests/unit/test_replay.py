"""replay: a journal, or a clear word why it is none."""

from __future__ import annotations

from itertools import chain

import pytest

from graphloop.errors import IllegalEvent, StoreError
from graphloop.events import CallCheck, Cancelled, Event, Setup, Started
from graphloop.graph import END, NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Leave, Node, Reaction
from graphloop.nodes import Gate
from graphloop.outcomes import Done, Outcome, outcome_name
from graphloop.policy.approvals import Approval
from graphloop.policy.policy import deny
from graphloop.replay import journal_happenings, overheard, replay
from graphloop.rules import AtMost, Rules, always_followed_by, at_most
from graphloop.rules.monitor import Monitor
from graphloop.values import FinishReason
from tests.strategies import QUESTION, Adversary, call, loop, reply
from tests.unit.testing.test_sim import ToolFirst


def test_an_empty_journal_is_no_run() -> None:
    """A torn first line leaves one."""
    with pytest.raises(StoreError, match="empty"):
        replay(loop(), [])


def test_a_journal_begins_with_started() -> None:
    """Anything else has lost its beginning."""
    with pytest.raises(StoreError, match="first event, found Cancelled"):
        replay(loop(), [Cancelled(0.0)])


def test_a_journal_of_another_graph_is_refused() -> None:
    """Its events may even fit, and mean something else."""
    other = Started(0.0, "r", "other", QUESTION, Setup())

    with pytest.raises(StoreError, match="of graph 'other', not of 'agent'"):
        replay(loop(), [other])


def test_a_journal_of_a_changed_graph_is_refused_with_the_event() -> None:
    """Its gate was laxer when the call ran."""
    simulation = Adversary((reply("done"), reply(call("read")))).run(loop())
    nodes = Standard(gate=Gate(rules=deny("*").rules))
    stricter: NodeGraph[None] = NodeGraph("agent", nodes.prepare, standard_edges(nodes))

    with pytest.raises(IllegalEvent, match=r"event 5 .*'agent': .*rule of its gates.*Fix: "):
        replay(stricter, simulation.events)


DONE = Adversary((reply("done", finish=FinishReason.STOP), reply(call())))


def test_every_way_that_a_node_is_left_is_heard_in_order() -> None:
    """And the run is the same as without anybody listening."""
    left: list[tuple[str, str]] = []

    def hear(node: Node[None, Outcome], reaction: Reaction[None, Outcome]) -> None:
        if isinstance(reaction, Leave):
            left.append((node.name, outcome_name(type(reaction.outcome))))

    graph = loop()
    heard = DONE.run(overheard(graph, hear))

    assert DONE.run(graph).run == heard.run
    assert [("prepare_step", "ready"), ("model_call", "calls"), ("gate", "settled")] == left[:3]
    assert ("verify", "accepted") == left[-1]


def test_the_table_is_the_graph_s_own() -> None:
    """What is drawn and proven of one holds for the other."""
    graph = loop()
    heard = overheard(graph, lambda node, reaction: None)

    assert (graph.table, graph.start, graph.name) == (heard.table, heard.start, heard.name)
    assert [(one.name, one.kind, one.outcomes) for one in graph.nodes.values()] == [
        (one.name, one.kind, one.outcomes) for one in heard.nodes.values()
    ]


ASKED = (CallCheck(needs_approval=True),)


def told(graph: NodeGraph[None], events: list[Event]) -> list[str]:
    """Return the words of all that happens in a journal."""
    return [str(one) for happened in journal_happenings(graph, events) for one in happened]


def batch(checks: tuple[CallCheck, ...] = (CallCheck(),)) -> list[Event]:
    """Return the journal of one turn with two calls, and an answer."""
    models = (reply("done"), reply(call("read"), call("write")), reply("done"), reply("done"))
    return Adversary(models, checks=checks, decisions=(Approval(True),)).run(loop()).events


def test_an_approval_comes_right_before_its_call() -> None:
    """So each lets its own call through, and no other."""
    tools = [one for one in told(loop(), batch(ASKED)) if one.startswith(("tool", "approval"))]

    assert ["approval:read", "tool:read", "approval:write", "tool:write"] == tools


def test_a_call_run_again_after_a_crash_counts_with_both_approvals() -> None:
    """Nobody knows whether the first one took effect: whoever counts must count both."""
    adversary = Adversary(
        (reply("done"), reply(call("read"))), checks=ASKED, decisions=(Approval(True),)
    )
    calm = adversary.run(loop(max_steps=1))
    begun = [type(one).__name__ for one in calm.events].index("EffectsStarted") + 1

    simulation = adversary.run(loop(max_steps=1), crash_after=(begun,))

    tools = [one for one in told(loop(), simulation.events) if one.startswith(("tool", "appr"))]
    assert ["approval:read", "tool:read"] * 2 == tools


def test_a_node_that_runs_a_tool_without_a_gate_is_told_of() -> None:
    """Nobody let the call through; it runs all the same."""
    node = ToolFirst()
    graph: NodeGraph[None] = NodeGraph("g", node, {node: {Done: END}})
    events = Adversary((reply("done"),)).run(graph).events

    assert [
        "node:tool_first",
        "tool:read",
        "ended:read",
        "outcome:tool_first.done",
        "node:END",
    ] == told(graph, events)


def test_a_monitor_is_led_through_a_journal() -> None:
    """A journal from before there was a rule can be judged by it."""
    (once,) = rule = at_most("tool:*", 1)
    owing = always_followed_by("tool:read", "tool:nothing")

    after = Monitor.of(rule & owing)
    for happened in chain.from_iterable(journal_happenings(loop(), batch())):
        after = after.after(happened)

    assert (once, AtMost("tool:*", 1)) == (after.broken[0], once)
    assert owing == Rules(after.owed)


def test_a_journal_without_its_beginning_is_refused() -> None:
    """What came before may be what a rule asks for."""
    with pytest.raises(StoreError, match="expected Started"):
        list(journal_happenings(loop(), batch()[1:]))
