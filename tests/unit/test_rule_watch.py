"""Happenings: when a tool counts as run, and which calls a gate's rules stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop.effects import AskHuman, CallModel, CallTool, Effect, StartRun
from graphloop.events import (
    CallCheck,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    ToolReturned,
)
from graphloop.graph import NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.outcomes import Outcome, Settled
from graphloop.policy.approvals import Approval
from graphloop.replay import replay
from graphloop.rule_watch import (
    before_the_run,
    on_effects,
    on_leaving,
    on_returning,
    restrained,
    run_again,
)
from graphloop.rules import Rules, at_most, at_most_once, never, only_after
from graphloop.rules.automata import Happening, approved_call, ran, returned
from graphloop.rules.monitor import Monitor
from graphloop.run import History, Run, evolve
from graphloop.testing.sim import Simulation, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.turn import CallVerdict
from graphloop.values import Message, ModelRequest, Reply, ToolResult
from tests.strategies import QUESTION, SETUP, call, replied, reply

RUN, ASKED, DENIED = CallVerdict("run"), CallVerdict("run", asked=True), CallVerdict("deny", "no")
BATCH = reply(call("read"), call("write"), call("read"))


def settled(*verdicts: CallVerdict, results: int = 0) -> Run[None]:
    """Return a run whose gate has decided; the first so many calls have results."""
    run = replied(BATCH, *verdicts)
    if not results:
        return run
    done = [ToolResult(f"c0.{at}", "", "read", "fine") for at in range(results)]
    slots = (*done, *(None,) * (len(BATCH.message.calls) - results))
    return evolve(run, turn=evolve(run.turn, results=slots))


def told(
    run: Run[None], *counted: str, outcome: type[Outcome] = Settled, lets: bool = True
) -> list[str]:
    """Return what happens as a node is left, as words."""
    happened = on_leaving(
        run, node="n", outcome=outcome, target="execute", lets=lets, counted=set(counted)
    )
    return [str(one) for one in happened]


LEFT = ["outcome:n.settled", "node:execute"]


def test_only_a_gate_lets_calls_through() -> None:
    """What other nodes do with verdicts changes nothing."""
    assert LEFT == told(settled(RUN, RUN, RUN), lets=False)


def test_a_call_counts_once_however_many_gates_it_passes() -> None:
    """Two gates in a row are stricter, not twice as dear."""
    assert ["tool:read", *LEFT] == told(settled(RUN, RUN, RUN), "c0.0", "c0.1")


def test_what_has_its_result_is_not_let_through_again() -> None:
    """A gate that is asked once more about what was held sees the others done."""
    assert ["approval:read", "tool:read", *LEFT] == told(settled(RUN, RUN, ASKED, results=2))


def test_a_gate_denies_forbidden_calls_and_names_the_rule() -> None:
    """It is the last moment before they run."""
    monitor = Monitor.of(at_most("tool:read", 1))
    run = settled(RUN, RUN, RUN)

    verdicts = restrained(run, monitor, ()).turn.verdicts
    assert (RUN, RUN) == verdicts[:2]
    assert (
        CallVerdict(
            "deny", "Tool call denied. Rule: tool:read at most once.", by="tool:read at most once"
        )
        == verdicts[2]
    )


def test_a_run_in_which_nothing_is_forbidden_is_left_as_it_is() -> None:
    """Almost all are."""
    run = settled(RUN, RUN, DENIED)

    assert run is restrained(run, Monitor.of(never("tool:other")), ())
    assert run is restrained(run, Monitor.of(at_most("tool:read", 1)), ())


def test_a_tool_without_a_gate_counts_when_it_is_asked_for() -> None:
    """A node of one's own may run tools; its rules hold nevertheless."""
    run, counted = settled(), {"c0.0"}
    effects: tuple[Effect, ...] = (
        CallTool(1, "c0.0", call("read")),
        CallTool(2, "c0.1", call("write")),
        StartRun(3, "c0.2", "helper", "{}", QUESTION),
        CallModel(4, "model", ModelRequest(QUESTION)),
    )

    assert [ran("write"), ran("helper")] == list(on_effects(run, effects, counted=counted))
    assert {"c0.0", "c0.1", "c0.2"} == counted
    assert [] == list(on_effects(run, effects, counted=counted))


