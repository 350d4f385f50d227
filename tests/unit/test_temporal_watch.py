"""Watch: the kernel keeps a run's temporal rules as it follows the table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop.effects import AskHuman
from graphloop.events import CallCheck, ToolReturned
from graphloop.graph import Graph
from graphloop.loop import Standard, standard_edges
from graphloop.policy.approvals import Approval
from graphloop.replay import replay
from graphloop.rules import Rules, at_most_once, only_after
from graphloop.testing.sim import Simulation, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import Reply, evolve
from tests.strategies import QUESTION, SETUP, call, reply

READ = at_most_once("tool:read")
FOUND = ToolOutcome("42", "ok")


def watched(
    rules: Rules,
    *replies: Reply,
    asks: bool = False,
    human: Callable[[AskHuman], Approval | None] | None = None,
    outcome: ToolOutcome = FOUND,
    crash_after: tuple[int, ...] = (),
) -> Simulation[None]:
    """Return the standard loop run under these rules."""
    script = iter([*replies, reply("done"), reply("done")])
    nodes = Standard()
    world = World(
        model=lambda _: next(script),
        tool=lambda _: outcome,
        check=lambda effect: tuple(CallCheck(needs_approval=asks) for _ in effect.calls),
        human=human or (lambda _: Approval(approved=True)),
        repeatable=lambda _: True,
    )
    graph = Graph("agent", nodes.prepare, standard_edges(nodes))
    setup = evolve(SETUP, watch=rules.rules)
    done = simulate(graph, QUESTION, world, None, setup=setup, crash_after=crash_after)
    assert done.run == replay(graph, done.events)
    return done


def statuses(simulation: Simulation[None]) -> list[str]:
    """Return how the calls of all turns ended, in order."""
    return [one.status for step in simulation.run.record.steps for one in step.tool_results]


@pytest.mark.parametrize("crash_after", [(), (2, 4), (3, 5, 6)])
def test_a_call_that_a_rule_forbids_is_denied_with_the_rule_named(
    crash_after: tuple[int, ...],
) -> None:
    """Of one batch the first may run; of a later turn none: crashes forget nothing."""
    batch = reply(call("read", "a"), call("read", "b"))

    done = watched(READ, batch, reply(call("read", "c")), crash_after=crash_after)

    results = [one for step in done.run.record.steps for one in step.tool_results]
    assert ["ok", "denied", "denied"] == [one.status for one in results]
    assert "Tool call denied. Rule: tool:read at most once." == results[1].text


def test_a_call_that_may_have_run_does_not_run_again_against_a_rule() -> None:
    """Whoever says yes to it once more: it counted when it was let through."""
    asked: list[AskHuman] = []

    def human(one: AskHuman) -> Approval:
        asked.append(one)
        return Approval(approved=True)

    unknown = ToolOutcome("?", "unknown")
    done = watched(READ, reply(call("read")), asks=True, human=human, outcome=unknown)

    assert ["unknown"] == statuses(done)
    (result,) = done.run.record.steps[0].tool_results
    assert result.text.endswith("it is not run again. Rule: tool:read at most once.")
    assert not any(one.unknown for one in asked)
    assert 1 == sum(isinstance(one, ToolReturned) for one in done.events)


def test_what_has_returned_well_allows_what_waits_for_it() -> None:
    """In the next turn; what failed allows nothing."""
    turns = (reply(call("read"), call("write")), reply(call("write")))
    rules = only_after("tool:write", "tool:read")

    assert ["ok", "denied", "ok"] == statuses(watched(rules, *turns))
    failing = watched(rules, *turns, outcome=ToolOutcome("no", "error"))
    assert ["error", "denied", "denied"] == statuses(failing)


def test_a_run_without_rules_keeps_no_account() -> None:
    """It costs nothing."""
    done = watched(Rules(), reply(call("read")))

    assert ((), frozenset()) == (done.run.watch.monitor.automata, done.run.watch.counted)
