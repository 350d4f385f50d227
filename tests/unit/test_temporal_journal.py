"""A journal told again in the words of rules.

That its verdict is the reference's, for any run, is in tests/property/test_temporal.py.
"""

from __future__ import annotations

import pytest

from graphloop.errors import StoreError
from graphloop.events import CallCheck, Event
from graphloop.graph import END, Graph
from graphloop.outcomes import Done
from graphloop.policy.approvals import Approval
from graphloop.replay import journal_happenings, monitor_after
from graphloop.rules import AtMost, Rules, always_followed_by, at_most
from graphloop.rules.monitor import Monitor
from tests.strategies import Adversary, call, loop, reply
from tests.unit.testing.test_sim import ToolFirst

ASKED = (CallCheck(needs_approval=True),)


def told(graph: Graph[None], events: list[Event]) -> list[str]:
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


def test_a_call_that_is_run_again_after_a_crash_is_told_twice_with_both_approvals() -> None:
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
    graph: Graph[None] = Graph("g", node, {node: {Done: END}})
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

    after = monitor_after(Monitor.of(rule & owing), loop(), batch())

    assert (once, AtMost("tool:*", 1)) == (after.broken[0], once)
    assert owing == Rules(after.owed)


def test_a_journal_without_its_beginning_is_refused() -> None:
    """What came before may be what a rule asks for."""
    with pytest.raises(StoreError, match="begins with Started"):
        list(journal_happenings(loop(), batch()[1:]))