def test_a_child_run_that_answers_no_call_is_no_tool() -> None:
    """A node that hands the conversation to an agent is spoken of as a node."""
    effect = StartRun(1, "helper.1", "helper", "", QUESTION)

    assert [] == list(on_effects(settled(), (effect,), counted=set()))


def test_a_tool_returns_with_the_event_that_answers_it() -> None:
    """Well, if its status says so; what failed or is not known has returned all the same."""
    run, tool = settled(RUN), CallTool(1, "c0.0", call("read"))
    child = StartRun(2, "c0.1", "helper", "{}", QUESTION)

    def happened(event: Event, answered: Effect | None) -> list[Happening]:
        return list(on_returning(run, event, answered))

    assert [returned("read", well=True)] == happened(ToolReturned(1.0, 1, "ok"), tool)
    assert [returned("read", well=False)] == happened(ToolReturned(1.0, 1, "?", "unknown"), tool)
    failed = EffectFailed(1.0, 1, Failure("E", "no"))
    assert [returned("read", well=False)] == happened(failed, tool)
    assert [returned("helper", well=True)] == happened(ChildEnded(1.0, 2, "done"), child)
    assert [] == happened(ChildEnded(1.0, 2, "done"), evolve(child, key="helper.1"))
    assert [] == happened(Decided(1.0, 7, approved=True), UNKNOWN)
    assert [] == happened(ToolReturned(1.0, 1, "ok"), None)


def past(*messages: Message, depth: int = 0) -> list[str]:
    """Return what has happened in a conversation that a run begins with, as words."""
    run = evolve(settled(), messages=History(messages))
    run = evolve(run, setup=evolve(run.setup, depth=depth))
    happened = list(before_the_run(run))
    assert all(one.past for one in happened)
    return [one.words[-2] for one in happened]


def test_a_conversation_that_goes_on_tells_what_has_run() -> None:
    """Before its last question that counts against what is allowed, and allows nothing."""
    ok, denied = ToolResult("c0.0", "", "read", "x"), ToolResult("c0.1", "", "write", "x", "denied")
    failed = ToolResult("c0.2", "", "write", "x", "error")
    question = QUESTION[-1]

    expected = ["earlier:read", "tool:read", "well:read", "tool:write", "ended:write"]
    assert expected == past(question, ok, denied, question, ok, denied, failed)
    assert [] == past(question, ok, question)
    assert [] == past(question, ok, depth=1)
    assert [] == past()


UNKNOWN = AskHuman(7, "c0.1", call("write"), unknown=True)
WAITING = settled(ASKED, ASKED, ASKED)
AGAIN = evolve(WAITING, turn=evolve(WAITING.turn, again=frozenset({1})))


def test_a_call_that_a_person_wants_run_again_counts_again() -> None:
    """It may have happened, and may happen once more: that is two."""
    happened = list(run_again(Decided(1.0, 7, approved=True), UNKNOWN, AGAIN))

    assert [approved_call("write"), ran("write")] == happened


@pytest.mark.parametrize(
    ("event", "answered", "run"),
    [
        (Decided(1.0, 7, approved=False), UNKNOWN, AGAIN),
        (Decided(1.0, 7, approved=True), evolve(UNKNOWN, unknown=False), AGAIN),
        (Decided(1.0, 7, approved=True), UNKNOWN, WAITING),
        (ToolReturned(1.0, 8, "ok"), CallTool(8, "c0.1", call("write")), AGAIN),
        (Decided(1.0, 7, approved=True), None, AGAIN),
    ],
)
def test_a_call_that_is_not_run_again_does_not_count_again(
    event: Event, answered: Effect | None, run: Run[None]
) -> None:
    """Denied, too late, edited, or the budget is spent: it has its result instead."""
    assert [] == list(run_again(event, answered, run))


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
    graph = NodeGraph("agent", nodes.prepare, standard_edges(nodes))
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
